"""What a model of LightGBM says, in its text (its src/boosting/gbdt_model_text.cpp and include/LightGBM/tree.h)."""

from collections.abc import Mapping

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.trees.forest import (
    MOST_FEATURES,
    MOST_TARGETS,
    ZERO,
    BrokenError,
    Forest,
    Link,
    Range,
    Tree,
    UnsupportedError,
    grown,
    ranges,
)

LINKS = {
    "regression": Link.IDENTITY,
    "regression_l1": Link.IDENTITY,
    "huber": Link.IDENTITY,
    "fair": Link.IDENTITY,
    "quantile": Link.IDENTITY,
    "mape": Link.IDENTITY,
    "lambdarank": Link.IDENTITY,
    "rank_xendcg": Link.IDENTITY,
    "custom": Link.IDENTITY,
    "binary": Link.SIGMOID,
    "multiclassova": Link.SIGMOID,
    "cross_entropy": Link.SIGMOID,
    "cross_entropy_lambda": Link.SOFTPLUS,
    "multiclass": Link.SOFTMAX,
    "poisson": Link.EXP,
    "gamma": Link.EXP,
    "tweedie": Link.EXP,
}
"""What each objective makes of its sums (its ConvertOutput)."""
IS_CATEGORY, DEFAULT_LEFT = 1, 2
"""Bits of decision_type. The two bits above these say what is missing."""
ZERO_IS_MISSING, NAN_IS_MISSING = 1, 2
BELOW_ZERO = float(numpy.nextafter(-1.0, 0.0))
"""The first number that is truncated to category 0."""
Lines = Mapping[str, str]


def read(content: bytes) -> Forest:
    """Return the trees that answer; raises BrokenError, UnsupportedError."""
    try:
        return _forest(content.decode().replace("\r\n", "\n"))
    except (BrokenError, UnsupportedError):
        raise
    except (KeyError, ValueError, IndexError, OverflowError) as error:
        raise BrokenError(f"is not a model as LightGBM 3 or later saves it ({type(error).__name__}: {error})") from None


def _forest(text: str) -> Forest:
    head, *parts = text.split("\nTree=")
    fields = _fields(head)
    objective, *settings = fields.get("objective", "custom").split()
    if objective not in LINKS:
        raise UnsupportedError(f"has the objective {objective}; {', '.join(sorted(LINKS))} are converted")
    features, targets = int(fields["max_feature_idx"]) + 1, int(fields["num_tree_per_iteration"])
    if not 0 < features <= MOST_FEATURES or not 0 < targets <= MOST_TARGETS:
        raise UnsupportedError(
            f"has {features} features and {targets} outputs; {MOST_FEATURES} and {MOST_TARGETS} are read"
        )
    trees = [_fields(part.partition("end of trees")[0]) for part in parts]
    if not trees or len(trees) != len(fields["tree_sizes"].split()) or len(trees) % targets:
        raise BrokenError(f"has {len(trees)} trees, which are not those that its head tells of")
    # A random forest answers with the mean of its trees.
    weight = targets / len(trees) if "average_output" in head.splitlines() else 1.0
    link = LINKS[objective]
    if link is Link.SIGMOID:
        weight *= next((float(each[len("sigmoid:") :]) for each in settings if each.startswith("sigmoid:")), 1.0)
    if link is Link.IDENTITY and "sqrt" in settings:
        link = Link.SIGNED_SQUARE
    missing: dict[int, set[int]] = {}
    read = [_tree(each, number % targets, weight, missing) for number, each in enumerate(trees)]
    zeros = [feature for feature, kinds in missing.items() if ZERO_IS_MISSING in kinds]
    if mixed := [feature for feature in zeros if len(missing[feature]) > 1]:
        raise UnsupportedError(
            f"takes 0 for missing in some splits of feature {mixed[0]} and not in others: train it anew with one"
            " setting of zero_as_missing"
        )
    return grown(read, features, numpy.zeros(targets), link, "float64", zeros)


def _tree(fields: Lines, target: int, weight: float, missing: dict[int, set[int]]) -> Tree:
    """Return one tree: its splits and then its leaves. ``missing``: gets what is missing in each feature's splits."""
    if fields.get("is_linear", "0") != "0":
        raise UnsupportedError(
            "has linear models in its leaves (linear_tree), which are not converted: train it without"
        )
    leaves = int(fields["num_leaves"])
    values = _numbers(fields, "leaf_value", numpy.float64, leaves)
    splits = leaves - 1
    feature, kinds, left, right = (
        _numbers(fields, key, numpy.int64, splits)
        for key in ("split_feature", "decision_type", "left_child", "right_child")
    )
    threshold = _numbers(fields, "threshold", numpy.float64, splits)
    if any((each >= max(splits, 1)).any() for each in (left, right)):
        raise BrokenError("has a tree with a child that does not exist")
    # A negative child is a leaf, ~number.
    left, right = (numpy.where(each < 0, splits + ~each, each) for each in (left, right))
    if ((kinds >> 2 & 3) > NAN_IS_MISSING).any():
        raise BrokenError("has a decision_type that LightGBM does not have")
    bound, missing_left = _bounds(threshold, kinds)
    is_category = (kinds & IS_CATEGORY).astype(bool)
    for each, kind in {*zip(feature.tolist(), numpy.where(is_category, -1, kinds >> 2 & 3).tolist(), strict=True)}:
        missing.setdefault(each, set()).add(kind)
    padding = numpy.zeros(leaves, numpy.int64)
    return Tree(
        numpy.concatenate([left, padding - 1]),
        numpy.concatenate([right, padding - 1]),
        numpy.concatenate([feature, padding]),
        numpy.concatenate([numpy.where(is_category, 0, bound), padding]),
        numpy.concatenate([missing_left & ~is_category, padding.astype(bool)]),
        numpy.concatenate([numpy.zeros(splits), values * weight])[:, None],
        [target],
        _members(fields, threshold, numpy.flatnonzero(is_category).tolist()),
    )


def _bounds(threshold: Array, kinds: Array) -> tuple[Array, Array]:
    """Return the first number that goes right, and whether NaN goes left.

    LightGBM's rows go left up to the threshold, itself included, and it reads what is near zero, and NaN that is not
    missing, as 0.
    """
    above = numpy.nextafter(threshold, numpy.inf)
    bound = numpy.where(
        numpy.abs(threshold) <= ZERO, numpy.where(threshold < 0, -ZERO, numpy.nextafter(ZERO, 1)), above
    )
    goes_left = numpy.where(kinds >> 2 & 3, kinds & DEFAULT_LEFT, threshold >= 0).astype(bool)
    return bound, goes_left


def _members(fields: Lines, places: Array, nodes: list[int]) -> dict[int, list[Range]]:
    """Return the ranges of the categories that go left; ``places``: of each node's among those of the tree."""
    if not nodes:
        return {}
    count = int(fields["num_cat"])
    ends = _numbers(fields, "cat_boundaries", numpy.int64, count + 1)
    words = numpy.array(fields["cat_threshold"].split(), numpy.uint32)
    found = {}
    total = 0
    for node in nodes:
        place = int(places[node])
        if not 0 <= place < count or not 0 <= ends[place] <= ends[place + 1] <= len(words):
            raise BrokenError("lists categories that it does not have")
        own = words[ends[place] : ends[place + 1]]
        total += len(own)
        if total > len(words):
            raise BrokenError("lists categories twice")
        bits = numpy.unpackbits(own.view(numpy.uint8), bitorder="little")
        found[node] = ranges(numpy.flatnonzero(bits), BELOW_ZERO)
    return found


def _numbers(fields: Lines, key: str, kind: type, count: int) -> Array:
    """Return the numbers of a line, [count]; without any, the line may be left out. Raises BrokenError."""
    given = fields[key].split() if count else []
    if len(given) != count:
        raise BrokenError(f"has a {key} that is no list of {count} numbers")
    return numpy.array(given, kind)


def _fields(text: str) -> dict[str, str]:
    """Return the lines NAME=VALUE by their names."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
