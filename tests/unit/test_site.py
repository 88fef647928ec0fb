"""The pages of the site, and the check of its links."""

from pathlib import Path

import pytest

from hack.site.build import INDEX, navigation
from hack.site.check import faults
from hack.site.pages import converted, place

PAGES = {"README.md", "docs/README.md", "docs/install.md", "docs/api.md", "charts/chart/README.md", "docs/a.svg"}


def site(text: str, path: str = "docs/install.md", repository: str = "") -> str:
    return converted(path, text, PAGES, repository)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("README.md", "index.md"),
        ("docs/README.md", "pages.md"),
        ("docs/install.md", "install.md"),
        ("docs/decisions/README.md", "decisions/index.md"),
        ("charts/chart/README.md", "charts/chart/index.md"),
        ("CHANGELOG.md", "CHANGELOG.md"),
    ],
)
def test_each_page_has_a_place(path: str, where: str) -> None:
    assert place(path) == where


@pytest.mark.parametrize(
    ("path", "target", "link"),
    [
        ("docs/install.md", "api.md#spec", "[x](api.md#spec)"),
        ("docs/install.md", "../README.md", "[x](index.md)"),
        ("docs/install.md", "#here", "[x](#here)"),
        ("docs/install.md", "https://a.example", "[x](https://a.example)"),
        ("docs/install.md", "../charts/chart", "[x](charts/chart/index.md)"),
        ("README.md", "docs/install.md", "[x](install.md)"),
        ("charts/chart/README.md", "../../docs/api.md", "[x](../../api.md)"),
        ("docs/install.md", "../Makefile", "x"),
    ],
)
def test_links_lead_to_the_pages_of_the_site(path: str, target: str, link: str) -> None:
    assert site(f"[x]({target})\n", path) == f"{link}\n"


def test_files_that_are_no_pages_are_in_the_repository_if_it_has_an_address() -> None:
    assert site("[x](../Makefile)\n", repository="https://a.example/tree") == "[x](https://a.example/tree/Makefile)\n"


def test_pictures_of_html_are_found() -> None:
    assert site('<img src="docs/a.svg"> <source srcset="docs/a.svg">\n', "README.md") == (
        '<img src="a.svg"> <source srcset="a.svg">\n'
    )


def test_a_link_may_break_over_two_lines_and_code_is_left_alone() -> None:
    assert site("[a\nb](../Makefile) `[c](../Makefile)`\n\n```\n[d](../Makefile)\n```\n") == (
        "a\nb `[c](../Makefile)`\n\n```\n[d](../Makefile)\n```\n"
    )


def test_anchors_are_those_of_github() -> None:
    assert site("# `get_model`: models[].x\n\n## A\n\n## A\n").splitlines() == [
        "# `get_model`: models[].x { #get_model-modelsx }",
        "",
        "## A { #a }",
        "",
        "## A { #a-1 }",
    ]


def test_what_python_markdown_reads_in_another_way_is_rewritten() -> None:
    assert site("| `a\\|<b>` | c |\n") == "| <code>a&#124;&lt;b></code> | c |\n"
    assert site("Words:\n- one\n- two\n") == "Words:\n\n- one\n- two\n"
    assert site("1. one\n   ```\n   code\n     more\n   ```\n2. two\n") == (
        "1. one\n\n    ```\n    code\n      more\n    ```\n\n2. two\n"
    )


def test_every_page_of_the_index_is_in_the_navigation_once() -> None:
    pages = ["docs/kind.md", "docs/install.md", "docs/unlisted.md"]
    found = navigation(INDEX.read_text(encoding="utf-8"), pages)
    assert {"Try and evaluate": ["kind.md"]} in found
    assert {"Install": ["install.md"]} in found
    assert found[-1] == {"Further pages": ["unlisted.md"]}


def test_a_link_that_leads_nowhere_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/#x">1</a><a href="a/#y">2</a><img src="b.png"><a href="https://c">3</a>'
    )
    (tmp_path / "a/index.html").write_text('<h1 id="x">A</h1><a href="../">4</a><a href="/a/">5</a>')
    assert faults(tmp_path) == ["index.html: a/#y leads to no heading", "index.html: b.png leads to nothing"]


def test_what_belongs_to_an_item_stays_in_it() -> None:
    text = (
        "1. one\n   more\n\n   ```\n   code\n   ```\n\n   words\n2. two\n   ```\n   code\n   ```\n3. three\n\nafter\n"
    )
    assert site(text).splitlines() == [
        "1. one",
        "    more",
        "",
        "    ```",
        "    code",
        "    ```",
        "",
        "    words",
        "",
        "2. two",
        "",
        "    ```",
        "    code",
        "    ```",
        "",
        "3. three",
        "",
        "after",
    ]
