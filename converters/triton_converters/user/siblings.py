"""Lets the entrypoints of several folders, which share one process, import each its own files.

Python keeps one module for each name. So a model and a dataloader that both have a ``utils.py`` next to them would get
the same one: the one that was imported first.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

_paths: dict[Path, list[str]] = {}
"""The import path while an entrypoint's code runs, with what that code added, by the entrypoint's folder."""
_hidden: dict[tuple[str, str], ModuleType] = {}
"""Modules that other code would take for its own, by the place on the import path that has them, and their name."""
_entered: list[Path] = []
"""The folder whose import path and modules are the interpreter's now; empty at first."""


def enter(source: Path, folder: Path) -> None:
    """Let the code in ``folder`` import as if no other entrypoint existed, from now on.

    The folder comes first on sys.path, as for a script; the source's directory comes last, before other entrypoints'
    folders. A module that no other file of the source hides stays what it is, so that entrypoints share it.
    """
    if _entered == [folder]:
        return
    places = {name: _place(module) for name, module in list(sys.modules.items()) if "." not in name}
    if _entered:
        _paths[_entered[0]] = list(sys.path)
    sys.path[:] = _paths.setdefault(folder, _path(source, folder))
    _entered[:] = [folder]
    order = [each for each in sys.path if Path(each).is_relative_to(source)]
    for name, place in places.items():
        if place is not None and Path(place).is_relative_to(source) and _first(order, name) not in (place, None):
            _move(sys.modules, name, place)
    for place, name in list(_hidden):
        top = name.partition(".")[0]
        if place in order and _first(order, top) == place:
            sys.modules.setdefault(name, _hidden.pop((place, name)))


def enter_again(source: Path, folder: Path) -> None:
    """Do what ``enter`` does for a folder that was entered before, and nothing for any other."""
    if folder in _paths:
        enter(source, folder)


def _path(source: Path, folder: Path) -> list[str]:
    others = [str(each) for each in _paths if each.is_relative_to(source)]
    ends = [str(source), *(each for each in others if each != str(source))]
    return [
        str(folder),
        *(each for each in sys.path if each not in (str(folder), *ends)),
        *(each for each in ends if each != str(folder)),
    ]


def _move(modules: dict[str, ModuleType], top: str, place: str) -> None:
    """Take a module and the modules of its package out of the interpreter's, and keep them."""
    for name in list(modules):
        if name.partition(".")[0] == top:
            _hidden[place, name] = modules.pop(name)


def _place(module: ModuleType) -> str | None:
    """Return the entry of sys.path that a top-level module was found in; None: it has no file."""
    for found in (*list(getattr(module, "__path__", None) or ())[:1], getattr(module, "__file__", None)):
        if isinstance(found, str):
            return str(Path(found).parent)
    return None


def _first(order: Sequence[str], name: str) -> str | None:
    """Return the place that an import takes the name from; a folder without __init__.py gives way to any other."""
    found = [(each, spec) for each in order if (spec := PathFinder.find_spec(name, [each])) is not None]
    return next((each for each, spec in [*(one for one in found if one[1].loader), *found]), None)
