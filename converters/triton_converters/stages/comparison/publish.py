"""Publish what the comparison found, as far as it fits into a termination message."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton_converters.claim_store.replay import publish_result
from triton_converters.contract import layout
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.envelope import MessageTooLongError, Outcome
from triton_converters.contract.measurement_requests import ComparisonRequest
from triton_converters.contract.text import printable, shortened
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllCompared
from triton_converters.incoming.files import unfit

STAGE = "comparison"
MESSAGE_BYTES = 200
"""Longest message of a mark: two share the termination message with the figures."""


def run(request: ComparisonRequest, incoming: Path) -> ComparisonResult:
    """Publish ``measurements/<key>/``.

    Raises StageError: that with which the user's code ended; Crashed for what is not published.
    """
    documents.check_end(incoming, STAGE)
    found = documents.read(incoming, documents.COMPARISON, AllCompared)
    if len(found.marks) != len(request.marks):
        raise unfit(incoming / documents.COMPARISON, "it has another number of earlier revisions")
    if any(each.errors and len(each.errors) != len(request.candidates) for each in found.marks):
        raise unfit(incoming / documents.COMPARISON, "it has another number of candidates")
    result = fit(request.key, collect(request, found))
    return publish_result(
        layout.measurement_directory(request.key), STAGE, request.key, ComparisonResult, lambda _: result
    )


def collect(request: ComparisonRequest, found: AllCompared) -> ComparisonResult:
    """Return the figures as tables, without names."""

    def row(values: Mapping[str, Any], digits: int) -> tuple[float | None, ...]:
        return tuple(_finite(documents.number(values.get(name), digits)) for name in request.required)

    marks = tuple(
        MarkMetrics(
            mark.revision,
            row(each.values, 17),
            tuple(_positive(row(errors, 3)) for errors in each.errors),
            _positive(row(each.noise, 3)),
        )
        if each.errors and not each.message
        else MarkMetrics(mark.revision, message=_message(each.message) or "the Job computed nothing of it")
        for mark, each in zip(request.marks, found.marks, strict=True)
    )
    profiles = tuple(each.profile for each in request.candidates)
    return ComparisonResult(max(0, found.samples), request.required, profiles, marks, _message(found.message))


def fit(key: str, result: ComparisonResult) -> ComparisonResult:
    """Drop metrics, the last first, until the result fits into a termination message."""
    while True:
        try:
            Outcome(STAGE, key, result).to_json()
        except MessageTooLongError:
            marks = tuple(
                replace(
                    each,
                    values=each.values[:-1],
                    errors=tuple(errors[:-1] for errors in each.errors),
                    noise=each.noise[:-1],
                )
                for each in result.marks
            )
            result = replace(result, metrics=result.metrics[:-1], marks=marks)
        else:
            return result


def _message(text: str) -> str:
    return shortened(printable(text), MESSAGE_BYTES)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _positive(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
    return tuple(None if value is None or value < 0 else value for value in values)
