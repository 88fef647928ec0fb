"""How a stage says that it failed."""

from triton_converters.contract.reasons import Reason


class StageError(Exception):
    """A failure with a reason and a message for the person who reads the status.

    ``final``: running the same Job again cannot mend it (the process exits with EXIT_FINAL).
    """

    def __init__(self, reason: Reason, message: str, *, final: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.final = final
