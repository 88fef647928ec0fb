"""What a trained model of scikit-learn tells of the columns of its table: names, and what they may hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy

from triton_converters.trees.forest import MOST_FEATURES, BrokenError, UnsupportedError

KEEPING = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer", "FunctionTransformer")
"""Steps whose columns are those that they are given."""
Known = tuple[str | float, ...]


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    is_text: bool = False
    known: Known = ()
    """The categories that it may hold; none: it holds any number."""
    is_used: bool = True
    """Whether a step takes it."""


def parts(thing: Any) -> Iterator[Any]:
    """Yield an estimator and those that it consists of, without the trees that an estimator adds up."""
    seen: set[int] = set()
    left = [thing]
    while left:
        each = left.pop()
        if isinstance(each, list | tuple | set):
            left.extend(each)
        elif isinstance(each, dict):
            left.extend(each.values())
        elif isinstance(each, numpy.ndarray):
            left.extend(each.ravel().tolist() if each.dtype == object else ())
        elif type(each).__module__.startswith("sklearn.") and hasattr(each, "__dict__") and id(each) not in seen:
            seen.add(id(each))
            yield each
            left.extend(value for name, value in vars(each).items() if name != "estimators_" or not _adds_trees(each))


def _adds_trees(estimator: Any) -> bool:
    return type(estimator).__name__.startswith(("RandomForest", "ExtraTrees", "GradientBoosting"))


def steps(model: Any) -> tuple[list[Any], Any]:
    """Return the steps in front of the estimator that answers, and that one, of pipelines in pipelines too."""
    found: list[Any] = []
    while type(model).__name__ == "Pipeline":
        found += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
        model = model.steps[-1][1]
    return found, model


def columns(model: Any) -> list[Column]:
    """Return the columns; raises BrokenError for a model that is not trained, UnsupportedError for too many."""
    first = steps(model)[0][:1]
    count = next((each.n_features_in_ for each in (*first, model) if hasattr(each, "n_features_in_")), None)
    if count is None:
        raise BrokenError("has a model that is not trained")
    if not 0 < count <= MOST_FEATURES:
        raise UnsupportedError(f"has {count} columns; {MOST_FEATURES} are read")
    names = next((each.feature_names_in_ for each in (*first, model) if hasattr(each, "feature_names_in_")), ())
    named = [str(each) for each in names] or [f"x{number}" for number in range(count)]
    found: dict[int, Column] = {}
    for place, known in _told(model, list(range(count))):
        told = _with_known(named[place], known)
        # An imputer tells one value, and the encoder behind it all of them.
        if place not in found or len(told.known) > len(found[place].known):
            found[place] = told
    used = set(_used(first[0])) if first and type(first[0]).__name__ == "ColumnTransformer" else set(range(count))
    return [found.get(place, Column(name, is_used=place in used)) for place, name in enumerate(named)]


def _with_known(name: str, known: Sequence[Any]) -> Column:
    """Return a column with categories: words, if there are any, or else numbers."""
    kept = [each.item() if isinstance(each, numpy.generic) else each for each in known]
    texts = tuple(each for each in kept if isinstance(each, str))
    numbers = tuple(float(each) for each in kept if isinstance(each, int | float) and not isnan(each))
    return Column(name, bool(texts), texts or numbers)


def _used(transformer: Any) -> Iterator[int]:
    for label, step, _ in transformer.transformers_:
        if not (isinstance(step, str) and step == "drop"):
            yield from transformer._transformer_to_input_indices[label]


def _told(step: Any, places: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield what steps know of columns, by their places: their categories."""
    name = type(step).__name__
    if name == "Pipeline":
        for _, each in step.steps:
            yield from _told(each, places)
            if type(each).__name__ not in KEEPING and each not in (None, "passthrough"):
                break
    elif name == "FeatureUnion":
        for _, each in step.transformer_list:
            yield from _told(each, places)
    elif name == "ColumnTransformer":
        for label, each, _ in step.transformers_:
            yield from _told(each, [places[number] for number in step._transformer_to_input_indices[label]])
    elif name == "SimpleImputer":
        filled = zip(places, step.statistics_, strict=True)
        yield from ((place, [value]) for place, value in filled if isinstance(value, str))
    elif getattr(step, "_preprocessor", None) is not None:
        yield from _told(step._preprocessor, places)
    elif hasattr(step, "categories_"):
        yield from zip(places, step.categories_, strict=True)
