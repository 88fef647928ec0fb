"""The operator's directory on a claim: who makes it, and whose Jobs refuse it."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from triton_converters import __main__ as program
from triton_converters.claim_store import root
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest, SourceRequest
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

SOURCE = SourceRequest("0123456789abcdef", "pvc://models", "", "")
REFER = ReferenceRequest(
    SOURCE.key, "d" * 64, ModelCode("pyt", Entrypoint("m.py", {}), 1), Entrypoint("d.py", {}), 8, False
)


@pytest.fixture
def claim(mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A claim without a directory of ours, and a source."""
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "message"))
    (mount / layout.MARKER).unlink()
    mount.rmdir()
    layout.SOURCE_MOUNT.mkdir()
    (layout.SOURCE_MOUNT / "model.py").write_text("one")
    return mount.parent


def message() -> Outcome:
    return Outcome.from_json(Path(os.environ["TERMINATION_LOG"]).read_text())


def listed(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_the_first_job_makes_the_directory_with_its_marker(claim: Path) -> None:
    (claim / "models").mkdir()
    assert program.main(["source", SOURCE.to_json()]) == 0
    assert {path.name for path in claim.iterdir()} == {"models", ".triton-operator"}
    assert json.loads((layout.ROOT / layout.MARKER).read_text()) == {"layout": 1, "owner": "triton-operator"}
    assert layout.ROOT.stat().st_mode & 0o777 == 0o755
    assert program.main(["source", SOURCE.to_json()]) == 0, "and the next one finds it"


def test_each_claim_of_one_storage_is_noted_and_stops_no_job(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vision/models", "blue/models", "blue/models"):
        monkeypatch.setenv(layout.CLAIM, name)
        assert program.main(["source", SOURCE.to_json()]) == 0
    assert {path.name for path in layout.claims_directory().iterdir()} == {"vision%2Fmodels", "blue%2Fmodels"}
    assert root.other_claims(layout.ROOT) == [layout.claims_directory() / "vision%2Fmodels"]


def test_the_directory_is_never_seen_without_its_marker(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, seen = os.rename, []

    def observed(source: Path, target: Path) -> None:
        seen.append((layout.ROOT.exists(), (Path(source) / layout.MARKER).exists()))
        rename(source, target)

    monkeypatch.setattr(root.os, "rename", observed)
    root.ensure()
    assert seen[-1] == (False, True)


def at_once(count: int, act: Callable[[], None]) -> list[BaseException]:
    """Do it in so many threads; what they raised."""
    begin, errors = threading.Barrier(count), []

    def job() -> None:
        begin.wait()
        try:
            act()
        except BaseException as error:
            errors.append(error)

    jobs = [threading.Thread(target=job) for _ in range(count)]
    for each in jobs:
        each.start()
    for each in jobs:
        each.join()
    return errors


def test_of_jobs_that_begin_together_one_makes_it(claim: Path) -> None:
    assert at_once(8, root.ensure) == []
    assert listed(claim) == {".triton-operator", f".triton-operator/{layout.MARKER}"}


def _write(text: str) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        home.mkdir()
        (home / layout.MARKER).write_text(text)

    return write


def _link(home: Path) -> None:
    other = home.with_name("elsewhere")
    other.mkdir()
    root.mark(other)
    home.symlink_to(other)


def _write_beside(home: Path) -> None:
    (home / "sources" / "mine").mkdir(parents=True)
    (home / "sources" / "mine" / "notes.txt").write_text("mine")


def _link_within(home: Path) -> None:
    home.mkdir()
    (home / "sources").symlink_to(home.parent)


@pytest.mark.parametrize("below", [".", "revisions/0123456789abcdef"])
def test_directories_that_a_kubelet_made_for_mounts_are_nobodys(claim: Path, below: str) -> None:
    """As it does for the pod of a Deployment whose claim was emptied, or made anew."""
    (layout.ROOT / below).mkdir(parents=True)
    assert program.main(["prepare", "reference", REFER.to_json()]) == 1
    assert message().reason is Reason.INPUT_MISSING
    assert program.main(["source", SOURCE.to_json()]) == 0
    assert json.loads((layout.ROOT / layout.MARKER).read_text()) == {"layout": 1, "owner": "triton-operator"}
    root.check()


def test_of_jobs_that_begin_together_each_takes_them_over(claim: Path) -> None:
    (layout.ROOT / "revisions" / "0123456789abcdef").mkdir(parents=True)
    assert at_once(8, root.ensure) == []
    assert listed(layout.ROOT) == {layout.MARKER, "revisions", "revisions/0123456789abcdef"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_write_beside, "no marker"),
        (_link_within, "no marker"),
        (lambda home: home.write_text("a file"), "no marker"),
        (lambda home: (home / layout.MARKER).mkdir(parents=True), "cannot be read"),
        (_write(""), "cannot be read"),
        (_write("[1]"), "cannot be read"),
        (_write('{"owner": "somebody", "layout": 1}'), "something else"),
        (_write('{"owner": "triton-operator", "layout": 2}'), "layout 2, and this operator knows layout 1"),
        (_link, "is a link"),
    ],
)
@pytest.mark.parametrize("command", [("source", SOURCE.to_json()), ("prepare", "reference", REFER.to_json())])
def test_a_job_refuses_a_directory_that_is_not_ours(
    claim: Path, make: Callable[[Path], None], words: str, command: tuple[str, ...]
) -> None:
    make(layout.ROOT)
    before = listed(claim)
    assert program.main(command) == EXIT_FINAL
    assert message().reason is Reason.REPOSITORY_UNKNOWN
    assert words in message().message
    assert "spec.repository to another claim" in message().message
    assert listed(claim) == before


def test_a_marker_that_may_not_be_read_is_refused(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, encoding: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(StageError, match="Permission denied"):
        root.check()


def test_a_claim_without_our_directory_lacks_what_a_job_needs(claim: Path) -> None:
    assert program.main(["prepare", "reference", REFER.to_json()]) == 1
    assert message().reason is Reason.INPUT_MISSING
    assert listed(claim) == set()


def test_no_path_function_of_a_test_leads_to_the_real_claim(mount: Path) -> None:
    assert layout.search_directory("s").is_relative_to(mount)
    assert layout.kept_outputs("p").is_relative_to(mount)
