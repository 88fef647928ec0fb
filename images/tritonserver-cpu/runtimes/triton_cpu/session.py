"""What every runtime offers, and what it raises."""

from collections.abc import Callable, Mapping
from typing import Protocol

from triton_cpu.batch import Array, Arrays

Log = Callable[[str], None]


class RunError(Exception):
    """A call of the runtime failed; `invalid` if the request or the configuration is to blame."""

    def __init__(self, message: str, invalid: bool = False) -> None:
        super().__init__(message)
        self.invalid = invalid


class Session(Protocol):
    """One loaded copy of a model."""

    def run(self, inputs: Arrays) -> Mapping[str, Array]:
        """Call the runtime once: arrays by the configuration's input names -> arrays by its output names.

        Raises RunError.
        """
