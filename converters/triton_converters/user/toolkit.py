"""The part of ``deployment_toolkit.core`` that user files written for NVIDIA's deployment toolkit import.

``install`` makes it importable under both names that those files use. It does not hide the ``triton`` package that
torch imports, nor make torch believe that such a package is installed.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


class BaseMetricsCalculator:
    """Base of a user's ``MetricsCalculator``, which overrides either ``calc``, or ``update`` and ``metrics``.

    Nothing here is abstract, because existing files override one half and do not mention the other.
    """

    required_fn_name_for_signature_parsing: str | None = None

    def calc(self, **arrays: Any) -> Mapping[str, float]:
        """Return metrics by name over the whole set: ``ids``, and ``y_pred``, ``x``, ``y_real`` by tensor name."""
        self.update(**arrays)
        return self.metrics

    def update(self, **arrays: Any) -> None:
        """Add some samples: ``ids``, and ``y_pred``, ``x``, ``y_real`` by tensor name.

        Raises TypeError if a subclass overrides neither this nor calc.
        """
        raise TypeError(f"{type(self).__name__} overrides neither calc nor update")

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name of all samples added so far.

        Raises TypeError if a subclass overrides neither this nor calc.
        """
        raise TypeError(f"{type(self).__name__} overrides neither calc nor metrics")


class TorchTritonFinder:
    """Finds the package ``triton`` anywhere but in the user's source.

    Some sources have a folder of that name, and torch takes any importable ``triton`` for the compiler.
    """

    def __init__(self, source: Path) -> None:
        self.source = source

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the installed package; raises ModuleNotFoundError if only the source has one.

        If nobody has one, it returns None: a program that merely asks for a package expects no error.
        """
        if name != "triton":
            return None
        places = [place for place in sys.path if not Path(os.path.realpath(place)).is_relative_to(self.source)]
        found = PathFinder.find_spec(name, places, target)
        if found is None and PathFinder.find_spec(name, None, target) is not None:
            raise ModuleNotFoundError("No module named 'triton'", name=name)
        return found


def install(source: Path) -> None:
    """Register the modules; a copy of the toolkit in the source is ignored."""
    if not any(isinstance(finder, TorchTritonFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchTritonFinder(source.resolve()))
    for package in ("deployment_toolkit", "triton.deployment_toolkit"):
        core = ModuleType(f"{package}.core")
        vars(core).update(BaseMetricsCalculator=BaseMetricsCalculator)
        parent = ModuleType(package)
        vars(parent).update(__path__=[], core=core)
        # The top-level `triton` is left alone: an import of a full dotted name looks for that name first.
        sys.modules.setdefault(package, parent)
        sys.modules.setdefault(f"{package}.core", core)
