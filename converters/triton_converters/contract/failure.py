"""The exceptions with which a stage reports its failure, and its end by a signal."""

import errno

from triton_converters.contract.reasons import Reason

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StageError(Exception):
    """A failure with a reason and a message for the person who reads the status.

    ``final``: a second run of the same Job cannot fix it (the process exits with EXIT_FINAL).
    """

    def __init__(self, reason: Reason, message: str, *, final: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.final = final


class TerminatedError(BaseException):
    """SIGTERM or SIGINT arrived; not an Exception, so that user code does not catch it by accident."""


def lacks_room(error: BaseException) -> bool:
    """Whether there was no space left: on the claim, or wherever an OSError says."""
    if isinstance(error, StageError):
        return error.reason is Reason.STORAGE_FULL
    return isinstance(error, OSError) and error.errno in _FULL
