"""Fields of the status that had other names before, and how what an older operator wrote is read.

The CRD keeps the old names for one release: the API server prunes a field that the schema lacks also when it reads a
stored object, and so would take the figures of the active revision along. Whoever wrote them owns them: the first pass
of this operator writes the new names in their place. A field whose type is another one got another name as well,
because the API server merges no apply into a stored object that does not fit its schema.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_operator.api import quantity
from triton_operator.api.duration import measured, written

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class OldField:
    """A field of the status that has another name now, and perhaps another form."""

    new: str
    """The present name of the field, on the wire."""
    schema: Schema
    """The schema that it had, without the description."""
    now: Callable[[Any], Any]
    """Return the value in its present form. Raises an error of Python's for a value that the field never had."""


def _latency(microseconds: Any) -> str:
    return measured(_integer(microseconds))


def _memory(count: Any) -> str:
    return quantity.total([str(_integer(count))])


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no integer")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _config(old: Any) -> dict[str, Any]:
    config: dict[str, Any] = {name: _integer(old[name]) for name in ("maxBatchSize", "instances")}
    if old.get("dynamicBatching"):
        config["dynamicBatching"] = {"maxQueueDelay": written(_integer(old.get("maxQueueDelayMicroseconds", 0)), "us")}
        if sizes := [_integer(each) for each in old.get("preferredBatchSizes", ())]:
            config["dynamicBatching"]["preferredBatchSizes"] = sizes
    return config | ({"cudaGraphs": True} if old.get("cudaGraphs") else {})


_INTEGER = {"type": "integer"}


def _key(new: str) -> OldField:
    return OldField(new, {"type": "string"}, _text)


_P99 = {"p99LatencyMicroseconds": OldField("p99Latency", _INTEGER, _latency)}
_CONFIGURATION = {
    "configuration": OldField(
        "config",
        {
            "type": "object",
            "properties": {
                "maxBatchSize": _INTEGER,
                "instances": _INTEGER,
                "dynamicBatching": {"type": "boolean"},
                "preferredBatchSizes": {"type": "array", "maxItems": 16, "items": _INTEGER},
                "maxQueueDelayMicroseconds": _INTEGER,
                "cudaGraphs": {"type": "boolean"},
            },
        },
        _config,
    )
}
_LATENCIES = {
    **{each: f"{each}Latency" for each in ("p50", "p90", "p95", "p99", "average")},
    **{each: f"{each}Time" for each in ("clientSend", "network", "queue", "clientReceive")},
    **{each: f"{each}Time" for each in ("computeInput", "computeInfer", "computeOutput")},
}
FIELDS: Mapping[str, Mapping[str, OldField]] = {
    "CandidateStatus": {
        "key": _key("revision"),
        "profile": _key("profileKey"),
        **_P99,
        **_CONFIGURATION,
    },
    "SearchStatus": {**_P99, **_CONFIGURATION},
    "ServingStatus": _P99,
    "SaturationStatus": _P99,
    "RowStatus": {
        **{old: OldField(new, _INTEGER, _latency) for old, new in _LATENCIES.items()},
        "usedMemoryBytes": OldField("memory", _INTEGER, _memory),
    },
    "SourceStatus": {"resolved": _key("downloadedVersion"), "revision": _key("version")},
    "Images": {"commands": OldField("commandsVersion", _INTEGER, _integer), "asked": _key("requestDigest")},
}
"""The old fields by the name of the type that had them, and by their old names."""


def read(kind: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a type of the status under their present names; what they never held is left out.

    A field that has its present name already wins. ``kind``: the name of the type. ``values``: of any shape.
    """
    fields = FIELDS.get(kind, {})
    if fields.keys().isdisjoint(values):
        return values
    found = {name: value for name, value in values.items() if name not in fields}
    for name, field in fields.items():
        if name in values:
            try:
                found.setdefault(field.new, field.now(values[name]))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue
    return found
