"""The inputs and outputs that a config.pbtxt declares, as a spec declares them. Pure."""

from typing import Any, get_args

from triton_converters.contract.text import quoted
from triton_operator.api.ensemble import DataType
from triton_plugin.drafting.triton_repository import pbtxt
from triton_plugin.drafting.triton_repository.notes import Notes
from triton_plugin.drafting.triton_repository.pbtxt import Config

TYPES = get_args(DataType)
TYPE = "TYPE_"
Tensors = list[dict[str, Any]]


def declared(name: str, config: Config, side: str, notes: Notes) -> Tensors:
    """Return the tensors of a side, ``input`` or ``output``; what cannot be declared is told of the model ``name``."""
    return [_tensor(name, each, side, notes) for each in getattr(config, side)]


def _tensor(model: str, given: Config, side: str, notes: Notes) -> dict[str, Any]:
    name, dims = given.name, list(given.dims)
    kind = pbtxt.word(given, "data_type").removeprefix(TYPE)
    kind = "BYTES" if kind == "STRING" else kind
    if kind not in TYPES:
        given_type = "of no type" if kind == "INVALID" else quoted(kind)
        message = f"{side} {quoted(name)} is {given_type}, but may be {', '.join(TYPES[:-1])} or STRING"
        notes.faults.append((model, f"{message}: change it in config.pbtxt and in what makes it"))
    if not dims:
        notes.faults.append((model, f"{side} {quoted(name)} has no dims: list them"))
    if given.HasField("reshape"):
        message = f"{side} {quoted(name)} is reshaped: declare the shape that the model has, and remove reshape"
        notes.faults.append((model, message))
    return {"name": name, "dataType": kind, "dims": dims}
