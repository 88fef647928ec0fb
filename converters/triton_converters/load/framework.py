"""The model outside Triton: NumPy arrays in, NumPy arrays out, whatever framework runs it."""

import importlib
from pathlib import Path
from typing import Protocol

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SOURCE_FORMATS, TRITON_PYTHON
from triton_converters.contract.reasons import Reason
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load import usable_names
from triton_converters.load.declared import as_declared


class Framework(Protocol):
    """A model in evaluation mode with fp32 weights, on the GPU if there is one."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs' names, in the model's own order."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs' names, in the model's own order."""

    @property
    def open_axes(self) -> OpenAxes:
        """The axes whose size the model's graph leaves open, by tensor; without a graph that says so: none."""

    @property
    def source(self) -> Path:
        """Directory of the published source."""

    @property
    def path(self) -> str:
        """The user's file below the source, for messages."""

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return outputs by name for one batch of inputs by name.

        Raises StageError: FrameworkFailed if the model raises, or returns what cannot be served; UserCodeFailed.
        """


def load(source: Path, model: ModelCode, output_format: str) -> Framework:
    """Load the user's model with its format's loader, which imports the framework; raises what the loader raises.

    ``source``: directory of the published source. ``output_format`` is offered to the user's function as an argument.
    Raises StageError: ModelConfigRefused if the user's config.pbtxt declares something else; CheckpointInvalid of a
    file, or EntrypointInvalid of code, whose tensors have names that cannot be served.
    """
    loaded: Framework = importlib.import_module(SOURCE_FORMATS[model.format].loader).load(source, model, output_format)
    if model.declared is not None:
        loaded = as_declared(loaded, model.declared)
    if why := usable_names.fault(loaded.inputs, loaded.outputs, model.format == TRITON_PYTHON):
        reason = Reason.CHECKPOINT_INVALID if SOURCE_FORMATS[model.format].is_file else Reason.ENTRYPOINT_INVALID
        raise StageError(reason, f"{loaded.path}: {why}")
    return loaded
