"""A model of scikit-learn as skops saved it: checked, opened, and asked by the places of its columns."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.load.sklearn_columns import Column, columns, parts, steps
from triton_converters.trees import skops_file
from triton_converters.trees.forest import BrokenError, Forest, UnsupportedError
from triton_converters.trees.sklearn_trees import check_ascending, forest_of, is_grown
from triton_converters.trees.skops_types import ALLOWED

ANSWERS = ("predict_proba", "decision_function", "predict")
"""What is asked, the first that a model has: numbers by class tell more than the label of the largest."""


@dataclass(frozen=True)
class SklearnModel:
    """A model that answers tables, [rows, columns], of numbers or, with words among them, of objects."""

    estimator: Any
    columns: list[Column]
    method: str
    """One of ANSWERS."""
    type: str
    """NumPy's name of the type of columns of numbers."""
    forest: Forest | None
    """The trees at its end; None: it ends with something else."""

    @property
    def has_words(self) -> bool:
        """Whether a column holds words."""
        return any(each.is_text for each in self.columns)

    @property
    def is_by_column(self) -> bool:
        """Whether each column that a step takes is an input, and not all columns are one."""
        return self.has_words or not all(each.is_used for each in self.columns)

    @property
    def used(self) -> list[tuple[int, Column]]:
        """The columns that a step takes, with their places."""
        return [(place, each) for place, each in enumerate(self.columns) if each.is_used]

    @property
    def is_pipeline(self) -> bool:
        """Whether steps come before the one that answers."""
        return bool(steps(self.estimator)[0])

    def answers(self, table: Array) -> Array:
        """Return what the library answers, [rows, numbers]; raises what it raises."""
        found = getattr(self.estimator, self.method)(table)
        return numpy.asarray(found, numpy.float64).reshape(len(table), -1)

    def features(self, table: Array) -> Array:
        """Return what the last step is given, [rows, features]; raises what the library raises."""
        found: Any = table
        for step in steps(self.estimator)[0]:
            found = step.transform(found)
        return numpy.asarray(found.todense() if hasattr(found, "todense") else found)


def opened(file: Path) -> SklearnModel:
    """Check the file, let skops load it, and check what compiled code would trust.

    Raises BrokenError, UnsupportedError, and what skops and scikit-learn raise of what they do not know.
    """
    skops_file.check(file)
    import skops.io

    estimator = skops.io.load(file, trusted=sorted(frozenset[str]().union(*ALLOWED.values())))
    method = next((each for each in ANSWERS if hasattr(estimator, each)), "")
    last = steps(estimator)[1]
    if not method or (method == "predict" and hasattr(last, "classes_")):
        told = "labels alone" if method else "nothing"
        raise UnsupportedError(
            f"ends with a {type(last).__name__} that answers {told}: save a model with probabilities, scores or values"
        )
    found = columns(estimator)
    for each in parts(estimator):
        if hidden := [name for name in vars(each) if callable(getattr(type(each), name, None))]:
            raise BrokenError(f"has a {type(each).__name__} that brings its own {hidden[0]}")
        _let_it_ask_by_places(each)
        # What an ensemble was told to train stays untrained.
        if any(name.endswith("_") for name in vars(each)):
            _make_sound(each)
    forest = forest_of(last) if is_grown(last) else None
    kind = forest.type if forest is not None and last is estimator else "float64"
    return SklearnModel(estimator, found, method, kind, forest)


def _let_it_ask_by_places(part: Any) -> None:
    """Let a part ask by the places of columns, in this process alone, and keep nothing in files."""
    for name in ("feature_names_in_", "_sklearn_output_config"):
        vars(part).pop(name, None)
    for name in ("n_jobs", "memory"):
        if hasattr(part, name):
            setattr(part, name, None)


def _make_sound(part: Any) -> None:
    """Check a part's arrays that compiled code trusts.

    Raises BrokenError, UnsupportedError.
    """
    if is_grown(part):
        forest_of(part)
    if change := _BY_CLASS.get(type(part).__name__):
        change(part)


def _place(transformer: Any) -> None:
    """Name columns by their places: names want a table of pandas."""
    places = transformer._transformer_to_input_indices
    transformer.transformers_ = [
        (name, step, places[name][0] if isinstance(given, str | int) else list(places[name]))
        for name, step, given in transformer.transformers_
    ]


def _count_outputs(encoder: Any) -> None:
    """Take the places in a sparse matrix, which compiled code trusts, from the categories and not from the file."""
    _ascend(encoder)
    if encoder._infrequent_enabled:
        rare = [each if each is None else numpy.unique(each) for each in encoder._infrequent_indices]
        encoder._infrequent_indices = rare
        encoder._default_to_infrequent_mappings = list(map(_grouped, encoder.categories_, rare))
    encoder._set_drop_idx()
    encoder._n_features_outs = encoder._compute_n_features_outs()


def _grouped(known: Array, rare: Array | None) -> Array | None:
    """Return the place of each category, of which the rare ones share the last; None: there are none."""
    if rare is None:
        return None
    if not len(rare) or rare[0] < 0 or rare[-1] >= len(known):
        raise BrokenError("has rare categories that it does not have")
    is_rare = numpy.isin(numpy.arange(len(known)), rare)
    return numpy.where(is_rare, len(known) - len(rare), numpy.cumsum(~is_rare) - 1)


def _ascend(encoder: Any) -> None:
    for known in encoder.categories_:
        check_ascending(known)
        if not len(known):
            raise BrokenError("has a column without categories")


def _check_bins(binner: Any) -> None:
    for edges in binner.bin_edges_:
        check_ascending(edges)


def _check_methods(stacking: Any) -> None:
    """Let it ask estimators for answers alone: scikit-learn calls any method that the file names."""
    if any(each not in ANSWERS for each in stacking.stack_method_):
        raise BrokenError(f"asks its estimators for something else than {', '.join(ANSWERS)}")


def _suit(voting: Any) -> None:
    """Let skl2onnx convert it: this changes what ``transform`` returns, and nothing that answers."""
    voting.flatten_transform = False
    voting.weights = None if voting.weights is None else numpy.array(voting.weights)


_BY_CLASS: dict[str, Callable[[Any], None]] = {
    "ColumnTransformer": _place,
    "KBinsDiscretizer": _check_bins,
    "OneHotEncoder": _count_outputs,
    "OrdinalEncoder": _ascend,
    "StackingClassifier": _check_methods,
    "StackingRegressor": _check_methods,
    "TargetEncoder": _ascend,
    "VotingClassifier": _suit,
}
