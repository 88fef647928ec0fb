"""`kubectl triton COMMAND`: read the command line, import the command's module, and run it."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from triton_plugin.command_line import parser
from triton_plugin.errors import CommandError, UnreachableError
from triton_plugin.exits import Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    try:
        options = parser().parse_args(argv)
        command = import_module(f"triton_plugin.commands.{options.command.replace('-', '_')}")
        status = int(command.run(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has what they wanted, as `| head` does. What is left is flushed at the exit, to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except UnreachableError as error:
        return _failure(str(error), Exit.UNREACHABLE)
    except CommandError as error:
        return _failure(str(error), Exit.FAILED)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        return _failure(message, Exit.FAILED)
    except RecursionError:
        return _failure("a folder is nested too deeply to be read; name one with the model's own files", Exit.FAILED)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return status


def _failure(message: str, status: Exit) -> int:
    # With it comes the library of the tables.
    from triton_plugin.terminal import say

    say(f"kubectl triton: {message}", sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
