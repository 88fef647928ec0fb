"""The table of docs/zoo.md, from the last run that was written with `make test-zoo OUTPUT=bench/results/zoo.json`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hack.docs.examples import table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench/results/zoo.json"
PAGE = ROOT / "docs/zoo.md"
BLOCK = re.compile(r"(<!-- table of bench/results/zoo.json -->\n).*?(<!-- end -->)", re.DOTALL)
KINDS = {
    "cluster": "Last run of `make test-zoo`",
    "rehearsal": "Last run: a rehearsal without a cluster, in which nothing was served or measured",
}


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew."""
    run = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = f"{KINDS[run['kind']]}. {run['date']}, {run['machine']}: {run['summary']}.\n\n{_rows(run)}"
    return {PAGE: BLOCK.sub(lambda found: found[1] + text + found[2], PAGE.read_text(encoding="utf-8"))}


def _rows(run: Mapping[str, Any]) -> str:
    """Return the table; only a run on a cluster has candidates that passed and times."""
    rows = [
        [
            f"`{row['model']['name']}`",
            row["model"]["kind"],
            row["model"]["package"],
            row["model"]["traits"],
            _batch(row["batch"]),
            *((row["passed"], str(row["seconds"])) if run["kind"] == "cluster" else ("", "")),
            "yes" if row["is_ready"] else row["reason"].replace("\n", " "),
        ]
        for row in run["rows"]
    ]
    return table(("Model", "For", "Package", "Special", "Batch", "Candidates passed", "Seconds", "Ready"), rows)


def _batch(size: int | None) -> str:
    return "" if size is None else str(size or "none")
