"""Checks what was built: every link of every page leads to something, and no Markdown is left in a page's words."""

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MARKDOWN = re.compile(r"```|(?<=\n)(?:\d+\.|[-*|]) [^\n]*")
"""A fence, or the start of an item or of a row that is a line of a paragraph."""
CODE = ("code", "pre", "script", "style")


class _Page(HTMLParser):
    """Collects a page's links, anchors, and the words of its paragraphs without code."""

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[str] = []
        self.inside: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a tag leads to, and by which name it is found."""
        if tag == "p":
            self.paragraphs.append("")
        if tag in ("p", *CODE):
            self.inside.append(tag)
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[name] for name in ("href", "src", "srcset") if given.get(name)]

    def handle_endtag(self, tag: str) -> None:
        """Note where a paragraph or a piece of code ends."""
        if tag in self.inside:
            del self.inside[len(self.inside) - 1 - self.inside[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        """Note words of a paragraph."""
        if self.inside and self.inside[-1] == "p":
            self.paragraphs[-1] += data


def faults(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and each piece of Markdown among words, after its page."""
    pages = {file: _read(file) for file in site.rglob("*.html")}
    return [f"{file.relative_to(site)}: {fault}" for file in sorted(pages) for fault in _of_page(site, file, pages)]


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _of_page(site: Path, file: Path, pages: Mapping[Path, _Page]) -> Iterator[str]:
    for paragraph in pages[file].paragraphs:
        if left := MARKDOWN.search(paragraph):
            yield f"{left[0]!r} is Markdown that the site shows as text"
    for link in dict.fromkeys(pages[file].links):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        path = unquote(parts.path)
        target = (site / path.lstrip("/") if path.startswith("/") else file.parent / path).resolve() if path else file
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            yield f"{link} leads to nothing"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{link} leads to no heading"
