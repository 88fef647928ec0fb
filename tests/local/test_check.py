"""`kubectl triton check`: the operator's own passes, the real converter, tritonserver and perf_analyzer, no cluster."""

import json
import re
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from _thread import interrupt_main
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.checking import COMMAND, ROOT, built_archives, stand_ins
from triton_operator.names import API_VERSION, KIND
from triton_plugin.__main__ import main
from triton_plugin.exits import Exit

Body = dict[str, Any]
Check = Callable[..., int]
QUICK: Body = {
    "offline": {"batchSizes": [1]},
    "online": {"concurrency": {"start": 1, "end": 1}},
    "measurement": {"mode": "TimeWindows", "interval": "300ms"},
}
PATIENCE_SECONDS = 600.0
pytestmark = pytest.mark.images


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    return built_archives()


@pytest.fixture
def check(tmp_path: Path, archives: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run the command in the test's folder, with the images instead of an installation; return the exit status."""
    for name, value in stand_ins(archives).items():
        monkeypatch.setattr(f"{COMMAND}.{name}", value)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        return main(["check", *words])

    return run


def an_object(path: str) -> str:
    model = {"name": "digits", "path": path, "config": {"maxBatchSize": 2}}
    spec = {"source": {"uri": "pvc://models"}, "models": [model], "performance": QUICK}
    return yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}, "spec": spec})


def status(folder: Path) -> Body:
    """The status of the object that was checked there."""
    found: Body = json.loads((folder / "digits-check/objects.json").read_text(encoding="utf-8"))["items"][0]["status"]
    return found


def pods(folder: Path) -> set[str]:
    """The pods that were ever started there."""
    return {each.name for each in (folder / "digits-check/pods").iterdir()}


def asked_and_ended(answers: list[Body]) -> threading.Thread:
    """Ask the server of the command that runs until it answers, and end that command as Ctrl-C does."""

    def ask() -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not answers and time.monotonic() < end:
            time.sleep(0.5)
            try:
                with urllib.request.urlopen("http://127.0.0.1:8000/v2/models/digits", timeout=5) as answer:
                    answers.append(json.loads(answer.read()))
            except (OSError, urllib.error.URLError):
                continue
        interrupt_main()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


def test_an_object_is_checked_and_measured_and_a_second_run_does_nothing_again(check: Check, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path / "models")
    (tmp_path / "object.yaml").write_text(an_object("digits.onnx"), encoding="utf-8")
    words = ("object.yaml", "--claim", "models=models", "--junit", "junit.xml")
    assert check(*words) == Exit.OK
    (candidate,) = status(tmp_path)["candidates"]
    assert candidate["state"] == "Selected"
    assert float(candidate["maxAbsoluteError"]) < 1e-4
    assert float(status(tmp_path)["serving"]["throughput"]) > 0
    assert "Local" in (tmp_path / "digits-check/report.html").read_text(encoding="utf-8")
    suite = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert 'failures="0" errors="0" skipped="0"' in suite
    assert 'name="onnx-fp32"><system-out>Selected: ' in suite
    before = pods(tmp_path)
    assert len(before) == 6
    assert {each.split("-")[1] for each in before} > {"source", "reference", "convert", "profile", "measure"}
    assert check(*words) == Exit.OK
    # The server is started again, because it ended with the first run.
    (server,) = pods(tmp_path) - before
    assert server.rpartition("-")[0] in status(tmp_path)["serving"]["selector"]


def test_an_object_s_files_are_read_again_once_they_change(
    check: Check, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    model = tmp_path / "models/digits.onnx"
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", model)
    (tmp_path / "object.yaml").write_text(an_object("digits.onnx"), encoding="utf-8")
    words = ("object.yaml", "--claim", "models=models")
    assert check(*words) == Exit.OK
    model.write_text("no graph any more", encoding="utf-8")
    assert check(*words) == Exit.STALLED
    model.unlink()
    assert check(*words) == Exit.STALLED
    assert check("object.yaml", "--claim", "models=nowhere") == Exit.FAILED
    assert f"--claim models={tmp_path / 'nowhere'}: there is no such folder" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_no_model_is_refused_with_the_reason(check: Check, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/words.onnx").write_text("not a graph", encoding="utf-8")
    (tmp_path / "object.yaml").write_text(an_object("words.onnx"), encoding="utf-8")
    assert check("object.yaml", "--claim", "models=models", "--junit", "junit.xml") == Exit.STALLED
    (ready,) = [each for each in status(tmp_path)["conditions"] if each["type"] == "Ready"]
    assert "words.onnx" in ready["message"]
    failures = re.findall(r"<failure [^>]*>", (tmp_path / "junit.xml").read_text(encoding="utf-8"))
    assert len(failures) > 1
    assert all("words.onnx" in each for each in failures)


def test_what_is_ready_is_served_until_the_user_ends_it(
    check: Check, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path / "models")
    (tmp_path / "object.yaml").write_text(an_object("digits.onnx"), encoding="utf-8")
    answers: list[Body] = []
    asking = asked_and_ended(answers)
    assert check("object.yaml", "--claim", "models=models", "--serve") == Exit.OK
    asking.join()
    assert [each["inputs"][0]["name"] for each in answers] == ["X"]
    printed = capsys.readouterr().out
    assert "until Ctrl-C. To send a request (zeros stand for real inputs" in printed
    assert "kubectl port-forward" not in printed


def test_a_port_of_another_program_is_named_before_anything_runs(
    check: Check, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path)
    with socket.create_server(("127.0.0.1", 8001)):
        assert check("digits.onnx", "--serve") == Exit.FAILED
    assert "--serve needs port 8001 of 127.0.0.1, which another program has" in capsys.readouterr().err
    assert not (tmp_path / "digits-check/pods").exists()


def test_an_image_does_not_run_without_isolation(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", ".")
    assert check("digits.onnx", "--unboxed", "--image", "mine:1=mine.tar") == Exit.FAILED
    assert "--image needs isolation" in capsys.readouterr().err
