"""The sample's network takes texts of any length, and its data is what its metric and its steps expect."""

import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest
import yaml

from tests.unit.sample_code import SAMPLES, module
from triton_converters.python_backend.messages import TritonError

SAMPLE = SAMPLES / "texts"
LABELS = ["de", "es", "fr", "it", "nl", "pl", "pt", "sv"]


class Words:
    """Stands in for the tokenizer, whose package is only where the step runs."""

    @staticmethod
    def from_file(path: str) -> "Words":
        assert Path(path).is_file()
        return Words()

    def enable_truncation(self, length: int) -> None:
        self.length = length

    def encode(self, text: str) -> Any:
        return types.SimpleNamespace(ids=[len(each) for each in text.split()][: self.length])


class Response:
    def __init__(self, tensors: Any = (), error: Any = None) -> None:
        self.tensors, self.error = tensors, error


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The step, next to modules that only a server has."""
    backend = types.ModuleType("triton_python_backend_utils")
    vars(backend).update(
        get_input_tensor_by_name=lambda request, name: request[name],
        Tensor=lambda name, value: (name, value),
        TritonError=TritonError,
        InferenceResponse=Response,
    )
    tokenizers = types.ModuleType("tokenizers")
    vars(tokenizers).update(Tokenizer=Words)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    monkeypatch.setitem(sys.modules, "tokenizers", tokenizers)
    model = module("texts/tokenize/tokenize_text.py").TritonPythonModel()
    model.initialize({})
    return model


def request(*texts: bytes) -> Any:
    array = numpy.array([[each] for each in texts], dtype=object)
    return {"text": types.SimpleNamespace(as_numpy=lambda: array)}


def test_texts_of_several_lengths_are_padded(step: Any) -> None:
    mixed, empty, broken = step.execute([request(b"a bcd", b"ef"), request(b""), request(b"\xff")])
    ((name, tokens),) = mixed.tensors
    assert (name, tokens.dtype, tokens.tolist()) == ("tokens", numpy.int64, [[1, 3], [2, 0]])
    assert empty.tensors[0][1].tolist() == [[0]]
    assert broken.error.message().startswith("no UTF-8 text: ")
    assert broken.error.code() is TritonError.INVALID_ARG


def test_padding_changes_no_answer() -> None:
    session = onnxruntime.InferenceSession(SAMPLE / "texts.onnx", providers=["CPUExecutionProvider"])
    tokens = numpy.random.default_rng(0).integers(2, 1000, (4, 30))
    (alone,), (padded,) = (session.run(None, {"tokens": numpy.pad(tokens, ((0, 0), (0, more)))}) for more in (0, 50))
    assert alone.shape == (4, len(LABELS))
    numpy.testing.assert_allclose(padded, alone, rtol=1e-5, atol=1e-6)
    assert session.run(None, {"tokens": numpy.zeros((1, 1), numpy.int64)})[0].sum() == pytest.approx(1)


def test_the_data_has_as_many_texts_of_each_label() -> None:
    batches = list(module("texts/dataloader.py").get_dataloader_fn(32)())
    labels = Counter(label for *_, label in batches for label in label["label"].tolist())
    spec = yaml.safe_load((SAMPLE.parent / "text-to-label.yaml").read_text(encoding="utf-8"))["spec"]
    assert sorted(labels) == LABELS == spec["models"][2]["arguments"]["labels"].split(",")
    assert len(set(labels.values())) == 1
    assert sum(labels.values()) == spec["accuracy"]["maxSamples"]
    assert len({len(text) for _, inputs, _ in batches for text in inputs["TEXT"][:, 0].tolist()}) > 50


def test_django_is_named_as_its_license_asks() -> None:
    assert (
        (SAMPLE / "LICENSE.django")
        .read_text(encoding="utf-8")
        .startswith("Copyright (c) Django Software Foundation and individual contributors.")
    )
