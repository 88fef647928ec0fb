"""The table of bench/conversions/README.md, from the rows that `python3 -m bench.conversions` wrote."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hack.docs.examples import table
from hack.docs.place import filled

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench/results/conversions.json"
PAGE = ROOT / "bench/conversions/README.md"
BEGIN = "<!-- table of bench/results/conversions.json -->\n"
HEADINGS = ("Report", "What differed", "Kind", "Covered by", "Today", "Rows that differ", "Largest difference")


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew.

    Raises ValueError if the page has no place for the table.
    """
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    counts = Counter(row["outcome"] for row in document["rows"])
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    facts = f"{summary}; {document['date']}, {document['machine']}."
    text = f"{facts}\n\n{table(HEADINGS, [*map(_cells, document['rows'])])}\n"
    return {PAGE: filled(PAGE, BEGIN, text)}


def _cells(row: Mapping[str, Any]) -> list[str]:
    repository, _, number = row["link"].split("/")[-3:]
    why = f": {row['why']}" if "why" in row else ""
    shares = ", ".join(f"{share:.1%} ({kind})" for kind, share in row.get("shares", {}).items() if share)
    largest = f"{row['largest']:.2g}" if shares and row["largest"] else ""
    report = f"[{repository} {number}]({row['link']})"
    return [report, row["differs"], row["kind"], row["covered"], f"{row['outcome']}{why}", shares, largest]
