"""`kubectl triton COMMAND`: put files on a claim, inspect a TritonDeployment and its results, or check a file."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module, metadata

from triton_plugin.commands import COMMANDS
from triton_plugin.errors import CommandError, UnreachableError
from triton_plugin.exits import Exit
from triton_plugin.location import add_location
from triton_plugin.terminal import say

EPILOG = """\
Instead of a NAME, report, explain, history and compare also take a file with the output of
`kubectl get td/NAME configmap/NAME-results -o yaml`.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parser(words).parse_args(words)
        status = int(options.run(options))
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
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return status


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of a command line: with the arguments of its command, and the names of the others."""
    found = argparse.ArgumentParser(prog="kubectl triton", description=__doc__, epilog=EPILOG)
    add_options(found)
    subparsers = found.add_subparsers(metavar="COMMAND", required=True)
    typed = _command(words)
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=text)
        if name == typed:
            command = import_module(f"triton_plugin.commands.{name.replace('-', '_')}")
            command.add_arguments(subparser)
            subparser.set_defaults(run=command.run)
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what stands before the name of a command."""
    parser.add_argument("--version", action="version", version=version(), help="print the version of this plugin")
    add_location(parser, is_command=False)


def version() -> str:
    """Return the version of the installed package; of a source tree, that it is one."""
    try:
        return metadata.version("triton-operator")
    except metadata.PackageNotFoundError:
        return "a source tree, not installed"


def _command(words: Sequence[str]) -> str:
    """Return the name of the command on a command line; empty if there is none."""
    found = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_location(found, is_command=False)
    found.add_argument("command", nargs="?", default="")
    found.add_argument("rest", nargs=argparse.REMAINDER)
    with suppress(argparse.ArgumentError):
        return str(found.parse_known_args(words)[0].command)
    return ""


def _failure(message: str, status: Exit) -> int:
    say(f"kubectl triton: {message}", sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
