"""The trees of scikit-learn's estimators, which a file of skops holds, as a forest."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.trees.forest import BrokenError, Forest, Link, Range, Tree, UnsupportedError, grown

BITSETS = 8
"""Words of 32 bits in which a split says which categories go left."""
MOST_CATEGORIES = 32 * BITSETS
TREES = tuple(f"{name}{kind}" for name in ("DecisionTree", "ExtraTree") for kind in ("Classifier", "Regressor"))
"""Estimators of one tree."""
LINKS = {
    "IdentityLink": Link.IDENTITY,
    "LogLink": Link.EXP,
    "LogitLink": Link.SIGMOID,
    "HalfLogitLink": Link.SIGMOID,
    "MultinomialLogit": Link.SOFTMAX,
}
"""What each link of scikit-learn's losses makes of the sums."""


def is_grown(estimator: object) -> bool:
    """Whether an estimator is trees, or the sum of trees, all of which ``forest_of`` reads."""
    return type(estimator).__name__ in READERS


def forest_of(estimator: Any) -> Forest:
    """Return the trees that answer: probabilities by class, or values, [rows, numbers].

    The compiled code of the estimator trusts what is checked here, so it must not have run. Raises BrokenError,
    UnsupportedError.
    """
    try:
        return READERS[type(estimator).__name__](estimator)
    except (BrokenError, UnsupportedError):
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        name = type(estimator).__name__
        raise BrokenError(f"has a {name} that is not trained ({type(error).__name__}: {error})") from None


def _of_forest(estimator: Any) -> Forest:
    """Return the mean of trees that answer each for itself."""
    trees = [estimator] if type(estimator).__name__ in TREES else list(estimator.estimators_)
    if any(type(each).__name__ not in TREES for each in trees):
        raise BrokenError("has something else among its trees")
    if any(each.n_features_in_ != estimator.n_features_in_ for each in trees):
        raise BrokenError("has trees of different numbers of features")
    classes = getattr(estimator, "n_classes_", 1)
    if numpy.ndim(classes):
        raise UnsupportedError("tells classes of several targets: train a model for each target")
    if any(getattr(each, "n_classes_", 1) != classes for each in trees):
        raise BrokenError("has trees of different numbers of classes")
    made = [_tree(each.tree_, slice(None), 1 / len(trees)) for each in trees]
    targets = made[0].values.shape[1]
    if any(each.values.shape[1] != targets for each in made) or classes not in (1, targets):
        raise BrokenError("has trees of different numbers of classes")
    return grown(made, estimator.n_features_in_, numpy.zeros(targets), Link.IDENTITY, "float32")


def _of_boosting(estimator: Any) -> Forest:
    """Return the stages of a gradient boosting, which begin with what its first estimator says of every row."""
    first, stages = estimator.init_, numpy.asarray(estimator.estimators_, object)
    features, targets = estimator.n_features_in_, estimator.n_trees_per_iteration_
    if type(first).__name__ not in ("DummyClassifier", "DummyRegressor", "str"):
        raise UnsupportedError(f"begins with a {type(first).__name__} (init), which is not converted: train it without")
    if stages.ndim != 2 or stages.shape[1] != targets:
        raise BrokenError("has stages of another number of trees than it tells of")
    trees = [each.tree_ for each in stages.ravel()]
    # Compiled code takes the values for a list of one for each node.
    is_plain = all(each.value.shape[1:] == (1, 1) for each in trees)
    if any(each.n_features_in_ != features for each in stages.ravel()) or not is_plain:
        raise BrokenError("has trees of different numbers of features or outputs")
    base = numpy.reshape(estimator._raw_predict_init(numpy.zeros((1, features), numpy.float32)), -1)
    if base.shape != (targets,):
        raise BrokenError("begins with another number of values than it has trees in a stage")
    grow = _Sums(estimator._loss, targets, hasattr(estimator, "classes_"))
    made = [_tree(each, slice(0, 1), estimator.learning_rate, number % targets) for number, each in enumerate(trees)]
    return grow.forest(made, features, base, "float32")


def _of_histograms(estimator: Any) -> Forest:
    """Return the trees of a HistGradientBoosting, which compares in double and knows categories."""
    features, targets = estimator.n_features_in_, estimator.n_trees_per_iteration_
    base = numpy.reshape(estimator._baseline_prediction, -1)
    stages = estimator._predictors
    if base.shape != (targets,) or any(len(each) != targets for each in stages):
        raise BrokenError("has stages of another number of trees than it tells of")
    columns = _Categories(estimator)
    grow = _Sums(estimator._loss, targets, hasattr(estimator, "classes_"))
    made = [columns.tree(each, target) for stage in stages for target, each in enumerate(stage)]
    return grow.forest(made, features, base, "float64")


READERS: Mapping[str, Callable[[Any], Forest]] = {
    **dict.fromkeys(
        [*TREES, *(f"{name}{kind}" for name in ("RandomForest", "ExtraTrees") for kind in ("Classifier", "Regressor"))],
        _of_forest,
    ),
    **dict.fromkeys(("GradientBoostingClassifier", "GradientBoostingRegressor"), _of_boosting),
    **dict.fromkeys(("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), _of_histograms),
}
"""What reads an estimator of trees, by its name."""


class _Sums:
    """What a loss makes of the sums of trees."""

    def __init__(self, loss: Any, targets: int, is_classifier: bool) -> None:
        name = type(loss.link).__name__
        if name not in LINKS:
            raise UnsupportedError(f"has the link {name}; {', '.join(LINKS)} are converted")
        self._link = LINKS[name]
        self._weight = 2.0 if name == "HalfLogitLink" else 1.0
        # The sigmoid of the negative sum is the probability of the other class.
        self._is_twofold = is_classifier and targets == 1

    def forest(self, trees: Sequence[Tree], features: int, base: Array, kind: str) -> Forest:
        """Return the forest; ``trees`` and ``base`` are of one sum for each class, or of one for two classes."""
        signs = numpy.array([-self._weight, self._weight] if self._is_twofold else [self._weight])
        if self._is_twofold:
            base = base * signs
            trees = [_replaced(each, each.values * signs, (0, 1)) for each in trees]
        return grown(trees, features, base, self._link, kind)


def _replaced(tree: Tree, values: Array, targets: Sequence[int]) -> Tree:
    return Tree(tree.left, tree.right, tree.feature, tree.bound, tree.missing_left, values, targets, tree.members)


def _tree(tree: Any, outputs: slice, weight: float, target: int | None = None) -> Tree:
    """Return a tree that compares in single precision; its values are the first class's of several outputs."""
    nodes = tree.__getstate__()["nodes"]
    values = tree.value[:, 0, :] if tree.value.shape[1] == 1 else tree.value[:, :, 0]
    values = values[:, outputs] * weight
    return Tree(
        nodes["left_child"],
        nodes["right_child"],
        nodes["feature"],
        _first_above(nodes["threshold"]),
        nodes["missing_go_to_left"].astype(bool),
        values,
        range(values.shape[1]) if target is None else [target],
    )


def _first_above(thresholds: Array) -> Array:
    """Return the first numbers of single precision above thresholds of double precision."""
    nearest = thresholds.astype(numpy.float32)
    return numpy.where(nearest > thresholds, nearest, numpy.nextafter(nearest, numpy.float32(numpy.inf)))


def check_ascending(values: Array) -> None:
    """Raise BrokenError unless numbers ascend, NaN last: scikit-learn searches them by halves. Words it looks up."""
    if values.dtype.kind in "biuf" and not numpy.array_equal(values, numpy.unique(values), equal_nan=True):
        raise BrokenError("has categories or edges of bins that do not ascend")


class _Categories:
    """The columns of a HistGradientBoosting: those with categories come first in its trees."""

    def __init__(self, estimator: Any) -> None:
        count = estimator.n_features_in_
        preparing = estimator._preprocessor
        is_categorical = numpy.zeros(count, bool) if preparing is None else numpy.asarray(estimator.is_categorical_)
        self._place = numpy.argsort(~is_categorical, kind="stable")
        """The column of each feature of the trees."""
        self._known: dict[int, Array] = {}
        self._values: dict[int, Array] = {}
        mapper = estimator._bin_mapper
        if list(mapper.is_categorical_) != sorted(is_categorical, reverse=True) or len(is_categorical) != count:
            raise BrokenError("does not tell which columns hold categories")
        if preparing is None:
            return
        # Compiled code trusts that all columns are there, and that those with categories come first.
        steps = [
            (name, type(step).__name__)
            for name, step, _ in preparing.transformers_
            if not (isinstance(step, str) and step == "drop")
        ]
        places = preparing._transformer_to_input_indices
        wanted = {"encoder": numpy.flatnonzero(is_categorical), "numerical": numpy.flatnonzero(~is_categorical)}
        if steps != [("encoder", "OrdinalEncoder"), ("numerical", "FunctionTransformer")] or any(
            not numpy.array_equal(places[name], own) for name, own in wanted.items()
        ):
            raise BrokenError("prepares its columns otherwise than scikit-learn does")
        for feature, values in enumerate(preparing.named_transformers_["encoder"].categories_):
            if values.dtype.kind not in "biuf":
                raise UnsupportedError("has learnt categories in words: put an OrdinalEncoder in front of it")
            check_ascending(values)
            known = numpy.asarray(mapper.bin_thresholds_[feature])
            if ((known < 0) | (known >= min(len(values), MOST_CATEGORIES))).any():
                raise BrokenError("lists categories that it does not have")
            self._known[feature] = known.astype(int)
            self._values[feature] = values.astype(numpy.float64)
        if len(self._known) != is_categorical.sum():
            raise BrokenError("does not tell the categories of a column")

    def tree(self, predictor: Any, target: int) -> Tree:
        """Return a tree that compares in double precision."""
        nodes, bits = predictor.nodes, numpy.asarray(predictor.raw_left_cat_bitsets)
        inner = nodes["is_leaf"] == 0
        feature = numpy.where(inner, nodes["feature_idx"].astype(numpy.int64), 0)
        categorical = inner & (nodes["is_categorical"] != 0)
        if (feature < 0).any() or (feature >= len(self._place)).any():
            raise BrokenError("has a tree that splits by a feature that it does not have")
        if bits.ndim != 2 or bits.shape[1] != BITSETS or bits.dtype != numpy.uint32:
            raise BrokenError("has categories that are no sets")
        if (nodes["bitset_idx"][categorical] >= len(bits)).any() or not set(feature[categorical]) <= set(self._known):
            raise BrokenError("splits by categories that it does not have")
        missing = nodes["missing_go_to_left"].astype(bool)
        return Tree(
            numpy.where(inner, nodes["left"].astype(numpy.int64), -1),
            numpy.where(inner, nodes["right"].astype(numpy.int64), -1),
            self._place[feature],
            numpy.where(inner & ~categorical, numpy.nextafter(nodes["num_threshold"], numpy.inf), 0),
            missing,
            nodes["value"][:, None],
            [target],
            {
                node: self._members(int(feature[node]), bits[nodes["bitset_idx"][node]], bool(missing[node]))
                for node in numpy.flatnonzero(categorical).tolist()
            },
        )

    def _members(self, feature: int, bits: Array, missing_left: bool) -> list[Range]:
        """Return the values that go left. What is no category that it knows goes where missing values go."""
        is_left = numpy.unpackbits(bits.view(numpy.uint8), bitorder="little").astype(bool)
        known = self._known[feature]
        values = numpy.sort(self._values[feature][known[is_left[known] != missing_left]])
        ends = numpy.nextafter(values, numpy.inf)
        if missing_left:
            return list(zip([-numpy.inf, *ends.tolist()], [*values.tolist(), numpy.inf], strict=True))
        return list(zip(values.tolist(), ends.tolist(), strict=True))
