"""Rows of a table that lead to the leaves of trees: by chance alone, few of a deep tree's leaves are ever asked."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.trees.forest import Forest

SHARE_OF_LEAVES = 0.75
"""Share of the rows that lead to leaves, if there are so many leaves. Half of the others have missing values, half lie
at thresholds."""
SHARE_MISSING = 0.2
"""Share of the values of a row with missing values that are missing."""
MARGIN = 0.1
"""Share of the range of a column's thresholds by which values lie beyond its ends."""


@dataclass
class Reach:
    """The values of one column that lead to a leaf."""

    low: float = -numpy.inf
    high: float = numpy.inf
    """The first number that does not."""
    missing: bool = True
    """Whether NaN does."""


def rows(forest: Forest, count: int, random: numpy.random.Generator) -> Array:
    """Return rows, [count, features].

    Each leads to a leaf that none before it reaches, as long as there is one, and has values in the middle between two
    neighbouring thresholds: no rounding decides there. Then come rows with missing values, and rows at thresholds.
    """
    columns = _columns(forest)
    reached = numpy.zeros(len(forest.left), bool)
    ways = parents(forest)
    made: list[Array] = []
    for leaf in numpy.unique(forest.adding).tolist():
        if len(made) >= count * SHARE_OF_LEAVES:
            break
        if not reached[leaf]:
            row = _row(columns, reach(forest, ways, leaf, random), random)
            reached[forest.leaves(row[None])] = True
            made.append(row)
    while len(made) < count:
        if len(made) % 2:
            row = numpy.array([each.at_threshold(random) for each in columns], forest.type)
        else:
            row = _row(columns, {}, random)
            missing = random.random(forest.features) < SHARE_MISSING
            is_zero = forest.zero_is_missing & (random.random(forest.features) < 0.5)
            row[missing] = numpy.where(is_zero, 0, numpy.nan)[missing]
        made.append(row)
    return numpy.stack(made)


def _columns(forest: Forest) -> list["_Column"]:
    inner = numpy.flatnonzero(~forest.is_leaf & numpy.isfinite(forest.bound))
    inner = inner[numpy.argsort(forest.feature[inner], kind="stable")]
    ends = numpy.searchsorted(forest.feature[inner], numpy.arange(1, forest.features))
    cuts = numpy.split(forest.bound[inner].astype(numpy.float64), ends)
    whole = forest.categorical.tolist()
    return [_Column(numpy.unique(own), is_whole, forest.type) for own, is_whole in zip(cuts, whole, strict=True)]


def _row(columns: list["_Column"], reach: Mapping[int, Reach], random: numpy.random.Generator) -> Array:
    """Return a row that lies in what ``reach`` has of columns, and anywhere in the others."""
    anywhere = Reach()
    return numpy.array(
        [column.between(reach.get(feature, anywhere), random) for feature, column in enumerate(columns)],
        columns[0].type,
    )


def parents(forest: Forest) -> dict[int, list[tuple[int, bool]]]:
    """Return the nodes that lead to each node, and whether it is their left child."""
    found: dict[int, list[tuple[int, bool]]] = {}
    for children, is_left in ((forest.left, True), (forest.right, False)):
        inner = numpy.flatnonzero(~forest.is_leaf)
        for parent, child in zip(inner.tolist(), children[inner].tolist(), strict=True):
            found.setdefault(child, []).append((parent, is_left))
    return found


def reach(
    forest: Forest, ways: Mapping[int, list[tuple[int, bool]]], leaf: int, random: numpy.random.Generator
) -> dict[int, Reach]:
    """Return the values of columns that lead to a leaf, by one of its ways; ``ways``: what ``parents`` returns."""
    found: dict[int, Reach] = {}
    node = leaf
    while node in ways:
        node, is_left = ways[node][int(random.integers(len(ways[node])))]
        span = found.setdefault(int(forest.feature[node]), Reach())
        bound = float(forest.bound[node])
        if is_left:
            span.high = min(span.high, bound)
        else:
            span.low = max(span.low, bound)
        span.missing &= bool(forest.missing_left[node]) == is_left
    return found


class _Column:
    """One column. Between each two of its thresholds, the cuts, lies a gap."""

    def __init__(self, cuts: Array, is_whole: bool, kind: str) -> None:
        self._cuts = cuts
        self._is_whole = is_whole
        self.type = numpy.dtype(kind).type

    def between(self, reach: Reach, random: numpy.random.Generator) -> float:
        """Return a number in the middle of a gap, or NaN if no number reaches; of categories a whole number."""
        low = max(reach.low, 0.0) if self._is_whole else reach.low
        # Each gap lies below the cut of its number.
        first, last = numpy.searchsorted(self._cuts, low, "right"), numpy.searchsorted(self._cuts, reach.high, "left")
        if first > last or low >= reach.high:
            return numpy.nan if reach.missing else 0.0
        if not len(self._cuts):
            return float(random.random())
        start, end = self._gap(int(random.integers(first, last + 1)), low)
        if self._is_whole:
            return float(random.integers(int(numpy.ceil(start)), max(int(numpy.ceil(end)), int(numpy.ceil(start)) + 1)))
        middle = float(self.type(start + (end - start) / 2))
        return middle if start <= middle < end else start

    def at_threshold(self, random: numpy.random.Generator) -> float:
        """Return a threshold, or the next number below one."""
        if not len(self._cuts) or self._is_whole:
            return self.between(Reach(), random)
        cut = self.type(random.choice(self._cuts))
        return float(cut if random.random() < 0.5 else numpy.nextafter(cut, self.type(-numpy.inf)))

    def _gap(self, number: int, low: float) -> tuple[float, float]:
        """Return the ends of a gap; that of the first and of the last one is a share of all cuts away."""
        margin = max(1.0, MARGIN * float(self._cuts[-1] - self._cuts[0]))
        start = float(self._cuts[number - 1]) if number else max(low, float(self._cuts[0]) - margin)
        return start, float(self._cuts[number]) if number < len(self._cuts) else start + margin
