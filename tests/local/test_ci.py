"""What a CI system has of a check: a file that is never that of an earlier run, and variables that stop nothing."""

import os
import signal
from pathlib import Path
from typing import Any

import certifi
import pytest

from tests.converters.https_server import make_authority
from triton_plugin.__main__ import main
from triton_plugin.commands import check, machine
from triton_plugin.exits import Exit


class Installed:
    """An installation whose images have the names of their repositories."""

    def name(self, repository: str) -> str:
        return f"{repository}:1"


def test_what_is_refused_at_once_is_an_error_in_place_of_the_last_outcome(tmp_path: Path) -> None:
    model, junit = tmp_path / "object.yaml", tmp_path / "made/junit.xml"
    model.write_text("kind: [", encoding="utf-8")
    assert main(["check", str(model), "--junit", str(junit)]) == Exit.FAILED
    found = junit.read_text(encoding="utf-8")
    assert 'errors="1"' in found
    assert "is not valid YAML" in found


def test_a_file_that_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path / "none.yaml"), "--junit", str(tmp_path)]) == Exit.FAILED
    assert f"--junit {tmp_path} cannot be written" in capsys.readouterr().err


def test_a_file_that_can_no_longer_be_written_changes_no_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check._write_junit(tmp_path, "")
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PIP_INDEX_URL", "https://me:secret@index.example/simple"),
        ("HTTPS_PROXY", "secret.example:3128"),
        ("HF_ENDPOINT", "http://secret.example"),
    ],
)
def test_a_variable_that_an_installation_refuses_is_left_out_and_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in machine.OF_DOWNLOADS:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("NO_PROXY", "inside.example")
    monkeypatch.setenv(name, value)
    installed: Any = Installed()
    settings = machine.settings(installed)
    assert (settings.sources_package_index, settings.sources_proxy, settings.sources_hub) == ("", "", "")
    assert "inside.example" in settings.sources_no_proxy
    said = capsys.readouterr().err
    assert f"without {name}: {name} is no URL" in said
    assert "secret" not in said


def test_downloads_trust_the_authorities_of_this_machine_besides_the_usual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, _ = make_authority(tmp_path)
    usual = Path(certifi.where()).read_text(encoding="utf-8")
    installed: Any = Installed()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "all.pem"))
    for given, expected in (("", ""), (authority.read_text(), authority.read_text().strip())):
        (tmp_path / "all.pem").write_text(usual + given)
        assert machine.settings(installed).sources_ca_bundle == expected
    (tmp_path / "all.pem").unlink()
    assert machine.settings(installed).sources_ca_bundle == ""


def test_a_ci_system_that_ends_the_job_ends_it_as_ctrl_c_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(check, "_run", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    try:
        with pytest.raises(SystemExit) as ended:
            main(["check", str(tmp_path / "model.onnx"), "--junit", str(tmp_path / "junit.xml")])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == Exit.TERMINATED
    assert "the same command goes on" in capsys.readouterr().err
    assert "ended before its outcome" in (tmp_path / "junit.xml").read_text(encoding="utf-8")
