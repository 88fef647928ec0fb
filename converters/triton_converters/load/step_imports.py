"""What a Python step imports in a reference: without requirements, none of the image's packages but NumPy.

The image has many that a server lacks, such as requests: the step would pass here, and keep the server from loading it.
"""

import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from triton_converters.contract import layout
from triton_converters.python_backend import module
from triton_converters.python_backend.environment import DISTRIBUTION, NUMPY

SEEN = sys.stdlib_module_names | {NUMPY, module.NAME}
"""Top-level modules that every server has."""


def sees_image() -> bool:
    """Whether a step may import what the image has: packages were installed to complete it, or it is the user's own."""
    return layout.PACKAGES_MOUNT.is_dir() or Path(__file__).is_relative_to(layout.CONVERTERS_MOUNT)


@contextmanager
def as_on_a_server(source: Path) -> Iterator[None]:
    """Let the files of the source import none of the image's packages; what they import may.

    They get a ModuleNotFoundError, which they may catch. ``source``: directory of the user's files.
    """
    usual = builtins.__import__

    def checked(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - code may name Python's own arguments
        locals: Mapping[str, object] | None = None,  # noqa: A002 - as above
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        file = (globals or {}).get("__file__")
        is_own = level == 0 and isinstance(file, str) and Path(file).is_relative_to(source)
        if is_own and _is_of_image(name.partition(".")[0], source):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, globals, locals, fromlist, level)

    builtins.__import__ = checked
    try:
        yield
    finally:
        builtins.__import__ = usual


def _is_of_image(top: str, source: Path) -> bool:
    """Whether the import path has the top-level module among the image's packages first."""
    found = None if top in SEEN else PathFinder.find_spec(top)
    if found is None:
        return False
    places = [Path(each) for each in (found.origin, *(found.submodule_search_locations or ())) if each]
    return any(
        not each.is_relative_to(source) and any(above.name in DISTRIBUTION for above in each.parents) for each in places
    )
