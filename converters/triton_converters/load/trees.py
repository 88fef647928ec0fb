"""Formats ``xgboost`` and ``lightgbm``: a file of trees. The library that grew them answers, and is the reference."""

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import current
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.trees.forest import BrokenError, Forest, UnsupportedError
from triton_converters.trees.rows import rows
from triton_converters.user.user_code import locate

INPUT, OUTPUT = "features", "prediction"
MOST_BYTES = 2**29
"""Longest file that is read: JSON takes some ten times as much memory as its text."""
TRIAL_SECONDS = 300
"""Longest time in which a library opens a file and answers one row. Altered files were seen to let it run for ever."""
Predict = Callable[[Array], Array]
"""Returns the answers to rows, [rows, features], as floating point numbers, [rows] or [rows, numbers]."""


@dataclass(frozen=True)
class TreeLibrary:
    """What reads the files of a format."""

    read: Callable[[bytes], Forest]
    """Raises BrokenError, UnsupportedError. This and the next two have to be functions of modules."""
    rewritten: Callable[[bytes], bytes]
    """Let the library itself open the file, and return what it saves of it; raises what that raises."""
    open: Callable[[bytes], Predict]
    """Let the library itself open the file; raises what that raises."""
    runtime: Callable[[], str]
    """Return the library's name and version."""


@dataclass(frozen=True)
class TreesFramework:
    """A Framework whose model is a file of trees."""

    predict: Predict
    runtime: str
    forest: Forest
    source: Path
    path: str
    reached: Array
    """Whether a row has reached the node, by node of the forest."""
    inputs: tuple[str, ...] = (INPUT,)
    outputs: tuple[str, ...] = (OUTPUT,)

    @property
    def open_axes(self) -> OpenAxes:
        """The batch."""
        return {INPUT: (0,), OUTPUT: (0,)}

    @property
    def declared(self) -> tuple[GraphInput, ...]:
        """The table, in the type in which the library compares."""
        return (GraphInput(INPUT, self.forest.type, ("rows", self.forest.features)),)

    @property
    def leaves(self) -> tuple[int, int]:
        """How many leaves the rows have reached that were asked so far, and how many there are."""
        return reached(self.forest, self.reached)

    def rows(self, count: int, random: numpy.random.Generator) -> Arrays:
        """Return inputs of so many samples that reach as many leaves as they can."""
        return {INPUT: rows(self.forest, count, random)}

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return the answers, [rows, numbers] in float32; raises StageError(FrameworkFailed)."""
        given = inputs[INPUT]
        if given.ndim != 2 or given.shape[1] != self.forest.features:
            message = f"{self.path}: {INPUT} is {list(given.shape)}, not [rows, {self.forest.features}]"
            raise StageError(Reason.FRAMEWORK_FAILED, message)
        try:
            with current.running(self.path, f"{self.runtime} ran"):
                answers = self.predict(given)
        except Exception as error:
            raise StageError(Reason.FRAMEWORK_FAILED, f"{self.path} failed in {self.runtime}: {line(error)}") from error
        self.reached[self.forest.leaves(given)] = True
        return {OUTPUT: answers.reshape(len(given), -1).astype(numpy.float32)}


def load(source: Path, path: str, library: TreeLibrary) -> TreesFramework:
    """Try to read the file, and the library on it, in a process of its own; then read and open what the library saves.

    The library may take a line for another one than the reader does, but not of what it saves itself.

    Raises StageError: EntrypointInvalid, CheckpointInvalid (the file is broken, or ends or stops the library),
    ConversionUnsupported (nothing converts such a model).
    """
    file = locate(source, path, pattern="*")
    if (size := file.stat().st_size) > MOST_BYTES:
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path} has {size} bytes; at most {MOST_BYTES} are read")
    runtime = library.runtime()
    if words := fault(_try, library.read, library.rewritten, library.open, file):
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path}: {runtime} {words} as it opened the file; save it anew")
    try:
        content = file.read_bytes()
        library.read(content)
        with current.running(path, f"{runtime} opened"):
            content = library.rewritten(content)
            predict = library.open(content)
        forest = library.read(content)
    except BrokenError as error:
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path} {error}; save it anew") from error
    except UnsupportedError as error:
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{path} {error}") from error
    except Exception as error:
        raise StageError(Reason.CHECKPOINT_INVALID, f"{runtime} does not open {path}: {line(error)}") from error
    return TreesFramework(predict, runtime, forest, source, path, numpy.zeros(len(forest.left), bool))


def reached(forest: Forest, nodes: Array) -> tuple[int, int]:
    """Return how many of the leaves are among the nodes that rows have reached, [nodes], and how many there are."""
    leaves = numpy.unique(forest.adding)
    return int(nodes[leaves].sum()), len(leaves)


def fault(task: Callable[..., object], *arguments: object) -> str:
    """Return how a task ends in a process of its own, in words; empty: it returned, or raised."""
    trial = multiprocessing.get_context("spawn").Process(target=task, args=arguments)
    trial.start()
    trial.join(TRIAL_SECONDS)
    if trial.exitcode is None:
        trial.kill()
        trial.join()
        return f"did not answer within {TRIAL_SECONDS} s"
    return f"ended by {signal.Signals(-trial.exitcode).name}" if trial.exitcode < 0 else ""


def _try(
    read: Callable[[bytes], Forest],
    rewritten: Callable[[bytes], bytes],
    opened: Callable[[bytes], Predict],
    file: Path,
) -> None:
    content = file.read_bytes()
    read(content)
    content = rewritten(content)
    forest = read(content)
    opened(content)(numpy.zeros((1, forest.features), forest.type))


def line(error: Exception) -> str:
    """Return the first line of what a library says, without the stack that XGBoost adds."""
    lines = [each.strip() for each in str(error).splitlines() if each.strip()]
    return lines[0][:500] if lines else type(error).__name__
