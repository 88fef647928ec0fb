"""The measured tables of docs/examples, from recorded runs.

A run is recorded by `python3 -m examples NAME --record docs/examples/recorded`: the TritonDeployment as it ended, and
its Jobs' results. In a page, this program writes what is between `<!-- table: NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from triton_plugin.reading.cluster import read_file
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.columns import milliseconds

PAGES = Path(__file__).parents[2] / "docs/examples"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table without the columns that are empty in every row."""
    kept = [number for number in range(len(headings)) if any(row[number] for row in rows)]
    lines = [[headings[number] for number in kept], ["---"] * len(kept)]
    lines += [[row[number].replace("|", "\\|") for number in kept] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def candidates(subject: Subject) -> str:
    """Return what became of each candidate, in the spec's order, with its best measurement."""
    rows = []
    for each in subject.status.candidates:
        made = subject.conversion(each)
        size = str(made.file_bytes) if made else ""
        best = (each.throughput, milliseconds(each.p99_latency), each.load) if each.rank is not None else ("", "", "")
        rows.append([each.name, each.state, each.reason or "", size, each.max_absolute_error or "", *best])
    headings = ("Candidate", "State", "Reason", "File, bytes", "Largest difference")
    return table((*headings, "Inferences/s", "P99, ms", "At"), rows)


def accuracy(subject: Subject) -> str:
    """Return each metric of the active revision, next to the framework's own."""
    rows = [
        [each.metric, each.framework, each.served, each.threshold, str(each.samples)]
        for each in subject.status.accuracy
    ]
    return table(("Metric", "Framework", "Served", "Threshold", "Samples"), rows)


def environment(subject: Subject) -> str:
    """Return where and when it was measured."""
    performance = subject.status.performance
    if performance is None or performance.environment is None:
        return ""
    where = performance.environment
    return f"Measured {performance.measured_at} on {where.device}: {where.cpu}; tritonserver {where.server_version}.\n"


TABLES: dict[str, Callable[[Subject], str]] = {
    "candidates": candidates,
    "accuracy": accuracy,
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
        if subject is None:
            text = f"No run is recorded yet: `python3 -m examples {name} --record docs/examples/recorded`.\n"
        else:
            text = TABLES[match.group(2)](subject)
        return match.group(1) + text + match.group(3)

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))
