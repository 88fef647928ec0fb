"""Format ``onnx``: a file that ONNX Runtime runs on the CPU."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
from onnx.inliner import inline_local_functions

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract import onnx_words
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.found.axes import UNNAMED
from triton_converters.graph.walk import nodes
from triton_converters.incoming import current
from triton_converters.load import mixing, onnx_tensors, onnx_weights
from triton_converters.load.graph_inputs import FLAGS, GraphInput
from triton_converters.load.onnx_categories import categories
from triton_converters.load.onnx_columns import points
from triton_converters.load.onnx_mending import mend
from triton_converters.load.onnx_session import ONLY_FATAL, session_options
from triton_converters.load.onnx_tables import about, rows, special
from triton_converters.load.randomness import of_onnx
from triton_converters.model_config.data_types import STRINGS, as_bytes, objects, strings
from triton_converters.user.user_code import locate

RUNTIME = f"onnxruntime {onnxruntime.__version__}"
NAMED = 3
"""The most domains that a message names."""
DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
"""Domains whose operators ONNX Runtime has; others need libraries of custom operators, which are not loaded."""
OPTIMIZED = frozenset({"com.microsoft.nchwc", "com.ms.internal.nhwc"})
"""Domains of operators that ONNX Runtime's optimizer writes for the processor that it runs on."""

TOO_NEW = {
    "IR version": (
        re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)"),
        "set ir_version of the loaded model to that and save it again, or export it by an older onnx package",
    ),
    "operator set": (
        re.compile(r"Opset (\d+) is under development .* is till opset (\d+)"),
        "export it with an older opset, by an older onnx package",
    ),
}
"""Patterns of ONNX Runtime's messages about the version of a file and the last one that it reads, and what to do."""

TYPES = {"float": "float32", "double": "float64", "string": "str"}
"""NumPy's names of ONNX Runtime's types, where they differ."""


@dataclass(frozen=True)
class OnnxFramework:
    """A Framework whose model is an ONNX file."""

    session: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    open_axes: dict[str, tuple[int, ...]]
    """The axes that the graph leaves open, and those of outputs that an answer showed to be declared wrongly."""
    source: Path
    path: str
    declared: tuple[GraphInput, ...]
    random: tuple[str, ...] = ()
    """The operators that draw random numbers."""
    mixing: str = ""
    """The first operator that looks at all samples of a batch together; empty: none."""

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return outputs by name for inputs by name; raises StageError(FrameworkFailed) with ONNX Runtime's message."""
        given = {name: _taken(inputs[name], f"{self.path}: input {name}") for name in self.inputs}
        try:
            with current.running(self.path, f"{RUNTIME} ran"):
                answers = self.session.run(list(self.outputs), given)
        except Exception as error:
            shapes = ", ".join(f"{name} {inputs[name].dtype}{list(inputs[name].shape)}" for name in self.inputs)
            message = f"{self.path} failed in {RUNTIME}: {_line(error)} (inputs: {shapes})"
            raise StageError(Reason.FRAMEWORK_FAILED, message) from error
        for name, answer in zip(self.outputs, answers, strict=True):
            if not isinstance(answer, numpy.ndarray):
                message = f"{self.path}: output {name} is a {type(answer).__name__}; only tensors can be served"
                raise StageError(Reason.FRAMEWORK_FAILED, message)
        self._correct(answers)
        found = [strings(answer) if answer.dtype.hasobject else answer for answer in answers]
        return dict(zip(self.outputs, found, strict=True))

    def _correct(self, answers: Sequence[Array]) -> None:
        """Open what the graph declares wrongly of its outputs, for which ONNX Runtime only warns."""
        shapes = {each.name: each.shape for each in self.session.get_outputs()}
        for name, answer in zip(self.outputs, answers, strict=True):
            wrong = _contradicted(shapes[name], answer.shape)
            self.open_axes[name] = tuple(sorted({*self.open_axes[name], *wrong}))


def _taken(array: Array, what: str) -> Array:
    """Return an input as ONNX Runtime takes it: strings as objects that are str, since it ends others at a zero.

    Raises StageError(FrameworkFailed) for bytes that are no text: ONNX Runtime would take Python's words for them.
    """
    if array.dtype.kind not in STRINGS:
        return array
    try:
        return objects([each.decode() for each in as_bytes(array).ravel().tolist()], array.shape)
    except UnicodeDecodeError as error:
        message = f"{what} holds bytes that are no text in UTF-8, which ONNX Runtime does not take from Python"
        raise StageError(Reason.FRAMEWORK_FAILED, message) from error


def _contradicted(declared: Sequence[Any], shape: Sequence[int]) -> list[int]:
    """Return the axes that have another size than declared: all, if the rank is another, or not declared."""
    if len(declared) != len(shape):
        return list(range(len(shape)))
    return [
        axis
        for axis, (said, size) in enumerate(zip(declared, shape, strict=True))
        if isinstance(said, int) and said != size
    ]


def load(source: Path, model: ModelCode, output_format: str) -> OnnxFramework:
    """Open the file; weights of any type stay as they are.

    ``output_format`` changes nothing. Raises StageError: EntrypointInvalid, CheckpointInvalid (no ONNX file, one that
    ONNX Runtime refuses, one with operators of other domains than DOMAINS, one with what no request can hold, or
    without its files of weights).
    """
    path = model.entrypoint.path
    file = locate(source, path, pattern="*.onnx")
    try:
        graph = onnx.load(str(file), load_external_data=False)
        if why := onnx_weights.fault(graph, file.parent):
            raise StageError(Reason.CHECKPOINT_INVALID, f"{path}: {why}")
        # Exporters declare operator sets that no node uses, so those do not count.
        domains = {node.domain for node in nodes(graph)}
        foreign = sorted(domains - DOMAINS - {each.domain for each in graph.functions})
        if OPTIMIZED.intersection(foreign):
            message = f"{path} was saved by ONNX Runtime's optimizer, for the processor that it ran on"
            advice = "give the file from before, without SessionOptions.optimized_model_filepath"
            raise StageError(Reason.CHECKPOINT_INVALID, f"{message}: {advice}")
        if foreign:
            named = ", ".join(map(quoted, foreign[:NAMED]))
            message = f"{path} uses operators of {named}, but libraries of custom operators are not loaded"
            raise StageError(Reason.CHECKPOINT_INVALID, message)
        # Exceptions say all else.
        options = session_options(ONLY_FATAL)
        given = graph.SerializeToString() if mend(graph) else str(file)
        # Where a graph that is not read from its file finds weights that are not in it.
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(file.parent))
        with current.running(path, f"{RUNTIME} opened"):
            session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except StageError:
        raise
    except Exception as error:
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path} {_unreadable(_line(error))}") from error
    inputs, outputs = session.get_inputs(), session.get_outputs()
    wanted = {each.name for each in (model.declared.outputs if model.declared else outputs)}
    _check_tensors(path, {"input": inputs, "output": [each for each in outputs if each.name in wanted]})
    # A dimension is a number, a name, or None.
    open_axes = {
        value.name: tuple(axis for axis, size in enumerate(value.shape) if not isinstance(size, int))
        for value in (*inputs, *outputs)
    }
    names = [tuple(value.name for value in values) for values in (inputs, outputs)]
    ranked = {value.name for value in graph.graph.input if value.type.tensor_type.HasField("shape")}
    flat = inline_local_functions(graph).graph if graph.functions else graph.graph
    declared = _declared(inputs, flat) if ranked.issuperset(names[0]) else ()
    return OnnxFramework(
        session, names[0], names[1], open_axes, source, path, declared, of_onnx(graph), mixing.of_onnx(graph)
    )


def _check_tensors(path: str, sides: Mapping[str, Sequence[Any]]) -> None:
    """Check that each tensor is one that a request can hold. Raises StageError(CheckpointInvalid)."""
    for side, values in sides.items():
        if why := next(filter(None, (onnx_tensors.fault(side, each.name, each.type) for each in values)), ""):
            raise StageError(Reason.CHECKPOINT_INVALID, f"{path}: {why}")


def _declared(values: Sequence[Any], graph: Any) -> tuple[GraphInput, ...]:
    """Return the inputs as the graph declares them; none if one is no tensor."""
    if not all(value.type.startswith("tensor(") for value in values):
        return ()
    tried = about(graph)
    columns = points(graph)
    marks = special(graph)
    listed = categories(graph)
    limits = {name: limit for name, limit in rows(graph).items() if name not in tried}
    return tuple(
        GraphInput(
            value.name,
            TYPES.get(kind := value.type[len("tensor(") : -1], kind),
            tuple(_size(value, axis) for axis in range(len(value.shape))),
            limits.get(value.name, FLAGS),
            columns.get(value.name, ()),
            marks.get(value.name, ()),
            listed.get(value.name, ()),
            tried.get(value.name, 0),
        )
        for value in values
    )


def _size(value: Any, axis: int) -> int | str:
    """Return a size, or the name of one that is open: the graph's, unless an exporter gave it to several axes."""
    size: int | str = value.shape[axis]
    shared = isinstance(size, str) and UNNAMED.fullmatch(size) and value.shape.count(size) > 1
    return f"{value.name}[{axis}]" if shared or not size else size


def _unreadable(words: str) -> str:
    """Say why ONNX Runtime does not open a file. ``words``: its own."""
    for what, (form, advice) in TOO_NEW.items():
        if found := form.search(words):
            return f"has {what} {found[1]} of ONNX; {RUNTIME} reads none after {found[2]}: {advice}"
    return f"is not an ONNX model that runs: {words}"


def _line(error: Exception) -> str:
    return onnx_words.own(str(error))[:500] or type(error).__name__
