"""Whole objects on this machine: the operator's own passes, the real converter, tritonserver and perf_analyzer."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from triton_local.__main__ import main
from triton_operator.names import API_VERSION, KIND

Body = dict[str, Any]
Run = Callable[[Body], int]
ROOT = Path(__file__).parents[2]
QUICK: Body = {
    "offline": {"batchSizes": [1]},
    "online": {"concurrency": {"start": 1, "end": 1}},
    "measurement": {"mode": "TimeWindows", "interval": "300ms"},
}
pytestmark = pytest.mark.images


@pytest.fixture(scope="module")
def archives() -> list[str]:
    """The options that name the images."""
    argv = [sys.executable, "-m", "hack.imagebuild", "build", "--json", "converter", "tritonserver-cpu"]
    built = json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    by_name = {each["name"]: each["archive"] for each in built}
    return ["--converter", by_name["converter"], "--server", by_name["tritonserver-cpu"]]


@pytest.fixture
def run(tmp_path: Path, archives: list[str]) -> Run:
    """Run the object of a spec in the test's folder, and return the exit status."""
    (tmp_path / "models").mkdir()
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path / "models")

    def run_spec(spec: Body) -> int:
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}, "spec": spec}
        file = tmp_path / "object.yaml"
        file.write_text(yaml.safe_dump(body), encoding="utf-8")
        claims = ["--claim", f"models={tmp_path / 'models'}"]
        return main([str(file), "--state", str(tmp_path / "state"), *claims, *archives])

    return run_spec


def a_spec(path: str) -> Body:
    model = {"name": "digits", "path": path, "config": {"maxBatchSize": 2}}
    return {"source": {"uri": "pvc://models"}, "models": [model], "performance": QUICK}


def status(folder: Path) -> Body:
    """The status of the object that was run there."""
    found: Body = json.loads((folder / "state" / "objects.json").read_text(encoding="utf-8"))["object"]["status"]
    return found


def pods(folder: Path) -> set[str]:
    """The pods that were ever started there."""
    return {each.name for each in (folder / "state" / "pods").iterdir()}


def test_an_object_is_verified_and_measured_and_a_second_run_does_nothing_again(run: Run, tmp_path: Path) -> None:
    assert run(a_spec("digits.onnx")) == 0
    (candidate,) = status(tmp_path)["candidates"]
    assert candidate["state"] == "Selected"
    assert float(candidate["maxAbsoluteError"]) < 1e-4
    assert float(status(tmp_path)["serving"]["throughput"]) > 0
    before = pods(tmp_path)
    assert len(before) == 6
    assert {each.split("-")[1] for each in before} > {"source", "reference", "convert", "profile", "measure"}
    assert run(a_spec("digits.onnx")) == 0
    # The server is started again, because it ended with the first run.
    (server,) = pods(tmp_path) - before
    assert server.rpartition("-")[0] in status(tmp_path)["serving"]["selector"]


def test_a_file_that_is_no_model_is_refused_with_the_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "models" / "words.onnx").write_text("not a graph", encoding="utf-8")
    assert run(a_spec("words.onnx")) == 1
    (ready,) = [each for each in status(tmp_path)["conditions"] if each["type"] == "Ready"]
    assert "words.onnx" in ready["message"]
