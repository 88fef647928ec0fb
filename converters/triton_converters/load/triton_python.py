"""Format ``triton-python``: a file with Triton's Python contract, run as on a server, over a stand-in of its module.

What a step must be worth is checked by ``stages.reference.step_checks``; on a server, what it answers is checked by
``python_backend.user_step`` and by the ``gates``.
"""

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError, TerminatedError
from triton_converters.contract.layout import PACKAGES_MOUNT
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.contract.text import quoted
from triton_converters.incoming import current
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.model_config import data_types
from triton_converters.python_backend import messages, module, tensors
from triton_converters.python_backend.user_step import Loaded, RunningStep, StepError, StepFiles
from triton_converters.user import siblings
from triton_converters.user.user_code import locate

ANYWHERE = "/"
"""The working directory: a server's is not that of the files either."""
TYPE = "TYPE_"
Respond = Callable[[messages.InferenceRequest], messages.InferenceResponse]
Paused = Callable[[], AbstractContextManager[None]]
_pausing = threading.RLock()
"""Held while another model answers: all threads of a step have one import path, and a framework is asked one thing at a
time."""


@dataclass(frozen=True)
class PythonStep:
    """A step as a Framework."""

    model: RunningStep
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    declared: tuple[GraphInput, ...]
    """The inputs as the spec declares them; none for a file that declares them itself."""
    open_axes: OpenAxes
    """The axes that are declared as -1."""
    source: Path
    path: str
    imports: list[str]
    """The import path while the step's code runs, with what that code added."""
    backend: ModuleType
    """The backend's module of this step, which its code may import again while it answers."""
    dims: Mapping[str, tuple[int, ...]]
    """The declared dimensions of the outputs, with the batch as -1."""
    called: Mapping[str, Respond] = field(default_factory=dict)
    """What answers the requests that the step's code makes, by the model's name in Triton."""
    contradicted: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The axes of outputs that had another size in an answer than declared; all if the number of dimensions was
    another."""
    _ranks: dict[str, int] = field(default_factory=dict)
    """How many dimensions each output has had in every answer."""

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return the outputs of one request.

        Raises StageError: FrameworkFailed if the step answers with an error, with another type than declared, without
        the request's rows, or with another number of dimensions than before; ConversionUnsupported if it asked for what
        no step may do, whether it caught the refusal or not.
        """
        return self.together([inputs])[0]

    def together(self, requests: Sequence[Arrays]) -> list[dict[str, Array]]:
        """Return the outputs of each of several requests that ``execute`` gets at once; raises as a call does."""
        received = [
            messages.ReceivedRequest(
                inputs=[tensors.Tensor(name, _sent(inputs[name])) for name in self.inputs],
                requested_output_names=self.outputs,
                model_name=self.path,
            )
            for inputs in requests
        ]
        sys.modules[module.NAME] = self.backend
        with (
            _running(self.source, self.path, self.imports) as paused,
            messages.answering(lambda name, asked: self._answer(name, asked, paused)),
        ):
            responses = self.model.execute(received)
        return [self._outputs(each) for each in responses]

    def _outputs(self, response: Any) -> dict[str, Array]:
        if response.has_error():
            words = str(response.error().message())
            named = words if self.path in words else f"{self.path} answered with an error: {words}"
            raise StageError(Reason.FRAMEWORK_FAILED, named)
        found = {each.name(): each.as_sent() for each in response.output_tensors()}
        arrays = {name: _received(found[name], f"{self.path}: output {name}") for name in self.outputs}
        for name, array in arrays.items():
            self._compare(name, array.shape)
        return arrays

    def _compare(self, name: str, shape: tuple[int, ...]) -> None:
        """Note where an answer is not as declared, which a server lets pass.

        Raises StageError(FrameworkFailed) if the output had another number of dimensions before: none can be declared.
        """
        before = self._ranks.setdefault(name, len(shape))
        declared = self.dims[name]
        if before != len(shape):
            message = f"{self.path}: output {name} has the shape {list(shape)}, but had {before} dimensions before"
            raise StageError(Reason.FRAMEWORK_FAILED, f"{message}: answer each request with as many")
        if len(shape) != len(declared):
            wrong = list(range(len(shape)))
        else:
            pairs = zip(shape, declared, strict=True)
            wrong = [axis for axis, (size, said) in enumerate(pairs) if said not in (-1, size)]
        if wrong:
            self.contradicted[name] = tuple(sorted({*self.contradicted.get(name, ()), *wrong}))

    def _answer(self, name: str, request: messages.InferenceRequest, paused: Paused) -> messages.InferenceResponse:
        """Return another model's response, outside the step's surroundings; raises TritonModelException."""
        if name not in self.called:
            listed = ", ".join(self.called) or "none"
            message = f"it asks model {quoted(name)}, but calls of its model in spec.models lists {listed}"
            raise messages.refused(f"{message}: add the name there")
        with paused():
            return self.called[name](request)


def load(source: Path, model: ModelCode, output_format: str) -> PythonStep:
    """Import the file, complete its configuration unless its tensors are declared, and let it initialize.

    Raises StageError: EntrypointInvalid if it is missing or holds no step, or if nothing tells its inputs and
    outputs; UserCodeFailed; ConversionUnsupported if it asks for what no step may do.
    """
    path = model.entrypoint.path
    file = locate(source, path)
    backend = module.install()
    siblings.enter(source, file.parent)
    # A server has the folder of the file alone, so nothing else of the source can be imported here either.
    imports = [each for each in sys.path if not Path(each).is_relative_to(source)]
    name = model.name or file.stem
    with _running(source, path, imports):
        try:
            loaded = Loaded(name, StepFiles(source, path, PACKAGES_MOUNT), (TerminatedError,))
            config = _config(name, model)
            config = loaded.completed(config) if model.declared is None else config
            names = _sides(path, config)
            # What is declared follows the answers.
            step = RunningStep(loaded, config, _arguments(name, config), sized=False)
        except StepError as error:
            raise StageError(_reason(error.__cause__), str(error)) from error
    batch = (-1,) if config["max_batch_size"] else ()
    dims = {each["name"]: (*batch, *each["dims"]) for each in config["output"]}
    sides = (names["input"], names["output"])
    return PythonStep(step, *sides, (), _open_axes(config), source, path, imports, backend, dims)


def _reason(cause: BaseException | None) -> Reason:
    """Return the reason of a file that is not loaded, by what its own code raised; None: nothing."""
    return Reason.ENTRYPOINT_INVALID if cause is None else Reason.USER_CODE_FAILED


@contextmanager
def _running(source: Path, path: str, imports: list[str]) -> Iterator[Paused]:
    """Let the step's code run as on a server; raises StageError(ConversionUnsupported) if it asked for too much.

    Yields what lets the code of another model run in between, in this process's own surroundings.
    """
    folder = (source / path).parent
    siblings.enter_again(source, folder)
    before, outside = len(messages.refusals), list(sys.path)

    @contextmanager
    def paused() -> Iterator[None]:
        with _pausing:
            inside = list(sys.path)
            sys.path[:] = outside
            try:
                yield
            finally:
                siblings.enter_again(source, folder)
                sys.path[:] = inside

    sys.path[:] = imports
    try:
        with contextlib.chdir(ANYWHERE), numpy.errstate(), current.running(path):
            yield paused
    finally:
        imports[:], sys.path[:] = sys.path, outside
        refused = messages.refusals[before:]
        if refused:
            raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{path}: {refused[0]}")


def _config(name: str, model: ModelCode) -> dict[str, Any]:
    """Return the configuration as a server gives it to the step, as far as it is known."""
    declared = model.declared or Signature((), (), model.max_batch_size)
    return {
        "name": name,
        "backend": "python",
        "max_batch_size": model.max_batch_size,
        "input": _declared(declared.inputs),
        "output": _declared(declared.outputs),
        "parameters": {key: {"string_value": value} for key, value in model.entrypoint.arguments.items()},
    }


def _declared(found: Sequence[Tensor]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "data_type": TYPE + ("STRING" if each.data_type == data_types.BYTES else each.data_type),
            "dims": list(each.dims),
        }
        for each in found
    ]


def _sides(path: str, config: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of inputs and outputs by their side in the configuration.

    Raises StageError(EntrypointInvalid) for a configuration that cannot be read, or lacks a side.
    """
    try:
        names = {side: tuple(str(each["name"]) for each in config[side]) for side in ("input", "output")}
        json.dumps(config)
    except (KeyError, TypeError, ValueError) as error:
        raise _unfit(path, f"auto_complete_config leaves no configuration that can be read ({error!r:.200})") from error
    if not all(names.values()):
        message = "declare its inputs and outputs in the spec, or in auto_complete_config of TritonPythonModel"
        raise _unfit(path, f"it does not say what it takes and gives: {message}")
    return names


def _unfit(path: str, words: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, f"{path}: {words}")


def _open_axes(config: Mapping[str, Any]) -> OpenAxes:
    first = 1 if config["max_batch_size"] else 0
    found: dict[str, set[int]] = {}
    for each in (*config["input"], *config["output"]):
        # An input and an output may have one name.
        axes = {axis for axis, size in enumerate(each["dims"], start=first) if size == -1}
        found[each["name"]] = found.get(each["name"], set()) | axes
    return {name: tuple(sorted(axes)) for name, axes in found.items()}


def _arguments(name: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of initialize, all of them text."""
    return {
        "model_config": json.dumps(config),
        "model_instance_kind": "CPU",
        "model_instance_name": f"{name}_0_0",
        "model_instance_device_id": "0",
        "model_repository": "",
        "model_version": "1",
        "model_name": name,
    }


def _sent(array: Array) -> Array:
    """Return an input as a step gets it: its own copy, with text as bytes."""
    return data_types.as_bytes(array) if array.dtype.kind in data_types.STRINGS else numpy.array(array)


def _received(array: Array, where: str) -> Array:
    """Return an output as a reference keeps it; raises StageError(FrameworkFailed) for text that cannot be sent."""
    if array.dtype.kind not in "OS":
        return numpy.array(array)
    try:
        sent = [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel().tolist()]
    except UnicodeEncodeError as error:
        message = f"{where} holds text that is not Unicode, as names of files may be: encode it in another way"
        raise StageError(Reason.FRAMEWORK_FAILED, message) from error
    return data_types.strings(data_types.objects(sent, array.shape))
