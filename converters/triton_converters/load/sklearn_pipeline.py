"""Format ``sklearn``: a model or pipeline in a file of skops, which scikit-learn itself answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.found.kinds import FileKind, kind_of
from triton_converters.incoming import current
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load import sklearn_model, sklearn_rows, trees
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.load.sklearn_model import SklearnModel
from triton_converters.load.trees import INPUT, OUTPUT
from triton_converters.model_config.data_types import strings
from triton_converters.trees.forest import BrokenError, UnsupportedError
from triton_converters.user.user_code import locate

TRIED = 4
"""Rows that the library answers in a process of its own before it answers here."""


@dataclass(frozen=True)
class SklearnFramework:
    """A Framework whose model is scikit-learn's.

    A table of numbers is one input; with words among its columns, or some that no step takes, each column that one does
    is an input of one element.
    """

    model: SklearnModel
    runtime: str
    source: Path
    path: str
    reached: Array
    """Whether a row has reached the node, by node of the forest; empty without one."""
    outputs: tuple[str, ...] = (OUTPUT,)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The table, or its columns."""
        return tuple(each.name for _, each in self.model.used) if self.model.is_by_column else (INPUT,)

    @property
    def open_axes(self) -> OpenAxes:
        """The batch."""
        return dict.fromkeys((*self.inputs, OUTPUT), (0,))

    @property
    def declared(self) -> tuple[GraphInput, ...]:
        """The inputs, numbers in the type in which the library computes."""
        model = self.model
        if not model.is_by_column:
            return (GraphInput(INPUT, model.type, ("rows", len(model.columns))),)
        return tuple(
            GraphInput(each.name, "str" if each.is_text else model.type, ("rows", 1)) for _, each in model.used
        )

    @property
    def leaves(self) -> tuple[int, int] | None:
        """How many leaves the rows have reached that were asked so far, and how many there are; None: no trees."""
        return trees.reached(self.model.forest, self.reached) if self.model.forest is not None else None

    def rows(self, count: int, random: numpy.random.Generator) -> Arrays:
        """Return inputs of so many samples that show what the model has learned.

        Raises StageError(FrameworkFailed).
        """
        with self._asked():
            made = sklearn_rows.table(self.model, count, random)
        if not self.model.is_by_column:
            return {INPUT: made.astype(self.model.type)}
        return {
            column.name: strings(made[:, [place]]) if column.is_text else made[:, [place]].astype(self.model.type)
            for place, column in self.model.used
        }

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return the answers, [rows, numbers] in float32; raises StageError(FrameworkFailed)."""
        given = self._table(inputs)
        with self._asked():
            answers = self.model.answers(given)
            if self.model.forest is not None:
                self.reached[self.model.forest.leaves(self.model.features(given))] = True
        return {OUTPUT: answers.astype(numpy.float32)}

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Say that the library runs; raises StageError(FrameworkFailed) for what it raises."""
        try:
            with current.running(self.path, f"{self.runtime} ran"):
                yield
        except Exception as error:
            message = f"{self.path} failed in {self.runtime}: {trees.line(error)}"
            raise StageError(Reason.FRAMEWORK_FAILED, message) from error

    def _table(self, inputs: Arrays) -> Array:
        """Return what the library is asked, [rows, columns]. Raises StageError(FrameworkFailed)."""
        wanted = 1 if self.model.is_by_column else len(self.model.columns)
        for name in self.inputs:
            if (shape := inputs[name].shape)[1:] != (wanted,):
                message = f"{self.path}: {name} is {list(shape)}, not [rows, {wanted}]"
                raise StageError(Reason.FRAMEWORK_FAILED, message)
        if not self.model.is_by_column:
            return inputs[INPUT]
        table = numpy.zeros((len(inputs[self.inputs[0]]), len(self.model.columns)), object)
        for place, column in self.model.used:
            table[:, place] = _objects(inputs[column.name])[:, 0]
        return table if self.model.has_words else table.astype(self.model.type)


def load(source: Path, model: ModelCode, output_format: str) -> SklearnFramework:
    """Open the file; ``output_format`` changes nothing.

    Raises StageError: EntrypointInvalid, CheckpointInvalid (the file is broken, or ends or stops the library),
    ConversionUnsupported (it is a pickle, or nothing converts such a model).
    """
    import sklearn

    path, runtime = model.entrypoint.path, f"scikit-learn {sklearn.__version__}"
    file = locate(source, path, pattern="*")
    if (kind := kind_of(file)) is not FileKind.SKOPS:
        advice = f" is {kind.words}, which is not run: {kind.advice}" if kind and kind.advice else ""
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path}{advice or ' is no file of skops'}")
    try:
        if words := trees.fault(_try, file):
            message = f"{path}: {runtime} {words} as it opened the file; save it anew"
            raise StageError(Reason.CHECKPOINT_INVALID, message)
        with current.running(path, f"{runtime} opened"):
            opened = sklearn_model.opened(file)
    except BrokenError as error:
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path} {error}; save it anew") from error
    except UnsupportedError as error:
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{path} {error}") from error
    except StageError:
        raise
    except Exception as error:
        raise StageError(Reason.CHECKPOINT_INVALID, f"{runtime} does not open {path}: {trees.line(error)}") from error
    nodes = len(opened.forest.left) if opened.forest is not None else 0
    return SklearnFramework(opened, runtime, source, path, numpy.zeros(nodes, bool))


def _try(file: Path) -> None:
    opened = sklearn_model.opened(file)
    opened.answers(sklearn_rows.table(opened, TRIED, numpy.random.default_rng(0)))


def _objects(column: Array) -> Array:
    """Return numbers and words as Python's, in one array of objects."""
    return column.astype(object) if column.dtype.kind != "O" else numpy.vectorize(_text, otypes=[object])(column)


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
