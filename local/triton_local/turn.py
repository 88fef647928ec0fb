"""Whose turn it is: a lock between the processes of a machine, which ends with its holder."""

import fcntl
import os
from pathlib import Path

MEASURING = Path("/tmp/triton-operator-measuring.lock")  # noqa: S108 - a name that all users of the machine know
"""Two engines that measure at once would measure each other."""


class Turn:
    """The turn of one engine, by a file that all of them lock."""

    def __init__(self, file: Path) -> None:
        """``file``: is made if it is not there. Raises OSError if another user has put something else there."""
        self._file = file
        self._descriptor: int | None = None
        os.close(self._opened())

    def take(self) -> bool:
        """Take the turn if nobody else has it; whether it is ours. Raises OSError."""
        if self._descriptor is None:
            descriptor = self._opened()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._descriptor = descriptor
        return True

    def give(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        """Another user's file is only read: the system lets nobody else create it anew."""
        try:
            return os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            os.fchmod(descriptor, 0o644)
            return descriptor
