"""`kubectl triton report -A`: the page of all objects, and the folder with a report of each."""

import copy
import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.report.subjects import HOSTILE, expected, golden
from triton_plugin.__main__ import main
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.report.overview import ObjectRow, as_html, file_name, overview, read, row

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def body(case: str, name: str, namespace: str = "vision") -> dict[str, Any]:
    found, _ = copy.deepcopy(golden(case))
    found["metadata"] |= {"name": name, "namespace": namespace}
    found["status"] = copy.deepcopy(expected(case))
    return found


def rows(html: str) -> list[list[str]]:
    """The cells of the table as text."""
    table = html.partition("<tbody>")[2].partition("</tbody>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", each, re.DOTALL) for each in table.split("</tr>")[:-1]]
    return [[unescape(re.sub(r"<[^>]*>", "", cell)) for cell in each] for each in cells]


class FakeCluster:
    """Holds objects of two namespaces, and notes for which of them the results were asked."""

    namespace = "vision"
    objects: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[str]] = []

    def __init__(self, *_: str | None) -> None:
        """There is always a cluster."""

    def deployments(self, *, everywhere: bool = False) -> list[dict[str, Any]]:
        return [each for each in self.objects if everywhere or each["metadata"]["namespace"] == self.namespace]

    def results(self, name: str, namespace: str = "") -> dict[str, Any] | None:
        self.asked.append(f"{namespace}/{name}")
        return {**golden("ready")[1], "metadata": {"name": f"{name}-results"}} if name == "digits" else None


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> type[FakeCluster]:
    objects = [
        body("ready", "digits"),
        body("no-candidate-meets-the-constraint", "broken"),
        body("ready", "ocr", "audio"),
    ]
    monkeypatch.setattr(FakeCluster, "objects", objects)
    monkeypatch.setattr(FakeCluster, "asked", [])
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    return FakeCluster


def test_all_objects_are_rows_by_namespace_and_name(
    cluster: type[FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "-A"]) == 0
    found = rows(capsys.readouterr().out)
    assert [each[:3] for each in found] == [
        ["audio", "ocr", "Ready"],
        ["vision", "broken", "Not ready"],
        ["vision", "digits", "Ready"],
    ]
    assert cluster.asked == [], "the status is enough for a row"


def test_a_namespaces_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--all"]) == 0
    html = capsys.readouterr().out
    assert [each[1] for each in rows(html)] == ["broken", "digits"]
    assert "TritonDeployments of namespace vision" in html


def test_a_folder_has_the_page_and_a_report_of_each_object(
    cluster: type[FakeCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "reports"
    assert main(["report", "-A", "--file", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        "audio.ocr.html",
        "vision.broken.html",
        "vision.digits.html",
    }
    index = (folder / "index.html").read_text()
    assert sorted(re.findall(r'<a href="([^"]*)">', index)) == sorted(
        path.name for path in folder.iterdir() if path.name != "index.html"
    )
    assert "Figures of every candidate" in (folder / "vision.digits.html").read_text(), "with its results"
    assert sorted(cluster.asked) == ["audio/ocr", "vision/broken", "vision/digits"]
    assert capsys.readouterr() == ("", f"wrote {folder / 'index.html'}\n")


def test_a_file_has_the_page_and_no_links(tmp_path: Path) -> None:
    file = tmp_path / "all.html"
    assert main(["report", "-A", "--file", str(file)]) == 0
    assert "<a " not in file.read_text()
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_is_there_is_one_whatever_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "reports.d"
    folder.mkdir()
    assert main(["report", "--all", "--file", str(folder)]) == 0
    assert (folder / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "csv"], "the page of all objects has no form csv"),
        (["--file", "all.md"], "all.md does not end with .html and is no folder"),
    ],
)
def test_the_page_of_all_objects_is_html(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "-A", *arguments]) == 1
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["digits", "-A"], ["--all", "-A"]])
def test_a_report_is_of_one_object_or_of_all(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    assert ended.value.code == 2
    assert re.search("is required|not allowed with", capsys.readouterr().err)


def test_a_row_has_the_figures_of_what_serves_and_their_age() -> None:
    found = row(parse(body("ready", "digits"), None), NOW)
    assert (found.state, found.reason, found.message) == ("Ready", "", "")
    assert (found.serves, found.form) == ("onnx-fp32", "onnx, fp32")
    status = body("ready", "digits")["status"]
    assert (found.throughput, found.accuracy) == (status["serving"]["throughput"], status["serving"]["accuracy"])
    assert found.metric == "accuracy"
    assert float(found.p99) > 0
    assert re.fullmatch(r"batch \d+, concurrency \d+( \(unstable\))?", found.load)
    assert found.age.endswith(" d")
    assert found.measured_at == status["performance"]["measuredAt"]


@pytest.mark.parametrize(
    ("measured_at", "age"),
    [
        ("2026-11-23T11:00:00Z", "3 d"),
        ("2026-11-26T07:00:00Z", "5 h"),
        ("2026-11-26T11:18:00Z", "42 min"),
        ("2026-11-26T11:59:59Z", "under 1 min"),
        ("2026-11-26T12:05:00Z", "under 1 min"),
        ("", ""),
    ],
)
def test_the_age_of_a_measurement(measured_at: str, age: str) -> None:
    found = body("ready", "digits")
    found["status"]["performance"]["measuredAt"] = measured_at
    assert row(parse(found, None), NOW).age == age


def test_why_an_object_is_not_ready_is_said_in_its_row() -> None:
    found = row(parse(body("no-candidate-meets-the-constraint", "broken"), None), NOW)
    assert (found.is_ready, found.is_stalled) == (False, True)
    assert found.reason
    assert found.message


def test_an_object_that_nobody_has_seen_is_pending() -> None:
    found = body("ready", "digits")
    del found["status"]
    assert row(parse(found, None), NOW).state == "Pending"
    again = body("ready", "digits")
    again["metadata"]["generation"] += 1
    assert (row(parse(again, None), NOW).state, row(parse(again, None), NOW).is_ready) == ("Pending", False)


def test_an_object_that_this_version_cannot_read_has_a_row_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    strange = body("ready", "strange")
    strange["spec"]["models"] = [{"name": "a", "format": "of-tomorrow"}]
    FakeCluster.objects.append(strange)
    assert main(["report", "--all"]) == 0
    (found,) = [each for each in rows(capsys.readouterr().out) if each[1] == "strange"]
    assert found[2] == "Unreadable"
    assert "this kubectl-triton cannot read TritonDeployment strange" in found[-1]


def test_nobodys_words_are_markup_and_long_ones_are_cut() -> None:
    strange = body("no-candidate-meets-the-constraint", HOSTILE)
    for condition in strange["status"]["conditions"]:
        condition["message"] = HOSTILE * 100
    subject = read(strange)
    assert isinstance(subject, Subject)
    html = as_html(overview([row(subject, NOW), ObjectRow(HOSTILE, HOSTILE, HOSTILE, is_ready=False)], HOSTILE, NOW))
    assert html.count("<script>") == 1
    assert "{{" in html, "what looks like a template is text"
    assert "49" not in html.partition("</style>")[2]
    assert max(len(cell) for each in rows(html) for cell in each) < 400


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "a.b", "", "A", "a\n", HOSTILE])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    subject = parse(body("ready", name), None)
    assert file_name(subject) == ""
    FakeCluster.objects[:] = [body("ready", name)]
    assert main(["report", "-A", "--file", str(tmp_path / "reports")]) == 0
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["index.html"]
    assert "<a " not in (tmp_path / "reports/index.html").read_text()


def test_a_namespace_without_objects_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    FakeCluster.objects.clear()
    assert main(["report", "--all"]) == 0
    html = capsys.readouterr().out
    assert rows(html) == []
    assert "There are none." in html
