"""What user files written for NVIDIA's deployment toolkit import from ``deployment_toolkit.core``.

``install`` makes it importable under both names those files use, without hiding the ``triton`` package that torch
imports, and without making torch believe that such a package is installed where it is not.
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

    Nothing here is abstract: files in use override one half and never mention the other.
    """

    required_fn_name_for_signature_parsing: str | None = None

    def calc(self, **arrays: Any) -> Mapping[str, float]:
        """Metrics by name over the whole set; ``ids``, and ``y_pred``, ``x``, ``y_real`` by tensor name."""
        self.update(**arrays)
        return self.metrics

    def update(self, **arrays: Any) -> None:
        """Take in some samples: ``ids``, and ``y_pred``, ``x``, ``y_real`` by tensor name."""
        raise TypeError(f"{type(self).__name__} overrides neither calc nor update")

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name of all samples taken in so far."""
        raise TypeError(f"{type(self).__name__} overrides neither calc nor metrics")


class TorchTritonFinder:
    """Finds ``triton`` anywhere but in the user's source.

    Sources in use have a folder of that name, and torch takes any importable ``triton`` for the compiler.
    """

    def __init__(self, source: Path) -> None:
        self.source = source

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The installed package; raises ModuleNotFoundError where there is none."""
        if name != "triton":
            return None
        places = [place for place in sys.path if not Path(os.path.realpath(place)).is_relative_to(self.source)]
        found = PathFinder.find_spec(name, places, target)
        if found is None:
            raise ModuleNotFoundError("No module named 'triton'", name=name)
        return found


def install(source: Path) -> None:
    """Register the modules; a copy of the toolkit that lies in the source is not consulted."""
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
