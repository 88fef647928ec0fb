"""The input of every converter, whatever the framework, and the choice of the converter's module."""

import importlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton_converters.claim_store.dump import Arrays
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.results import Signature
from triton_converters.load.framework import Framework


class ConversionWarning(UserWarning):
    """A warning about this model for the user; its text goes into the result."""


def warn_of_lost(name: str, values: Any, halved: Any, is_factor: bool = False) -> None:
    """Warn of a constant that fp16 turns into 0, because what is made of it may be all zeros.

    ``values``, ``halved``: the constant's array before and after. Of a layer's weights some are always too small, and
    not missed: there all must be lost, of a factor any.
    """
    before, after = (int((each != 0).sum()) for each in (values, halved))
    if after == before or (after and not is_factor):
        return
    if math.prod(values.shape) == 1:
        message = f"the constant {name} ({values.item():.4g}) is too small for fp16 and becomes 0"
    else:
        message = f"{before - after} values of {name} are too small for fp16 and become 0"
    warnings.warn(message, ConversionWarning, stacklevel=3)


@dataclass(frozen=True)
class TimingCaches:
    """The timing caches of TensorRT, for the request's GPU product."""

    known: Callable[[str], Path]
    """Returns the path of the cache of a TensorRT version; it may be missing."""
    new: Path
    """The path for the cache that the build has filled."""


@dataclass(frozen=True)
class Task:
    """One conversion."""

    request: ConvertRequest
    framework: Framework
    """The model in fp32; a converter may change it in place."""
    signature: Signature
    example: Arrays
    """Real inputs by name to trace with; no other dimension has their batch size."""
    timing_caches: TimingCaches

    @property
    def half(self) -> bool:
        """Whether fp16 was requested."""
        return self.request.precision == "fp16"

    def towards(self, format_name: str) -> "Task":
        """Return the task in another format and in fp32, for a format that is made from that one."""
        return replace(self, request=replace(self.request, format=format_name, precision="fp32"))


def convert(task: Task, directory: Path) -> None:
    """Write the file of the requested format, and what belongs to it, into ``directory``.

    Calls ``convert(task, directory)`` of the module that formats.py names for the source and the target. It raises
    StageError: ConversionUnsupported, ConversionFailed, TensorRtUnavailable; any other exception
    is taken for the exporter's and becomes ConversionFailed.
    """
    module = SOURCE_FORMATS[task.request.model.format].converters[task.request.format]
    importlib.import_module(module).convert(task, directory)
