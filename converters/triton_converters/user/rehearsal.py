"""A rehearsal without a GPU: in a Job that has none, user code that asks PyTorch for CUDA gets the CPU.

``begin`` does it for the whole process, ``used`` says whether anything fell back. Only what a caller asks for changes:
``torch.cuda.is_available()`` stays False. A TorchScript graph that names the device itself is not changed, and a tensor
that is moved is not copied.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Self

NO_GPU = ("NVIDIA_VISIBLE_DEVICES", "void")
"""The variable that the operator sets for a container without a GPU. NVIDIA's runtime sets it too where it injects the
devices in another way, so ``has_no_gpu`` looks for these as well."""
DEVICES = Path("/dev")
CUDA = re.compile(r"cuda(:\d+)?")
BEFORE_CUDA = 5
"""A priority of ``torch.serialization.register_package``, where the lowest comes first; CUDA's own function has 20."""

_fell_back: list[str] = []
"""What user code asked for and did not get, in order."""
_begun: list[object] = []
"""What keeps the rehearsal going: it ends with the process."""


def begin() -> None:
    """Let PyTorch fall back to the CPU from now on, in this thread, if the Job has no GPU and the image has PyTorch."""
    if _begun or not has_no_gpu() or importlib.util.find_spec("torch") is None:
        return
    import torch

    if not torch.cuda.is_available():
        sys.modules.setdefault("pynvml", _management_library())
        _begun.append(_start())


def took_place() -> bool:
    """Whether user code asked for CUDA and got the CPU."""
    return bool(_fell_back)


def has_no_gpu() -> bool:
    """Whether the operator gave this container no GPU."""
    name, value = NO_GPU
    return os.environ.get(name) == value and not any(DEVICES.glob("nvidia[0-9]*"))


def _note(what: str) -> None:
    if not _fell_back:
        print(f"rehearsal: this Job has no GPU, so {what} uses the CPU", flush=True)
    _fell_back.append(what)


def _start() -> object:
    """Replace what needs CUDA, and return the mode that is entered."""
    import torch
    from torch.overrides import TorchFunctionMode

    to_cuda = torch.Tensor.cuda
    pinned = {torch.Tensor.pin_memory, torch.Tensor.record_stream}

    class OnCpu(TorchFunctionMode):
        """Calls each function of PyTorch with the CPU in place of any CUDA device."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            if func is to_cuda or func in pinned:
                _note(f"Tensor.{func.__name__}")
                return args[0]
            if func is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:
                args = (args[0], torch.device("cuda", args[1]), *args[2:])
            if type(given.get("device")) is int:
                given = given | {"device": torch.device("cuda", given["device"])}
            if any(map(_is_cuda, (*args, *given.values()))):
                _note(getattr(func, "__name__", str(func)))
                args = tuple("cpu" if _is_cuda(each) else each for each in args)
                given = {name: "cpu" if _is_cuda(each) else each for name, each in given.items()}
            return func(*args, **given)

    def _is_cuda(value: Any) -> bool:
        if isinstance(value, torch.device):
            return bool(value.type == "cuda")
        return isinstance(value, str) and CUDA.fullmatch(value) is not None

    def restored(storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        _note("torch.load")
        return storage

    torch.serialization.register_package(BEFORE_CUDA, lambda storage: None, restored)
    _replace_functions(torch.cuda)
    _replace_autocast(torch.autocast)
    mode = OnCpu()
    mode.__enter__()
    return mode


def _management_library() -> ModuleType:
    """Return NVML's Python module on a machine without a GPU; NVIDIA's own raises an error there when it is set up."""
    library = ModuleType("pynvml")
    vars(library).update(nvmlInit=lambda: _note("NVML"), nvmlShutdown=lambda: None, nvmlDeviceGetCount=lambda: 0)
    return library


def _replace_functions(cuda: Any) -> None:
    """Let what only orders work on a device do nothing."""

    def nothing(name: str) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            _note(f"torch.cuda.{name}")

        return call

    class Stream:
        """A stream or an event, with no work to wait for."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            _note("torch.cuda.Stream")

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *raised: object) -> None:
            pass

        def query(self) -> bool:
            return True

        def __getattr__(self, name: str) -> Callable[..., None]:
            if name in ("record", "synchronize", "wait", "wait_event", "wait_stream"):
                return lambda *args, **kwargs: None
            raise AttributeError(name)

    @contextmanager
    def stream(given: Any) -> Iterator[None]:
        yield

    for name in ("synchronize", "empty_cache", "set_device", "reset_peak_memory_stats"):
        setattr(cuda, name, nothing(name))
    cuda.Stream = cuda.Event = Stream
    cuda.stream, cuda.current_stream, cuda.default_stream = stream, Stream, Stream
    for name in ("range_push", "range_pop", "mark"):
        setattr(cuda.nvtx, name, nothing(f"nvtx.{name}"))


def _replace_autocast(autocast: Any) -> None:
    """Let ``torch.autocast("cuda")`` cast nothing, as on a machine without CUDA, and note it."""
    given = autocast.__init__

    def begin(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        if device_type == "cuda" and enabled:
            _note("torch.autocast")
            enabled = False
        given(self, device_type, dtype, enabled, cache_enabled)

    autocast.__init__ = begin
