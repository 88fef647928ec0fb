"""The pages of the site, and the check of its links."""

from pathlib import Path
from typing import Any

import pytest

from hack.site.build import INDEX, navigation, texts
from hack.site.check import faults
from hack.site.pages import converted, place

PAGES = {
    *("README.md", "docs/README.md", "docs/install.md", "docs/api.md", "charts/chart/README.md", "docs/a.svg"),
    "charts/chart/a.yaml",
}


def site(text: str, path: str = "docs/install.md", repository: str = "") -> str:
    return converted(path, text, PAGES, repository)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("README.md", "index.md"),
        ("docs/README.md", "pages.md"),
        ("docs/install.md", "install.md"),
        ("charts/chart/README.md", "charts/chart.md"),
        ("manifests/samples/soak.yaml", "files/manifests/samples/soak.yaml"),
        ("docs/a.svg", "a.svg"),
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
        ("docs/install.md", "../charts/chart", "[x](charts/chart.md)"),
        ("README.md", "docs/install.md", "[x](install.md)"),
        ("charts/chart/README.md", "../../docs/api.md", "[x](../api.md)"),
        ("docs/install.md", "../charts/chart/a.yaml", "[x](files/charts/chart/a.yaml)"),
        ("docs/install.md", "../Makefile", "x"),
    ],
)
def test_links_lead_to_the_pages_of_the_site(path: str, target: str, link: str) -> None:
    assert site(f"[x]({target})\n", path) == f"{link}\n"


def test_files_that_are_no_pages_are_in_the_repository_if_it_has_an_address() -> None:
    assert site("[x](../Makefile)\n", repository="https://a.example/tree") == "[x](https://a.example/tree/Makefile)\n"


def test_a_page_that_is_named_as_in_a_comment_of_a_sample_is_linked() -> None:
    text = "| it (docs/api.md#spec) and `docs/api.md`, docs/none.md, [docs/api.md](api.md) |\n"
    assert site(text) == (
        "| it ([docs/api.md#spec](api.md#spec)) and `docs/api.md`, docs/none.md, [docs/api.md](api.md) |\n"
    )


def test_text_files_that_a_page_links_to_are_copied_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.py", "c.lua", "d.json", "e.bin", "docs/x.md", "folder/f.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "large.json").write_text("x" * (64 * 1024 + 1))
    (tmp_path / "link.yaml").symlink_to(tmp_path / "a.yaml")
    names = ("a.yaml", "b.py", "c.lua#L1", "d.json", "e.bin", "large.json", "link.yaml", "none.yaml", "folder")
    text = " ".join(f"[x](../{name})" for name in names) + " [x](../../outside.yaml) `[x](../folder/f.yaml)`"
    assert texts(tmp_path, {"docs/x.md": text}) == ["a.yaml", "b.py", "c.lua", "d.json"]


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


TREE = [
    *(
        "docs/kind.md",
        "docs/install.md",
        "charts/triton-operator/README.md",
        "docs/unlisted.md",
        "docs/architecture.md",
    ),
    *("docs/examples/resnet50-pyt.md", "docs/examples/dlrm-hps.md", "CONTRIBUTING.md", "README.md", "docs/README.md"),
]


def pages_of(entries: Any) -> list[str]:
    """All pages of a navigation, in its order."""
    if isinstance(entries, str):
        return [entries]
    return [page for each in (entries.values() if isinstance(entries, dict) else entries) for page in pages_of(each)]


def test_every_page_is_in_the_navigation_once_in_the_order_of_the_index() -> None:
    found = navigation(INDEX.read_text(encoding="utf-8"), TREE)
    assert {"Evaluate": ["kind.md"]} in found
    assert {"First model": ["examples/resnet50-pyt.md", "examples/dlrm-hps.md"]} in found
    assert {"Operate": ["install.md"]} in found
    assert {"Look up": ["charts/triton-operator.md"]} in found
    assert {"Extend": ["CONTRIBUTING.md", "architecture.md"]} in found
    assert found[-1] == {"Further pages": ["unlisted.md"]}
    assert sorted(pages_of(found)) == sorted({place(each) for each in TREE})


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


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p>words\n```\ncode</p>", "```"),
        ("<p>one\n2. two</p>", "2. two"),
        ("<p>one\n- two</p>", "- two"),
        ("<p>one\n| a | b |</p>", "| a | b |"),
        ("<ol><li>one\n2. two</li></ol>", "2. two"),
        ("<ul><li><p>one</p><ul><li>a</li></ul>two\n- b</li></ul>", "- b"),
        ("<p>words <code>code\nin three\nlines</code></p>", "code\nin three\nlines"),
        ("<p>words <code>code in\ntwo lines</code></p>", ""),
        ("<pre><code>```\n2. two</code></pre><p>one <code>```</code>\nand 2. two</p><ol><li>one</li></ol>", ""),
    ],
)
def test_markdown_that_was_not_read_as_such_is_a_fault(tmp_path: Path, body: str, fault: str) -> None:
    (tmp_path / "index.html").write_text(body)
    assert faults(tmp_path) == ([f"index.html: {fault!r} is Markdown that the site shows as text"] if fault else [])
