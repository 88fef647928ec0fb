"""In a reference, requests to other models are answered as recorded; the suite of images asks a server the same."""

import json
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from tests.converters.conversions import save_doubling
from tests.python_backend import asking
from triton_converters.contract.conversion_requests import EnsembleCode, Entrypoint, ModelCode, Step
from triton_converters.contract.results import Signature, Tensor
from triton_converters.load import framework

HERE = Path(asking.__file__).parent
ANSWERS: dict[str, Any] = json.loads((HERE / "asked.json").read_text())
"""Recorded of the stand-in. Whether server 2.51 answers so, tests/images/test_called_models.py asks it."""
SIDES = (Tensor("x", "FP32", (1,)),), (Tensor("t", "BYTES", (1,)),)


def save_words(path: Path) -> None:
    """An ONNX graph that gives the strings x [batch, 1] back as y."""
    sides = [helper.make_tensor_value_info(name, TensorProto.STRING, ["batch", 1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", sides[:1], sides[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    source = tmp_path_factory.mktemp("source")
    (source / "step").mkdir()
    for name in ("asking.py", "questions.py", "asking_step.py"):
        (source / "step" / name).write_text((HERE / name).read_text())
    save_doubling(source / "double.onnx")
    save_words(source / "words.onnx")
    called = tuple(
        Step(name, {}, {}, ModelCode("onnx", Entrypoint(f"{name}.onnx", {}), 4)) for name in ("double", "words")
    )
    step = ModelCode(
        "triton-python", Entrypoint("step/asking_step.py", {}), 8, declared=Signature(*SIDES, 8), name="asking",
        calls=("double", "words"),
    )  # fmt: skip
    code = EnsembleCode(*SIDES, (Step("asking", {"x": "x"}, {"t": "t"}, step),), called)
    loaded = framework.load(source, ModelCode("ensemble", Entrypoint("", {}), 8, code), "ensemble")
    found: dict[str, Any] = json.loads(loaded({"x": numpy.zeros((1, 1), numpy.float32)})["t"][0, 0])
    return found


def test_every_question_has_an_answer() -> None:
    assert list(ANSWERS) == list(asking.QUESTIONS)


@pytest.mark.parametrize("name", asking.QUESTIONS)
def test_the_answer_is_as_recorded(answers: dict[str, Any], name: str) -> None:
    assert answers[name] == ANSWERS[name]
