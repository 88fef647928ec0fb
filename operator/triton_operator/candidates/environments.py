"""Whether the figures of two measurements may be compared. docs/measuring.md says what they depend on. Pure."""

from collections.abc import Iterator

from triton_converters.contract.results import Environment
from triton_operator.api.measured_status import EnvironmentStatus

FIELDS = (
    ("device", "device"),
    ("GPU", "gpu_product"),
    ("GPU driver", "gpu_driver"),
    ("TensorRT", "tensorrt_version"),
    ("Triton server", "server_version"),
    ("processor", "cpu"),
)
"""The fields that have to be equal, each with its name for messages. The image's versions stand for its name. The
processor's has the cores that the client had."""
OF_NODES = ("gpu_product", "gpu_driver")
"""Those that are unknown where the operator may not read nodes; what is unknown differs from nothing."""


def differences(one: Environment | EnvironmentStatus, other: Environment | EnvironmentStatus) -> Iterator[str]:
    """Yield each difference in words; if there is none, the figures may be compared."""
    for name, field in FIELDS:
        one_value, other_value = getattr(one, field) or "", getattr(other, field) or ""
        is_unknown = field in OF_NODES and one.device == other.device and not (one_value and other_value)
        if one_value != other_value and not is_unknown:
            yield f"{name} differs: {one_value or 'none'} and {other_value or 'none'}"
