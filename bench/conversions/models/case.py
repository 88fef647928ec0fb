"""What a report becomes: a model, what its library answers, what it is converted to, and rows to compare both on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from onnxruntime import InferenceSession

Rows = Any
"""A matrix [rows, columns], a table of pandas or a sparse matrix."""
Answers = list[Any]
"""One array for each output, [rows] or [rows, values]: labels as they are, and numbers."""

MOST_THRESHOLDS, ROWS_EACH = 200, 5
"""Thresholds of a model that rows lie at, and rows for each, by chance: all of a small model's, in rows that differ
elsewhere."""
TYPES = {
    "tensor(float)": numpy.float32,
    "tensor(double)": numpy.float64,
    "tensor(int64)": numpy.int64,
    "tensor(string)": object,
}


class Case(NamedTuple):
    """A model that was trained as a report tells."""

    model: Any
    library: Callable[[Rows], Answers]
    """What the library answers."""
    convert: Callable[[], Any]
    """Converts it as the report did: returns an ONNX graph or, of other converters, what answers to rows."""
    rows: Mapping[str, Rows]
    """The rows to compare, by where they lie."""


def table(rows: int = 500, columns: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Return features, float32 [rows, columns], and a value for each row, which depends on three of them."""
    random = numpy.random.default_rng(seed)
    x = random.normal(size=(rows, columns)).astype(numpy.float32)
    return x, x[:, 0] + numpy.where(x[:, 1] > 0.3, x[:, 2 % columns], 1) + 0.1 * random.normal(size=rows)


def with_missing(x: Any, share: float = 0.15) -> Any:
    """Return the features with some values missing."""
    return numpy.where(numpy.random.default_rng(9).random(x.shape) < share, numpy.nan, x).astype(x.dtype)


def lying(x: Any, splits: Iterable[tuple[int, float]], *, missing: bool = False) -> dict[str, Any]:
    """Return the training rows, which reach every leaf, rows at and next to thresholds, and rows with missing values.

    ``splits``: column and threshold of each.
    """
    rows = {"leaves": x}
    random = numpy.random.default_rng(1)
    known = sorted({(int(column), float(value)) for column, value in splits if numpy.isfinite(value)})
    if known:
        chosen = random.permutation(len(known))[:MOST_THRESHOLDS]
        rows["thresholds"] = numpy.concatenate([_at(x, known[each], random) for each in chosen.tolist()])
    if missing:
        rows["missing"] = with_missing(x, 0.3)
    return rows


def _at(x: Any, split: tuple[int, float], random: numpy.random.Generator) -> Any:
    """Return rows whose column is a threshold, or the next number below or above it."""
    column, value = split[0], x.dtype.type(split[1])
    near = [value, numpy.nextafter(value, x.dtype.type(-numpy.inf)), numpy.nextafter(value, x.dtype.type(numpy.inf))]
    rows = x[random.integers(len(x), size=ROWS_EACH * len(near))].copy()
    rows[:, column] = numpy.repeat(near, ROWS_EACH)
    return rows


def classified(model: Any) -> Callable[[Rows], Answers]:
    """Return what a classifier answers: labels and probabilities."""
    return lambda rows: [model.predict(rows), model.predict_proba(rows)]


def predicted(model: Any) -> Callable[[Rows], Answers]:
    """Return what a regressor answers."""
    return lambda rows: [model.predict(rows)]


def transformed(model: Any) -> Callable[[Rows], Answers]:
    """Return what a transformer answers."""

    def answer(rows: Rows) -> Answers:
        found = model.transform(rows)
        return [found.toarray() if hasattr(found, "toarray") else found]

    return answer


def save(model: Any, file: Path) -> None:
    """Save a model as its library does."""
    if file.suffix == ".skops":
        import skops.io

        skops.io.dump(model, file)
    else:
        getattr(model, "booster_", model).save_model(file)


def by_onnx(graph: Any) -> Callable[[Rows], Answers]:
    """Return what ONNX Runtime answers with a graph, which gets a matrix, or a column of a table for each input."""
    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()

    def answer(rows: Rows) -> Answers:
        parts = [rows] if len(inputs) == 1 else _columns(rows)
        fed = {each.name: numpy.asarray(part, TYPES[each.type]) for each, part in zip(inputs, parts, strict=True)}
        return list(session.run(None, fed))

    return answer


def _columns(rows: Rows) -> Iterator[Any]:
    """Yield each column of a table of pandas, [rows, 1]."""
    for name in rows.columns:
        yield rows[[name]].to_numpy()
