"""The words that users and strangers read: plain, the field's own, and one for each thing.

A failure names the file, the line and the phrase. The glossary: active and target revision, candidate, record,
measurement, sweep, gate, reference, repository claim, stage.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import quick_yaml
from triton_converters.contract.reasons import Reason

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("operator", "converters", "plugin", "local")
ROOMS = (*SHIPPED, "hack", "demo", "examples", "bench")
WRITTEN = ("*.md", "changelog.d/*.md", "docs/**/*.md", "manifests/**/*.md", "charts/**/*.md")
PAGES = sorted(page for pattern in WRITTEN for page in ROOT.glob(pattern))
"""The fragments of the changelog are among them: a release makes them a part of a page."""
CODE = re.compile(r"^```.*?^```|<!--.*?-->|`[^`\n]*`", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- table: .*?<!-- end -->", re.DOTALL)
"""Tables of recorded runs: what was said then."""

CLUMSY_STARTS = ("Of ", "By ", "As ")
HISTORY = re.compile(
    r"\b(?:the|this|two|five) seeds?'?\b|\bseeds'|\bseeds? 00\d|\b(?:five|source) documents?\b", re.IGNORECASE
)
"""How the project came to be: it means nothing to its readers. A seed of random numbers is no such word."""
BANNED = {
    r"\bwhat serves\b": "the active revision",
    r"\b(?:the|each) one that serves\b": "the active revision",
    r"\bbeside\b": "next to, besides",
    r"\bof (?:its|their|one's) own\b": "its own, their own",
    r"\bwhoever\b": "the user, the client, ...",
    r"\bthere is asked\b": "the active voice",
    r"\b(?:is|are) looked for again\b": "the operator looks again",
    r"\bnothing is left to do for\b": "the active voice",
    r"\bwhere \S+ is (?:not )?set\b": "if X is set",
}


class Text(NamedTuple):
    """Words and where they stand."""

    place: str
    words: str


def faults(texts: Iterator[Text]) -> list[str]:
    """One line for each banned phrase: where it is, the phrase, and what to write in its place."""
    return [
        f"{text.place}: {found.group()!r}; write {better}"
        for text in texts
        for pattern, better in {**BANNED, HISTORY.pattern: "what it is to a reader"}.items()
        for found in re.finditer(pattern, text.words, re.IGNORECASE)
    ]


def sources(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    """Every Python file of these rooms, parsed."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def documentation(tree: ast.Module) -> Iterator[ast.Constant]:
    """Docstrings of modules, classes and functions, and the strings below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def messages(*rooms: str) -> Iterator[Text]:
    """Strings of more than a word that are no docstrings: what programs print, raise and record."""
    for path, tree in sources(*rooms):
        documented = {id(each) for each in documentation(tree)}
        strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in strings:
            if id(node) not in documented and " " in str(node.value).strip():
                yield Text(f"{path}:{node.lineno}", str(node.value))


def descriptions(schema: dict[str, Any], path: str) -> Iterator[Text]:
    """The descriptions of a schema, by field: what `kubectl explain` shows."""
    for name, value in schema.items():
        if name == "description" and isinstance(value, str):
            yield Text(path, value)
        elif isinstance(value, dict):
            yield from descriptions(value, path if name in ("properties", "items") else f"{path}.{name}")


def prose(page: Path) -> Iterator[Text]:
    """A page's lines, without code and without tables of recorded runs."""
    text = page.read_text(encoding="utf-8")
    for pattern in (GENERATED, CODE):
        text = pattern.sub(lambda found: "\n" * found.group().count("\n"), text)
    for number, line in enumerate(text.splitlines(), start=1):
        yield Text(f"{page.relative_to(ROOT)}:{number}", line)


@pytest.mark.parametrize("room", ROOMS)
def test_a_docstring_says_what_a_thing_is_or_does(room: str) -> None:
    clumsy = [
        f"{path}:{each.lineno}: {str(each.value).splitlines()[0]}"
        for path, tree in sources(room)
        for each in documentation(tree)
        if str(each.value).startswith(CLUMSY_STARTS)
    ]
    assert clumsy == [], "\n" + "\n".join(clumsy)


def test_the_descriptions_of_the_api_use_the_glossary() -> None:
    (file,) = (ROOT / "crds").glob("*.yaml")
    schema = quick_yaml.load(file.read_text(encoding="utf-8"))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found = faults(descriptions(schema, "crds"))
    assert found == [], "\n" + "\n".join(found)


def test_the_sentences_of_the_reasons_use_the_glossary() -> None:
    found = faults(Text(f"Reason {reason}", reason.doc) for reason in Reason)
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize("room", SHIPPED)
def test_messages_use_the_glossary(room: str) -> None:
    found = faults(messages(room))
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_glossary(page: Path) -> None:
    found = faults(prose(page))
    assert found == [], "\n" + "\n".join(found)


def test_no_file_speaks_of_the_projects_own_history() -> None:
    files = [ROOT / "Makefile", ROOT / "pyproject.toml"]
    for room in (*ROOMS, "manifests", "charts", "images", "tests"):
        files += [path for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".yaml", ".html", ".tpl", ".txt")]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r}"
        for path in files
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (match := HISTORY.search(line))
    ]
    assert found == [], "\n" + "\n".join(found)


def test_a_fault_is_named_with_its_place_and_a_seed_of_random_numbers_is_none() -> None:
    assert faults(iter([Text("a.py:3", "This is what serves.")])) == [
        "a.py:3: 'what serves'; write the active revision"
    ]
    assert faults(iter([Text("a.py:4", "Weights are drawn from a fixed seed; besides, see seed=3.")])) == []
    assert HISTORY.search("beside the seed's A100") is not None
