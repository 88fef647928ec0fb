"""Trees as arrays, whichever library grew them. All of them decide alike: a row goes left whose value is smaller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

import numpy

from triton_converters.claim_store.dump import Array

DEEPEST = 1000
"""Levels of a tree: ONNX Runtime descends once for each as it loads a graph, on a stack of some megabytes."""
DEEPEST_CHAIN = 2000
"""Levels of a tree whose lists of categories are chains of plain splits: 2,000 were seen to load, 20,000 to crash."""
MOST_FEATURES = 10_000
MOST_TARGETS = 10_000
"""Columns of a table, and numbers of an answer: a file of a few bytes may name any number."""
ZERO = float(numpy.float32(1e-35))
"""LightGBM takes what is no larger for 0 (kZeroThreshold)."""
Range = tuple[float, float]
"""The first number that it holds, and the first beyond it."""


class BrokenError(ValueError):
    """The file is not what its library writes; the message goes on after the file's name."""


class UnsupportedError(ValueError):
    """The file holds what is not converted; the message goes on after the file's name and says what to do."""


class Link(Enum):
    """What an answer makes of the sums of a row."""

    IDENTITY = auto()
    SIGMOID = auto()
    EXP = auto()
    SOFTMAX = auto()
    SOFTPLUS = auto()
    SIGNED_SQUARE = auto()
    BEST = auto()
    """The index of the largest sum."""
    POSITIVE = auto()
    """1 for a sum above 0, else 0."""


@dataclass(frozen=True)
class Tree:
    """One tree as its file has it. Arrays are by node, the first of which is the root."""

    left: Array
    """The child of rows whose value is below the bound, or in a range of ``members``; negative: the node is a leaf."""
    right: Array
    feature: Array
    bound: Array
    missing_left: Array
    """Whether NaN goes left."""
    values: Array
    """What a leaf adds to each of ``targets``, [nodes, targets]."""
    targets: Sequence[int]
    members: Mapping[int, Sequence[Range]] = field(default_factory=dict)
    """The ascending ranges of nodes that ask for categories."""


@dataclass(frozen=True)
class Forest:
    """All trees. Arrays without a remark are by node."""

    features: int
    type: str
    """NumPy's name of the type in which values are compared."""
    base: Array
    """What the sums begin with, [targets]."""
    link: Link
    zero_is_missing: Array
    """Whether a column's zeros count as NaN, [features]."""
    roots: Array
    """The first node of each tree; its other nodes follow."""
    left: Array
    """Negative: the node is a leaf. Two nodes may have one child."""
    right: Array
    feature: Array
    bound: Array
    missing_left: Array
    categorical: Array
    """Whether a column holds numbers of categories, [features]."""
    adding: Array
    """The leaf of each addition, with ``added_to``, its target, and ``added``, [additions]."""
    added_to: Array
    added: Array

    @property
    def targets(self) -> int:
        """Number of sums."""
        return len(self.base)

    @cached_property
    def is_leaf(self) -> Array:
        """Whether a node is a leaf."""
        return self.left < 0

    def leaves(self, rows: Array) -> Array:
        """Return the leaf that each row, [rows, features], reaches in each tree: [rows, trees]."""
        values = numpy.where(self.zero_is_missing & (numpy.abs(rows) <= ZERO), numpy.nan, rows.astype(self.type))
        lines = numpy.arange(len(rows))[:, None]
        at = numpy.tile(self.roots, (len(rows), 1))
        while not (ended := self.is_leaf[at]).all():
            value = values[lines, self.feature[at]]
            goes_left = (value < self.bound[at]) | (numpy.isnan(value) & self.missing_left[at])
            at = numpy.where(ended, at, numpy.where(goes_left, self.left[at], self.right[at]))
        return at


def grown(
    trees: Sequence[Tree], features: int, base: Array, link: Link, kind: str, zero_is_missing: Sequence[int] = ()
) -> Forest:
    """Return the trees as one; ``base``: [targets]; ``kind``: Forest's type; ``zero_is_missing``: columns.

    A tree that is a leaf adds to the base. Raises BrokenError for what is no tree, UnsupportedError if none splits.
    """
    base = base.astype(kind)
    kept: list[Tree] = []
    for number, tree in enumerate(trees):
        try:
            whole = _compact(tree, features, len(base))
        except BrokenError as error:
            raise BrokenError(f"has a broken tree, number {number} counted from 0: {error}") from None
        if whole.left[0] < 0:
            base[list(whole.targets)] += whole.values[0].astype(kind)
        else:
            kept.append(whole)
    if not kept:
        raise UnsupportedError("has no tree that splits, so every answer is the same: train it on data that tells more")
    columns = numpy.zeros((2, features), bool)
    columns[0, [feature for tree in kept for feature in tree.feature[list(tree.members)]]] = True
    columns[1, list(zero_is_missing)] = True
    plain = [_plain(tree) for tree in kept]
    sizes = [len(tree.left) for tree in plain]
    roots = numpy.cumsum([0, *sizes[:-1]])

    def joined(name: str) -> Array:
        return numpy.concatenate([getattr(tree, name) for tree in plain])

    left, right = joined("left"), joined("right")
    leaves = numpy.flatnonzero(left < 0)
    own_root = numpy.repeat(roots, sizes)
    targets = numpy.repeat([tree.targets for tree in plain], sizes, axis=0)
    # ONNX Runtime answers 0, and not the base, for a sum to which no leaf adds.
    silent = numpy.setdiff1d(numpy.arange(len(base)), targets[leaves])
    first = leaves[leaves < sizes[0]]
    return Forest(
        features=features,
        type=kind,
        base=base,
        link=link,
        categorical=columns[0],
        zero_is_missing=columns[1],
        roots=roots,
        left=numpy.where(left < 0, -1, left + own_root),
        right=numpy.where(left < 0, -1, right + own_root),
        feature=joined("feature"),
        bound=joined("bound").astype(kind),
        missing_left=joined("missing_left"),
        adding=numpy.append(numpy.repeat(leaves, targets.shape[1]), numpy.repeat(first, len(silent))),
        added_to=numpy.append(targets[leaves].ravel(), numpy.tile(silent, len(first))),
        added=numpy.append(joined("values")[leaves].ravel(), numpy.zeros(len(first) * len(silent))).astype(kind),
    )


def ranges(categories: Array, below_zero: float = 0.0) -> list[Range]:
    """Return the ranges of numbers whose whole part is one of these categories; ``below_zero``: where those of 0 begin.

    Raises BrokenError for a negative category.
    """
    known = numpy.unique(categories)
    if not len(known):
        return []
    if known[0] < 0:
        raise BrokenError("lists a negative category")
    runs = numpy.split(known, numpy.flatnonzero(numpy.diff(known) > 1) + 1)
    return [(float(run[0]) if run[0] else below_zero, float(run[-1] + 1)) for run in runs]


def _compact(tree: Tree, features: int, targets: int) -> Tree:
    """Return a tree of its reachable nodes alone, in the order of their levels. Raises BrokenError if it is none."""
    order = _reachable(tree)
    inner = order[tree.left[order] >= 0]
    ends = order[tree.left[order] < 0]
    if ((tree.feature[inner] < 0) | (tree.feature[inner] >= features)).any():
        raise BrokenError(f"it splits by a feature that is none of {features}")
    if numpy.isnan(tree.bound[inner]).any() or not numpy.isfinite(tree.values[ends]).all():
        raise BrokenError("a threshold or a leaf of it is no finite number")
    if not all(0 <= each < targets for each in tree.targets):
        raise BrokenError(f"it adds to a number that is none of {targets}")
    place = numpy.full(len(tree.left), -1)
    place[order] = numpy.arange(len(order))
    is_leaf = tree.left[order] < 0
    return Tree(
        numpy.where(is_leaf, -1, place[tree.left[order]]),
        numpy.where(is_leaf, -1, place[numpy.where(is_leaf, 0, tree.right[order])]),
        numpy.where(is_leaf, 0, tree.feature[order]),
        numpy.where(is_leaf, 0, tree.bound[order]),
        tree.missing_left[order].astype(bool),
        tree.values[order],
        tree.targets,
        {int(place[node]): ranges for node, ranges in tree.members.items() if place[node] >= 0},
    )


def _reachable(tree: Tree) -> Array:
    """Return the nodes that the root leads to, level by level. Raises BrokenError if these are no tree."""
    count = len(tree.left)
    if not count:
        raise BrokenError("it has no node")
    seen = numpy.zeros(count, bool)
    level = numpy.zeros(1, numpy.int64)
    levels: list[Array] = []
    while len(level):
        if len(levels) == DEEPEST:
            raise BrokenError(f"it has more than {DEEPEST} levels")
        if seen[level].any() or len(numpy.unique(level)) < len(level):
            raise BrokenError("a node of it is reached twice")
        seen[level] = True
        levels.append(level)
        inner = level[tree.left[level] >= 0]
        level = numpy.concatenate([tree.left[inner], tree.right[inner]])
        if ((level < 0) | (level >= count)).any():
            raise BrokenError("a child of it does not exist")
    return numpy.concatenate(levels)


def _plain(tree: Tree) -> Tree:
    """Return the tree with a chain of plain splits in place of each node that asks for categories.

    ONNX Runtime takes a child of several nodes if they have it for the rows that go left (tree_ensemble_common.h).
    Raises UnsupportedError for chains that are too long.
    """
    left, right, feature, bound, missing = (
        each.tolist() for each in (tree.left, tree.right, tree.feature, tree.bound, tree.missing_left)
    )
    if tree.members and _levels(tree) > DEEPEST_CHAIN:
        raise UnsupportedError(
            f"asks for so many categories that a tree has more than {DEEPEST_CHAIN} levels: train it with a smaller"
            " max_cat_threshold"
        )
    for node, ranges in tree.members.items():
        if not ranges:
            bound[node] = -numpy.inf
            continue
        inside, outside, missing_inside = left[node], right[node], missing[node]
        ends = [end for each in ranges for end in each]
        added = range(len(left), len(left) + len(ends) - 1)
        for each in (left, right, feature, bound, missing):
            each.extend([0] * len(added))
        chain = [node, *added]
        for number, (place, end) in enumerate(zip(chain, ends, strict=True)):
            feature[place], bound[place] = feature[node], end
            left[place] = inside if number % 2 else outside
            right[place] = chain[number + 1] if number + 1 < len(chain) else outside
            missing[place] = number == int(missing_inside)
    empty = numpy.zeros((len(left) - len(tree.left), tree.values.shape[1]), tree.values.dtype)
    return Tree(
        numpy.array(left),
        numpy.array(right),
        numpy.array(feature),
        numpy.array(bound, tree.bound.dtype),
        numpy.array(missing, bool),
        numpy.concatenate([tree.values, empty]),
        tree.targets,
    )


def _levels(tree: Tree) -> int:
    """Return the levels of a tree, whose nodes come before their children, with a chain for each list of categories."""
    left, right = tree.left.tolist(), tree.right.tolist()
    levels = [1] * len(left)
    for node, child in enumerate(left):
        if child >= 0:
            below = levels[node] + max(1, 2 * len(tree.members.get(node, ())))
            levels[child] = levels[right[node]] = below
    return max(levels)
