"""What user files written for NVIDIA's deployment toolkit import from ``deployment_toolkit.core``.

``install()`` makes it importable under both names those files use, without hiding the ``triton`` package that torch
imports, and without making torch believe that such a package is installed where it is not.
"""

import sys
from collections.abc import Mapping
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


def install() -> None:
    """Register the modules; folders of the user's source that carry a copy of the toolkit are not consulted."""
    for package in ("deployment_toolkit", "triton.deployment_toolkit"):
        core = ModuleType(f"{package}.core")
        vars(core).update(BaseMetricsCalculator=BaseMetricsCalculator)
        parent = ModuleType(package)
        vars(parent).update(__path__=[], core=core)
        # The top-level `triton` is left alone: an import of a full dotted name looks for that name first.
        sys.modules.setdefault(package, parent)
        sys.modules.setdefault(f"{package}.core", core)
