"""Whether the figures of two measurements may be compared. docs/measuring.md says what they depend on. Pure."""

from collections.abc import Iterator

from triton_converters.contract.results import Environment
from triton_operator.api.measured_status import EnvironmentStatus

FIELDS = (
    ("device", "device"),
    ("GPU", "gpu_product"),
    ("TensorRT", "tensorrt_version"),
    ("Triton server", "server_version"),
    ("processor", "cpu"),
)
"""Name for messages, and field. The image's name is not among them, because its versions are."""


def differences(one: Environment | EnvironmentStatus, other: Environment | EnvironmentStatus) -> Iterator[str]:
    """Yield each difference in words; if there is none, the figures may be compared."""
    for words, field in FIELDS:
        ours, theirs = getattr(one, field), getattr(other, field)
        if ours != theirs:
            yield f"{words} differs: {ours or 'none'} and {theirs or 'none'}"
