import re
from pathlib import Path

import pytest

from hack.docs import conversions as generate_conversions
from hack.docs import examples as generate_examples
from hack.docs import reasons as generate_reasons
from triton_converters.contract.reasons import Reason

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("manifests/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A path of this tree in backticks: a top-level folder, a slash, and no placeholder.
FOLDERS = "operator|converters|hack|demo|examples|bench|docs|images|manifests|charts|crds|tests"
PATH = re.compile(rf"`((?:{FOLDERS})/[A-Za-z0-9_./-]*)`")


def anchor(heading: str) -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_this_tree_resolves(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}, which does not exist"
        assert not fragment or fragment in anchors(linked), f"{page.name} links to {target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_named_in_backticks_exists(page: Path) -> None:
    named = set(PATH.findall(page.read_text(encoding="utf-8")))
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_the_readme_is_short_and_names_both_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 170
    assert {"make demo", "make test"} <= set(re.findall(r"make (?:demo|test)\b", text))


def test_the_page_of_reasons_is_what_the_generator_writes() -> None:
    assert generate_reasons.PAGE.read_text(encoding="utf-8") == generate_reasons.page()


def test_the_tables_of_conversions_are_what_the_generator_writes() -> None:
    text = generate_conversions.PAGE.read_text(encoding="utf-8")
    assert generate_conversions.BEGIN in text
    assert text == generate_conversions.page(text)


def test_troubleshooting_names_only_reasons_that_exist() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([A-Z][A-Za-z]+)`", text, re.MULTILINE))
    assert named
    assert named <= {str(reason) for reason in Reason}


@pytest.mark.parametrize("name", generate_examples.names())
def test_the_tables_of_an_example_are_those_of_its_recorded_run(name: str) -> None:
    assert (generate_examples.PAGES / f"{name}.md").read_text(encoding="utf-8") == generate_examples.page(name)
