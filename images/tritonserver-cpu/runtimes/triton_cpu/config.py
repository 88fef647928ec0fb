"""A model's configuration, as far as these backends need it. Pure: no server, no runtime."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ModelError(Exception):
    """A model that cannot be loaded; the message is what Triton reports."""


@dataclass(frozen=True)
class Tensor:
    """An input or output: `data_type` in config.pbtxt's words; `dims` without the batch dimension, -1 for any."""

    name: str
    data_type: str
    dims: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True)
class Config:
    """One version of a model; `file` is its model file, `instances` the number of them in this server."""

    name: str
    version: str
    file: Path
    platform: str
    max_batch_size: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    instances: int
    parameters: Mapping[str, str]
    graph_level: int | None
    device: str
    """PyTorch's name of where this instance computes."""
    gpu_accelerators: tuple[str, ...]
    cpu_accelerators: tuple[str, ...]

    def integer(self, key: str) -> int | None:
        """Read a parameter that is an integer, or None without it. Raises ModelError."""
        text = self.parameters.get(key)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise ModelError(f"failed to convert parameter '{key}' with value '{text}' to integral number") from None

    def boolean(self, key: str) -> bool | None:
        """Read a parameter that is a boolean, or None without it. Raises ModelError."""
        text = self.parameters.get(key)
        if text is None:
            return None
        values = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in values:
            raise ModelError(f"failed to convert parameter '{key}' with value '{text}' to bool")
        return values[text.lower()]


def parse(arguments: Mapping[str, str]) -> Config:
    """Read what Triton's Python backend hands to `initialize`. Raises ModelError for what is not served here."""
    raw: dict[str, Any] = json.loads(arguments["model_config"])
    name = arguments["model_name"]
    for key in ("sequence_batching", "batch_input", "batch_output"):
        if raw.get(key):
            raise ModelError(f"unable to load model '{name}', {key} is not supported by this backend for CPUs")
    if raw.get("model_operations", {}).get("op_library_filename"):
        raise ModelError(
            f"unable to load model '{name}', op_library_filename is not supported by this backend for CPUs"
        )
    optimization = raw.get("optimization", {})
    accelerators = optimization.get("execution_accelerators", {})
    level = optimization.get("graph", {}).get("level")
    return Config(
        name=name,
        version=arguments["model_version"],
        file=Path(arguments["model_repository"], arguments["model_version"], raw["default_model_filename"]),
        platform=raw.get("platform", ""),
        max_batch_size=int(raw["max_batch_size"]),
        inputs=tuple(_tensor(name, io) for io in raw.get("input", [])),
        outputs=tuple(_tensor(name, io) for io in raw.get("output", [])),
        instances=sum(int(group.get("count", 1)) for group in raw.get("instance_group", [])) or 1,
        parameters={key: value.get("string_value", "") for key, value in raw.get("parameters", {}).items()},
        graph_level=None if level is None else int(level),
        device=device(arguments["model_instance_kind"], arguments["model_instance_device_id"]),
        gpu_accelerators=tuple(item["name"] for item in accelerators.get("gpu_execution_accelerator", [])),
        cpu_accelerators=tuple(item["name"] for item in accelerators.get("cpu_execution_accelerator", [])),
    )


def device(kind: str, number: str) -> str:
    """Return PyTorch's name of the device of an instance: of its kind, as the server has resolved it, and number."""
    return f"cuda:{number}" if kind == "GPU" else "cpu"


def _tensor(model: str, io: Mapping[str, Any]) -> Tensor:
    if io.get("allow_ragged_batch"):
        raise ModelError(
            f"unable to load model '{model}', ragged input '{io['name']}' is not supported by this backend for CPUs"
        )
    # With a reshape, that is the shape the model sees; the server applies it to requests and responses.
    dims = io["reshape"].get("shape", []) if "reshape" in io else io.get("dims", [])
    return Tensor(io["name"], io["data_type"], tuple(int(dim) for dim in dims), bool(io.get("optional")))


def check_file(config: Config, file: Path) -> None:
    """Raise ModelError if the model file is not there."""
    if not file.exists():
        raise ModelError(f"unable to find '{file}' for model instance '{config.name}'")
