"""The columns of the tables in NVIDIA's DeepLearningExamples, and the steps of a request that they explain."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from triton_operator.api.duration import amount, in_unit
from triton_operator.api.measured_status import AccuracyStatus, RowStatus, StepStatus
from triton_operator.api.search_status import SearchStatus
from triton_operator.api.status import CandidateStatus, ServingStatus, SignatureStatus
from triton_plugin.telling.steps import REST, rest

SWEEPS = {"Offline": "offline", "Online": "online", "RequestRate": "open-loop"}
"""The sweeps in words, by the names of the scenarios in the API."""


class Column(NamedTuple):
    """One figure of a row."""

    heading: str
    """The heading in NVIDIA's tables."""
    field: str
    """The field of RowStatus."""
    short: str
    """The heading where a terminal leaves little room."""
    is_time: bool = False
    """Whether the field is a duration, which a table shows as a number of milliseconds."""


class Cells(NamedTuple):
    """A table that every form shows alike."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Component(NamedTuple):
    """One of the seven parts of a request's latency that perf_analyzer reports."""

    heading: str
    field: str
    steps: tuple[int, ...]
    """The steps of a request that it covers."""
    short: str
    """The heading where a terminal leaves little room."""


STEPS = (
    "the client serializes the request and sends it",
    "the request crosses the network",
    "the server receives and parses it",
    "the request waits in the server's queue",
    "the model computes: inputs are copied, it runs, outputs are copied",
    "the server serializes the answer and sends it",
    "the answer crosses the network",
    "the client receives and parses it",
)
"""The steps of a request, numbered from 1 as in NVIDIA's READMEs."""

COMPONENTS = (
    Component("Client Send", "client_send_time", (1,), "Send"),
    Component("Network+server Send/recv", "network_time", (2, 3, 6, 7), "Network"),
    Component("Server Queue", "queue_time", (4,), "Queue"),
    Component("Server Compute Input", "compute_input_time", (5,), "Input"),
    Component("Server Compute Infer", "compute_infer_time", (5,), "Infer"),
    Component("Server Compute Output", "compute_output_time", (5,), "Output"),
    Component("Client Recv", "client_receive_time", (8,), "Recv"),
)
"""The components; their sum is the average latency."""

_PRECISION = Column("Precision", "precision", "Precision")
_ACCELERATOR = Column("Backend Accelerator", "accelerator", "Accelerator")
_SHAPE = Column("Input Shape", "input_shape", "Input shape")
_BATCH = Column("Client Batch Size", "batch_size", "Batch size")
_CONCURRENCY = Column("Concurrent client requests", "concurrency", "Concurrency")
_RATE = Column("Requests/second", "request_rate", "Req/s")
_THROUGHPUT = Column("Inferences/second", "throughput", "Inf/s")
_P50, _P90, _P95, _P99 = (
    Column(f"P{number} Latency", f"p{number}_latency", f"P{number}", is_time=True) for number in (50, 90, 95, 99)
)
_AVERAGE = Column("Avg Latency", "average_latency", "Average", is_time=True)
_STABLE = Column("Stable", "stable", "Stable")
_SPREAD = Column("Spread (%)", "spread_percent", "Spread (%)")
_CLIENT_BOUND = Column("Client bound", "client_bound", "Client bound")
_MEMORY = Column("Used memory", "memory", "Memory")
_COMPONENTS = tuple(Column(each.heading, each.field, each.short, is_time=True) for each in COMPONENTS)

ALL = (
    *(_PRECISION, _ACCELERATOR, _SHAPE, _BATCH, _CONCURRENCY, _RATE, _THROUGHPUT),
    *_COMPONENTS,
    *(_P50, _P90, _P95, _P99, _AVERAGE, _STABLE, _SPREAD, _CLIENT_BOUND, _MEMORY),
)
"""Every column of every table."""
OFFLINE = (_PRECISION, _ACCELERATOR, _SHAPE, _BATCH, _THROUGHPUT, _P90, _P95, _P99, _AVERAGE)
"""The columns of NVIDIA's offline tables."""
OFFLINE_COMPONENTS = (_SHAPE, _BATCH, _CONCURRENCY, _THROUGHPUT, *_COMPONENTS, _P50, _P90, _P95, _P99, _AVERAGE)
"""The columns of NVIDIA's offline tables of recommenders."""
ONLINE = (_SHAPE, _CONCURRENCY, _THROUGHPUT, *_COMPONENTS, _P50, _P90, _P95, _P99, _AVERAGE)
"""The columns of NVIDIA's online tables."""
REQUEST_RATE = tuple(_RATE if each is _CONCURRENCY else each for each in ONLINE)
"""The columns of a table of request rates: NVIDIA's online tables, with the rate in place of the concurrency."""
LOAD = (_PRECISION, _ACCELERATOR, _SHAPE, _BATCH, _CONCURRENCY, _RATE, _STABLE, _CLIENT_BOUND)
"""What tells one measurement of a sweep from another; most of it is the same in all of them."""
LATENCIES = (_THROUGHPUT, _P50, _P90, _P95, _P99, _AVERAGE, _SPREAD, _MEMORY)
"""What a measurement found."""
COMPONENT_LATENCIES = _COMPONENTS
"""The parts that make up the average latency of a measurement."""


def cell(value: object) -> str:
    """Return a value as text: empty for None, yes or no for a truth value."""
    if value is None:
        return ""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def load_of_figures(serving: ServingStatus, rows: Iterable[RowStatus]) -> str:
    """Return the load at which a revision had its figures, and if they were unstable; empty: not known.

    ``rows``: its online sweep.
    """
    for row in rows:
        if (row.throughput, row.p99_latency) == (serving.throughput, serving.p99_latency):
            return f"batch {row.batch_size}, concurrency {row.concurrency}{'' if row.stable else ' (unstable)'}"
    return ""


def milliseconds(duration: str | None) -> str:
    """Return a duration as a number of milliseconds, so that a column has one unit; empty for None."""
    return "" if duration is None else in_unit(amount(duration, "us"), "ms").removesuffix("ms")


def cells(row: RowStatus, columns: tuple[Column, ...]) -> list[str]:
    """Return the cells of a row as text; times in milliseconds."""
    values = ((column.is_time, getattr(row, column.field)) for column in columns)
    return [milliseconds(value) if is_time else cell(value) for is_time, value in values]


def columns_with_values(columns: tuple[Column, ...], rows: list[RowStatus]) -> tuple[Column, ...]:
    """Return the columns that are not empty in every row."""
    return tuple(column for column in columns if any(getattr(row, column.field) not in ("", None) for row in rows))


def sweep(columns: tuple[Column, ...], rows: list[RowStatus]) -> Cells:
    """Return the measurements of a sweep, under the headings of NVIDIA's tables."""
    kept = columns_with_values(columns, rows)
    return Cells([column.heading for column in kept], [cells(row, kept) for row in rows])


METRIC_FIELDS = {
    "Metric": "metric",
    "Framework": "framework",
    "Converted": "converted",
    "Served": "served",
    "Previous": "previous",
    "Anchor": "anchor",
    "Samples": "samples",
}
"""The fields of a metric by their headings. Of those between Samples and the framework's, a table has what is known."""


def accuracy(rows: Sequence[AccuracyStatus]) -> Cells:
    """Return each metric of what serves, beside the framework's own and what else is known.

    That is the metric of the converted file, if it ran, and of revisions that served before.
    """
    shown = {heading: name for heading, name in METRIC_FIELDS.items() if any(getattr(row, name) != "" for row in rows)}
    lines = [
        [*(str(getattr(row, name)) for name in shown.values()), row.threshold or "none", cell(row.passed)]
        for row in rows
    ]
    return Cells((*shown, "Threshold", "Passed"), lines)


def search_summary(search: SearchStatus) -> str:
    """Return how far a search came, in words."""
    return f"{search.ended or 'running'}, {search.measurements} measurements in a space of {search.size or '?'} points"


def steps(found: Sequence[StepStatus]) -> Cells:
    """Return where the time of a request to an ensemble goes: to each model, and to none."""
    models = [
        [each.model, each.share_percent, milliseconds(each.queue_time), milliseconds(each.compute_time)]
        for each in found
    ]
    rows = [*models, *([REST, share, "", ""] for share in rest(found))]
    return Cells(("Model", "Share (%)", "Queue (ms)", "Compute (ms)"), rows)


def max_error(candidate: CandidateStatus, signature: SignatureStatus | None) -> str:
    """Return the largest error; empty if no output is floating point, since only of these an error is measured."""
    if signature is None or signature.omitted:
        return candidate.max_absolute_error
    is_measured = any(each.data_type in ("FP16", "FP32", "FP64") for each in signature.outputs)
    return candidate.max_absolute_error if is_measured else ""
