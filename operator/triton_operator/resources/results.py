"""The ConfigMap that records the Jobs' results, so that a Job that is gone need not run again."""

from collections.abc import Iterator
from typing import Any

from triton_converters.contract.records import (
    ACTIVE,
    CLAIM,
    DAMAGED,
    FAILURE,
    FINISHED,
    FOLLOWING,
    GPU,
    HISTORY,
    IMAGE,
    SOAK,
)
from triton_operator import names
from triton_operator.context import Context
from triton_operator.observed.entries import Entries
from triton_operator.observed.gpu import NO_GPU


def results_config_map(context: Context, entries: Entries) -> dict[str, Any]:
    """The ConfigMap with these entries, which `observed.entries.read_entries` reads."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(names.results(context.name), "results"),
        "data": dict(_data(entries)),
    }


def _data(entries: Entries) -> Iterator[tuple[str, str]]:
    yield from entries.unreadable.items()
    if entries.recorded_claim:
        yield CLAIM, entries.recorded_claim
    if entries.history.states:
        yield HISTORY, entries.history.to_json()
    if entries.following is not None:
        yield FOLLOWING, entries.following.to_json()
    yield from ((SOAK + name, promotion.to_json()) for name, promotion in entries.promotions.items())
    if entries.active_record is not None:
        yield ACTIVE, entries.active_record.to_json()
    for name, record in entries.records.items():
        yield name, record.text
        yield FINISHED + name, record.finished_at
        if record.image_id:
            yield IMAGE + name, record.image_id
        if record.gpu != NO_GPU:
            yield GPU + name, record.gpu.to_json()
    yield from ((FAILURE + name, failure.to_json()) for name, failure in entries.failures.items())
    yield from ((DAMAGED + key, damage.to_json()) for key, damage in entries.damaged.items())
