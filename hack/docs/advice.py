"""The plugin's copy of the advice in docs/troubleshooting.md."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/troubleshooting.md"
COPY = Path(__file__).parents[2] / "plugin/triton_plugin/advice.json"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def advice() -> dict[str, str]:
    """Return what to do about each reason, as plain text; a link becomes its words and its page or URL."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {reason: _plain(text) for reason, text in sorted(rows)}


def _plain(text: str) -> str:
    return LINK.sub(lambda link: f"{link[1]} ({_target(link[2])})", text).replace("`", "")


def _target(link: str) -> str:
    """Return the URL, or the page without its section."""
    return link if "://" in link else f"docs/{link.partition('#')[0]}"


def pages() -> dict[Path, str]:
    """Return the file by its path."""
    return {COPY: json.dumps(advice(), indent=2, ensure_ascii=False) + "\n"}
