"""Checks what was built: every link of every page leads to something, and no Markdown is left in a page's words."""

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MARKDOWN = re.compile(r"```|(?<=\n)(?:\d+\.|[-*|]) [^\n]*")
"""A fence, or the start of an item or of a row that is a line of a paragraph."""
LONG_CODE = re.compile(r".*\n.*\n.*", re.DOTALL)
"""Inline code of three lines: a fence within a paragraph becomes such code. A span of two lines is a wrapped one."""
WORDS = ("p", "li", "td", "th")
CODE = ("code", "pre", "script", "style")


class _Page(HTMLParser):
    """Collects a page's links, anchors, words without code, and inline code."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.words: list[str] = []
        self.inline: list[str] = []
        self.inside: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a tag leads to, by which name it is found, and what is inside of it."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[name] for name in ("href", "src", "srcset") if given.get(name)]
        if tag in (*WORDS, *CODE):
            self.inside.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        """Keep the words of a paragraph, an item or a cell, or a piece of code, once it ends."""
        if not self.inside or self.inside[-1][0] != tag:
            return
        _, pieces = self.inside.pop()
        if tag in WORDS:
            self.words.append("".join(pieces))
        elif tag == "code" and not any(outer == "pre" for outer, _ in self.inside):
            self.inline.append("".join(pieces))

    def handle_data(self, data: str) -> None:
        """Note words where they belong."""
        if self.inside:
            self.inside[-1][1].append(data)


def faults(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and each piece of Markdown among words, after its page."""
    pages = {file: _read(file) for file in site.rglob("*.html")}
    return [f"{file.relative_to(site)}: {fault}" for file in sorted(pages) for fault in _of_page(site, file, pages)]


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _of_page(site: Path, file: Path, pages: Mapping[Path, _Page]) -> Iterator[str]:
    page = pages[file]
    found = [MARKDOWN.search(words) for words in page.words] + [LONG_CODE.fullmatch(code) for code in page.inline]
    for left in filter(None, found):
        yield f"{left[0]!r} is Markdown that the site shows as text"
    for link in dict.fromkeys(page.links):
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
