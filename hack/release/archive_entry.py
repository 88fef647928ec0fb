"""The program of the archive: `kubectl triton`, or what kubectl calls for a Tab, if the first word is COMPLETE."""

import os
import sys
from collections.abc import MutableMapping

COMPLETE = "__complete"
"""The word by which the script kubectl_complete-triton says what it is."""
LIBRARIES = "LD_LIBRARY_PATH"


def restore(environment: MutableMapping[str, str]) -> None:
    """Take the archive's libraries out of what kubectl and a cloud's credential program get: they have others."""
    before = environment.pop(f"{LIBRARIES}_ORIG", None)
    environment.pop(LIBRARIES, None)
    if before is not None:
        environment[LIBRARIES] = before


def main() -> int:
    """Run a command, or complete its line; returns the exit status."""
    restore(os.environ)
    if sys.argv[1:2] == [COMPLETE]:
        from triton_plugin.completion import main as complete

        return complete(sys.argv[2:])
    from triton_plugin.__main__ import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
