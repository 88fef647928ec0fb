"""The GPUs of this machine, as its driver tells of them."""

import subprocess
from dataclasses import dataclass

from triton_operator.names import GPU_PRODUCT_LABEL
from triton_operator.observed.gpu import DRIVER

ASKING = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
WHOLE_GPU = "nvidia.com/gpu"
"""The resource that stands for a GPU in the limits of a container."""
ANSWER_SECONDS = 30.0
"""A driver that has not kept its state takes seconds to start."""


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    product: str
    """The name that NVIDIA's GPU Feature Discovery writes into a node's label."""
    driver: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels of a node that has it."""
        return {GPU_PRODUCT_LABEL: self.product, DRIVER[0]: self.driver}


def gpus() -> tuple[Gpu, ...]:
    """Return the GPUs in the order of their PCI buses; none if the driver's own program shows none."""
    try:
        said = subprocess.run(ASKING, capture_output=True, text=True, check=True, timeout=ANSWER_SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    lines = (line.rpartition(", ") for line in said.splitlines())
    return tuple(Gpu(name.replace(" ", "-"), driver) for name, _, driver in lines if name)
