"""The plugin's table of its own command line, by which a Tab is answered without importing the commands."""

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from triton_plugin.__main__ import add_options
from triton_plugin.commands import COMMANDS

TABLE = Path(__file__).parents[2] / "plugin/triton_plugin/completion.json"
OBJECTS = ("NAME", "A", "B")
"""Metavars of arguments that are names of TritonDeployments, if they are no options."""
OF_THE_CLUSTER = {"namespace": "namespaces", "context": "contexts"}
"""What kubectl lists for an option, by the option's name."""


class Recorder(argparse.ArgumentParser):
    """A parser that tells what was added to it."""

    def __init__(self) -> None:
        self.actions: list[argparse.Action] = []
        super().__init__()

    def _add_action(self, action: Any) -> Any:
        self.actions.append(action)
        return super()._add_action(action)

    def described(self) -> dict[str, Any]:
        """Return the options and the other arguments, as completion.json has them."""
        return {
            "options": [_option(each) for each in self.actions if each.option_strings],
            "arguments": [_argument(each) for each in self.actions if not each.option_strings],
        }


def pages() -> dict[Path, str]:
    """Return the file by its path."""
    before = Recorder()
    add_options(before)
    commands = {name: {"help": text, **_command(name)} for name, text in COMMANDS.items()}
    table = {"options": before.described()["options"], "commands": commands}
    return {TABLE: json.dumps(table, indent=1, ensure_ascii=False) + "\n"}


def _command(name: str) -> dict[str, Any]:
    parser = Recorder()
    import_module(f"triton_plugin.commands.{name.replace('-', '_')}").add_arguments(parser)
    return parser.described()


def _option(action: argparse.Action) -> dict[str, Any]:
    again = isinstance(action, argparse._AppendAction)  # noqa: SLF001 - argparse tells it by no public name
    return {"names": list(action.option_strings), "help": action.help or "", "many": again, **_values(action)}


def _argument(action: argparse.Action) -> dict[str, Any]:
    return {"many": action.nargs in {"*", "+"}, **_values(action)}


def _values(action: argparse.Action) -> dict[str, Any]:
    """Return what may follow: nothing, one of a list, or what is listed or typed when it is completed."""
    if action.option_strings and action.nargs == 0:
        return {"takes": []}
    if action.choices:
        return {"takes": ["choices"], "choices": [str(each) for each in action.choices]}
    return {"takes": _kinds(action) or ["text"]}


def _kinds(action: argparse.Action) -> Sequence[str]:
    metavar, kinds = str(action.metavar or ""), []
    if not action.option_strings and metavar in OBJECTS:
        kinds.append("objects")
    if action.type is Path or {"FILE", "FOLDER"} & set(metavar.split("|")) or "saved file" in (action.help or ""):
        kinds.append("files")
    return [*kinds, *([OF_THE_CLUSTER[action.dest]] if action.dest in OF_THE_CLUSTER else [])]
