"""The table of docs/gates.md, from the rows that `make bench-gates` wrote."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hack.docs.examples import table
from hack.gate_rates import Rates, Row, rates, share

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench/results/gates.json"
PAGE = ROOT / "docs/gates.md"
BLOCK = re.compile(r"(<!-- tables of bench/results/gates.json -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew."""
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in document["rows"]]
    text = f"{_facts(document['facts'], rows)}\n{_rates(rates(rows))}"
    return {PAGE: BLOCK.sub(lambda match: f"{match[1]}{text}\n{match[2]}", PAGE.read_text(encoding="utf-8"))}


def _facts(facts: dict[str, Any], rows: Sequence[Row]) -> str:
    subjects = len({row.subject for row in rows})
    variants = len({(row.subject, row.rule, row.place, row.precision) for row in rows})
    return f"{subjects} models, {variants} variants; {facts['date']}, {facts['machine']}.\n"


def _name(found: Rates) -> str:
    return f"{found.precision}, {'with' if found.dataloader else 'without'} a dataloader"


def _rates(found: Sequence[Rates]) -> str:
    lines = [
        [
            _name(each),
            share(each.caught, each.wrong),
            share(each.passed, each.right),
            ", ".join(f"{count} `{reason}`" for reason, count in each.caught_by().most_common()),
            str(len(each.harmless)),
        ]
        for each in found
    ]
    return table(("Gates", "Wrong ones fail", "Right ones pass", "By reason", "Neither"), lines)
