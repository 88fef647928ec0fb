"""The quick search: a hill climb, one step along one axis at a time, that follows the best load as it goes.

perf_analyzer's load is closed-loop: throughput at one load is the inverse of the latency. So another configuration is
first measured with the load at which the best one is best; only one that is promising there is measured with others.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triton_converters.request import Constraint, Objective
from triton_converters.result import Row
from triton_converters.scoring import order
from triton_converters.search.path import Path, Point
from triton_converters.search.space import Place, Space

STEP_GAIN = 0.02
"""Least gain of score, or of distance, that is a step and not noise: two rows of a quiet machine differ by as much."""
PROMISING = 0.1
"""A configuration that is so much worse at the best one's load may be better at another; a worse one is let go."""


class Standing(NamedTuple):
    """A row as ``scoring.order`` has it: less is better."""

    distance: float
    cost: float

    @property
    def feasible(self) -> bool:
        """Whether every constraint is met."""
        return self.distance == 0.0

    def clearly_before(self, other: "Standing") -> bool:
        """Better by more than noise."""
        if self.distance != other.distance:
            return self.distance < other.distance - (0.0 if self.feasible else STEP_GAIN)
        return self.cost < other.cost - STEP_GAIN

    def promises(self, other: "Standing") -> bool:
        """Whether this, at the load at which the other is best, may be better than it at another load."""
        return self.cost < other.cost + PROMISING if other.feasible else self.distance < other.distance + PROMISING


WORST = Standing(float("inf"), float("inf"))
Looking = Generator[Point, Row | None, Standing]


@dataclass
class _Climber:
    """Where the climb stands, and all it has seen."""

    space: Space
    objectives: Sequence[Objective]
    constraints: Sequence[Constraint]
    seen: dict[Point, Standing]
    place: Place
    at: int = 0
    """Position of the best load in ``space.loads``."""
    best: Standing = WORST

    def look(self, place: Place, at: int) -> Looking:
        """The standing of one point, asked for where it is new."""
        point = Point(self.space.tuning(place), self.space.loads[at])
        if point not in self.seen:
            row = yield point
            self.seen[point] = Standing(*order(row, self.objectives, self.constraints)) if row else WORST
        return self.seen[point]

    def survey(self) -> Path:
        """The base with every load: its profile has measured them all."""
        for at in range(len(self.space.servable(self.space.base))):
            found = yield from self.look(self.place, at)
            if found < self.best:
                self.at, self.best = at, found

    def along(self, axis: int) -> Generator[Point, Row | None, bool]:
        """Walk along an axis while that is better; whether a step was made."""
        for direction, place in self.space.neighbours(self.place, axis):
            moved = False
            while (yield from self._try(place)):
                moved = True
                further = [other for way, other in self.space.neighbours(self.place, axis) if way == direction]
                if not further:
                    break
                place = further[0]
            if moved:
                return True
        return False

    def _try(self, place: Place) -> Generator[Point, Row | None, bool]:
        """Whether a configuration is better; it is the best one then, at its best load."""
        heaviest = len(self.space.servable(self.space.tuning(place))) - 1
        if heaviest < 0:
            return False
        at = min(self.at, heaviest)
        found = yield from self.look(place, at)
        if not found.promises(self.best):
            return False
        if found.feasible or found.distance < PROMISING:
            at, found = yield from self._slide(place, at, 1)
        if not found.feasible:
            at, found = yield from self._slide(place, at, -1)
        if not found.clearly_before(self.best):
            return False
        self.place, self.at, self.best = place, at, found
        return True

    def polish(self) -> Path:
        """The best configuration with loads about its best one."""
        for direction in (1, -1):
            self.at, self.best = yield from self._slide(self.place, self.at, direction)

    def _slide(self, place: Place, at: int, direction: int) -> Generator[Point, Row | None, tuple[int, Standing]]:
        """Heavier or lighter loads while that is better: in longer and longer steps, then in shorter ones."""
        found = yield from self.look(place, at)
        heaviest = len(self.space.servable(self.space.tuning(place))) - 1
        step, grows = 1, True
        while step:
            other = at + direction * step
            better = False
            if 0 <= other <= heaviest:
                standing = yield from self.look(place, other)
                better = standing < found
                if better:
                    at, found = other, standing
            grows = grows and better
            step = step * 2 if grows else step // 2
        return at, found


def climb(space: Space, objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> Path:
    """The path of a hill climb from the base; it ends where no step along any axis is better."""
    climber = _Climber(space, objectives, constraints, {}, space.base_place)
    yield from climber.survey()
    if not climber.seen:
        return
    axis = without_step = 0
    while without_step < len(space.axes):
        moved = yield from climber.along(axis)
        without_step = 0 if moved else without_step + 1
        axis = (axis + 1) % len(space.axes)
    yield from climber.polish()
