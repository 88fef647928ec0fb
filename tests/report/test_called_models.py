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


ONE_ROW = """platform: "onnxruntime_onnx"
  input [ { name: "ids" data_type: TYPE_INT64 dims: [ 1, -1 ] } ]
  output [ { name: "y" data_type: TYPE_FP32 dims: [ 1, 3 ] } ]"""
BATCHING = "dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 500 }\n"


def single(*code: str, largest: int = 4, asked: str = ONE_ROW) -> dict[str, str]:
    """A step that takes batches, and asks a model of one sample."""
    return {
        **cascade(*(code or (asks("small"),))),
        "models/small/config.pbtxt": asked,
        "models/cascade/config.pbtxt": STEP.replace("size: 4", f"size: {largest}"),
    }


def checks(folder: Path, texts: dict[str, str], path: str = "models/cascade") -> list[str]:
    return [each for each in told(folder, texts, path) if each.startswith("Check")]


@pytest.mark.parametrize(
    ("largest", "asked", "takes"),
    [
        (4, ONE_ROW, "input 'ids'"),
        (8, NET.replace("size: 16", "size: 1"), "max_batch_size 1"),
        (1, ONE_ROW, ""),
        (4, ONE_ROW.replace("1, -1", "-1, 1"), ""),
        (4, ONE_ROW.replace("1, -1", "1"), "input 'ids'"),
        (4, ONE_ROW.replace("1, -1 ] }", '-1, 5 ] }, { name: "threshold" data_type: TYPE_FP32 dims: [ 1 ] }'), ""),
        (4, NET, ""),
    ],
    ids=["one row", "batches of one", "no batches", "rows of one", "one number", "a threshold", "batches"],
)
def test_a_step_that_asks_a_model_of_one_sample_takes_one(tmp_path: Path, largest: int, asked: str, takes: str) -> None:
    texts = single(largest=largest, asked=asked)
    made = spec(tmp_path, texts, "models/cascade")
    written = 1 if takes else largest
    assert made["models"][0]["config"]["maxBatchSize"] == made["ensemble"]["maxBatchSize"] == written
    words = (
        f"Check: cascade: it takes batches of {largest}, and model 'small', which it asks, takes one sample ({takes}):"
        " 1 is written for its maxBatchSize and the ensemble's; if its code asks for each sample, write"
        f" {largest} back, and {largest} for the ensemble."
    )
    assert checks(tmp_path, texts) == ([words] if takes else [])


def test_batches_of_one_prefer_no_size(tmp_path: Path) -> None:
    texts = single()
    texts["models/cascade/config.pbtxt"] += BATCHING
    step = spec(tmp_path, texts, "models/cascade")["models"][0]
    assert step["config"] == {"maxBatchSize": 1, "dynamicBatching": {"maxQueueDelay": "500us"}}
    left = "Left out: cascade: dynamic_batching.preferred_batch_size: its batches are of 1."
    assert left in told(tmp_path, texts, "models/cascade")


def test_an_ensemble_has_batches_that_its_step_takes(tmp_path: Path) -> None:
    texts = {**CLASSIFIER, "models/labels/1/model.py": PLAIN_STEP + asks("small")}
    texts |= {"models/small/config.pbtxt": ONE_ROW, "models/small/1/model.onnx": "graph"}
    made = spec(tmp_path, texts, "models/classifier")
    assert made["ensemble"]["maxBatchSize"] == 1
    batches = {each["name"]: each["config"]["maxBatchSize"] for each in made["models"]}
    assert batches == {"tokenizer": 8, "network": 16, "labels": 1, "small": 0}
    (words,) = checks(tmp_path, texts, "models/classifier")
    assert words.startswith("Check: labels: it takes batches of 8, and model 'small'")


LOOPS = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            {body}
    def ask(self, given):
        {method}
"""
ONE = "pb_utils.InferenceRequest(model_name='small', inputs=[]).exec()"


@pytest.mark.parametrize(
    ("body", "method", "is_kept"),
    [
        (f"for row in rows(request): {ONE}", "pass", True),
        (f"[{ONE} for row in rows(request)]", "pass", True),
        (f"[box async for row in rows(request) for box in {ONE}]", "pass", True),
        ("self.ask(request)", f"return [{ONE} for row in given]", True),
        ("for row in request: self.ask(row)", f"return {ONE}", True),
        ("[self.pool.submit(self.ask, each) for each in request]", f"return {ONE}", True),
        (ONE, "pass", False),
        (f"for box in {ONE}: pass", "pass", False),
        (f"[box for box in {ONE}]", "pass", False),
        ("self.ask(request)", f"return {ONE} or self.ask(given)", False),
        ("self.pool.map(self.ask, request)", f"return {ONE}", False),
        (f"{ONE}, [{ONE} for row in request]", "pass", False),
        (f"{ONE}, [self.cursor.execute(row) for row in request]", "pass", False),
        ("self.ask(request), [self.ask(row) for row in request]", f"return {ONE}", False),
    ],
)
def test_batches_are_kept_where_the_code_seems_to_ask_for_each_sample(
    tmp_path: Path, body: str, method: str, is_kept: bool
) -> None:
    texts = {**single(), "models/cascade/1/model.py": LOOPS.format(body=body, method=method)}
    made = spec(tmp_path, texts, "models/cascade")
    assert made["models"][0]["config"]["maxBatchSize"] == made["ensemble"]["maxBatchSize"] == (4 if is_kept else 1)
    (words,) = checks(tmp_path, texts)
    soft = "so 4 is kept; if it does not, write 1 for its maxBatchSize and the ensemble's."
    assert words.endswith(soft) == is_kept


def test_one_request_outside_of_nested_loops_decides(tmp_path: Path) -> None:
    nested = "def each(requests): return [pb_utils.InferenceRequest(model_name='small') for a in requests for b in a]\n"
    assert spec(tmp_path, single(nested, asks("large")), "models/cascade")["ensemble"]["maxBatchSize"] == 4
    assert spec(tmp_path, single(nested, asks("small")), "models/cascade")["ensemble"]["maxBatchSize"] == 1
    texts = single(nested, asks("large")) | {"models/large/config.pbtxt": ONE_ROW}
    (words,) = checks(tmp_path, texts)
    assert words.startswith("Check: cascade: it takes batches of 4, and model 'large', which it asks")
    computed = ASKS.format("small", "name", "exec")
    assert spec(tmp_path, single(nested, computed), "models/cascade")["ensemble"]["maxBatchSize"] == 1


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
