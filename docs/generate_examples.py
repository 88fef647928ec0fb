"""Writes the measured tables of docs/examples from recorded runs: `python3 -m docs.generate_examples`.

A run is recorded by `python3 -m examples NAME --record docs/examples/recorded`: the TritonDeployment as it ended. In a
page, what lies between `<!-- table: NAME -->` and `<!-- end -->` is this program's.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from triton_operator.api.status import RowStatus, TritonDeploymentStatus

PAGES = Path(__file__).with_name("examples")
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
OFFLINE = {
    "Precision": "precision",
    "Accelerator": "accelerator",
    "Input shape": "input_shape",
    "Client batch size": "batch_size",
    "Inferences/s": "throughput",
    "P90": "p90",
    "P95": "p95",
    "P99": "p99",
    "Average": "average",
    "Stable": "stable",
}
ONLINE = {
    "Input shape": "input_shape",
    "Concurrent requests": "concurrency",
    "Inferences/s": "throughput",
    "Client send": "client_send",
    "Network + server send/recv": "network",
    "Server queue": "queue",
    "Compute input": "compute_input",
    "Compute infer": "compute_infer",
    "Compute output": "compute_output",
    "Client recv": "client_receive",
    "P50": "p50",
    "P90": "p90",
    "P95": "p95",
    "P99": "p99",
    "Average": "average",
    "Stable": "stable",
}
"""Headings of the seeds' tables and the fields of a row, for each sweep."""
LEGEND = """\
| Column | Step of a request |
|---|---|
| Client send | 1 the client serialises the request and sends it |
| Network + server send/recv | 2 and 7 the network, 3 the server receives, 6 the server sends |
| Server queue | 4 the request waits for the scheduler and the dynamic batcher |
| Compute input, infer, output | 5 inputs are gathered, the model runs, outputs are gathered |
| Client recv | 8 the client receives and deserialises |

Microseconds, averages over the row's windows; their sum is the average latency. Percentiles are of whole requests.
More in [measuring](../measuring.md#the-columns).
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table without the columns that are empty in every row."""
    kept = [number for number in range(len(headings)) if any(row[number] for row in rows)]
    lines = [[headings[number] for number in kept], ["---"] * len(kept)]
    lines += [[row[number].replace("|", "\\|") for number in kept] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sweep(columns: dict[str, str], rows: Sequence[RowStatus]) -> str:
    """One sweep's table."""
    return table(list(columns), [[_text(getattr(row, field)) for field in columns.values()] for row in rows])


def candidates(status: TritonDeploymentStatus) -> str:
    """Each candidate in the spec's order."""
    rows = [
        [
            each.name, each.state, each.reason, each.max_absolute_error, each.throughput,
            _text(each.p99_latency_microseconds), each.load, "" if each.state == "Passed" else each.message,
        ]
        for each in status.candidates
    ]  # fmt: skip
    headings = ("Candidate", "State", "Reason", "Largest error", "Inferences/s", "P99", "At", "Message")
    return table(headings, rows)


def accuracy(status: TritonDeploymentStatus) -> str:
    """Each metric of what serves, beside the framework's own."""
    rows = [[each.metric, each.framework, each.served, each.threshold, str(each.samples)] for each in status.accuracy]
    return table(("Metric", "Framework", "Served", "Threshold", "Samples"), rows)


def environment(status: TritonDeploymentStatus) -> str:
    """Where it was measured, and when."""
    performance = status.performance
    if performance is None or performance.environment is None:
        return ""
    where = performance.environment
    lines = [
        f"Measured {performance.measured_at} on {where.device}: {where.cpu}; tritonserver {where.server_version}.",
        *("```", *where.perf_analyzer, "```"),
    ]
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[TritonDeploymentStatus], str]] = {
    "candidates": candidates,
    "accuracy": accuracy,
    "offline": lambda status: sweep(OFFLINE, status.performance.offline if status.performance else ()),
    "online": lambda status: sweep(ONLINE, status.performance.online if status.performance else ()),
    "environment": environment,
}


def page(name: str) -> str:
    """The page of an example with its tables from the recorded run; where there is none, the page says so."""
    record = PAGES / "recorded" / f"{name}.yaml"
    found = yaml.safe_load(record.read_text(encoding="utf-8")) if record.exists() else None
    status = TritonDeploymentStatus.model_validate(found["status"]) if found else None

    def block(match: re.Match[str]) -> str:
        if match.group(2) == "legend":
            text = LEGEND
        elif status is None:
            text = f"No run is recorded yet: `python3 -m examples {name} --record docs/examples/recorded`.\n"
        else:
            text = TABLES[match.group(2)](status)
        return match.group(1) + text + match.group(3)

    return BLOCK.sub(block, (PAGES / f"{name}.md").read_text(encoding="utf-8"))


def names() -> list[str]:
    """Examples that have a page with tables."""
    return sorted(file.stem for file in PAGES.glob("*.md") if BLOCK.search(file.read_text(encoding="utf-8")))


def _text(value: object) -> str:
    if value is None:
        return ""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    for name in names():
        (PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
