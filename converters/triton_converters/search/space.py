"""The space of a search: configurations, and the loads of each. Pure; standard library only."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product

from triton_converters.contract.measurement_requests import SearchRequest, Sweep
from triton_converters.contract.results import Tuning

MAXIMUM_INSTANCES = 5
"""Model Analyzer's default range is 1 to 5 (run_config_search_max_instance_count)."""
QUEUE_DELAYS = (0, 100, 500, 1000, 5000)
"""Microseconds: none, a tenth of a cheap inference, its length, and two that only a slow model's budget allows."""


@dataclass(frozen=True, order=True)
class LoadLevel:
    """The load with which a configuration is measured."""

    batch_size: int
    concurrency: int


@dataclass(frozen=True)
class Axis:
    """One dimension of a configuration and its values, from small to large."""

    field: str
    """Field of Tuning; ``preferred_batch_sizes`` stands for a rule that gives the sizes for a maximum."""
    values: tuple[object, ...]


Place = tuple[int, ...]
"""A configuration, given as positions on ``Space.axes``."""
BATCHING, INSTANCES, MAXIMUM, DELAY, PREFERRED = range(5)
"""Positions of the axes in ``Space.axes`` and in a Place."""
_SIZES = "preferred_batch_sizes"
_NONE, _HALVES, _OWN = "none", "halves", "own"


@dataclass(frozen=True)
class Space:
    """All configurations and loads of one search.

    Preferred sizes are either none, or half the maximum and the maximum: Triton waits for the maximum alone anyway.
    Every axis includes the base's own value.
    """

    base: Tuning
    maximum_instances: int
    vary_cuda_graphs: bool
    loads: tuple[LoadLevel, ...]

    @classmethod
    def of(cls, request: SearchRequest) -> "Space":
        """Return the space that a request describes."""
        return cls(request.base, request.maximum_instances, request.vary_cuda_graphs, loads(request.sweep))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, those that tend to matter most first, so that a small budget is spent well."""
        base = self.base
        batches = [base.max_batch_size]
        while batches[0] > 1:
            # Powers of two below the maximum, which need not be one.
            batches.insert(0, 1 << (batches[0] - 1).bit_length() - 1)
        dynamic = (True,) if base.dynamic_batching else (False, True)
        delays = sorted({*QUEUE_DELAYS, base.max_queue_delay_microseconds})
        sizes = set(base.preferred_batch_sizes)
        maximum = base.max_batch_size
        own = () if sizes <= {maximum} or sizes == {maximum // 2, maximum} else (_OWN,)
        return (
            Axis("dynamic_batching", dynamic if base.max_batch_size > 1 else (base.dynamic_batching,)),
            Axis("instances", tuple(range(1, max(self._most_instances, base.instances) + 1))),
            Axis("max_batch_size", tuple(batches)),
            Axis("max_queue_delay_microseconds", tuple(delays)),
            Axis(_SIZES, (_NONE, _HALVES, *own)),
            Axis("cuda_graphs", (False, True) if self.vary_cuda_graphs else (base.cuda_graphs,)),
        )

    @cached_property
    def base_place(self) -> Place:
        """The base's place by its own values, including those that have no effect yet."""
        values = asdict(self.base)
        own = [
            range(len(axis.values)) if axis.field == _SIZES else (axis.values.index(values[axis.field]),)
            for axis in self.axes
        ]
        return next(place for place in product(*own) if self.tuning(place) == self.base)

    def tuning(self, place: Place) -> Tuning:
        """Return the configuration at a place; places that differ only in a field without effect have the same."""
        values = {axis.field: axis.values[at] for axis, at in zip(self.axes, place, strict=True)}
        rule = values.pop(_SIZES)
        maximum = values["max_batch_size"]
        assert isinstance(maximum, int)
        found = replace(self.base, **values, preferred_batch_sizes=self._preferred(str(rule), maximum))  # type: ignore[arg-type]  # of the fields that the axes name
        return self.base if self._effective(found) == self._effective(self.base) else self._effective(found)

    def neighbours(self, place: Place, axis: int) -> Iterator[tuple[int, Place]]:
        """Yield direction and place of the next different configurations along an axis, upwards first."""
        for direction in (1, -1):
            at = place[axis] + direction
            while 0 <= at < len(self.axes[axis].values):
                other = (*place[:axis], at, *place[axis + 1 :])
                if self.tuning(other) != self.tuning(place):
                    yield direction, other
                    break
                at += direction

    def servable(self, tuning: Tuning) -> tuple[LoadLevel, ...]:
        """Return the loads that a configuration takes: no request may hold more samples than its maximum."""
        maximum = tuning.max_batch_size
        return tuple(load for load in self.loads if not maximum or load.batch_size <= maximum)

    @cached_property
    def tunings(self) -> tuple[Tuning, ...]:
        """Every configuration once, the base first."""
        return tuple(dict.fromkeys((self.base, *(self.tuning(place) for place in self.places()))))

    @cached_property
    def size(self) -> int:
        """Number of points in the space."""
        return sum(len(self.servable(tuning)) for tuning in self.tunings)

    @property
    def _most_instances(self) -> int:
        return min(self.maximum_instances, MAXIMUM_INSTANCES)

    def places(self) -> Iterator[Place]:
        """Return every combination of positions on the axes."""
        return product(*(range(len(axis.values)) for axis in self.axes))

    def _preferred(self, rule: str, maximum: int) -> tuple[int, ...]:
        if rule == _OWN:
            return tuple(size for size in self.base.preferred_batch_sizes if size <= maximum)
        return (maximum // 2, maximum) if rule == _HALVES and maximum > 1 else ()

    def _effective(self, tuning: Tuning) -> Tuning:
        """Return the tuning without values that have no effect, such as batching of single samples."""
        if tuning.dynamic_batching and tuning.max_batch_size > 1:
            # Triton keeps the sizes as a set; the spec may write them in any order, and twice.
            sizes = sorted(set(tuning.preferred_batch_sizes))
            alone = sizes in ([], [tuning.max_batch_size])
            return replace(tuning, preferred_batch_sizes=() if alone else tuple(sizes))
        return replace(
            tuning,
            max_batch_size=self.base.max_batch_size,
            dynamic_batching=False,
            preferred_batch_sizes=(),
            max_queue_delay_microseconds=0,
        )


def loads(sweep: Sweep) -> tuple[LoadLevel, ...]:
    """Return a sweep's loads, from the lightest to the heaviest."""
    return tuple(sorted(LoadLevel(*pair) for pair in product(sweep.batch_sizes, sweep.concurrencies)))
