"""What must be the same through both doors, and how far the figures are apart. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from triton_operator.api.status import CandidateStatus
from triton_plugin.reading.subject import Subject

OF_ONE_DOOR = frozenset({"Local", "ClaimShared"})
"""Conditions that only one door has, for a reason: no cluster had a part; the objects of the cluster share a claim."""
PASSED = frozenset({"Passed", "Selected"})
"""States of candidates that differ by the choice alone, which figures may decide."""
NOISE = 0.1
"""By which share largest errors may differ: libraries compute on other numbers of threads."""
LEAST_ERROR = 1e-6
"""Errors up to this one are the rounding of fp32."""


@dataclass(frozen=True)
class Row:
    """One object through both doors."""

    name: str
    outcome: str
    """Ready, or the reason why not."""
    candidates: str
    errors: str
    """The largest errors of the candidates, in the cluster and here, where any was measured."""
    choice: str
    ratio: str
    """Throughput and p99 of the chosen candidate here, as multiples of the cluster's."""
    differences: tuple[str, ...]


def row(name: str, cluster: Subject, check: Subject) -> Row:
    """Compare the object of the cluster with that of `check`."""
    ours, theirs = dict(_facts(check)), dict(_facts(cluster))
    keys = dict.fromkeys((*theirs, *ours))
    differences = [
        f"{key}: {theirs.get(key, 'absent')}; check: {ours.get(key, 'absent')}"
        for key in keys
        if theirs.get(key) != ours.get(key)
    ]
    return Row(
        name,
        theirs["outcome"],
        ", ".join(f"{each.name} {_state(each)}" for each in cluster.status.candidates),
        _errors(cluster, check),
        " / ".join(dict.fromkeys((_choice(cluster), _choice(check)))),
        _ratio(cluster, check),
        (*differences, *_error_differences(cluster, check)),
    )


def _facts(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield what must be the same, by its name."""
    ready, stalled = subject.condition("Ready"), subject.condition("Stalled")
    failed = stalled is not None and stalled.status == "True"
    yield "outcome", "Ready" if subject.holds("Ready") else f"{stalled.reason if failed and stalled else ready}"
    for each in subject.status.conditions:
        if each.type not in OF_ONE_DOOR:
            yield f"condition {each.type}", f"{each.status} {each.reason}"
    for candidate in subject.status.candidates:
        # Why one that passed is not the choice follows from figures.
        refusal = "" if candidate.state in PASSED else f" {candidate.reason}"
        yield f"candidate {candidate.name}", f"{_state(candidate)}{refusal}"
        for metric in candidate.metrics:
            yield f"candidate {candidate.name}, {metric.metric}", f"{float(metric.value):.4f}"
    for row in subject.status.accuracy:
        yield f"metric {row.metric}", f"{float(row.served):.4f} of {row.samples} ({float(row.framework):.4f})"
    for search in subject.status.search:
        yield f"search of {search.candidate}", str(search.ended)
    for part in ("signature", "resolved"):
        found = getattr(subject.status, part)
        # Of a digest of the spec, what an API server fills in is a part.
        yield part, json.dumps(found and found.model_dump(mode="json", by_alias=True, exclude={"spec_digest"}))
    active = subject.status.active
    yield "name to ask for", str(active.model if active is not None else None)


def _state(candidate: CandidateStatus) -> str:
    return "Passed" if candidate.state in PASSED else candidate.state


def _pairs(cluster: Subject, check: Subject) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each candidate of both, and its largest errors."""
    here = {each.name: each.max_absolute_error for each in check.status.candidates}
    for each in cluster.status.candidates:
        if each.max_absolute_error or here.get(each.name):
            yield each.name, each.max_absolute_error, here.get(each.name, "")


def _errors(cluster: Subject, check: Subject) -> str:
    return ", ".join(" / ".join(dict.fromkeys((theirs, ours))) for _, theirs, ours in _pairs(cluster, check))


def _error_differences(cluster: Subject, check: Subject) -> Iterator[str]:
    for name, theirs, ours in _pairs(cluster, check):
        if not _is_noise(float(theirs or "nan"), float(ours or "nan")):
            yield f"largest error of {name}: {theirs or 'absent'}; check: {ours or 'absent'}"


def _is_noise(one: float, other: float) -> bool:
    return abs(one - other) <= max(LEAST_ERROR, NOISE * max(one, other))


def _choice(subject: Subject) -> str:
    return next((each.name for each in subject.status.candidates if each.state == "Selected"), "none")


def _ratio(cluster: Subject, check: Subject) -> str:
    chosen = _choice(cluster)
    found = [next((each for each in one.status.candidates if each.name == chosen), None) for one in (check, cluster)]
    ours, theirs = found
    if ours is None or theirs is None or not (ours.throughput and theirs.throughput):
        return ""
    latency = _milliseconds(ours) / _milliseconds(theirs)
    return f"{float(ours.throughput) / float(theirs.throughput):.2f}, {latency:.2f}"


def _milliseconds(candidate: CandidateStatus) -> float:
    return float(str(candidate.p99_latency).removesuffix("ms"))
