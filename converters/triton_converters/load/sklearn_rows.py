"""Rows of a table that show what a model of scikit-learn learned: leaves, thresholds, categories, missing values.

What the steps in front of the last one make of a column is asked: where one column alone moves a feature, the values
are searched at which that crosses a threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.load.sklearn_columns import Column
from triton_converters.load.sklearn_model import SklearnModel
from triton_converters.trees.forest import Forest
from triton_converters.trees.rows import SHARE_MISSING, SHARE_OF_LEAVES, Reach, parents, reach, rows

UNKNOWN = ("something else", "nan", "None", "")
"""Words that are no category; Python writes a missing one like some of them."""
GRID = numpy.concatenate([-(10.0 ** numpy.arange(15, -4, -1)), [0.0], 10.0 ** numpy.arange(-3, 16)])
"""Numbers between which thresholds are searched."""
LEVELS = numpy.linspace(-3, 3, 13)
"""What stands for thresholds where the last step is no trees: most of a column that was scaled lies there. They are
multiples of what an imputer fills in, if that is larger than 1."""
HALVINGS = 80
"""After so many, no number of double precision lies between the ends of a part of GRID, but for those around 0."""
MOST_SEARCHES = 4096
"""Thresholds that are searched for at once, each by a row."""
MOST_FEATURES = 500
"""Features beyond which nothing is searched: what each column makes of each of them would take too much memory."""
MOST_COLUMNS = 200
"""Columns beyond which not each is asked whether it may be missing."""
SPREADS = (0.1, 1.0, 10.0, 100.0)
"""Sizes of numbers in a column of which nothing is known."""


def base(model: SklearnModel) -> Array:
    """Return a row that the model answers, [1, columns]; raises what the library raises of the last one tried."""
    kind = object if model.has_words else model.type
    for number in (0.0, 1.0):
        row = numpy.array([[_first(each, number) for each in model.columns]], kind)
        if _is_answered(model, row):
            return row
    model.answers(row)
    return row


def table(model: SklearnModel, count: int, random: numpy.random.Generator) -> Array:
    """Return rows that the model answers, [count, columns]; raises what the library raises of ``base``."""
    start = base(model)
    made = _made(model, count, start, random)
    if _is_answered(model, made):
        return made
    return numpy.concatenate([row[None] if _is_answered(model, row[None]) else start for row in made])


def _made(model: SklearnModel, count: int, start: Array, random: numpy.random.Generator) -> Array:
    takes_missing = _takes_missing(model, start)
    odd = [[numpy.nan] * bool(takes) for takes in takes_missing]
    if model.forest is not None and not model.is_pipeline:
        made = rows(model.forest, count, random)
        return numpy.where(numpy.isnan(made) & ~takes_missing, start, made)
    for place, column in enumerate(model.columns):
        odd[place] += _unknown(model, start, place, column)
    found = _values(model, start, odd, random)
    at_leaves = _at_leaves(model, start, found, int(count * SHARE_OF_LEAVES), random)
    while len(at_leaves) < count:
        row = start.copy()
        for place, each in enumerate(found):
            row[0, place] = each.at_edge(random) if len(at_leaves) % 2 else each.anywhere(random)
        at_leaves.append(row)
    return numpy.concatenate(at_leaves)


@dataclass
class _Values:
    """What a column may hold."""

    usual: Sequence[Any]
    odd: Sequence[Any]
    """Missing, or unknown."""
    edges: Sequence[Any]
    """Numbers at which a feature crosses a threshold, and the next below; none: there is no such feature."""
    features: Array
    """The features that this column alone moves."""
    seen: Array
    """What usual and odd values make of these features, [values, features]."""

    def anywhere(self, random: numpy.random.Generator) -> Any:
        """Return a value, which may be odd."""
        values = self.odd if self.odd and random.random() < SHARE_MISSING else self.usual
        return values[int(random.integers(len(values)))]

    def at_edge(self, random: numpy.random.Generator) -> Any:
        """Return a value at a threshold, if there is one."""
        return self.edges[int(random.integers(len(self.edges)))] if self.edges else self.anywhere(random)

    def leading(self, wanted: dict[int, Reach], random: numpy.random.Generator) -> Any:
        """Return a value whose features are in reach, if there is one."""
        fits = numpy.ones(len(self.seen), bool)
        for place, feature in enumerate(self.features.tolist()):
            if span := wanted.get(feature):
                column = self.seen[:, place]
                fits &= ((span.low <= column) & (column < span.high)) | (numpy.isnan(column) & span.missing)
        if not fits.any():
            return self.anywhere(random)
        number = int(random.choice(numpy.flatnonzero(fits)))
        return self.usual[number] if number < len(self.usual) else self.odd[number - len(self.usual)]


def _first(column: Column, number: float) -> str | float:
    return column.known[0] if column.known else "" if column.is_text else number


def _is_answered(model: SklearnModel, row: Array) -> bool:
    try:
        model.answers(row)
    except ValueError:
        return False
    return True


def _takes_missing(model: SklearnModel, start: Array) -> Array:
    """Return whether the model answers a row in which a column is missing, [columns]; words never are."""
    is_number = numpy.array([not each.is_text for each in model.columns])
    whole = start.copy()
    whole[0, is_number] = numpy.nan
    if _is_answered(model, whole) or not model.is_pipeline or len(is_number) > MOST_COLUMNS:
        return is_number & _is_answered(model, whole)
    each = [_is_answered(model, _with(start, place, [numpy.nan])) for place in numpy.flatnonzero(is_number).tolist()]
    is_number[is_number] = each
    return is_number


def _unknown(model: SklearnModel, start: Array, place: int, column: Column) -> list[Any]:
    """Return the values that are none of a column's categories and that the model answers."""
    numbers = [each for each in column.known if isinstance(each, float)]
    tried: list[Any] = [max(numbers) + 1, min(numbers) - 0.5] if numbers else list(UNKNOWN) if column.known else []
    return [each for each in tried if _is_answered(model, _with(start, place, [each]))]


def _with(start: Array, place: int, values: Sequence[Any]) -> Array:
    """Return a row for each value of one column, [values, columns]."""
    made = numpy.repeat(start, len(values), axis=0)
    made[:, place] = values
    return made


def _values(
    model: SklearnModel, start: Array, odd: Sequence[Sequence[Any]], random: numpy.random.Generator
) -> list[_Values]:
    """Return what each column may hold."""
    tried = [list(each.known or ([""] if each.is_text else GRID)) for each in model.columns]
    at_start = _seen(model, start)
    none = numpy.zeros(0, int)
    if at_start.shape[1] > MOST_FEATURES:
        return [
            _Values(_usual(each, values, [], random), others, [], none, numpy.zeros((len(values) + len(others), 0)))
            for each, values, others in zip(model.columns, tried, odd, strict=True)
        ]
    seen = [_seen(model, _with(start, place, values)) for place, values in enumerate(tried)]
    moved = numpy.array([~numpy.isclose(each, at_start, rtol=0, atol=0, equal_nan=True).all(axis=0) for each in seen])
    alone = moved & (moved.sum(axis=0) == 1)
    edges = _edges(model, start, seen, alone, _sizes(model, start, odd))
    found = []
    for place, column in enumerate(model.columns):
        usual = _usual(column, tried[place], edges[place], random)
        features = numpy.flatnonzero(alone[place])
        shown = _seen(model, _with(start, place, [*usual, *odd[place]]))[:, features]
        found.append(_Values(usual, odd[place], edges[place], features, shown))
    return found


def _seen(model: SklearnModel, made: Array) -> Array:
    """Return what rows make of the features; where the library takes not all of them, those of its own are NaN."""
    try:
        found = model.features(made)
    except ValueError:
        each = [model.features(row[None]) if _is_answered(model, row[None]) else None for row in made]
        width = next(row.shape[1] for row in each if row is not None)
        found = numpy.concatenate([numpy.full((1, width), numpy.nan) if row is None else row for row in each])
    return found.astype(model.forest.type if model.forest else numpy.float64).astype(numpy.float64)


def _usual(column: Column, tried: list[Any], edges: Sequence[float], random: numpy.random.Generator) -> list[Any]:
    """Return the values that it has learned, or numbers in the middle between edges, and beyond their ends."""
    if column.is_text or column.known:
        return tried
    if not edges:
        return [float(each) for size in SPREADS for each in random.normal(0, size, 16)]
    cuts = numpy.unique(edges)
    margin = max(1e-3, float(cuts[-1] - cuts[0]) / 10)
    ends = numpy.concatenate([[cuts[0] - margin], cuts, [cuts[-1] + margin]])
    middles: list[float] = (ends[:-1] + (ends[1:] - ends[:-1]) / 2).tolist()
    return middles


def _sizes(model: SklearnModel, start: Array, odd: Sequence[Sequence[Any]]) -> Array:
    """Return how large features are if columns are missing that may be, at least 1, [features]."""
    row = start.copy()
    for place, values in enumerate(odd):
        if values and isinstance(values[0], float) and numpy.isnan(values[0]):
            row[0, place] = numpy.nan
    (filled,) = numpy.abs(_seen(model, row))
    return numpy.where(filled > 1, filled, 1.0)


def _edges(model: SklearnModel, start: Array, seen: Sequence[Array], alone: Array, sizes: Array) -> list[list[float]]:
    """Return, for each column, the numbers at which a feature that it alone moves crosses a threshold."""
    found: list[list[float]] = [[] for _ in model.columns]
    searched = [
        (place, int(feature), float(level), int(part))
        for place, column in enumerate(model.columns)
        if not column.known and not column.is_text
        for feature in numpy.flatnonzero(alone[place])
        for level in (LEVELS * sizes[feature] if model.forest is None else _bounds(model.forest, int(feature)))
        for part in _crossed(seen[place][:, feature], level)
    ]
    searched = searched[:: len(searched) // MOST_SEARCHES + 1]
    if not searched:
        return found
    places, features, levels, parts = (numpy.array(each) for each in zip(*searched, strict=True))
    lines = numpy.arange(len(searched))
    low, high = GRID[parts], GRID[parts + 1]
    made = numpy.repeat(start, len(searched), axis=0)
    is_below = numpy.array([seen[place][part, feature] < level for place, feature, level, part in searched])
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        made[lines, places] = middle
        stays = (_seen(model, made)[lines, features] < levels) == is_below
        low, high = numpy.where(stays, middle, low), numpy.where(stays, high, middle)
    for place, *ends in zip(places.tolist(), low.tolist(), high.tolist(), strict=True):
        found[place] += ends
    return found


def _bounds(forest: Forest, feature: int) -> Array:
    bounds = forest.bound[(forest.feature == feature) & ~forest.is_leaf]
    return numpy.unique(bounds[numpy.isfinite(bounds)]).astype(numpy.float64)


def _crossed(values: Array, level: float) -> Array:
    """Return the parts of GRID in which values, by its numbers, cross a level."""
    is_known = numpy.isfinite(values)
    return numpy.flatnonzero(((values < level)[:-1] != (values < level)[1:]) & is_known[:-1] & is_known[1:])


def _at_leaves(
    model: SklearnModel, start: Array, found: Sequence[_Values], count: int, random: numpy.random.Generator
) -> list[Array]:
    """Return rows that lead to leaves, or that have each value of each column once in turn; at most ``count``."""
    if (forest := model.forest) is None:
        made = numpy.repeat(start, count, axis=0)
        for place, each in enumerate(found):
            values = [*each.usual, *each.odd]
            turns = [random.permutation(len(values)) for _ in range(count // len(values) + 1)]
            made[:, place] = [values[number] for number in numpy.concatenate(turns)[:count]]
        return [row[None] for row in made]
    reached = numpy.zeros(len(forest.left), bool)
    ways = parents(forest)
    rows_made: list[Array] = []
    for leaf in numpy.unique(forest.adding).tolist():
        if len(rows_made) >= count:
            break
        if not reached[leaf]:
            wanted = reach(forest, ways, leaf, random)
            row = start.copy()
            row[0] = [each.leading(wanted, random) for each in found]
            reached[forest.leaves(_seen(model, row))] = True
            rows_made.append(row)
    return rows_made
