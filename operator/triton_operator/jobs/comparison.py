"""The Job that compares the metrics of candidates with those of earlier revisions."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.comparison import compared_metrics
from triton_converters.contract.comparison_result import ComparisonResult
from triton_converters.contract.document import given
from triton_converters.contract.formats import has_runtime
from triton_converters.contract.measurement_requests import (
    COMPARISON_SECONDS,
    OUTSIDE_SECONDS,
    ComparisonRequest,
    KeptOutputs,
    Mark,
)
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.jobs.metrics import metrics_request, user_code
from triton_operator.jobs.reference import Dump, surroundings
from triton_operator.observed.history import State
from triton_operator.resources.work import Work


def comparison_work(
    context: Context, dump: Dump, attempts: Sequence[Attempt], marks: Sequence[State]
) -> Work[ComparisonRequest, ComparisonResult]:
    """Return the work of the Job that compares all these candidates with these states of the history."""
    compared = compared_metrics([each.as_request() for each in context.spec.accuracy.thresholds])
    fields = given(metrics_request(context, dump, attempts, compared))
    request = ComparisonRequest(**fields, marks=tuple(_mark(each) for each in marks))
    request = names.request_with_key("comparison", request, *surroundings(context))
    return Work(
        stage="comparison",
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds + OUTSIDE_SECONDS + COMPARISON_SECONDS,
        shape=user_code(context, dump, request, _files(request)),
    )


def _mark(state: State) -> Mark:
    assert state.revision is not None
    profile = state.profile.removeprefix(record_name("profile", ""))
    outputs = KeptOutputs(profile, state.revision.format, state.revision.precision)
    return Mark(state.revision.key, state.revision.model, state.reference, outputs)


def _files(request: ComparisonRequest) -> Iterator[Path]:
    """Yield the directories of the marks: what their profiles kept, and what answers other samples."""
    for mark in request.marks:
        yield layout.reference_directory(mark.reference)
        yield layout.kept_outputs(mark.outputs.profile)
        if has_runtime(mark.outputs.format):
            yield layout.revision_directory(mark.revision)
