"""What a model of XGBoost says, in JSON or UBJSON (its doc/model.schema and doc/tutorials/saving_model.rst)."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.trees import ubjson
from triton_converters.trees.forest import (
    MOST_FEATURES,
    MOST_TARGETS,
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
    "reg:squarederror": Link.IDENTITY,
    "reg:squaredlogerror": Link.IDENTITY,
    "reg:pseudohubererror": Link.IDENTITY,
    "reg:absoluteerror": Link.IDENTITY,
    "reg:quantileerror": Link.IDENTITY,
    "reg:expectileerror": Link.IDENTITY,
    "rank:ndcg": Link.IDENTITY,
    "rank:map": Link.IDENTITY,
    "rank:pairwise": Link.IDENTITY,
    "binary:logitraw": Link.IDENTITY,
    "binary:logistic": Link.SIGMOID,
    "reg:logistic": Link.SIGMOID,
    "count:poisson": Link.EXP,
    "reg:gamma": Link.EXP,
    "reg:tweedie": Link.EXP,
    "survival:cox": Link.EXP,
    "survival:aft": Link.EXP,
    "multi:softprob": Link.SOFTMAX,
    "multi:softmax": Link.BEST,
    "binary:hinge": Link.POSITIVE,
}
"""What each objective makes of its sums (its PredTransform)."""
MOST_CATEGORIES = 2**24
"""XGBoost keeps categories in single precision, and takes larger ones for none (OutOfRangeCat)."""
ORDERED = ("reg:quantileerror", "reg:expectileerror")
PARTS = frozenset({"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees", "weight_drop"})
"""What a model of trees consists of: of something else, nobody here knows what it makes of the answer."""
UNREAD = ("parents", "loss_changes", "sum_hessian")
"""Lists by node that only XGBoost reads."""
INVERSE: Mapping[Link, Callable[[Array], Array]] = {
    Link.SIGMOID: lambda base: numpy.log(base / (1 - base)),
    Link.EXP: numpy.log,
}
"""Makes a sum of base_score, which is saved as an answer (ProbToMargin)."""
JsonObject = Mapping[str, Any]


def read(content: bytes, newest: Sequence[int]) -> Forest:
    """Return the trees that answer; ``newest``: the version of the XGBoost that is to answer.

    Raises BrokenError; UnsupportedError also for a file of a later version, of which XGBoost reads a part.
    """
    try:
        document = _document(content)
        version = [int(each) for each in document["version"]]
        if version[:2] > list(newest[:2]):
            own, ours = (".".join(map(str, each)) for each in (version, newest))
            raise UnsupportedError(f"is of XGBoost {own}, and XGBoost {ours} reads it here: save it with that")
        return _forest(document["learner"])
    except (BrokenError, UnsupportedError):
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise BrokenError(f"is not a model as XGBoost 2 or later saves it ({type(error).__name__}: {error})") from None


def best_round(attributes: JsonObject) -> int:
    """Return how many rounds of boosting answer; 0: all.

    A model of scikit-learn's interface answers by the rounds up to its best one, a Booster by all. ``attributes``:
    those of the learner.
    """
    stops = "scikit_learn" in attributes and "best_iteration" in attributes
    return int(attributes["best_iteration"]) + 1 if stops else 0


def _document(content: bytes) -> Any:
    """Return the file as dicts and lists. UBJSON has a length behind its first brace, JSON has none."""
    if content[1:2] in ubjson.NUMBERS:
        return ubjson.loads(content)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"is not JSON: {error}") from None


def _forest(learner: JsonObject) -> Forest:
    booster = learner["gradient_booster"]
    name = booster["name"]
    if name not in ("gbtree", "dart"):
        raise UnsupportedError(f"has the booster {name}; of XGBoost, gbtree and dart are converted")
    # Since 3.4, dart is gbtree with weights.
    model = booster["gbtree"]["model"] if name == "dart" else booster["model"]
    if unknown := model.keys() - PARTS:
        raise UnsupportedError(f"has {min(unknown)}, which is not known here: save it with XGBoost 3.4 or earlier")
    objective = learner["objective"]["name"]
    if objective not in LINKS:
        raise UnsupportedError(f"has the objective {objective}; {', '.join(sorted(LINKS))} are converted")
    parameters = learner["learner_model_param"]
    features, classes, outputs = (int(parameters.get(key, 0)) for key in ("num_feature", "num_class", "num_target"))
    targets = max(classes, outputs, 1)
    if not 0 < features <= MOST_FEATURES or targets > MOST_TARGETS:
        raise UnsupportedError(
            f"has {features} features and {targets} outputs; {MOST_FEATURES} and {MOST_TARGETS} are read"
        )
    if objective in ORDERED and targets > 1:
        raise UnsupportedError(
            "has several quantiles or expectiles, which XGBoost puts in order since version 3.4 and did not before:"
            " train a model for each of them"
        )
    rounds = best_round(learner.get("attributes", {}))
    ends = _numbers(model, "iteration_indptr", "iu") if rounds or "iteration_indptr" in model else numpy.zeros(1, int)
    if ends[0] != 0:
        raise BrokenError("has rounds that do not begin with its first tree")
    count = int(ends[rounds]) if rounds else len(model["trees"])
    if not 0 <= count <= len(model["trees"]):
        raise BrokenError(f"has its best round after {count} trees, which it does not have")
    holder = booster if name == "dart" else model
    weights = (
        _numbers(holder, "weight_drop", "fiu", len(model["trees"])) if "weight_drop" in holder else numpy.ones(count)
    )
    added_to = _numbers(model, "tree_info", "iu", len(model["trees"]))
    trees = [
        _tree(tree, int(target), numpy.float32(weight), targets)
        for tree, target, weight in zip(model["trees"][:count], added_to, weights, strict=False)
    ]
    return grown(
        trees, features, _base(parameters["base_score"], LINKS[objective], targets), LINKS[objective], "float32"
    )


def _base(text: str, link: Link, targets: int) -> Array:
    """Return what the sums begin with; ``text``: a number, or a list with one for each target or for all."""
    base = numpy.array([float(each) for each in str(text).strip("[]").split(",")], numpy.float64)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        base = INVERSE[link](base) if link in INVERSE else base
    if len(base) not in (1, targets) or not numpy.isfinite(base).all():
        raise BrokenError(f"has the base_score {text!s:.40}, which its objective cannot begin with")
    return numpy.broadcast_to(base, targets).copy()


def _tree(tree: JsonObject, target: int, weight: Any, targets: int) -> Tree:
    """Return one tree, whose answers are multiplied by ``weight``."""
    count = len(tree["left_children"])
    width = int(tree["tree_param"]["size_leaf_vector"])
    left, right, feature, kind = (
        _numbers(tree, key, "iu", count) for key in ("left_children", "right_children", "split_indices", "split_type")
    )
    bound = _numbers(tree, "split_conditions", "fiu", count).astype(numpy.float32)
    missing_left = _numbers(tree, "default_left", "biu", count).astype(bool)
    if (left < -1).any():
        raise BrokenError("has a tree with a child of a negative number")
    if int(tree["tree_param"]["num_nodes"]) != count or any(len(tree[key]) != count for key in UNREAD):
        raise BrokenError("has a tree whose lists are not as long as its number of nodes")
    values = bound[:, None]
    if width > 1:
        if width != targets:
            raise BrokenError(f"has leaves of {width} numbers, but {targets} outputs")
        leaves = numpy.flatnonzero(left < 0)
        weights = _numbers(tree, "leaf_weights", "fiu", len(leaves) * width).reshape(-1, width)
        values = numpy.zeros((count, width), numpy.float32)
        values[leaves] = weights[right[leaves]]
    members = dict(_members(tree, set(numpy.flatnonzero((kind == 1) & (left >= 0)).tolist())))
    # XGBoost's rows whose category is listed go right.
    listed = list(members)
    left, right, missing_left = left.copy(), right.copy(), missing_left.copy()
    left[listed], right[listed] = right[listed], left[listed]
    missing_left[listed] = ~missing_left[listed]
    return Tree(
        left, right, feature, bound, missing_left, values * weight, range(width) if width > 1 else [target], members
    )


def _members(tree: JsonObject, nodes: set[int]) -> Iterator[tuple[int, list[Range]]]:
    """Yield the nodes that ask for categories, with the ranges of those that they list. Raises BrokenError."""
    asking, starts, sizes, listed = (
        _numbers(tree, key, "iu")
        for key in ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    )
    if set(asking.tolist()) != nodes or not len(asking) == len(starts) == len(sizes):
        raise BrokenError("lists other nodes with categories than it has")
    total = 0
    for node, start, size in zip(asking.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        total += size
        if not 0 <= start <= start + size <= len(listed) or total > len(listed):
            raise BrokenError("lists categories that it does not have")
        if (listed[start : start + size] >= MOST_CATEGORIES).any():
            raise BrokenError(f"lists a category that is not below {MOST_CATEGORIES}")
        yield node, ranges(listed[start : start + size])


def _numbers(part: JsonObject, key: str, kinds: str, count: int | None = None) -> Array:
    """Return a list of numbers, [count]; ``kinds``: NumPy's kinds that it may have. Raises BrokenError."""
    given = part[key]
    # NumPy makes texts as long as the longest of them.
    is_plain = isinstance(given, list) and {*map(type, given)} <= {int, float, bool}
    if not is_plain and not isinstance(given, numpy.ndarray):
        raise BrokenError(f"has a {key} that is no list of numbers")
    found = numpy.asarray(given) if len(given) else numpy.zeros(0, numpy.int64)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in kinds) or (count is not None and len(found) != count):
        raise BrokenError(f"has a {key} that is no list of {'' if count is None else f'{count} '}numbers")
    return found.astype(numpy.int64) if found.dtype.kind in "iu" else found
