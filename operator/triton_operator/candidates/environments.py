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
"""The fields that have to be equal, each with its name for messages. The image's versions stand for its name. A GPU
is unknown where the operator may not read nodes, and then differs from none."""


def differences(one: Environment | EnvironmentStatus, other: Environment | EnvironmentStatus) -> Iterator[str]:
    """Yield each difference in words; if there is none, the figures may be compared."""
    for name, field in FIELDS:
        one_value, other_value = getattr(one, field), getattr(other, field)
        is_unknown = field == "gpu_product" and one.device == other.device and not (one_value and other_value)
        if one_value != other_value and not is_unknown:
            yield f"{name} differs: {one_value or 'none'} and {other_value or 'none'}"
