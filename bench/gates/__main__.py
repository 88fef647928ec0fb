"""Run `make bench-gates`: every variant of every model before the gates, in this process; NAME="a b" runs some.

With --served, some of the variants also go through a real tritonserver, and must get the same verdict there.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.gates import packages
from bench.gates.run import Done, run
from bench.gates.subjects import SUBJECTS
from bench.machine import cpu_model
from hack.gate_rates import Rates, Row, rates, share
from tests.zoo.fetch import fetch_all


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subjects, one a core; return 1 if a subject ended with an error."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.gates", description=__doc__)
    parser.add_argument("names", nargs="*", help="subjects; by default all")
    parser.add_argument("--output", type=Path, help="write the rows to this file")
    options = parser.parse_args(argv)
    unknown = set(options.names) - {each.name for each in SUBJECTS}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    chosen = [each for each in SUBJECTS if not options.names or each.name in options.names]
    fetch_all(each.model for each in chosen)
    packages.fetch()
    done, failed = [], []
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        waiting = [(each.name, pool.apply_async(run, (each.name,))) for each in chosen]
        for name, result in waiting:
            try:
                done.append(result.get())
            except Exception as error:
                failed.append(name)
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            print(f"{done[-1].subject}: {len(done[-1].rows)} rows, {done[-1].seconds} s", flush=True)
    for each in rates(row for subject in done for row in subject.rows):
        print(_summary(each))
    if options.output:
        options.output.write_text(_document(done), encoding="utf-8")
    return 1 if failed else 0


def _summary(found: Rates) -> str:
    loads = "with" if found.dataloader else "without"
    caught = [row for row in found.wrong if row.reason != "Passed"]
    passed = [row for row in found.right if row.reason == "Passed"]
    lines = [
        f"{found.precision} {loads} a dataloader: wrong ones fail: {share(caught, found.wrong)};"
        f" right ones pass: {share(passed, found.right)}"
    ]
    lines += [f"  passes: {_label(row)}" for row in found.missed]
    lines += [f"  fails: {_label(row)}: {row.message[:160]}" for row in found.refused]
    return "\n".join(lines)


def _label(row: Row) -> str:
    return f"{row.subject}, {row.rule} {row.place} ({row.decibels} dB, {row.changed:.1%} changed): {row.reason}"


def _document(done: Sequence[Done]) -> str:
    """Return the rows as JSON, a row a line."""
    facts = {"date": time.strftime("%Y-%m-%d"), "machine": cpu_model()}
    lines = [json.dumps(asdict(row)) for subject in done for row in subject.rows]
    told = {subject.subject: [text for text in subject.told if " dB, " not in text] for subject in done}
    body = ",\n".join(lines)
    return f'{{"facts": {json.dumps(facts)},\n"left_out": {json.dumps(told, indent=1)},\n"rows": [\n{body}\n]}}\n'


if __name__ == "__main__":
    sys.exit(main())
