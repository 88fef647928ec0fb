"""What the clean stage removes from a claim, and what it leaves."""

import os
import time
from pathlib import Path

import pytest

from triton_converters.clean import run
from triton_converters.request import CleanRequest
from triton_converters.result import CleanResult, ConvertResult, Environment, Outcome, SearchResult, SourceResult

HOUR = 3600
REQUEST = CleanRequest("key", 600, 24 * HOUR)
DIGEST = "d" * 64


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A claim with one marked and one unmarked directory of each kind, all of them old."""
    root = tmp_path / "claim"
    for name in ("marked", "unmarked"):
        for parent in ("references", "revisions", "measurements", "searches"):
            (root / parent / name).mkdir(parents=True)
        candidate = root / "candidates" / f"of-{name}" / "model.onnx"
        candidate.parent.mkdir(parents=True)
        candidate.write_text("weights")
        os.link(candidate, root / "revisions" / name / "model.onnx")
    (root / "sources" / DIGEST).mkdir(parents=True)
    (root / "sources" / ("e" * 64)).mkdir()
    for directory in root.glob("*/*"):
        aged(directory, 2 * HOUR)
    return root


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """The records of two TritonDeployments, as the kubelet mounts them."""
    marks = tmp_path / "marks"
    records = {
        "mine/source.s": Outcome("source", "s", SourceResult(DIGEST, 1, 1)).to_json(),
        "mine/convert.marked": Outcome("convert", "marked", ConvertResult("e", 1, (), 1.0, (), "", 0.0)).to_json(),
        "mine/finished.convert.marked": "2026-11-21T12:00:00Z",
        "theirs/search.part": Outcome("search", "part", SEARCHED).to_json(),
        "theirs/measure.marked": '{"stage": "measure", "key": "marked", "result": ' + MEASURED + "}",
        "theirs/reference.marked": '{"stage": "reference", "key": "marked", "result": ' + REFERRED + "}",
    }
    for name, text in records.items():
        path = marks / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (marks / "mine" / "..data").mkdir()
    return marks


SEARCHED = SearchResult("marked", (), "Converged", 1, 1.0, Environment("", "", "", "", "", ()))
MEASURED = (
    '{"online": [], "environment": {"server_version": "", "device": "", "gpu_product": "",'
    ' "tensorrt_version": "", "cpu": "", "perf_analyzer": []}}'
)
REFERRED = (
    '{"signature": {"inputs": [], "outputs": [], "max_batch_size": 1}, "samples": 1, "batches": 1, "seconds": 1.0}'
)


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def names(root: Path) -> set[str]:
    return {f"{path.parent.name}/{path.name[:12]}" for path in root.glob("*/*")}


def test_what_is_marked_stays_and_what_is_not_goes(root: Path, marks: Path) -> None:
    parents = ("references", "revisions", "measurements", "searches")
    kept = {f"{parent}/marked" for parent in parents} | {"candidates/of-marked"}
    assert run(REQUEST, root, marks) == CleanResult(directories=6, temporary=0)
    assert names(root) == kept | {f"sources/{DIGEST[:12]}"}
    assert (root / "revisions" / "marked" / "model.onnx").read_text() == "weights"
    assert run(REQUEST, root, marks) == CleanResult(0, 0)


def test_what_was_used_just_now_stays(root: Path, marks: Path) -> None:
    aged(root / "revisions" / "unmarked", 10)
    run(REQUEST, root, marks)
    assert {"revisions/unmarked", "candidates/of-unmarked"} <= names(root), "with the file that it links to"


def test_what_is_used_while_it_is_removed_comes_back(root: Path, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def used_at_the_last_moment(source: Path, target: Path) -> None:
        if source.name == "unmarked":
            os.utime(source)
        rename(source, target)

    monkeypatch.setattr(os, "rename", used_at_the_last_moment)
    run(REQUEST, root, marks)
    assert {"references/unmarked", "revisions/unmarked", "measurements/unmarked"} <= names(root)


def test_what_a_killed_job_left_goes_after_a_day(root: Path, marks: Path) -> None:
    for name, age in ((".tmp-old", 25 * HOUR), (".tmp-running", 2 * HOUR)):
        (root / "revisions" / name).mkdir()
        aged(root / "revisions" / name, age)
    assert run(REQUEST, root, marks).temporary == 1
    assert "revisions/.tmp-running" in names(root)
    assert "revisions/.tmp-old" not in names(root)


def test_an_empty_claim_is_fine(tmp_path: Path) -> None:
    assert run(REQUEST, tmp_path / "nothing", tmp_path / "marks") == CleanResult(0, 0)
