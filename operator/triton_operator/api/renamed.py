"""Fields and values of the spec that had other names before: one table, and what is done by it.

The CRD keeps the old names for one release: the API server prunes a field that the schema lacks also when it reads a
stored object, and so would take the name and the retention of a claim. The operator refuses them: it starts and deletes
nothing until somebody writes the new names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import yaml

from triton_operator.api import quantity
from triton_operator.api.duration import amount, written
from triton_operator.api.metrics import NAMES

Schema = Mapping[str, Any]
Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class RenamedField:
    """A field with another name, and perhaps another unit or shape."""

    old: str
    """Path of the old field in the spec, such as `models[].config.dynamicBatching.maxQueueDelayMicroseconds`."""
    new: str
    example: Any
    """A value of the old field."""
    schema: Schema | None = None
    """The schema of the old field; None: that of the new one."""
    now: Convert = _same
    """Return the value as it is written under the new name."""
    before: Convert = _same
    """Return the value as it was written under the old name."""


@dataclass(frozen=True)
class RenamedValues:
    """Values of a field with other names."""

    path: str
    now: Mapping[str, str]
    """The new values by the old ones."""

    @property
    def before(self) -> Mapping[str, str]:
        """The old values by the new ones."""
        return {new: old for old, new in self.now.items()}


@dataclass(frozen=True)
class OldName:
    """An old name in a spec."""

    old: str
    """Place of the old name in the object, such as `spec.serving.soak.seconds`."""
    new: str
    """The place of the new field; the same if it is the value that has another name."""
    value: Any
    """The value as it is written now."""
    is_both: bool = False
    """Whether the new field is there too, whose value counts."""

    def __str__(self) -> str:
        """Return what is renamed, and what to write or to remove."""
        if self.is_both:
            return f"{self.old} is now {self.new}, which is there already: remove {self.old.rpartition('.')[2]}"
        what = "has a value with another name" if self.old == self.new else f"is now {self.new}"
        return f"{self.old} {what}: write {line(self.new, self.value)}"


def _duration(old: str, new: str, unit: str, example: int, bounds: tuple[int, int]) -> RenamedField:
    schema = {"type": "integer", "minimum": bounds[0], "maximum": bounds[1]}
    return RenamedField(
        old,
        new,
        example,
        schema,
        now=lambda number: written(number, unit),
        before=lambda duration: ceil(amount(duration, unit)),
    )


def _claim_now(template: Mapping[str, Any]) -> dict[str, Any]:
    others = {name: value for name, value in template.items() if name != "size"}
    size = {"resources": {"requests": {"storage": template["size"]}}} if "size" in template else {}
    return {"spec": size | others}


def _claim_before(template: Mapping[str, Any]) -> dict[str, Any]:
    others = dict(template.get("spec", {}))
    storage = others.pop("resources", {}).get("requests", {}).get("storage")
    return others if storage is None else {"size": storage, **others}


_CLAIM = {
    "type": "object",
    "properties": {
        "size": {**quantity.SCHEMA, "description": "Renamed to `spec.resources.requests.storage`."},
        "storageClassName": {"type": "string", "maxLength": 253, "description": "Renamed to `spec.storageClassName`."},
        "accessModes": {
            "description": "Renamed to `spec.accessModes`.",
            "type": "array",
            "items": {"type": "string", "enum": ["ReadWriteOnce", "ReadWriteMany"]},
            "minItems": 1,
            "maxItems": 1,
        },
    },
}


def _with_version(files: Mapping[str, Any]) -> dict[str, Any]:
    return {"version" if name == "revision" else name: value for name, value in files.items()}


def files_as_before(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return a source, weights or a dataset with the old names, so that a digest of it is what it was before."""
    return {"revision" if name == "version" else name: value for name, value in files.items()}


def _text(longest: int, new: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, "description": f"Renamed to `spec.dataset.{new}`."}


_DATA = {
    "type": "object",
    "properties": {
        "uri": _text(1024, "uri"),
        "revision": _text(128, "version"),
        "sha256": _text(64, "sha256"),
        "secretRef": {
            "type": "object",
            "description": "Renamed to `spec.dataset.secretRef`.",
            "properties": {"name": _text(253, "secretRef.name")},
        },
        "serviceAccountName": _text(253, "serviceAccountName"),
        "include": {
            "description": "Renamed to `spec.dataset.include`.",
            "type": "array",
            "maxItems": 32,
            "items": {"type": "string", "maxLength": 256},
        },
    },
}
_MEASUREMENT, _BATCHING = "performance.measurement", "models[].config.dynamicBatching"
_THRESHOLD, _SOAK = "accuracy.thresholds[]", "serving.soak"
FIELDS = (
    RenamedField("source.revision", "source.version", "2026-11-23"),
    RenamedField("weights.revision", "weights.version", "2026-11-23"),
    RenamedField(
        "data",
        "dataset",
        {"uri": "pvc://datasets/imagenet", "revision": "2012-val"},
        _DATA,
        _with_version,
        files_as_before,
    ),
    _duration(f"{_MEASUREMENT}.intervalMilliseconds", f"{_MEASUREMENT}.interval", "ms", 5000, (100, 600_000)),
    RenamedField(f"{_MEASUREMENT}.stabilityPercentage", f"{_MEASUREMENT}.stabilityPercent", 10),
    RenamedField("performance.regression.maximumPercent", "performance.regression.maxPercent", 10),
    _duration(f"{_BATCHING}.maxQueueDelayMicroseconds", f"{_BATCHING}.maxQueueDelay", "us", 100, (0, 60_000_000)),
    RenamedField(f"{_THRESHOLD}.minimum", f"{_THRESHOLD}.min", 0.95),
    RenamedField(f"{_THRESHOLD}.maximum", f"{_THRESHOLD}.max", 2.5),
    RenamedField(f"{_THRESHOLD}.maximumDegradation", f"{_THRESHOLD}.maxDegradation", 0.01),
    _duration("selection.search.durationSeconds", "selection.search.duration", "s", 600, (60, 86400)),
    RenamedField("selection.minimumImprovementPercent", "selection.minImprovementPercent", 5),
    _duration(f"{_SOAK}.seconds", f"{_SOAK}.duration", "s", 300, (10, 86400)),
    RenamedField(f"{_SOAK}.minimumRequests", f"{_SOAK}.minRequests", 100),
    RenamedField(f"{_SOAK}.maximumErrorPercent", f"{_SOAK}.maxErrorPercent", 1),
    RenamedField(f"{_SOAK}.maximumLatencyPercent", f"{_SOAK}.maxLatencyPercent", 40),
    RenamedField("repository.revisionHistoryLimit", "revisionHistoryLimit", 3),
    RenamedField(
        "repository.claimTemplate",
        "repository.volumeClaimTemplate",
        {"size": "50Gi", "storageClassName": "fast", "accessModes": ["ReadWriteMany"]},
        _CLAIM,
        _claim_now,
        _claim_before,
    ),
)
FORMATS = RenamedValues("models[].format", {"repository": "triton-repository"})
# A spec had the names that requests still have.
METRICS = RenamedValues("selection.objectives[].metric", NAMES)
VALUES = (FORMATS, METRICS)
PLACEHOLDER, OLD_PLACEHOLDER = "$(DATASET)", "$(DATA)"
"""What stands for the path of the dataset in arguments of user code. Both are understood."""


def line(path: str, value: Any) -> str:
    """Return a field with its value, as one line of YAML."""
    field = path.rpartition(".")[2]
    return yaml.safe_dump({field: value}, default_flow_style=True, sort_keys=False, width=inf).strip()[1:-1]


def found(spec: Any) -> Iterator[OldName]:
    """Yield each old name in a spec, in the table's order. ``spec``: of any shape, as it is stored."""
    for field in FIELDS:
        *way, last = field.old.split(".")
        *there, new_last = field.new.split(".")
        beside = there == way
        elsewhere = any(new_last in holder for _, holder in _holders(spec, there))
        for place, holder in _holders(spec, way):
            if last in holder:
                new = f"{place}.{new_last}" if beside else f"spec.{field.new}"
                is_both = new_last in holder if beside else elsewhere
                yield OldName(f"{place}.{last}", new, _told(field.now, holder[last]), is_both)
    for values in VALUES:
        *way, last = values.path.split(".")
        for place, holder in _holders(spec, way):
            value = holder.get(last)
            if isinstance(value, str) and value in values.now:
                yield OldName(f"{place}.{last}", f"{place}.{last}", values.now[value])


def rewritten(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with the new names; a value that the old schema would refuse stays as it is."""
    moves = ((field.old, field.new, field.now) for field in FIELDS)
    return _translated(spec, moves, ((values.path, values.now) for values in VALUES))


def as_before(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with the old names, so that a digest of it is what it was before."""
    moves = ((field.new, field.old, field.before) for field in FIELDS)
    before = _translated(spec, moves, ((values.path, values.before) for values in VALUES))
    return {field: _with_old_placeholder(value) for field, value in before.items()}


def _with_old_placeholder(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _with_old_placeholder(each) for field, each in value.items()}
    if isinstance(value, list):
        return [_with_old_placeholder(each) for each in value]
    return value.replace(PLACEHOLDER, OLD_PLACEHOLDER) if isinstance(value, str) else value


def _translated(
    spec: Mapping[str, Any], moves: Iterable[tuple[str, str, Convert]], words: Iterable[tuple[str, Mapping[str, str]]]
) -> dict[str, Any]:
    copy = deepcopy(dict(spec))
    for move in moves:
        _move(copy, *move)
    for path, names in words:
        _replace(copy, path, names)
    return copy


def _holders(value: Any, way: list[str], place: str = "spec") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects at the end of a way through fields and lists (`models[]`), with their places."""
    if not isinstance(value, dict):
        return
    if not way:
        yield place, value
        return
    name, is_list = way[0].removesuffix("[]"), way[0].endswith("[]")
    below = value.get(name)
    if not is_list:
        yield from _holders(below, way[1:], f"{place}.{name}")
    for number, each in enumerate(below if is_list and isinstance(below, list) else ()):
        yield from _holders(each, way[1:], f"{place}.{name}[{number}]")


def _told(convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return value


def _move(spec: dict[str, Any], source: str, target: str, convert: Convert) -> None:
    """Move a field in each object that holds it. A field that is there already wins; an emptied object goes."""
    *way, last = source.split(".")
    *there, new = target.split(".")
    for _, holder in list(_holders(spec, way)):
        if last not in holder:
            continue
        into, value = holder, _told(convert, holder.pop(last))
        if way != there:
            if not holder and way:
                spec.pop(way[0])
            into = spec
            for name in there:
                into = into.setdefault(name, {})
        into.setdefault(new, value)


def _replace(spec: dict[str, Any], path: str, words: Mapping[str, str]) -> None:
    *way, last = path.split(".")
    for _, holder in _holders(spec, way):
        value = holder.get(last)
        if isinstance(value, str) and value in words:
            holder[last] = words[value]
