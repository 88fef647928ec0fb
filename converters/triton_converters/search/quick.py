"""The quick search: a hill climb, one step along one axis at a time, in which the load is an axis too.

perf_analyzer's load is closed-loop: at one load throughput is the inverse of the latency. So configurations are
compared at one load, and another load is tried only with the configuration that won. Where constraints are set, the
climb ends by settling: around the best, and around what just misses a constraint at a heavier load, it tries what that
load can use. No search measures more than a tenth of its space.
"""

from bisect import bisect
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, log, log1p
from typing import NamedTuple

from triton_converters.contract.measurement_requests import Constraint, Objective
from triton_converters.contract.results import Row
from triton_converters.contract.scoring import order
from triton_converters.search.path import SearchPath, Setup
from triton_converters.search.space import BATCHING, DELAY, INSTANCES, MAXIMUM, PREFERRED, Place, Space

STEP_GAIN = 0.07
"""Smallest gain that counts as a step and not as noise: two rows of one configuration differed by 2 to 11 %
(docs/search.md)."""
LET_GO = 0.2
"""A value that was worse than another by this much at one load is not tried again at that load."""
WITHIN_REACH = 0.5
"""Distance beyond a bound from which small steps may still lead back."""
REACH_OF_AN_INSTANCE = 2.0
"""Distance beyond a bound from which batching and more instances may lead back, for each possible instance."""
SHARE = 10
"""A search measures one point in so many; a smaller share finds too little under a tight bound."""
FEWEST = 12
"""What a search of a small space may measure."""
LATENCIES = ("average", "p50", "p90", "p95", "p99")


class Standing(NamedTuple):
    """A row's ``scoring.order``: less is better."""

    distance: float
    cost: float

    @property
    def feasible(self) -> bool:
        """Whether every constraint is met."""
        return self.distance == 0.0

    @property
    def merit(self) -> float:
        """Order of rows at one load, less is better: the distance beyond a constraint counts as much as the score.

        At one load both say the same, but a high percentile is noisier.
        """
        return self.cost + log1p(self.distance)

    def clearly_before(self, other: "Standing") -> bool:
        """Whether this is better at the same load, by more than noise."""
        if self.feasible != other.feasible:
            return self.feasible
        return self.merit < other.merit - STEP_GAIN


WORST = Standing(inf, inf)
Looking = Generator[Setup, Row | None, Standing]
Stepping = Generator[Setup, Row | None, bool]


@dataclass
class _Climber:
    """The climb's position and all that it has seen."""

    space: Space
    objectives: Sequence[Objective]
    constraints: Sequence[Constraint]
    place: Place
    at: int = 0
    """Position in ``space.loads``."""
    here: Standing = WORST
    ceiling: int = 0
    """Position of the heaviest load that is still worth a try."""
    seen: dict[Setup, Standing] = field(default_factory=dict)
    rows: dict[Setup, Row] = field(default_factory=dict)
    places: dict[Setup, Place] = field(default_factory=dict)
    let_go: set[tuple[int, int, int]] = field(default_factory=set)
    """Values not to try again: load, axis and position on the axis."""

    def look(self, place: Place, at: int) -> Looking:
        """Return the standing of a point; yields the point if it is new."""
        point = Setup(self.space.tuning(place), self.space.loads[at])
        if point not in self.seen:
            row = yield point
            self.places[point] = place
            self.seen[point] = Standing(*order(row, self.objectives, self.constraints)) if row else WORST
            if row:
                self.rows[point] = row
        return self.seen[point]

    def survey(self) -> SearchPath:
        """Look at the base with every load, all of which its profile measured; then choose the load to begin with."""
        found: list[Standing] = []
        for at in range(self._loads_of(self.place)):
            found.append((yield from self.look(self.place, at)))  # noqa: PERF401 - a generator has no list comprehension
        if not found:
            return
        reach = REACH_OF_AN_INSTANCE * len(self.space.axes[INSTANCES].values)
        cost = min(found).cost + log1p(reach)
        near = [at for at, each in enumerate(found) if each.distance <= reach and each.cost <= cost]
        best = min(self.seen, key=lambda point: self.seen[point])
        self.at = max((at for at in near if self._bound(best, at) < self.seen[best]), default=found.index(min(found)))
        self.here = found[self.at]
        self.ceiling = len(found) - 1

    def descend(self, axes: int) -> SearchPath:
        """Walk along the first ``axes`` axes in turn, until no step along any of them is better."""
        axis = without_step = 0
        while without_step < axes:
            moved = yield from self._along(axis)
            without_step = 0 if moved else without_step + 1
            axis = (axis + 1) % axes

    def _along(self, axis: int) -> Stepping:
        """Walk along an axis while that is better; return whether a step was made."""
        for direction, first in list(self._neighbours(axis)):
            place, moved = first, False
            while (self.at, axis, place[axis]) not in self.let_go and (yield from self._try(place)):
                moved = True
                further = [other for way, other in self._neighbours(axis) if way == direction]
                if not further:
                    break
                place = further[0]
            if moved:
                return True
            if self.seen.get(self._point(place), self.here).merit > self.here.merit + LET_GO:
                self.let_go.add((self.at, axis, place[axis]))
        return False

    def _neighbours(self, axis: int) -> Iterator[tuple[int, Place]]:
        """Yield the next configurations along an axis; the first delay to try is one that may matter."""
        here = self.space.tuning(self.place)
        if axis == DELAY and here.max_queue_delay_microseconds == 0:
            if here.dynamic_batching:
                yield 1, self._with({DELAY: self._delay()})
        else:
            yield from self.space.neighbours(self.place, axis)

    def _try(self, place: Place) -> Stepping:
        """Return whether a configuration is better at this load; the climb then continues from it."""
        if self.at >= self._loads_of(place):
            return False
        found = yield from self.look(place, self.at)
        if not found.clearly_before(self.here):
            return False
        self.place, self.here = place, found
        return True

    def fill(self) -> Stepping:
        """Try batches as large as the load can fill, with time to fill them: three axes that do little one by one."""
        load = self.space.loads[self.at]
        switch = self.space.axes[BATCHING].values
        if True not in switch:
            return False
        flight = load.batch_size * load.concurrency
        for most in (flight // self.space.tuning(self.place).instances, flight):
            fitting = [at for at, size in enumerate(self._figures(MAXIMUM)) if load.batch_size < size <= most]
            if fitting:
                batching = {BATCHING: switch.index(True), MAXIMUM: fitting[-1], DELAY: self._delay(), PREFERRED: 0}
                if (yield from self._try(self._with(batching))):
                    return True
        return False

    def shift(self) -> Stepping:
        """Go to a heavier load if the constraints are met, else to a lighter one; return whether the climb goes on."""
        if not self.here.feasible:
            return (yield from self.lighter())
        return (yield from self.heavier()) or (yield from self.slide())

    def heavier(self) -> Stepping:
        """Go to the next heavier load with this configuration, its batches grown, if that is better."""
        place = self._grown()
        if self.at < min(self.ceiling, self._loads_of(place) - 1):
            found = yield from self.look(place, self.at + 1)
            if found.distance <= WITHIN_REACH and found.cost < self.here.cost - STEP_GAIN:
                self.place = place
                self.at += 1
                self.here = found
                return True
            self.ceiling = self.at
        return False

    def slide(self) -> Stepping:
        """Go to lighter loads with this configuration, as long as they are better."""
        begun = self.at
        while self.at and self._bound(self._point(self.place), self.at - 1) < self.here:
            found = yield from self.look(self.place, self.at - 1)
            if found.distance > self.here.distance or found.cost > self.here.cost - STEP_GAIN:
                break
            self.at -= 1
            self.here = found
            self.ceiling = self.at
        return self.at < begun

    def lighter(self) -> Stepping:
        """Go to the next lighter load for good, with this configuration or a better one seen there."""
        if self.at == 0:
            return False
        self.at -= 1
        self.ceiling = self.at
        yield from self.look(self.place, self.at)
        there = [point for point in self.seen if point.load == self.space.loads[self.at]]
        best = min(there, key=lambda point: self.seen[point])
        self.place, self.here = self.places[best], self.seen[best]
        return True

    def settle(self) -> SearchPath:
        """Look around the best until nothing new is promising; every look that finds a better one starts anew."""
        while found := next(self._promising(), None):
            place, at = found
            yield from self.look(place, at)

    def _promising(self) -> Iterator[tuple[Place, int]]:
        """Yield what may be better than the best, with the position of its load, those that promise most first."""
        best = min(self.seen, key=lambda point: self.seen[point])
        for place, at in self._around(best):
            if at < self._loads_of(place) and Setup(self.space.tuning(place), self.space.loads[at]) not in self.seen:
                yield place, at

    def _around(self, best: Setup) -> Iterator[tuple[Place, int]]:
        """Yield heavier loads, what the best's load can fill, and the same at a load that misses by little."""
        self._center(best)
        at, feasible = self.at, self.here.feasible
        if feasible and at + 1 < len(self.space.loads):
            yield from ((place, at + 1) for place in self._scaled() if self._may_keep(place, at + 1))
        if not feasible and at:
            yield self.place, at - 1
        yield from ((place, at) for place in self._fillings(without_delay=True))
        if feasible and (missing := self._missing_by_little()):
            self._center(missing)
            near = self.at
            yield from ((place, near) for place in (*self._instances(), *self._fillings()))
            self._center(best)
        yield from ((place, at) for place in (*self._fillings(), *self._instances()))

    def _center(self, point: Setup) -> None:
        self.place, self.here = self.places[point], self.seen[point]
        self.at = self.space.loads.index(point.load)

    def _missing_by_little(self) -> Setup | None:
        """Return what would be better than the climb's place if it did not miss a constraint by little."""
        wanted = self.here.cost - STEP_GAIN
        near = [point for point, each in self.seen.items() if each.cost < wanted and 0 < each.distance <= WITHIN_REACH]
        return min(near, key=lambda point: self.seen[point].distance, default=None)

    def _scaled(self) -> Iterator[Place]:
        """Yield the climb's place with the instances and the batches that the next heavier load can use.

        One by one they do nothing at the lighter load: one instance that takes all requests at once is as good as two.
        """
        now, then = (load.batch_size * load.concurrency for load in self.space.loads[self.at : self.at + 2])
        counts = self._figures(INSTANCES)
        wanted = counts[self.place[INSTANCES]] * max(1, then / now)
        more = {INSTANCES: max(at for at, count in enumerate(counts) if count <= wanted)}
        grown = self._grown()
        yield tuple(more.get(axis, at) for axis, at in enumerate(grown))
        yield self._with(more)
        yield grown

    def _may_keep(self, place: Place, at: int) -> bool:
        """Whether a place may come near the constraints at a load, if instances divided the excess of what was seen."""
        wanted = self.space.tuning(place)
        beyond = [
            (1 + each.distance) * point.tuning.instances / wanted.instances - 1
            for point, each in self.seen.items()
            if point.load == self.space.loads[at] and point.tuning.dynamic_batching == wanted.dynamic_batching
        ]
        return min(beyond, default=0.0) <= WITHIN_REACH

    def _fillings(self, *, without_delay: bool = False) -> Iterator[Place]:
        """Yield the batchings that the load can fill, with no more instances than it has requests.

        A larger maximum or an instance that stays idle changes nothing but the memory, and a delay waits in vain.
        """
        load = self.space.loads[self.at]
        counts = self._figures(INSTANCES)
        place = self._with({INSTANCES: min(self.place[INSTANCES], max(0, bisect(counts, load.concurrency) - 1))})
        if place != self.place:
            yield place
        switch = self.space.axes[BATCHING].values
        delays = self._figures(DELAY)
        if True not in switch:
            return
        none = delays.index(0)
        short = next(at for at, delay in enumerate(delays) if delay)
        # A delay that is too short to gather is another try of the same server, where nothing meets the constraints.
        tried = (
            (none,) if without_delay else (none, self._delay()) if self.here.feasible else (none, self._delay(), short)
        )
        for delay, size, preferred in product(dict.fromkeys(tried), self._sizes(), (0, 1)):
            batching = {BATCHING: switch.index(True), MAXIMUM: size, DELAY: delay, PREFERRED: preferred}
            yield tuple(batching.get(axis, at) for axis, at in enumerate(place))

    def _sizes(self) -> list[int]:
        """Return the positions of the largest batches that the load can fill: of each instance, and of one."""
        load = self.space.loads[self.at]
        sizes = self._figures(MAXIMUM)
        larger = [at for at, size in enumerate(sizes) if size > load.batch_size]
        flight = load.batch_size * load.concurrency
        found: dict[int, None] = {}
        for most in (flight // self.space.tuning(self.place).instances, flight):
            fitting = [at for at in larger if sizes[at] <= most] or larger[:1]
            found |= dict.fromkeys(fitting[-1:])
        return list(found)

    def _instances(self) -> Iterator[Place]:
        yield from (place for _, place in self.space.neighbours(self.place, INSTANCES))

    def _bound(self, point: Setup, at: int) -> Standing:
        """Return a bound on a configuration at a lighter load: Little's law with the least latencies of any row."""
        load = self.space.loads[at]
        least = {name: min(getattr(row, name) for row in self.rows.values()) for name in LATENCIES}
        throughput = load.batch_size * load.concurrency / max(1, least["average"]) * 1e6
        bound = replace(self.rows[point], throughput=throughput, **least)
        return Standing(*order(bound, self.objectives, self.constraints))

    def _grown(self) -> Place:
        """Return the climb's place for the next heavier load: the largest batch grows as the load does."""
        if self.at + 1 >= len(self.space.loads):
            return self.place
        now, then = (load.batch_size * load.concurrency for load in self.space.loads[self.at : self.at + 2])
        sizes = self._figures(MAXIMUM)
        wanted = sizes[self.place[MAXIMUM]] * max(1, then / now)
        return self._with({MAXIMUM: max(at for at, size in enumerate(sizes) if size <= wanted)})

    def _delay(self) -> int:
        """Return the position of the delay nearest to half the latency: less gathers little, more only waits."""
        row = self.rows.get(self._point(self.place))
        half = max(1, row.average if row else 1) / 2
        delays = self._figures(DELAY)
        return min((at for at, delay in enumerate(delays) if delay), key=lambda at: abs(log(delays[at] / half)))

    def _figures(self, axis: int) -> list[int]:
        return [int(str(value)) for value in self.space.axes[axis].values]

    def _with(self, positions: dict[int, int]) -> Place:
        return tuple(positions.get(axis, at) for axis, at in enumerate(self.place))

    def _point(self, place: Place) -> Setup:
        return Setup(self.space.tuning(place), self.space.loads[self.at])

    def _loads_of(self, place: Place) -> int:
        return len(self.space.servable(self.space.tuning(place)))


def climb(space: Space, objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> SearchPath:
    """Return the path of a hill climb from the base; it ends when no step along any axis or load is better.

    It also ends when a tenth of the space, or FEWEST points of a small one, is asked for. The base costs nothing.
    """
    path = _whole(space, objectives, constraints)
    left = max(FEWEST, space.size // SHARE)
    with suppress(StopIteration):
        point = next(path)
        while point.tuning == space.base or left:
            left -= point.tuning != space.base
            point = path.send((yield point))


def _whole(space: Space, objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> SearchPath:
    climber = _Climber(space, objectives, constraints, space.base_place)
    yield from climber.survey()
    if not climber.seen:
        return
    if not climber.here.feasible or climber.here.cost > min(climber.seen.values()).cost + LET_GO:
        # Batching and instances gain most, so they say which load is best.
        yield from climber.descend(2)
        while climber.here.distance > WITHIN_REACH:
            if not ((yield from climber.fill()) or (yield from climber.lighter())):
                break
        if climber.here.feasible and not (constraints and (yield from climber.heavier())):
            yield from climber.slide()
    # Where nothing meets the constraints so far, steps that gain at one load cost what the right load needs.
    going = not constraints or min(climber.seen.values()).feasible
    while going:
        yield from climber.descend(len(space.axes))
        going = (yield from climber.fill()) or (yield from climber.shift())
    if constraints:
        yield from climber.settle()
