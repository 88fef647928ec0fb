"""The tables of docs/converters.md, from the registry of formats."""

from pathlib import Path

from hack.docs.place import filled
from triton_converters.contract.formats import (
    AS_GIVEN,
    ENSEMBLE,
    FORMATS,
    HPS,
    REPOSITORY,
    SOURCE_FORMATS,
    THROUGH,
    Format,
)

PAGE = Path(__file__).parents[2] / "docs/converters.md"
BEGIN = "<!-- made from the registry of formats by `make generate` -->\n"


def pages() -> dict[Path, str]:
    """Return the page with its tables made anew, by its path.

    Raises ValueError if the page has no place for the tables.
    """
    return {PAGE: filled(PAGE, BEGIN, f"\n{_sources()}\n{_formats()}\n")}


def _sources() -> str:
    """Return the table of conversions and of the images that run them."""
    # Tables and ensembles: docs/ensembles.md. Steps: docs/python-steps.md. A repository: docs/formats.md.
    targets = [name for name in FORMATS if name not in AS_GIVEN]
    head = f"| Source | {' | '.join(f'`{name}`' for name in targets)} | Image of its Jobs |\n"
    rows = ""
    for name, source in SOURCE_FORMATS.items():
        if name in (*AS_GIVEN, ENSEMBLE, REPOSITORY):
            continue
        ways = " | ".join(_way(target in source.converters, target) for target in targets)
        rows += f"| `{name}` | {ways} | `{source.image}` |\n"
    return head + "| --- " * (len(targets) + 2) + "|\n" + rows


def _way(exists: bool, target: str) -> str:
    if not exists:
        return "-"
    return f"by way of `{THROUGH[target]}`" if target in THROUGH else "yes"


def _formats() -> str:
    """Return the table of formats with their backends, devices, releases and accelerators."""
    head = "| Format | File | Triton's backend | Runs on | Served by | `accelerator` |\n"
    rows = "".join(
        f"| `{name}` | `{each.file}` | `{each.backend}` | {_place(each)} |\n" for name, each in FORMATS.items()
    )
    return head + "| --- " * 6 + "|\n" + rows


def _place(each: Format) -> str:
    where = "GPU" if each.needs_gpu else "CPU, GPU"
    served = f"releases up to {each.last_release}" if each.last_release else "all releases"
    if each.backend == HPS:
        served = "images with HugeCTR's backend, and `tritonserver-cpu`"
    return f"{where} | {served} | {', '.join(f'`{name}`' for name in each.accelerators)}"
