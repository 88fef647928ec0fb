"""Which other models the code of a Python step asks, as far as its text shows. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from triton_plugin.reading.model_requests import REQUEST
from triton_plugin.reading.python_files import Modules, used_names

EXECUTES = frozenset({"exec", "async_exec"})


@dataclass(frozen=True)
class RequestedModels:
    """The names of models in the code of a step."""

    names: tuple[str, ...]
    """The names that stand in requests as text, sorted."""
    words: frozenset[str]
    """The texts among which the names of all other requests may be; empty: there are no such requests."""
    is_computed: bool
    """Whether there are such requests."""


def requested_models(file: str, modules: Modules) -> RequestedModels:
    """Return what the file at ``file`` below the source asks, and the files next to it that it may import."""
    own = [modules[each] for each in imported(file, modules) if each in modules]
    used = frozenset(name for each in own for name in used_names(each))
    if REQUEST not in used or not used & EXECUTES:
        return RequestedModels((), frozenset(), False)
    requested = [request.model for each in own for request in each.requests]
    names = tuple(sorted({name for name in requested if name}))
    # A request may be made by a function that gets the class.
    is_computed = not names or not all(requested)
    words = frozenset(word for each in own for word in each.words) if is_computed else frozenset()
    return RequestedModels(names, words, is_computed)


def asks_in_nested_loops(file: str, name: str, modules: Modules) -> bool:
    """Whether the code of a step visibly makes each request to a model in a loop within another one.

    ``file``: path of that code below the source. ``name``: the model's; a request whose name is computed may be to it.
    """
    own = (modules[each] for each in imported(file, modules) if each in modules)
    found = [request for each in own for request in each.requests if request.model in ("", name)]
    return bool(found) and all(each.is_nested for each in found)


def imported(file: str, modules: Modules) -> list[str]:
    """Return the file, and those of its folder that it may import."""
    return [file, *(each for each in below(PurePosixPath(file).parent, modules) if each != file)]


def below(folder: PurePosixPath, modules: Modules) -> Iterator[str]:
    """Yield the Python files of a folder, and of those in it."""
    return (each for each in modules if PurePosixPath(each).is_relative_to(folder))
