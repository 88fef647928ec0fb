"""The measured tables of docs/examples, from recorded runs.

A run is recorded by `python3 -m examples NAME --record docs/examples/recorded`: the TritonDeployment as it ended, and
its Jobs' results. In a page, this program writes what is between `<!-- table: NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from triton_operator.api.measured_status import PerformanceStatus, RowStatus
from triton_operator.api.status import CandidateStatus
from triton_plugin.reading.cluster import read_file
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.columns import Column, cells, milliseconds
from triton_plugin.telling.tables import by_rank

PAGES = Path(__file__).parents[2] / "docs/examples"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
OFFLINE = {
    "Precision": "precision",
    "Accelerator": "accelerator",
    "Input shape": "input_shape",
    "Client batch size": "batch_size",
    "Inferences/s": "throughput",
    "P90": "p90_latency",
    "P95": "p95_latency",
    "P99": "p99_latency",
    "Average": "average_latency",
    "Stable": "stable",
}
ONLINE = {
    "Input shape": "input_shape",
    "Concurrent requests": "concurrency",
    "Inferences/s": "throughput",
    "Client send": "client_send_time",
    "Network + server send/recv": "network_time",
    "Server queue": "queue_time",
    "Compute input": "compute_input_time",
    "Compute infer": "compute_infer_time",
    "Compute output": "compute_output_time",
    "Client recv": "client_receive_time",
    "P50": "p50_latency",
    "P90": "p90_latency",
    "P95": "p95_latency",
    "P99": "p99_latency",
    "Average": "average_latency",
    "Stable": "stable",
}
"""The headings of a sweep's table, and the field of a row under each."""
TIMES = ("_time", "_latency")
"""How the names of the fields end that are durations."""
LEGEND = """\
| Column | Step of a request |
|---|---|
| Client send | 1 the client serialises the request and sends it |
| Network + server send/recv | 2 and 7 the network, 3 the server receives, 6 the server sends |
| Server queue | 4 the request waits for the scheduler and the dynamic batcher |
| Compute input, infer, output | 5 inputs are gathered, the model runs, outputs are gathered |
| Client recv | 8 the client receives and deserialises |

Milliseconds, averages over the row's windows; their sum is the average latency. Percentiles are of whole requests.
More in [measuring](../measuring.md#the-columns).
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table without the columns that are empty in every row."""
    kept = [number for number in range(len(headings)) if any(row[number] for row in rows)]
    lines = [[headings[number] for number in kept], ["---"] * len(kept)]
    lines += [[row[number].replace("|", "\\|") for number in kept] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sweep(columns: dict[str, str], rows: Sequence[RowStatus]) -> str:
    """Return the table of one sweep."""
    shown = [Column(heading, field, heading, field.endswith(TIMES)) for heading, field in columns.items()]
    return table(list(columns), [cells(row, tuple(shown)) for row in rows])


def candidates(subject: Subject) -> str:
    """Return what became of each candidate, in the spec's order. A candidate that passed has no message."""
    rows = []
    for each in subject.status.candidates:
        made, served = subject.conversion(each), each.state in ("Passed", "Selected")
        size, seconds = (str(made.file_bytes), f"{made.seconds:.0f}") if made else ("", "")
        rows.append([each.name, each.state, each.reason or "", size, seconds, "" if served else each.message])
    return table(("Candidate", "State", "Reason", "File, bytes", "Seconds to convert", "Message"), rows)


def ranking(subject: Subject) -> str:
    """Return the candidates that passed, the best first."""
    rows = [
        [_text(each.rank), each.name, each.throughput, milliseconds(each.p99_latency), each.load]
        for each in by_rank(subject.status.candidates)
        if each.rank is not None
    ]
    return table(("Rank", "Candidate", "Inferences/s", "P99, ms", "At"), rows)


def accuracy(subject: Subject) -> str:
    """Return each metric of the active revision, next to the framework's own."""
    rows = [
        [each.metric, each.framework, each.served, each.threshold, str(each.samples)]
        for each in subject.status.accuracy
    ]
    return table(("Metric", "Framework", "Served", "Threshold", "Samples"), rows)


def agreement(subject: Subject) -> str:
    """Return how far each candidate's outputs are from the framework's, outside Triton and served by it."""
    tried = [each for each in subject.status.candidates if each.revision and subject.conversion(each)]
    metrics = list(dict.fromkeys(value.metric for each in tried for value in each.metrics))
    rows = [[each.name, _outside(subject, each), each.max_absolute_error, *_values(each, metrics)] for each in tried]
    headings = ("Candidate", "Largest difference outside Triton", "Largest difference served", *metrics)
    return table(headings, rows)


def environment(subject: Subject) -> str:
    """Return where and when it was measured."""
    performance = subject.status.performance
    if performance is None or performance.environment is None:
        return ""
    where = performance.environment
    lines = [
        f"Measured {performance.measured_at} on {where.device}: {where.cpu}; tritonserver {where.server_version}.",
        *("```", *where.perf_analyzer, "```"),
    ]
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[Subject], str]] = {
    "candidates": candidates,
    "ranking": ranking,
    "accuracy": accuracy,
    "agreement": agreement,
    "offline": lambda subject: sweep(OFFLINE, _performance(subject).offline),
    "online": lambda subject: sweep(ONLINE, _performance(subject).online),
    "environment": environment,
}


def pages() -> dict[Path, str]:
    """Return the pages with tables by their paths."""
    return {page: _page(page) for page in sorted(PAGES.glob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))}


def _page(page: Path) -> str:
    """Return the page of an example with its tables from the recorded run; without a run, the page says so."""
    name = page.stem
    record = PAGES / "recorded" / f"{name}.yaml"
    subject = read_file(str(record)) if record.exists() else None

    def block(match: re.Match[str]) -> str:
        if match.group(2) == "legend":
            text = LEGEND
        elif subject is None:
            text = f"No run is recorded yet: `python3 -m examples {name} --record docs/examples/recorded`.\n"
        else:
            text = TABLES[match.group(2)](subject)
        return match.group(1) + text + match.group(3)

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


def _performance(subject: Subject) -> PerformanceStatus:
    return subject.status.performance or PerformanceStatus()


def _outside(subject: Subject, candidate: CandidateStatus) -> str:
    made = subject.conversion(candidate)
    return f"{made.max_absolute_error:.3g}" if made and made.max_absolute_error is not None else ""


def _values(candidate: CandidateStatus, metrics: Sequence[str]) -> list[str]:
    values = {each.metric: each.value for each in candidate.metrics}
    return [values.get(metric, "") for metric in metrics]


def _text(value: object) -> str:
    if value is None:
        return ""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
