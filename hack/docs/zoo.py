"""The table of docs/zoo.md, from the rows that `make test-zoo OUTPUT=bench/results/zoo.json` wrote."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hack.docs.examples import table
from tests.zoo.refusals import REFUSALS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench/results/zoo.json"
PAGE = ROOT / "docs/zoo.md"
BLOCK = re.compile(r"(<!-- table of bench/results/zoo.json -->\n).*?(<!-- end -->)", re.DOTALL)
RUNS = {
    "cluster": "served on a cluster",
    "rehearsal": "rehearsed without a cluster, in which nothing is served or measured",
}
REFUSED = "refused for a [reason](#refusals-that-count-as-right) that was listed before"
Row = Mapping[str, Any]


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    kinds = [(words, [row for row in rows if row["run"] == run]) for run, words in RUNS.items()]
    text = "\n".join(_summary(words, found) for words, found in kinds if found)
    return {
        PAGE: BLOCK.sub(
            lambda found: f"{found[1]}{text}\n\n{_table(rows)}\n{_refusals(rows)}{found[2]}",
            PAGE.read_text(encoding="utf-8"),
        )
    }


def _summary(words: str, rows: Sequence[Row]) -> str:
    ready = sum(row["is_ready"] for row in rows)
    dates = " to ".join(sorted({min(row["date"] for row in rows), max(row["date"] for row in rows)}))
    machines = ", ".join(sorted({row["machine"] for row in rows}))
    refused = sum(bool(row["refusal"]) for row in rows)
    counts = f"{ready} ready ({100 * ready / len(rows):.0f} %), {refused} {REFUSED}"
    return f"- {len(rows)} models {words}: {counts}; {dates}, {machines}."


def _table(rows: Sequence[Row]) -> str:
    """Return the models by what they are for, each with what is special, and what became of it."""
    kinds = dict.fromkeys(row["model"]["kind"] for row in rows)
    found = [[kind, ", ".join(_told(row) for row in rows if row["model"]["kind"] == kind)] for kind in kinds]
    return table(("For", "Models"), found)


def _told(row: Row) -> str:
    model = row["model"]
    return f"`{model['name']}` ({model['traits']}; {_became(row)})"


def _refusals(rows: Sequence[Row]) -> str:
    """Return the list of refusals that count as right, with the models that met each."""
    lines = ["### Refusals that count as right", ""]
    for needs in REFUSALS:
        names = ", ".join(
            f"`{row['model']['name']}`" for row in rows if not row["is_ready"] and row["refusal"] == needs
        )
        lines.append(f"- {needs}: {names or 'none in this run'}")
    return "\n".join([*lines, ""])


def _became(row: Row) -> str:
    """Return the seconds until the model was Ready, which only a run on a cluster has, or the reason why it is not."""
    if not row["is_ready"]:
        return str(row["reason"]).partition(":")[0]
    return f"{row['seconds']} s" if row["run"] == "cluster" else "rehearsed"
