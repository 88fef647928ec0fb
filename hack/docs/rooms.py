"""The figure of the rooms in docs/architecture.md, from the layers that .importlinter enforces."""

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
BLOCK = re.compile(r"(<!-- rooms of (?P<package>[\w.]+), from \.importlinter -->\n```\n).*?(```\n)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Return the page by its path, with each figure made anew."""
    layers = _layers()
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: BLOCK.sub(lambda found: found[1] + _figure(layers[found["package"]]) + found[3], text)}


def _layers() -> dict[str, list[list[str]]]:
    """Return each package's layers from the top down; rooms of one layer do not import each other."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    found = {}
    for section in contracts.values():
        if section.get("type") == "layers" and "containers" in section:
            rows = [line for line in section["layers"].splitlines() if line.strip()]
            found[section["containers"].strip()] = [[room.strip() for room in row.split("|")] for row in rows]
    return found


def _figure(layers: list[list[str]]) -> str:
    """Return one line for each layer: its boxes, centred; arrows point down only."""
    rows = ["   ".join(f"[ {room} ]" for room in layer) for layer in layers]
    width = max(len(row) for row in rows)
    arrow = "|".center(width).rstrip()
    return f"\n{arrow}\n".join(row.center(width).rstrip() for row in rows) + "\n"
