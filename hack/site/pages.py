"""From Markdown as GitHub renders it to Markdown as Zensical does. Pure.

Zensical reads Python-Markdown: anchors, lists after a paragraph, fences in lists and bars in code of tables differ from
GitHub's. Links to files that are no pages lead to their copies, if the site has any, or to the repository, or are plain
text.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.])docs/[\w/-]+\.md(?:#[\w-]+)?")
"""A page as comments of manifests and docstrings name it; they become texts of pages."""
LINK_OR_MENTION = re.compile(f"{LINK.pattern}|{MENTION.pattern}")
COPIED = (".yaml", ".py", ".lua", ".json")
"""Text files of the tree that a site without a repository has copies of."""
SOURCE_ATTRIBUTE = re.compile(r'((?:src|srcset)=")([^":]+)(")')
HEADING = re.compile(r"^(#+) (.*)$")
ITEM = re.compile(r"^([-*]|\d+\.) ")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
HIDDEN = re.compile(r"\0(\d+)\0")
ABSOLUTE = re.compile(r"[a-z]+:|#")
INDENT = 4
"""Spaces before what belongs to an item of a list; GitHub takes two or three."""


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def place(path: str) -> str:
    """Return where a file of the tree is in the site: pages of docs/ at its root, the README as its front page.

    Copies of other files are below `files/`.
    """
    if path == "README.md":
        return "index.md"
    if path == "docs/README.md":
        return "pages.md"
    if path.endswith(COPIED):
        return f"files/{path}"
    # A README is its folder's page. As `index.md` it would be the page of a whole section of the navigation.
    return re.sub(r"/README\.md$", ".md", path.removeprefix("docs/"))


def linked(path: str, text: str) -> set[str]:
    """Return the paths in the tree that a page links to; some may not exist, or be outside of it."""
    bare = CODE.sub("", FENCE.sub("", text))
    return {_path(path, found[3].partition("#")[0]) for found in LINK.finditer(bare) if not ABSOLUTE.match(found[3])}


def converted(path: str, text: str, pages: Collection[str], repository: str) -> str:
    """Return a page's text for the site.

    ``path``: of the page in the tree. ``pages``: paths of all pages, pictures and copied files of the site.
    ``repository``: address of the tree's files, without a slash at its end; empty: it has none.
    """
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[0])
        return f"\0{len(hidden) - 1}\0"

    def relinked(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if target is None:
            page, mark, fragment = found[0].partition("#")
            return f"[{found[0]}]({_between(path, page)}{mark}{fragment})" if page in pages else found[0]
        new = _target(path, target, pages, repository)
        return f"{picture}[{words}]({new})" if new else words

    def resourced(found: re.Match[str]) -> str:
        return f"{found[1]}{_target(path, found[2], pages, repository)}{found[3]}"

    bare = CODE.sub(hide, FENCE.sub(hide, text))
    lines = _lines(SOURCE_ATTRIBUTE.sub(resourced, LINK_OR_MENTION.sub(relinked, bare)), hidden)
    return "\n".join(lines) + "\n"


def _target(path: str, target: str, pages: Collection[str], repository: str) -> str:
    """Return where a link of a page leads to in the site; empty: nowhere."""
    if ABSOLUTE.match(target):
        return target
    file, mark, fragment = target.partition("#")
    found = _path(path, file)
    found = found if found in pages else f"{found}/README.md" if f"{found}/README.md" in pages else ""
    if found:
        return _between(path, found) + mark + fragment
    return f"{repository}/{_path(path, file)}" if repository else ""


def _path(page: str, target: str) -> str:
    """Return the path in the tree of what a page links to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def _between(page: str, target: str) -> str:
    """Return the link from a page to a page or file of the site, both by their paths in the tree."""
    return posixpath.relpath(place(target), posixpath.dirname(place(page)) or ".")


def _lines(text: str, hidden: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a page, with the anchors, blank lines and indents that Python-Markdown needs.

    ``hidden``: the code that the numbers between NUL characters stand for.
    """
    width, before, is_loose = 0, "", False
    seen: dict[str, int] = {}
    for line in text.splitlines():
        shown = HIDDEN.sub(lambda found: hidden[int(found[1])], line)
        item = ITEM.match(line)
        if heading := HEADING.match(shown):
            name = anchor(heading[2])
            seen[name] = seen.get(name, -1) + 1
            yield f"{shown} {{ #{name}{f'-{seen[name]}' if seen[name] else ''} }}"
        elif line.startswith("|"):
            yield HIDDEN.sub(lambda found: _without_bars(hidden[int(found[1])]), line)
        elif "\n" in shown:
            if before and shown.startswith(" "):
                yield ""
            yield from _indented(shown, width)
            is_loose = True
        else:
            if item and before and (not width or is_loose):
                yield ""
            yield " " * INDENT + shown.lstrip() if width and line.startswith(" ") else shown
        if item:
            width, is_loose = len(item[0]), False
        elif not line:
            is_loose = True
        elif not line.startswith((" ", "\0")) and not before:
            width = 0
        before = line


def _without_bars(code: str) -> str:
    """Return the code of a table's cell without bars: Python-Markdown shows the backslash before one."""
    if "\\|" not in code:
        return code
    text = code.strip("`").replace("&", "&amp;").replace("<", "&lt;").replace("\\|", "&#124;")
    return f"<code>{text}</code>"


def _indented(fence: str, width: int) -> Iterator[str]:
    """Yield the lines of a fence, those in an item of a list further to the right."""
    lines = fence.splitlines()
    is_inside = width > 0 and lines[0].startswith(" ")
    for line in lines:
        yield " " * INDENT + line[width:] if is_inside and line.strip() else line
