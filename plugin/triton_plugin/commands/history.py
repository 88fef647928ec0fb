"""`kubectl triton history`."""

import argparse

from triton_plugin.commands.arguments import subject
from triton_plugin.exits import Exit
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.history import notes, table
from triton_plugin.terminal import console, say


def run(options: argparse.Namespace) -> Exit:
    """Print the revisions. Raises CommandError, also if there are none."""
    print_history(subject(options, options.name))
    return Exit.OK


def print_history(subject: Subject) -> None:
    """Print the revisions of an object, and what the words of the table mean. Raises SubjectError."""
    console().print(table(subject))
    for each in notes(subject):
        say(each)
