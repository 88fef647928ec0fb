"""The configuration of a model as a Python file reads and completes it: helpers of Triton's Python backend. Pure."""

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy

Config = dict[str, Any]
NUMPY_BY_NAME: Mapping[str, Any] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": numpy.uint8,
    "TYPE_UINT16": numpy.uint16,
    "TYPE_UINT32": numpy.uint32,
    "TYPE_UINT64": numpy.uint64,
    "TYPE_INT8": numpy.int8,
    "TYPE_INT16": numpy.int16,
    "TYPE_INT32": numpy.int32,
    "TYPE_INT64": numpy.int64,
    "TYPE_FP16": numpy.float16,
    "TYPE_FP32": numpy.float32,
    "TYPE_FP64": numpy.float64,
    "TYPE_STRING": numpy.object_,
}
"""TRITON_STRING_TO_NUMPY of the backend's module."""
NUMBERS = tuple(NUMPY_BY_NAME.values())
"""The types in the order of their numbers, which begin with 1."""
INVALID = "TYPE_INVALID"


class ModelConfig:
    """The configuration that ``auto_complete_config`` completes."""

    def __init__(self, model_config: str) -> None:
        """Read the configuration from JSON."""
        self._config: Config = json.loads(model_config)

    def as_dict(self) -> Config:
        """Return the configuration."""
        return self._config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Set the largest batch; raises ValueError if it is smaller than what is set already."""
        known = self._config["max_batch_size"]
        if known > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {known}, but in auto-complete-config function for model"
                f" '{self._config['name']}' specified max_batch_size {max_batch_size}"
            )
        self._config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Turn the dynamic batcher on if nothing else schedules; raises ValueError if something does."""
        for scheduler in ("sequence_batching", "ensemble_scheduling"):
            if scheduler in self._config:
                raise ValueError(f"Configuration specified scheduling_choice as '{scheduler}'")
        self._config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, policy: Mapping[str, Any]) -> None:
        """Set whether the model is decoupled; raises ValueError for other settings, and for another value than set."""
        if list(policy) != ["decoupled"]:
            raise ValueError("model transaction policy contains property other than 'decoupled'.")
        known = self._config.setdefault("model_transaction_policy", dict(policy))
        if known["decoupled"] != policy["decoupled"]:
            raise ValueError(f"unable to load model '{self._config['name']}', the model's transaction policy differs")

    def add_input(self, tensor: Config) -> None:
        """Add an input, or complete one of its name; raises ValueError for unknown properties and contradictions."""
        self._add("input", tensor, ("name", "data_type", "dims", "optional"))

    def add_output(self, tensor: Config) -> None:
        """Add an output, or complete one of its name; raises ValueError for unknown properties and contradictions."""
        self._add("output", tensor, ("name", "data_type", "dims"))

    def _add(self, side: str, tensor: Config, properties: tuple[str, ...]) -> None:
        model = self._config["name"]
        where = f"{side} '{tensor.get('name')}' in auto-complete-config function for model '{model}'"
        if unknown := sorted(set(tensor) - set(properties)):
            raise ValueError(f"{where} contains property other than {', '.join(properties)}: {unknown[0]}")
        for each in properties[:3]:
            if each not in tensor:
                raise ValueError(f"{where} is missing '{each}' property.")
        for known in self._config[side]:
            if known["name"] == tensor["name"]:
                _check_alike(model, known, tensor)
                known.update(tensor)
                return
        self._config[side].append(tensor)


def _check_alike(model: str, known: Config, tensor: Config) -> None:
    name = tensor["name"]
    if known["data_type"] not in (INVALID, tensor["data_type"]):
        types = f"configuration expects datatype {known['data_type']} for '{name}', model provides"
        raise ValueError(f"unable to load model '{model}', {types} {tensor['data_type']}")
    if known["dims"] and known["dims"] != tensor["dims"]:
        dims = f"the model expects dims {tensor['dims']} but the model configuration specifies dims {known['dims']}"
        raise ValueError(f"model '{model}', tensor '{name}': {dims}")
    if known.get("optional", tensor.get("optional")) != tensor.get("optional", known.get("optional")):
        raise ValueError(f"model '{model}', tensor '{name}': the model and its configuration differ in 'optional'")


def get_input_config_by_name(model_config: Config, name: str) -> Config | None:
    """Return the properties of an input; None: there is no such input."""
    return _named(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: Config, name: str) -> Config | None:
    """Return the properties of an output; None: there is no such output."""
    return _named(model_config.get("output", ()), name)


def _named(tensors: Iterable[Config], name: str) -> Config | None:
    return next((each for each in tensors if each["name"] == name), None)


def using_decoupled_model_transaction_policy(model_config: Config) -> bool:
    """Whether the configuration says that a request may have several responses or none."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def triton_to_numpy_type(data_type: int) -> Any:
    """Return the NumPy type of a number; None: a tensor of that type has none."""
    if data_type == 1:
        return numpy.bool_
    return NUMBERS[data_type - 1] if 1 <= data_type <= len(NUMBERS) else None


def numpy_to_triton_type(data_type: Any) -> int | None:
    """Return the number of a NumPy type; None: a tensor cannot have it."""
    found = (number for number, known in enumerate(NUMBERS, start=1) if data_type == triton_to_numpy_type(number))
    return len(NUMBERS) if data_type == numpy.bytes_ else next(found, None)


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """Return the NumPy type of a name in a configuration; raises KeyError if a tensor of that type has none."""
    return NUMPY_BY_NAME[triton_type_string]


def serialize_byte_tensor(input_tensor: numpy.ndarray[Any, Any]) -> bytes | tuple[()] | None:
    """Return texts as they are sent: each with its length before it; None: the array holds something else."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    items = [item if isinstance(item, bytes) else str(item).encode() for item in input_tensor.ravel().tolist()]
    return b"".join(struct.pack("<I", len(item)) + item for item in items)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> numpy.ndarray[Any, Any]:
    """Return an array of bytes of what ``serialize_byte_tensor`` returned; raises struct.error if it was cut."""
    items: list[bytes] = []
    offset = 0
    while offset < len(encoded_tensor):
        (length,) = struct.unpack_from("<I", encoded_tensor, offset)
        items += struct.unpack_from(f"<{length}s", encoded_tensor, offset + 4)
        offset += 4 + length
    return numpy.array(items, dtype=object)
