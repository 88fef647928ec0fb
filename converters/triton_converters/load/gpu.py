"""The GPU that the operator gave to a container, and the failure where its framework does not see it."""

import os

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user import rehearsal

GIVEN = "NVIDIA_TF32_OVERRIDE"
"""The variable that the operator sets for every container with a GPU, and whose name no spec may use."""
ADVICE = (
    "update the driver of the node, or choose an image for that driver in spec.conversion.image; if NVIDIA's runtime is"
    " not the default of the nodes, set spec.pod.runtimeClassName: nvidia, which the Helm value"
    " userCode.runtimeClassName replaces"
)


_used: list[str] = []
"""The names of the GPUs that a framework of this process computes on."""


def is_given() -> bool:
    """Whether this container was given a GPU."""
    return GIVEN in os.environ and not rehearsal.has_no_gpu()


def note(name: str) -> None:
    """Note that a framework of this process computes on a GPU."""
    if name not in _used:
        print(f"the framework computes on {name}", flush=True)
        _used.append(name)


def device_name() -> str:
    """Return the name of the GPU that a framework of this process computes on; empty: all compute on the CPU."""
    return _used[0] if _used else ""


def unseen(framework: str, words: str) -> StageError:
    """Return the failure of a Job whose framework has CUDA and sees no GPU; ``words``: its own about that."""
    message = f"the Job has a GPU, but {framework} does not see it: {' '.join(words.split()):.400}"
    return StageError(Reason.GPU_UNAVAILABLE, f"{message}; {ADVICE}")
