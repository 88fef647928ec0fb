"""Writes the tables of docs/converters.md from the registry: `python3 -m hack.docs.conversions`."""

from pathlib import Path

from triton_converters.contract.formats import ENSEMBLE, FORMATS, HPS, SOURCES, THROUGH, Format

PAGE = Path(__file__).parents[2] / "docs/converters.md"
BEGIN = "<!-- made from the registry by `python3 -m hack.docs.conversions` -->\n"
END = "<!-- end -->\n"


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_sources()}\n{_formats()}\n{END}{after}"


def _sources() -> str:
    """What converts into what, and which image does it."""
    # Tables and ensembles: docs/ensembles.md.
    targets = [name for name in FORMATS if name != HPS]
    head = f"| Source | {' | '.join(f'`{name}`' for name in targets)} | Image of its Jobs |\n"
    rows = ""
    for name, source in SOURCES.items():
        if name in (HPS, ENSEMBLE):
            continue
        ways = " | ".join(_way(target in source.converters, target) for target in targets)
        rows += f"| `{name}` | {ways} | `{source.image}` |\n"
    return head + "| --- " * (len(targets) + 2) + "|\n" + rows


def _way(exists: bool, target: str) -> str:
    if not exists:
        return "-"
    return f"by way of `{THROUGH[target]}`" if target in THROUGH else "yes"


def _formats() -> str:
    """What serves a format, where, and with which accelerators."""
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


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
