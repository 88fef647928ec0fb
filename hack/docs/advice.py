"""Writes the plugin's copy of the advice in docs/troubleshooting.md: `python3 -m hack.docs.advice`."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/troubleshooting.md"
COPY = Path(__file__).parents[2] / "plugin/triton_plugin/advice.json"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def advice() -> dict[str, str]:
    """What to do by reason, as plain text; links become their words and, where it is another page, its name."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {reason: _plain(text) for reason, text in sorted(rows)}


def _plain(text: str) -> str:
    return LINK.sub(lambda link: f"{link[1]} (docs/{link[2].partition('#')[0]})", text).replace("`", "")


def page() -> str:
    """The whole file."""
    return json.dumps(advice(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    COPY.write_text(page(), encoding="utf-8")
