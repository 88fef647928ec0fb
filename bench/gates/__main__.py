"""Run `make bench-gates`: every variant of every model before the gates; NAME="a b" runs some models.

A process for each model and precision: a runtime that is given a graph which it cannot run may end its process.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.gates import packages
from bench.gates.run import PRECISIONS
from bench.gates.subjects import BY_NAME, SUBJECTS
from bench.machine import cpu_model
from hack.gate_rates import Rates, Row, rates, share
from tests.zoo.fetch import fetch_all

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """What came of one subject in one precision."""

    subject: str
    precision: str
    rows: list[Row]
    told: list[str]
    """What does not apply, and why."""
    seconds: float
    ended: str
    """How the process ended, if it was not done."""


def _run(subject: str, precision: str) -> Done:
    started = time.monotonic()
    argv = [sys.executable, "-W", "ignore", "-m", "bench.gates.run", subject, precision]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = next(iter(done.stderr.strip().splitlines()[-1:]), "")
    return Done(
        subject,
        precision,
        [Row(**line) for line in lines if isinstance(line, dict)],
        [line for line in lines if isinstance(line, str) and " dB, " not in line],
        round(time.monotonic() - started, 1),
        f"ended with {done.returncode}: {last}" if done.returncode else "",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subjects, one a core, print the rates and what was judged wrongly, and write all rows."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.gates", description=__doc__)
    parser.add_argument("names", nargs="*", help="subjects; by default all")
    parser.add_argument("--output", type=Path, help="write the rows to this file")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(BY_NAME):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    chosen = [each for each in SUBJECTS if not options.names or each.name in options.names]
    fetch_all(each.model for each in chosen)
    packages.fetch()
    done = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        tasks = [(each.name, precision) for each in chosen for precision in PRECISIONS]
        for each in threads.map(lambda task: _run(*task), tasks):
            done.append(each)
            print(f"{each.subject} {each.precision}: {len(each.rows)} rows, {each.seconds} s {each.ended}", flush=True)
            for row in (row for found in rates(each.rows) for row in (*found.missed, *found.refused)):
                print(f"  {_label(row)}", flush=True)
    for found in rates(row for each in done for row in each.rows):
        print(_summary(found))
    if options.output:
        options.output.write_text(_document(done), encoding="utf-8")
    return 1 if any(each.ended for each in done) else 0


def _summary(found: Rates) -> str:
    loads = "with" if found.dataloader else "without"
    wrong, right = share(found.caught, found.wrong), share(found.passed, found.right)
    return f"{found.precision} {loads} a dataloader: wrong ones fail: {wrong}; right ones pass: {right}"


def _label(row: Row) -> str:
    kind = "wrong, and passes" if row.wrong else f"right, and fails: {row.message[:200]}"
    loads = "with" if row.dataloader else "without"
    return f"{row.rule} {row.place}, {loads} a dataloader ({row.decibels} dB, {row.changed:.1%} changed): {kind}"


def _document(done: Sequence[Done]) -> str:
    """Return the rows as JSON, a row a line."""
    facts = {"date": time.strftime("%Y-%m-%d"), "machine": cpu_model()}
    told = {f"{each.subject} {each.precision}": [*each.told, *([each.ended] if each.ended else [])] for each in done}
    body = ",\n".join(json.dumps(asdict(row)) for each in done for row in each.rows)
    return f'{{"facts": {json.dumps(facts)},\n"left_out": {json.dumps(told, indent=1)},\n"rows": [\n{body}\n]}}\n'


if __name__ == "__main__":
    sys.exit(main())
