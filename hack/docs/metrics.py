"""The table of the operator's metrics in docs/monitoring.md, from the code that makes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hack.docs.place import filled
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.store import Store

PAGE = Path(__file__).parents[2] / "docs/monitoring.md"
BEGIN = "<!-- made from runtime/ by `make generate` -->\n"
HEAD = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"


def pages() -> dict[Path, str]:
    """Return the page with its table made anew, by its path.

    Raises ValueError if the page has no place for the table.
    """
    return {PAGE: filled(PAGE, BEGIN, f"\n{HEAD}{''.join(_rows())}\n")}


def _rows() -> Iterator[str]:
    metrics = Metrics()
    metrics.watch(Store())
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in _labels(metrics, family))
        yield f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"


def _labels(metrics: Metrics, family: Any) -> tuple[str, ...]:
    """Return the names of a family's labels, which prometheus_client keeps to itself until there is a sample."""
    found: Any = getattr(family, "_labelnames", None)
    if found is None:
        found = metrics.registry._names_to_collectors[family.name]._labelnames  # type: ignore[attr-defined]  # noqa: SLF001 - no public name
    return tuple(found)
