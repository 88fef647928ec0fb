"""The plugin's copy of the advice in docs/troubleshooting.md."""

import json
import re
from pathlib import Path

from triton_plugin.telling.advice import CHANGE, EXPLAIN, EXPLANATION, NEW_VERSION

PAGE = Path(__file__).parents[2] / "docs/troubleshooting.md"
COPY = Path(__file__).parents[2] / "plugin/triton_plugin/telling/advice.json"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
PAGE_LINK = r"\[[^\]]+\]\((?!\w+://)[^)]+\)"
FURTHER = re.compile(rf" \({PAGE_LINK}\)|[:;] {PAGE_LINK}(?=\.)| \[More\]\([^)]+\)\.")
"""A link to a page that only says where there is more: who installed the wheel does not have the page."""
SPELT_OUT = {
    "retry": "run kubectl triton retry NAME",
    "tell the new version": "set a new spec.source.version",
}
"""What the page says once, below these links, and the plugin in each row."""


def advice() -> dict[str, str]:
    """Return what to do about each reason, as plain text without pages; another link becomes its words and its URL."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {reason: _plain(text) for reason, text in sorted(rows)}


def _plain(text: str) -> str:
    """Return a cell's text. The plugin puts the object's namespace behind its name, so the placeholder goes."""
    text = LINK.sub(_words, FURTHER.sub("", text)).replace("`", "").replace(" --namespace NAMESPACE", "")
    return text.replace(EXPLAIN, EXPLANATION).replace(NEW_VERSION, CHANGE)


def _words(link: re.Match[str]) -> str:
    return SPELT_OUT.get(link[1]) or (f"{link[1]} ({link[2]})" if "://" in link[2] else link[1])


def pages() -> dict[Path, str]:
    """Return the file by its path."""
    return {COPY: json.dumps(advice(), indent=2, ensure_ascii=False) + "\n"}
