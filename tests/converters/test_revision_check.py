"""Whether a server may start on a revision, as the container before it says."""

from pathlib import Path

import pytest

from triton_converters.contract import layout
from triton_converters.contract.envelope import EXIT_RETRY, Outcome
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import CheckRequest
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


def test_the_directory_for_engines_is_made_before_the_server_writes_to_it(revision: Path, mount: Path) -> None:
    cache = mount / "caches" / "NVIDIA-L4" / "24.10" / "0a1b"
    request = CheckRequest("profile", "1" * 16, KEY, str(cache))
    for _ in range(2):
        assert main([request.to_json()]) == 0
    assert cache.is_dir()
