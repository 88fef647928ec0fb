"""Take nights on all cores, and print how many were refused, noticed and lost."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import sqrt
from statistics import mean, median

import numpy

from tests.simulation.nights.models import DIRECTIONS, METRICS, Array, Task, task
from tests.simulation.nights.series import MAX_PERCENT, Bare, Night, Object, a_claim, samples

NIGHTS = 30
HARD, EASY = 0.85, 1.5
"""Spreads of tasks of which models get an accuracy of 0.87 and 0.99, and a log loss of 0.35 and 0.035."""
BOTH = ("accuracy", "log_loss")
COUNTS = (100, 500, 2000)
TOLERANCE = MAX_PERCENT / 100
SEEDS = 1000
"""Series of a row at most."""
PLANNED = 1
"""Series of a row that go through the operator's plan and its Jobs."""
Taken = Mapping[str, float]
"""What was counted in a series, by name."""


class Series:
    """An object with a good model, and the chance that makes its nights."""

    def __init__(self, seed: int, count: int, spread: float = HARD, metrics: tuple[str, ...] = BOTH) -> None:
        """``seed``: a PLANNED one goes through the operator's plan, and all others without."""
        self.chance = numpy.random.default_rng(seed)
        self.task: Task = task(spread)
        first = self.task.good(self.chance)
        kind = Object if seed % SEEDS < PLANNED else Bare
        self.object = kind(self.task, samples(self.chance, self.task, count), metrics, first)
        self.models = {self.object.anchor: first}
        self.active = self.object.anchor

    def night(self, weights: Array) -> tuple[Night, bool]:
        """The next model comes; whether it is really as good as both marks, within what is tolerated."""
        marks = [self.models[each] for each in (self.active, self.object.anchor)]
        as_good = all(
            DIRECTIONS[name] * (self.task.reaches(mark, name) - self.task.reaches(weights, name))
            <= TOLERANCE * self.task.reaches(mark, name)
            for name, mark in product(self.object.metrics, marks)
        )
        found = self.object.night(weights)
        if not found.refused:
            self.active = self.object.active
            self.models[self.active] = weights
        return found, as_good


def equal(seed: int, count: int, spread: float, metrics: tuple[str, ...], fewer: int = 0) -> Taken:
    """Models that are trained alike. ``fewer``: half way come other samples, so many; 0: they stay."""
    series = Series(seed, count, spread, metrics)
    taken = [series.night(series.task.good(series.chance)) for _ in range(NIGHTS // 2)]
    if fewer:
        series.object.rows = samples(series.chance, series.task, fewer)
    taken += [series.night(series.task.good(series.chance)) for _ in range(NIGHTS - len(taken))]
    last = taken[-1][0].told
    return {
        "nights": NIGHTS,
        "refused": sum(night.refused for night, _ in taken),
        "as good": sum(good for _, good in taken),
        "falsely": sum(good and night.refused for night, good in taken),
        "not compared": sum(not night.is_compared for night, _ in taken),
        **{f"told {name}": loss for name, loss in last.items()},
    }


def worse(seed: int, count: int, loss: float, metric: str, metrics: tuple[str, ...] = BOTH) -> Taken:
    """Models that are worse by so much in a metric, until one is not noticed. ``loss`` 0: as much as was told."""
    series = Series(seed, count, metrics=metrics)
    noticed, nights = 0, 0
    first, _ = series.night(series.task.good(series.chance))
    wanted = loss or first.told.get(metric, 0.0)
    while nights < NIGHTS // 6 and not first.refused:
        nights += 1
        if not series.night(series.task.worse(series.chance, wanted, metric))[0].refused:
            break
        noticed += 1
    return {"nights": nights, "refused": noticed, "loss": wanted}


def slide(seed: int, count: int, points: float) -> Taken:
    """Models of which each is worse by so many points of accuracy."""
    series = Series(seed, count, metrics=("accuracy",))
    first, refused, bound = series.task.reaches(series.models[series.active], "accuracy"), 0, 0.0
    for number in range(1, NIGHTS + 1):
        night, _ = series.night(series.task.worse(series.chance, points / 100 * number))
        refused += night.refused
        bound = max(bound, night.allowed)
    lost = first - series.task.reaches(series.models[series.active], "accuracy")
    return {"nights": NIGHTS, "refused": refused, "lost": lost, "bound": bound}


Row = tuple[str, Callable[..., Taken], tuple[object, ...], float]
"""Words, the series, its arguments, and how many there are, relative to others."""
ROWS: Sequence[Row] = (
    *((f"trained alike, {count} samples", equal, (count, HARD, BOTH), 1.0) for count in COUNTS),
    ("trained alike, a log loss of 0.035, 500 samples", equal, (500, EASY, ("log_loss",)), 0.5),
    ("trained alike, 500 other samples half way", equal, (500, HARD, BOTH, 500), 0.3),
    ("trained alike, 100 samples half way, and 500 before", equal, (500, HARD, BOTH, 100), 0.3),
    *(
        (f"accuracy worse by what is told, {count} samples", worse, (count, 0.0, "accuracy", ("accuracy",)), 2.0)
        for count in COUNTS
    ),
    ("accuracy worse by 1 point, 500 samples", worse, (500, 0.01, "accuracy"), 1.0),
    ("accuracy worse by 15 points, 500 samples", worse, (500, 0.15, "accuracy"), 1.0),
    ("log loss alone worse by what is told, 500 samples", worse, (500, 0.0, "log_loss"), 1.0),
    ("a slide of 0.1 points a night, 500 samples", slide, (500, 0.1), 0.3),
    ("a slide of 0.2 points a night, 500 samples", slide, (500, 0.2), 0.3),
    ("a slide of 0.2 points a night, 2000 samples", slide, (2000, 0.2), 0.3),
)


def take(job: tuple[int, int]) -> tuple[int, Taken]:
    """Take the nights of a row with a seed."""
    row, seed = job
    logging.disable(logging.CRITICAL)
    _, series, arguments, _ = ROWS[row]
    with a_claim():
        return row, series(SEEDS * row + seed, *arguments)


def told(row: int, found: Sequence[Taken]) -> str:
    """A row of the table."""
    nights = sum(each["nights"] for each in found)
    refused = sum(each["refused"] for each in found)
    words = f"{ROWS[row][0]:52} {refused:4.0f} of {nights:5.0f} refused: {_percent(found, 'refused', 'nights')}"
    if "falsely" in found[0]:
        words += f"; of {sum(each['as good'] for each in found)} as good, {_percent(found, 'falsely', 'as good')}"
        words += f"; {sum(each['not compared'] for each in found)} not compared"
        for name in METRICS:
            if losses := [each[f"told {name}"] for each in found if f"told {name}" in each]:
                words += f"; told {name} {median(losses):.3g}"
    if "loss" in found[0]:
        words += f"; a loss of {median(each['loss'] for each in found):.3g}"
    if "lost" in found[0]:
        lost, bounds = ([100 * each[name] for each in found] for name in ("lost", "bound"))
        # Through the plan, a bound is told where something is refused.
        bound = mean(filter(None, bounds)) if any(bounds) else 0.0
        words += f"; lost {mean(lost):.1f} points, at most {max(lost):.1f}; the bound {bound:.1f}"
    return words


def _percent(found: Sequence[Taken], part: str, whole: str) -> str:
    """A share in percent, with its 95 % interval (Wilson's).

    Nights of a series share their samples and their anchor, so that they count for fewer if series differ more than
    they would by chance.
    """
    total = sum(each[whole] for each in found)
    if not total:
        return "of none"
    share = sum(each[part] for each in found) / total
    squares = sum((each[part] - share * each[whole]) ** 2 for each in found)
    count = min(total, share * (1 - share) * total * total / squares) if squares else total
    middle, half = share + 1.92 / count, 1.96 * sqrt(share * (1 - share) / count + 0.96 / count**2)
    low, high = ((middle + each) / (1 + 3.84 / count) for each in (-half, half))
    return f"{100 * share:.1f} % ({100 * max(0.0, low):.1f} to {100 * high:.1f})"


def main() -> int:
    """Take the nights, and print the table."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.simulation.nights", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="series of a row; default: 100")
    parser.add_argument("--seed", type=int, default=0, help="of the first series; default: 0")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="processes; default: one for each core")
    options = parser.parse_args()
    jobs = sorted(
        (seed / ROWS[row][3], row, seed)
        for row in range(len(ROWS))
        for seed in range(max(1, round(options.repeats * ROWS[row][3])))
    )
    found: dict[int, list[Taken]] = {row: [] for row in range(len(ROWS))}
    with ProcessPoolExecutor(options.cores) as pool:
        for number, (row, taken) in enumerate(pool.map(take, [(row, options.seed + seed) for _, row, seed in jobs]), 1):
            found[row].append(taken)
            print(f"{number} of {len(jobs)} series; {told(row, found[row])}", file=sys.stderr, flush=True)
    for row, all_taken in found.items():
        print(told(row, all_taken))
    return 0


if __name__ == "__main__":
    sys.exit(main())
