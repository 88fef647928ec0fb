"""The GPU of a node, by the labels that NVIDIA's GPU Feature Discovery sets. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from triton_converters.contract.document import Document
from triton_operator.names import GPU_PRODUCT_LABEL

DRIVER = ("nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.major")
CUDA = ("nvidia.com/cuda.runtime-version.full", "nvidia.com/cuda.runtime.major")
"""The labels with a version, the best first; older releases of GPU Feature Discovery set only the second."""


@dataclass(frozen=True)
class NodeGpu(Document):
    """What a node says of its GPUs; empty fields: nothing."""

    product: str = ""
    driver: str = ""
    """The versions of the driver, and of CUDA in it, in words."""


NO_GPU = NodeGpu()
"""Nothing is known of a GPU."""


@dataclass(frozen=True)
class Nodes:
    """What a pass asks of the cluster's nodes."""

    has_product: bool | None = None
    """Whether one has the GPU product that candidates are built for; None: none is, or nodes may not be read."""
    gpus: Mapping[str, NodeGpu] = field(default_factory=dict)
    """The GPUs of those that ``snapshot.measured_nodes`` returns, by their names."""


def gpu_of(labels: Mapping[str, str], resource_name: str) -> NodeGpu:
    """Return the GPU that a node offers by an extended resource. A MIG device has a product label of its own name."""
    driver, cuda = (next(filter(None, (labels.get(each, "") for each in group)), "") for group in (DRIVER, CUDA))
    words = ", CUDA ".join(filter(None, (driver, cuda))) if driver else ""
    return NodeGpu(labels.get(f"{resource_name}.product") or labels.get(GPU_PRODUCT_LABEL, ""), words)
