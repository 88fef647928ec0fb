"""`kubectl triton check`: the operator's own passes, the real converter, tritonserver and perf_analyzer, no cluster."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from triton_local.images import Images
from triton_local.install import CONVERTER, SERVER
from triton_local.interpreter import Python
from triton_local.runtime import Image
from triton_operator.names import API_VERSION, KIND
from triton_plugin.__main__ import main
from triton_plugin.exits import Exit

Body = dict[str, Any]
Check = Callable[..., int]
ROOT = Path(__file__).parents[2]
QUICK: Body = {
    "offline": {"batchSizes": [1]},
    "online": {"concurrency": {"start": 1, "end": 1}},
    "measurement": {"mode": "TimeWindows", "interval": "300ms"},
}
PATIENCE_SECONDS = 600.0
UNPACKED = Path("~/.cache/triton-operator/unpacked").expanduser()
pytestmark = pytest.mark.images


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    """The archives of the images that installations stand for."""
    argv = [sys.executable, "-m", "hack.imagebuild", "build", "--json", "converter", "tritonserver-cpu"]
    built = json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    by_name = {each["name"]: Path(each["archive"]) for each in built}
    return {CONVERTER: by_name["converter"], SERVER: by_name["tritonserver-cpu"]}


@pytest.fixture
def check(tmp_path: Path, archives: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run the command in the test's folder, with the images instead of an installation; return the exit status."""
    images = Images(UNPACKED)

    class FromImages:
        def __init__(self, *_: object, has_packages: bool) -> None:
            assert not has_packages

        def name(self, repository: str) -> str:
            return images.add(repository, archives.get(repository, archives[CONVERTER]))

        def image(self, name: str) -> Image:
            return images.image(name)

    own = Path(sys.executable)
    interpreter = Python(own, Path(sys.base_prefix), Path(sys.prefix), (), (3, 13, 0), own, ())
    monkeypatch.setattr("triton_plugin.commands.check.Installation", FromImages)
    monkeypatch.setattr("triton_plugin.commands.check.python", lambda _: interpreter)
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
    assert 'failures="0" skipped="0"' in suite
    assert 'name="onnx-fp32"><system-out>Selected: ' in suite
    before = pods(tmp_path)
    assert len(before) == 6
    assert {each.split("-")[1] for each in before} > {"source", "reference", "convert", "profile", "measure"}
    assert check(*words) == Exit.OK
    # The server is started again, because it ended with the first run.
    (server,) = pods(tmp_path) - before
    assert server.rpartition("-")[0] in status(tmp_path)["serving"]["selector"]


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


def test_an_image_does_not_run_without_isolation(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", ".")
    assert check("digits.onnx", "--unboxed", "--image", "mine:1=mine.tar") == Exit.FAILED
    assert "--image needs isolation" in capsys.readouterr().err
