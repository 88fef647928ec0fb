"""The guard beside a model instance, as the instance's own process starts and ends it."""

import os
import subprocess
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
PYTHON = "/usr/bin/python3"
"""The interpreter of the image: the process of an instance is the server's stub, which runs no program."""
PATIENCE_SECONDS = 5
"""How long a guard may take to end once it was told to; it only returns then."""


class Guarding:
    """A guard that ends the server if this process dies."""

    def __init__(self, name: str) -> None:
        """Start the guard of the instance of that name. Raises OSError if it cannot be started."""
        argv = [PYTHON, "-I", "-S", "-B", str(GUARD), str(os.getppid()), str(os.getpid()), name]
        # In a session of its own, so that a Ctrl-C for the server does not end the guard alone.
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)

    def close(self) -> None:
        """Say that this process ends as it should."""
        self._process.communicate(b"x", PATIENCE_SECONDS)
