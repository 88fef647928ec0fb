"""Format ``hps``: a Python file whose ``get_model`` returns embedding tables; NumPy looks them up."""

from dataclasses import dataclass
from pathlib import Path

from triton_converters.claim_store import embedding_tables
from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming.documents import OpenAxes
from triton_converters.user.user_code import call

NAMES = {"inputs": [embedding_tables.KEYS, embedding_tables.NUMKEYS], "outputs": [embedding_tables.OUTPUT]}


@dataclass(frozen=True)
class Lookup:
    """Embedding tables as a Framework."""

    tables: tuple[embedding_tables.Table, ...]
    source: Path
    path: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs' names, which the backend fixes."""
        return tuple(NAMES["inputs"])

    @property
    def outputs(self) -> tuple[str, ...]:
        """The output's name, which the backend fixes."""
        return tuple(NAMES["outputs"])

    @property
    def open_axes(self) -> OpenAxes:
        """None: the backend fixes the tensors."""
        return {}

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return the vectors of a request's keys; raises StageError(FrameworkFailed) if keys and numbers do not fit."""
        try:
            return {embedding_tables.OUTPUT: embedding_tables.lookup(self.tables, inputs)}
        except ValueError as error:
            raise StageError(Reason.FRAMEWORK_FAILED, f"{self.path}: {error}") from error


def load(source: Path, model: ModelCode, output_format: str) -> Lookup:
    """Call get_model -> ({table's name: (keys, vectors)}, names).

    ``names`` must be NAMES. Raises StageError: what ``user_code.call`` raises, EntrypointInvalid,
    CheckpointInvalid (a vector that is not finite).
    """
    path = model.entrypoint.path
    stage: dict[str, int | str] = {
        "precision": "fp32",
        "output_format": output_format,
        "batch_size": max(1, model.max_batch_size),
    }
    returned = call(source, model.entrypoint, "get_model", stage)
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        message = f"{path}: get_model must return (tables, names), not {type(returned).__name__}"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    tables, names = returned
    if names != NAMES:
        message = f"{path}: get_model's second item is {names!r:.200}, but the hps backend's names are {NAMES}"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    return Lookup(embedding_tables.checked_tables(tables, path), source, path)
