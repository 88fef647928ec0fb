"""The HTML report as its readers see it. `make test-report` installs the browser."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.subjects import HOSTILE, RECORDED, expected, golden, hostile, saturated, searched
from triton_plugin.reading.cluster import read_file
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.report import overview
from triton_plugin.telling.report.as_html import as_html
from triton_plugin.telling.report.document import report

pytestmark = pytest.mark.chromium

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LUMINANCE = """(() => {
  const of = (name) => getComputedStyle(document.body)[name].match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (rgb) => 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
  return [light(of("backgroundColor")), light(of("color"))];
})()"""
SIDEWAYS = """[...document.querySelectorAll(".wide")].filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.querySelector("th").textContent)"""
TEXTS = '[...document.querySelectorAll("svg text")].map((text) => text.textContent)'
OUTSIDE = """[...document.querySelectorAll("figure svg")].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const each = text.getBoundingClientRect();
    return each.width > 0 && (each.left < box.left - 1 || each.right > box.right + 1 || each.bottom > box.bottom + 1);
  }).map((text) => text.textContent);
})"""
SMALLEST = """Math.min(...[...document.querySelectorAll("figure svg")].filter((svg) => svg.clientWidth > 0)
  .flatMap((svg) => [...svg.querySelectorAll("text")]
  .map((text) => parseFloat(getComputedStyle(text).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width)))"""


@cache
def html(file: Path | Callable[[], Subject]) -> str:
    """The report of an example's recorded run, or of the simulation; its plots take a second."""
    return as_html(report(read_file(str(file)) if isinstance(file, Path) else file()))


@pytest.fixture(
    params=[*RECORDED, searched, saturated],
    ids=lambda given: given.stem if isinstance(given, Path) else given.__name__,
)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """That report as a file."""
    file = tmp_path / "report.html"
    file.write_text(html(request.param), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1200, 400])
def test_it_fits_the_window_in_both_themes_without_a_complaint(browser: Browser, page: Path, width: int) -> None:
    for dark in (False, True):
        browser.open(page, width, dark)
        assert browser.complaints() == []
        assert browser.script(OVERFLOW) == 0, "the page itself does not scroll sideways"
        background, ink = browser.script(LUMINANCE)
        assert (background < 60 and ink > 180) if dark else (background > 200 and ink < 60)
        if width == 1200:
            assert browser.script(SIDEWAYS) == [], "every table is seen whole"
        assert browser.script(OUTSIDE) == [], "no text of a plot is cut"
        assert float(str(browser.script(SMALLEST))) >= 9, "pixels"


def test_plots_have_their_axes_with_units(browser: Browser, page: Path) -> None:
    browser.open(page)
    shown = set(browser.script(TEXTS))
    assert {
        "Client batch size (samples)",
        "Throughput (inferences/s)",
        "P99 latency (ms)",
        "Average latency (ms)",
        "Concurrent client requests",
        "Pareto line",
        "Network+server Send/recv (steps 2, 3, 6, 7)",
    } <= shown
    assert len(browser.text("figure[role=img][aria-label]")) >= 4


def test_tables_sort_by_what_they_hold(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.sort(0, "Inferences/second")
    rising = [float(each) for each in browser.column(0, "Inferences/second") if each]
    assert rising
    assert rising == sorted(rising)
    browser.sort(0, "Inferences/second")
    assert [float(each) for each in browser.column(0, "Inferences/second") if each] == rising[::-1]
    browser.sort(0, "Candidate")
    assert browser.column(0, "Candidate") == sorted(browser.column(0, "Candidate"))
    assert browser.script('document.querySelectorAll("th[aria-sort]").length') == 1


def test_it_prints_with_every_candidates_figures(browser: Browser, page: Path) -> None:
    browser.open(page, dark=True)
    printed = browser.pdf()
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 2
    assert browser.script('[...document.querySelectorAll("details")].every((each) => each.open)')


def test_nobodys_words_run(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(as_html(report(hostile())), encoding="utf-8")
    browser.open(file)
    assert browser.complaints() == []
    assert browser.chrome.title == "digits on Triton Inference Server"
    shown = HOSTILE.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert any(shown in text for text in browser.text("td.words"))
    assert any(shown in text for text in browser.text("summary")), "in a candidate's name too"


def all_objects(*others: Subject) -> str:
    """The page of the recorded runs, of one that stalled, and of others."""
    now = datetime(2026, 12, 1, tzinfo=UTC)
    subjects = [*(read_file(str(file)) for file in RECORDED), parse(*golden("saturated")), *others]
    body, _ = golden("no-candidate-meets-the-constraint")
    subjects.append(parse({**body, "status": expected("no-candidate-meets-the-constraint")}, None))
    rows = [overview.row(each, now, overview.file_name(each)) for each in subjects]
    return overview.as_html(overview.overview(rows, "all namespaces", now))


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_of_all_objects_fits_the_window_in_both_themes(browser: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "index.html"
    file.write_text(all_objects(), encoding="utf-8")
    for dark in (False, True):
        browser.open(file, width, dark)
        assert browser.complaints() == []
        assert browser.script(OVERFLOW) == 0, "the page itself does not scroll sideways"
        background, ink = browser.script(LUMINANCE)
        assert (background < 60 and ink > 180) if dark else (background > 200 and ink < 60)
        if width == 1200:
            assert browser.script(SIDEWAYS) == [], "the table is seen whole"


def test_the_page_of_all_objects_sorts_numbers_and_ages(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    file.write_text(all_objects(), encoding="utf-8")
    browser.open(file)
    for number, heading in ((4, "Inferences/second"), (6, "Accuracy"), (7, "Measured")):
        browser.sort(0, heading)
        cells = browser.script(
            f'[...document.querySelectorAll("tbody tr")].map((row) => row.cells[{number}])'
            ".map((cell) => cell.dataset.value ?? cell.textContent)"
        )
        found = [float(each) for each in cells if each]
        assert len(found) > 2
        assert found == sorted(found)
        assert cells[len(found) :] == [""] * (len(cells) - len(found)), "what has no figure is last"


def test_nobodys_words_run_in_the_page_of_all_objects(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    file.write_text(all_objects(hostile()), encoding="utf-8")
    browser.open(file)
    assert browser.complaints() == []
    assert browser.chrome.title == "TritonDeployments of all namespaces"
