"""The table of values in the chart's README, from values.yaml and its comments."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.docs.place import filled

CHART = Path(__file__).parents[2] / "charts/triton-operator"
PAGE = CHART / "README.md"
VALUES = CHART / "values.yaml"
BEGIN = "<!-- made from values.yaml by `make generate` -->\n"
HEAD = "| Value | Default | Meaning |\n|---|---|---|\n"


@dataclass(frozen=True)
class Value:
    """A value of the chart, or a group of them."""

    path: tuple[str, ...]
    comment: str
    default: Any = None
    """What values.yaml says; None for a group."""
    is_group: bool = False

    @property
    def name(self) -> str:
        """The path as `--set` takes it."""
        return ".".join(self.path)


def values() -> list[Value]:
    """Return every value in the order of the file, each group before its values.

    A mapping in block style is a group; one in flow style is a value. Raises ValueError for a value without a comment.
    """
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text, yaml.SafeLoader)
    found = list(_below(root, (), text.splitlines(), yaml.safe_load(text)))
    if silent := [each.name for each in found if not each.is_group and not each.comment]:
        raise ValueError(f"{VALUES.name} has no comment above {', '.join(silent)}")
    return found


def pages() -> dict[Path, str]:
    """Return the page with its table made anew, by its path.

    Raises ValueError if the page has no place for the table.
    """
    rows = "".join(_row(each) for each in values() if each.comment)
    return {PAGE: filled(PAGE, BEGIN, f"\n{HEAD}{rows}\n")}


def _below(node: Any, path: tuple[str, ...], lines: list[str], data: Any) -> Iterator[Value]:
    for key, below in node.value:
        here, given = (*path, key.value), data[key.value]
        comment = _comment(lines, key.start_mark.line)
        if isinstance(below, yaml.MappingNode) and not below.flow_style:
            yield Value(here, comment, is_group=True)
            yield from _below(below, here, lines, given)
        else:
            yield Value(here, comment, given)


def _comment(lines: list[str], line: int) -> str:
    """Return the comment that ends right above a line, as one line of text."""
    words: list[str] = []
    while line and lines[line - 1].strip().startswith("#"):
        line -= 1
        words.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(words)


def _row(value: Value) -> str:
    default = "" if value.is_group else f"`{_text(value.default)}`"
    name = f"**`{value.name}`**" if value.is_group else f"`{value.name}`"
    meaning = value.comment.replace("|", "\\|").replace("*", "\\*")
    return f"| {name} | {default} | {meaning} |\n"


def _text(default: Any) -> str:
    return default if isinstance(default, str) and default else json.dumps(default)
