"""Judge figures against their request: a client that a model took over can write any. Pure.

Whether a figure is true, nobody can tell from it. Whether it can be, and whether it was asked for, anybody can.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import product
from pathlib import Path

from triton_converters.contract.measurement_requests import OpenLoop, Sweep
from triton_converters.contract.results import PERF_ANALYZER, SCENARIOS, Environment, Row
from triton_converters.contract.saturation import request_rate, saturation
from triton_converters.contract.step_times import StepTimes
from triton_converters.incoming.files import unfit

LARGEST = 2**62
"""No figure is larger, not even a difference of perf_analyzer's that wrapped around, in microseconds."""
_Point = tuple[int, int, int]
"""Batch size, concurrency and request rate."""


def is_possible(row: Row) -> bool:
    """Whether a server can have had these figures."""
    return all(0 <= each <= LARGEST for each in astuple(row)) and row.throughput > 0 and row.batch_size > 0


def check_environment(environment: Environment, what: Path) -> None:
    """Raise StageError(Crashed) for more command lines than one of each scenario, or for what is none.

    Who repeats a measurement gives it to a shell, which must start one program and do nothing else.
    """
    if len(environment.perf_analyzer) > len(SCENARIOS):
        raise unfit(what, f"it has {len(environment.perf_analyzer)} command lines")
    for command in environment.perf_analyzer:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise unfit(what, f"it has no command line of {PERF_ANALYZER}: {error}") from error
        if words[:1] != [PERF_ANALYZER] or shlex.join(words) != command:
            raise unfit(what, f"it has no command line of {PERF_ANALYZER} alone")


def check_sweep(rows: Sequence[Row], asked: Sweep, what: Path) -> None:
    """Raise StageError(Crashed) if the rows of ``what`` are not those of a sweep, each of its points once.

    A sweep that ends when the throughput no longer rises has at least one row.
    """
    _check(rows, ((*load, 0) for load in product(asked.batch_sizes, asked.concurrencies)), asked.until_saturated, what)


def check_rates(rows: Sequence[Row], asked: OpenLoop, sweep: Sweep, online: Sequence[Row], what: Path) -> None:
    """Raise StageError(Crashed) if the rows are not those of the rates; ``online``: what ``sweep`` measured."""
    rates = set(asked.rates)
    found = saturation(online, asked.constraints) if asked.confirmed_percent else None
    if found is not None and found.row is not None:
        rates.add(request_rate(found.row, asked.confirmed_percent))
    _check(rows, ((batch, 0, rate) for batch, rate in product(sweep.batch_sizes, rates)), False, what)


def check_steps(steps: Sequence[StepTimes], what: Path) -> None:
    """Raise StageError(Crashed) if a time of an ensemble's model is impossible."""
    if not all(0 <= figure <= LARGEST for each in steps for figure in (*each.queue, *each.compute)):
        raise unfit(what, "a time of a model in it is impossible")


def _check(rows: Sequence[Row], asked: Iterable[_Point], may_end: bool, what: Path) -> None:
    if not all(map(is_possible, rows)):
        raise unfit(what, "a figure in it is impossible")
    wanted = Counter(asked)
    given = Counter((row.batch_size, row.concurrency, row.request_rate) for row in rows)
    if not given <= wanted or (wanted and not given) or (given != wanted and not may_end):
        raise unfit(what, f"its {len(rows)} rows are not the {wanted.total()} that were asked for")
