"""The exception with which a stage reports its failure."""

from triton_converters.contract.reasons import Reason


class StageError(Exception):
    """A failure with a reason and a message for the person who reads the status.

    ``final``: a second run of the same Job cannot fix it (the process exits with EXIT_FINAL).
    """

    def __init__(self, reason: Reason, message: str, *, final: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.final = final
