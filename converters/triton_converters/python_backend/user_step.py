"""A Python step in the reference and on a server: it imports the user's file, runs it and checks its answers.

It is copied next to ``model.py``, and like that runs in the server's Python with nothing of ours. In the reference, the
backend's module is a stand-in, which is imported before, as NumPy is. Standard library only.
"""

import asyncio
import faulthandler
import importlib.util
import inspect
import json
import os
import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

STEP, SOURCE, PACKAGES = "step.json", "source", "packages"
"""Names next to this file: what is run, the user's folder, and the step's packages."""
DECLARED = "declared"
"""In ``step.json``: the sizes that the spec declares of outputs whose answers have others, by their names."""
COMPLETES = "completes"
"""In ``step.json``: whether the file declares its tensors itself, by ``auto_complete_config``."""
MISSING = "a step sees NumPy, its folder and the packages of its model's requirements: add what is missing to these"
BACKEND = "triton_python_backend_utils"
NUMPY_TYPES = {
    "TYPE_BOOL": "bool",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
    "TYPE_STRING": "object",
}
"""NumPy's names of a configuration's types; of the others they are the same in lower case."""
FOLDER = "_triton_step_"
"""Begins the name of the package that the folder of a step's file is; a file of the user's is hardly called so."""
EXECUTE_SECONDS = 600
"""How long ``execute`` may take. A call that never returns would hold its instance for ever, and the server would stay
ready; so the process ends, and says on standard error where it stood."""
STDERR = 2
MESSAGE_CHARACTERS = 500
"""Most of an exception's text that a client is told: some quote whole arrays."""
HUB = "huggingface"
"""Folder next to the user's file with what it loads from the Hugging Face hub, as that hub's libraries keep it."""
NOT_FOUND = ("LocalEntryNotFoundError", "OfflineModeIsEnabled")
"""What these libraries raise for what is not in the folder."""
HUB_PLACES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
"""Variables that name such a folder to these libraries, new and old. HF_HOME would hold the user's token too."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class StepError(Exception):
    """What is wrong with a step, in words that name it."""


@dataclass(frozen=True)
class StepFiles:
    """Where a step's files are."""

    source: Path
    """Directory of the user's files."""
    file: str
    """Path of the file with TritonPythonModel, below ``source``."""
    packages: Path
    """Directory of the packages of the model's requirements."""

    @property
    def folder(self) -> Path:
        """Directory of the file."""
        return (self.source / self.file).parent

    def arguments(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return initialize's arguments: where the user's file finds the files next to it, as in a repository."""
        folder = self.folder
        if folder.name.isdigit():
            return {**given, "model_repository": str(folder.parent), "model_version": folder.name}
        return {**given, "model_repository": str(folder)}


class Loaded:
    """The user's file, imported."""

    def __init__(self, name: str, files: StepFiles, passed: tuple[type[BaseException], ...] = ()) -> None:
        """Import the file; ``passed``: what is raised as it is, whatever code was running.

        Raises StepError if the file ends or fails, or has no class that can be a step.
        """
        self._name, self.files, self._passed = name, files, passed
        take_parameters(sys.modules[BACKEND])
        vars(sys.modules[BACKEND])["get_model_dir"] = lambda: str(files.folder)
        sys.path[:0] = [str(files.folder)]
        with self._told():
            module = self._imported()
        self.model: Any = getattr(module, "TritonPythonModel", None)
        execute = getattr(self.model, "execute", None)
        if not isinstance(self.model, type) or not callable(execute):
            raise self.error("it defines no class TritonPythonModel with a method execute")
        if inspect.isgeneratorfunction(execute) or inspect.isasyncgenfunction(execute):
            raise self.error("execute is a generator, but a step gives each request one response: return a list")

    def error(self, words: str) -> StepError:
        """Return an error that names the step and its file."""
        return StepError(f"step {self._name}: {self.files.file}: {words}")

    def completed(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration with the inputs and outputs of the file's auto_complete_config, or as it is.

        Raises StepError if that fails, adds a batch dimension, or makes a model whose requests have several responses.
        """
        backend = sys.modules[BACKEND]
        complete = getattr(self.model, "auto_complete_config", None)
        known = backend.ModelConfig(json.dumps(config))
        if complete is not None:
            with self._told():
                known = complete(known)
            if not isinstance(known, backend.ModelConfig):
                raise self.error(
                    f"auto_complete_config returned {_kind(known)}, not the configuration that it was given"
                )
        found: dict[str, Any] = known.as_dict()
        check_single(self._name, found)
        largest = found.get("max_batch_size")
        if largest and not config["max_batch_size"]:
            message = f"auto_complete_config sets max_batch_size {largest}, but config.maxBatchSize of the model is 0"
            raise self.error(f"{message}: set both to 0, or neither")
        return {**config, "input": found.get("input"), "output": found.get("output")}

    def call(self, function: Any, *given: Any) -> Any:
        """Return what the user's function returns, also if it is asynchronous; raises StepError."""
        with self._told():
            returned = function(*given)
            return asyncio.run(returned) if inspect.iscoroutine(returned) else returned

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._passed:
            raise
        except SystemExit as error:
            raise StepError(f"{self._where(error)}: the code called sys.exit({error.code!r})") from error
        # The server would take what is no Exception, such as asyncio's CancelledError, for the end of every request.
        except BaseException as error:
            traceback.print_exc()
            summary = traceback.format_exception_only(type(error), error)[-1].strip()[:MESSAGE_CHARACTERS]
            words = _absent(error, self.files) or f"{summary}{_package(error, self.files.packages)}"
            raise StepError(f"{self._where(error)}: {words}") from error

    def _where(self, error: BaseException) -> str:
        """Return the step and the place in its source."""
        source = os.path.realpath(self.files.source) + os.sep
        where = self.files.file
        frames = [(each.filename, each.lineno) for each in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError):
            frames.append((error.filename or "", error.lineno))
        for file, line in reversed(frames):
            if os.path.realpath(file).startswith(source):
                where = f"{os.path.realpath(file)[len(source) :]}:{line}"
                break
        return f"step {self._name}: {where}"

    def _imported(self) -> ModuleType:
        """Import the file as a module of a package, as the backend does, so that it may name its siblings by a dot."""
        file = self.files.source / self.files.file
        package = ModuleType(FOLDER + self._name.replace(".", "_"))
        package.__path__ = [str(file.parent)]
        name = f"{package.__name__}.{file.stem.replace('.', '_')}"
        specification = importlib.util.spec_from_file_location(name, file)
        if specification is None or specification.loader is None:
            raise ImportError(f"{self.files.file} is no Python file")
        module = importlib.util.module_from_spec(specification)
        sys.modules.update({package.__name__: package, name: module})
        # Siblings may also name it by its stem, unless that is the name of something else.
        sys.modules.setdefault(file.stem, module)
        specification.loader.exec_module(module)
        return module


def take_parameters(backend: Any) -> None:
    """Let responses be made with parameters also on a server before release 25.02, which has none: it drops them."""
    own: Any = backend.InferenceResponse
    try:
        own([], parameters={})
    except TypeError:

        class InferenceResponse(own):
            def __init__(self, output_tensors: Sequence[Any] = (), error: Any = None, parameters: Any = None) -> None:
                super().__init__(list(output_tensors), *([] if error is None else [error]))
                if parameters:
                    print("this server has no parameters of responses: they are left out", file=sys.stderr, flush=True)

        backend.InferenceResponse = InferenceResponse


def read_hub(folder: Path) -> None:
    """Let the hub's libraries read a folder, if there is one, and ask no server, which they give up after a minute."""
    os.environ.update(OFFLINE)
    if folder.is_dir():
        os.environ.update(dict.fromkeys(HUB_PLACES, str(folder)))


class RunningStep:
    """A step that is initialized, and answers requests."""

    def __init__(self, loaded: Loaded, config: Mapping[str, Any], args: Mapping[str, str], sized: bool = True) -> None:
        """Let the user's file initialize; ``args``: what it is told, ``config``: what its answers must be.

        ``sized``: whether their sizes must be those, too. Raises StepError.
        """
        self._loaded, self._sized = loaded, sized
        self._batched = config["max_batch_size"] > 0
        self._outputs = {each["name"]: each for each in config["output"]}
        self._model = loaded.call(loaded.model)
        if hasattr(self._model, "initialize"):
            loaded.call(self._model.initialize, loaded.files.arguments(args))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer each request with its response, or with an error that says what is wrong with that response.

        If the user's code fails for several requests, it is asked for each alone, so that only those fail for which it
        does.
        """
        try:
            return self._answers(requests)
        except StepError as error:
            if len(requests) == 1:
                return [_failed(str(error))]
        return [answer for request in requests for answer in self.execute([request])]

    def finalize(self) -> None:
        """Let the user's code finish."""
        try:
            if hasattr(self._model, "finalize"):
                self._loaded.call(self._model.finalize)
        except StepError as error:
            print(error, file=sys.stderr, flush=True)

    def _answers(self, requests: Sequence[Any]) -> list[Any]:
        faulthandler.dump_traceback_later(EXECUTE_SECONDS, exit=True, file=STDERR)
        try:
            # Its own list, because what a step takes off it would be missing here.
            responses = self._loaded.call(self._model.execute, list(requests))
        finally:
            faulthandler.cancel_dump_traceback_later()
        if not isinstance(responses, (list, tuple)):
            raise self._loaded.error(f"execute returned {_kind(responses)}, not a list of responses")
        if len(responses) != len(requests):
            raise self._loaded.error(f"execute returned {len(responses)} responses for {len(requests)} requests")
        # Reading a tensor may raise too: NumPy has no BF16.
        return [self._loaded.call(self._checked, *pair) for pair in zip(requests, responses, strict=True)]

    def _checked(self, request: Any, response: Any) -> Any:
        """Return the response, or an error in its place."""
        if not isinstance(response, sys.modules[BACKEND].InferenceResponse):
            return self._wrong(f"execute returned {_kind(response)} in place of a response")
        if response.has_error():
            return response
        tensors = {each.name(): each for each in response.output_tensors()}
        if len(tensors) != len(response.output_tensors()):
            return self._wrong("the response has two outputs of one name")
        rows = request.inputs()[0].as_numpy().shape[:1] if self._batched else ()
        requested = sorted(request.requested_output_names())
        for name in requested:
            if name not in tensors:
                return self._wrong(f"the response lacks output {name}; it has: {', '.join(sorted(tensors)) or 'none'}")
            if fault := self._fault(tensors[name], self._outputs[name], rows):
                return self._wrong(f"output {name} {fault}")
        bare = [name for name in requested if len(tensors[name].shape()) == len(rows)]
        return _with_dimension(tensors, bare) if bare else response

    def _fault(self, tensor: Any, declared: Mapping[str, Any], rows: tuple[int, ...]) -> str:
        """Return what keeps a tensor from being the declared output; empty: nothing."""
        if not tensor.is_cpu():
            return "is a tensor of a GPU, but a step answers with the CPU's"
        array = tensor.as_numpy()
        kind = declared["data_type"]
        expected = NUMPY_TYPES.get(kind, kind.removeprefix("TYPE_").lower())
        if array.dtype.name != expected and not (expected == "object" and array.dtype.kind == "S"):
            return f"has the type {array.dtype.name}, but the configuration says {kind}"
        if expected == "object" and any(each is None for each in array.flat):
            return "holds None: BYTES are bytes or str"
        if rows and array.shape[:1] != rows:
            return f"has the shape {list(array.shape)}, but the request has {rows[0]} rows"
        own = array.shape[len(rows) :] or (1,)
        dims = declared["dims"]
        if not self._sized:
            return ""
        if len(own) != len(dims) or any(dim not in (-1, size) for size, dim in zip(own, dims, strict=True)):
            batch = " after the batch" if rows else ""
            advice = "declare -1 where it varies"
            return f"has the dimensions {list(own)}{batch}, but the configuration says {list(dims)}; {advice}"
        return ""

    def _wrong(self, words: str) -> Any:
        return _failed(str(self._loaded.error(words)))


def _package(error: BaseException, packages: Path) -> str:
    """Return which package does not import, or what to do about a module that nothing has; empty: another error."""
    if not isinstance(error, ImportError):
        return ""
    root = os.path.join(str(packages), "")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(root):
            name = Path(frame.filename[len(root) :]).parts[0].split(".")[0]
            return f"; the package {name} of the model's requirements does not import here"
    return f"; {MISSING}" if isinstance(error, ModuleNotFoundError) else ""


def _absent(error: BaseException | None, files: StepFiles, links: int = 16) -> str:
    """Return how to add what is missing of the Hugging Face hub; empty: another error.

    ``links``: causes to look at.
    """
    if error is None or not links:
        return ""
    if type(error).__name__ not in NOT_FOUND:
        return _absent(error.__cause__ or error.__context__, files, links - 1)
    command = f"hf download NAME --cache-dir {shlex.quote(str(Path(files.file).parent / HUB))}"
    where = "in the source's folder, with the name of what this line loads"
    return f"no server reaches the Hugging Face hub: type `{command}` {where}"


def check_single(name: str, config: Mapping[str, Any]) -> None:
    """Raise StepError if requests may have several responses, or none."""
    if config.get("model_transaction_policy", {}).get("decoupled"):
        raise StepError(f"step {name}: its configuration is decoupled, but a step gives each request one response")


def _with_dimension(tensors: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return a response in which the named tensors have one dimension more, of 1: Triton cannot declare none."""
    backend = sys.modules[BACKEND]
    arrays = {name: tensors[name].as_numpy() for name in names}
    added = {name: backend.Tensor(name, array.reshape((*array.shape, 1))) for name, array in arrays.items()}
    return backend.InferenceResponse([added.get(name, each) for name, each in tensors.items()])


def _failed(words: str) -> Any:
    backend = sys.modules[BACKEND]
    return backend.InferenceResponse(error=backend.TritonError(words))


def _kind(value: Any) -> str:
    return type(value).__name__
