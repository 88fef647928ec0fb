"""Whether a server may start on a revision, as the container before it says."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.converters.restored import restore
from triton_converters.claim_store import revision as published
from triton_converters.contract import layout
from triton_converters.contract.envelope import EXIT_FINAL, EXIT_RETRY, Outcome
from triton_converters.contract.reasons import Reason
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_converters.revision_check import main

KEY = "0123456789abcdef"
REQUEST = CheckRequest("serve", KEY, KEY)


@pytest.fixture
def revision(mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published revision."""
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "message"))
    model = layout.model_repository(KEY) / "digits"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text("name: 'digits'")
    (model / "1" / "model.onnx").write_bytes(b"weights")
    (layout.revision_directory(KEY) / "result.json").write_text("{}")
    return layout.revision_directory(KEY)


def message(tmp_path: Path) -> Outcome:
    return Outcome.from_json((tmp_path / "message").read_text())


def test_a_server_starts_on_what_is_there(revision: Path, tmp_path: Path) -> None:
    assert main([REQUEST.to_json()]) == 0
    assert not (tmp_path / "message").exists()


@pytest.mark.parametrize("kubelet", ["made an empty directory", "made nothing"])
def test_a_revision_that_is_gone_is_told_as_missing(mount: Path, tmp_path: Path, revision: Path, kubelet: str) -> None:
    revision.rename(tmp_path / "elsewhere")
    if kubelet == "made an empty directory":
        revision.mkdir()
    assert main([REQUEST.to_json()]) == EXIT_RETRY
    assert message(tmp_path) == Outcome(
        "serve", KEY, None, Reason.RESULT_MISSING, f"{revision} is no longer on the repository claim"
    )


def change(revision: Path) -> None:
    (revision / "models/digits/1/model.onnx").write_bytes(b"WEIGHTS")


def change_and_hide(revision: Path) -> None:
    """Of the same size and with the old times, as far as a user may set them."""
    file = revision / "models/digits/1/model.onnx"
    before = file.stat()
    change(revision)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "changed": change,
    "changed, with the old time": change_and_hide,
    "cut off": lambda revision: (revision / "models/digits/1/model.onnx").write_bytes(b""),
    "gone": lambda revision: (revision / "models/digits/config.pbtxt").unlink(),
    "a library more": lambda revision: (revision / "models/digits/libtriton_onnx.so").write_bytes(b""),
    "a folder more": lambda revision: (revision / "models/other").mkdir(),
    "a link more": lambda revision: (revision / "models/digits/2").symlink_to("1"),
    "another name": lambda revision: (revision / "models/digits").rename(revision / "models/numbers"),
}


@pytest.fixture
def published_request(revision: Path) -> CheckRequest:
    """For the revision as it was published and profiled."""
    home = layout.revision_directory(KEY)
    return replace(REQUEST, content=published.content_digest(home), stat_digest=published.stat_digest(home))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("verification", ["Stat", "Content"])
def test_no_server_starts_on_what_was_not_published(
    revision: Path, published_request: CheckRequest, tmp_path: Path, damage: Callable[[Path], object], verification: str
) -> None:
    damage(revision)
    assert main([replace(published_request, verification=verification).to_json()]) == EXIT_FINAL
    assert message(tmp_path).reason is Reason.REPOSITORY_DAMAGED
    assert str(revision) in message(tmp_path).message


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The revisions whose content is read."""
    found: list[Path] = []
    digest = published.content_digest

    def content_digest(directory: Path) -> str:
        found.append(directory)
        return digest(directory)

    monkeypatch.setattr(published, "content_digest", content_digest)
    return found


def test_content_is_read_only_if_the_attributes_differ(
    revision: Path, published_request: CheckRequest, reads: list[Path]
) -> None:
    assert main([published_request.to_json()]) == 0
    assert reads == []
    # Another revision shares the file.
    os.link(revision / "models/digits/1/model.onnx", revision.parent / "other")
    assert main([published_request.to_json()]) == 0
    assert reads == [revision]


def test_a_server_starts_on_a_restored_claim_once_its_content_was_read(
    mount: Path, revision: Path, published_request: CheckRequest, reads: list[Path]
) -> None:
    restore(mount)
    assert main([published_request.to_json()]) == 0
    assert reads == [revision]


@pytest.mark.parametrize("change", [{"verification": "Content"}, {"stat_digest": ""}])
def test_content_is_read_each_time_if_that_is_asked_for(
    revision: Path, published_request: CheckRequest, reads: list[Path], change: dict[str, str]
) -> None:
    assert main([replace(published_request, **change).to_json()]) == 0
    assert reads == [revision]


def test_the_result_is_no_part_of_what_it_describes(revision: Path, published_request: CheckRequest) -> None:
    (revision / "result.json").write_text('{"another": 1}')
    assert main([published_request.to_json()]) == 0
