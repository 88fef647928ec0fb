"""What `init` makes of Python models that ask other models of their repository."""

from pathlib import Path

import pytest

from tests.report.repositories import CLASSIFIER, NETWORK, PLAIN_STEP
from tests.report.test_triton_repositories import refusal, spec, told

STEP = """
backend: "python"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_INT64 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
ASKS = "def ask(name='{0}'): return pb_utils.InferenceRequest(model_name={1}, inputs=[]).{2}()\n"
NET = NETWORK.partition("version_policy")[0].replace('name: "network"', "")


def cascade(*asks: str) -> dict[str, str]:
    """A Python model, the networks that its code may ask, and one that nobody asks."""
    texts = {"models/cascade/config.pbtxt": STEP, "models/cascade/1/model.py": PLAIN_STEP + "".join(asks)}
    for name in ("small", "large", "other"):
        texts |= {f"models/{name}/config.pbtxt": NET, f"models/{name}/1/model.onnx": "graph"}
    return texts


def asks(name: str, call: str = "exec") -> str:
    return ASKS.format("", repr(name), call)


def test_models_that_are_asked_are_models_without_a_step(tmp_path: Path) -> None:
    texts = cascade(asks("small"), asks("large", "async_exec"))
    made = spec(tmp_path, texts, "models/cascade")
    step, *others = made["models"]
    assert (step["name"], step["calls"]) == ("cascade_step", ["large", "small"])
    assert others == [
        {"name": "large", "path": "models/large", "config": {"maxBatchSize": 16}},
        {"name": "small", "path": "models/small", "config": {"maxBatchSize": 16}},
    ]
    assert [each["model"] for each in made["ensemble"]["steps"]] == ["cascade_step"]
    said = told(tmp_path, texts, "models/cascade")
    assert "Left out: 'other': not in this pipeline: write another object to serve it." in said
    assert not [each for each in said if each.startswith(("TODO", "Check"))]


@pytest.mark.parametrize(("largest", "dims", "is_told"), [(4, "1, -1", True), (1, "1, -1", False), (4, "-1, 1", False)])
def test_batches_are_doubted_that_an_asked_model_cannot_take(
    tmp_path: Path, largest: int, dims: str, is_told: bool
) -> None:
    single = f"""platform: "onnxruntime_onnx"
      input [ {{ name: "ids" data_type: TYPE_INT64 dims: [ {dims} ] }} ]
      output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 1, 3 ] }} ]"""
    texts = {
        **cascade(asks("small")),
        "models/small/config.pbtxt": single,
        "models/cascade/config.pbtxt": STEP.replace("size: 4", f"size: {largest}"),
    }
    words = (
        f"Check: cascade: it takes batches of {largest}, and model 'small', which it asks, takes one sample (input"
        " 'ids'): unless its code asks for each sample, write 1 for both maxBatchSize, its own and the ensemble's."
    )
    assert (words in told(tmp_path, texts, "models/cascade")) == is_told


def test_a_python_model_and_those_that_it_asks_need_no_choice(tmp_path: Path) -> None:
    texts = {name: text for name, text in cascade(asks("small"), asks("large")).items() if "other" not in name}
    assert spec(tmp_path, texts)["ensemble"]["name"] == "cascade"


def test_a_name_that_is_computed_may_be_any_text_of_the_code(tmp_path: Path) -> None:
    texts = cascade(ASKS.format("large", "name", "exec"))
    assert spec(tmp_path, texts, "models/cascade")["models"][0]["calls"] == ["large"]
    said = told(tmp_path, texts, "models/cascade")
    assert (
        "Check: cascade: it computes names of models that it asks: calls has those in its code and parameters, 'large'."
        in said
    ), said


def test_a_name_that_is_computed_may_be_a_parameter(tmp_path: Path) -> None:
    texts = cascade(ASKS.format("", "name", "exec"))
    texts["models/cascade/config.pbtxt"] += 'parameters { key: "model" value: { string_value: "large" } }\n'
    texts["models/cascade/config.pbtxt"] += 'parameters { key: "empty" value: { string_value: "" } }\n'
    assert spec(tmp_path, texts, "models/cascade")["models"][0]["calls"] == ["large"]


def test_a_name_that_the_code_does_not_have_is_to_be_filled_in(tmp_path: Path) -> None:
    texts = cascade(ASKS.format("", "name", "exec"))
    assert "calls" not in spec(tmp_path, texts, "models/cascade")["models"][0]
    assert (
        "TODO: cascade: it asks models whose names are not in its code or parameters: list them in its calls, and each"
        " in models." in told(tmp_path, texts, "models/cascade")
    )


def test_a_step_of_an_ensemble_may_ask_another_step(tmp_path: Path) -> None:
    texts = {**CLASSIFIER, "models/labels/1/model.py": PLAIN_STEP + asks("network")}
    made = spec(tmp_path, texts)
    assert [each["name"] for each in made["models"]] == ["tokenizer", "network", "labels"]
    assert made["models"][2]["calls"] == ["network"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("gone", "it asks model 'gone', of which the repository has no folder: add it, with config.pbtxt and the"),
        ("tokenizer", "it asks the Python model 'tokenizer': connect the two by an ensemble, or write them as one"),
        ("labels", "it asks the Python model 'labels': connect the two by an ensemble"),
        ("classifier", "it asks the ensemble 'classifier': let its code ask the models of that ensemble one by one"),
        ("net.v2", "it asks model 'net.v2', which an object cannot name so: rename its folder, and in the code"),
    ],
)
def test_who_cannot_be_asked_is_told_with_what_to_do(tmp_path: Path, asked: str, words: str) -> None:
    texts = {**CLASSIFIER, "models/labels/1/model.py": PLAIN_STEP + asks(asked)}
    texts |= {"models/net.v2/config.pbtxt": NET, "models/net.v2/1/model.onnx": "graph"}
    assert f"labels: {words}" in refusal(tmp_path, texts, "models/classifier")


def test_what_only_has_the_word_asks_nobody(tmp_path: Path) -> None:
    texts = cascade("def describe(request): return isinstance(request, pb_utils.InferenceRequest)\n")
    assert "calls" not in spec(tmp_path, texts, "models/cascade")["models"][0]
