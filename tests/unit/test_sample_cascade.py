"""The sample's step asks its large model about few pictures, and tells as many digits as that model."""

import shutil
from pathlib import Path

import numpy
import onnxruntime
import yaml

from tests.unit.sample_code import SAMPLES
from triton_converters.load import framework
from triton_operator.api.triton_deployment import parse
from triton_operator.jobs.reference import served_code

SURE = 0.9


def probabilities(path: Path, pixels: numpy.ndarray) -> numpy.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found: numpy.ndarray = session.run(["probabilities"], {"X": pixels})[0]
    return found


def test_the_large_model_is_asked_about_few_pictures_and_mends_them(tmp_path: Path) -> None:
    for folder in ("digits", "cascade"):
        shutil.copytree(SAMPLES / folder, tmp_path, dirs_exist_ok=True)
    body = yaml.safe_load((SAMPLES / "cascade.yaml").read_text(encoding="utf-8"))
    # As the source Job finds it in the files' content.
    body["spec"]["models"] = [{"format": "onnx", **each} for each in body["spec"]["models"]]
    body["metadata"] |= {"namespace": "default", "uid": "", "generation": 1}
    cascade = framework.load(tmp_path, served_code(parse(body).spec), "ensemble")
    with numpy.load(tmp_path / "digits.npz") as data:
        pixels, labels = data["pictures"].astype(numpy.float32) / 16, data["labels"]
    rows = [cascade({"X": pixels[start : start + 8]})["probabilities"] for start in range(0, len(pixels), 8)]
    served = numpy.concatenate(rows)
    small, large = (probabilities(tmp_path / name, pixels) for name in ("small.onnx", "digits.onnx"))
    unsure = small.max(axis=1) < SURE
    assert 0.02 < unsure.mean() < 0.5
    numpy.testing.assert_allclose(served, numpy.where(unsure[:, None], large, small), atol=1e-5)
    right = [float(numpy.mean(each.argmax(axis=1) == labels)) for each in (small, served)]
    assert right[0] < right[1]
    assert right[1] >= 0.95
