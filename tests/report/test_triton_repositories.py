"""What `kubectl triton init` and `run` make of whole Triton repositories: one object, or what to do."""

import contextlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.report.model_folders import write
from tests.report.repositories import ALONE, CLASSIFIER, ENSEMBLE, LABELS, NETWORK, PLAIN_STEP
from triton_operator.api.triton_deployment import parse
from triton_plugin.__main__ import main
from triton_plugin.drafting.first_object import ObjectOptions, notices
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.run import complete_yaml, valid_yaml
from triton_plugin.drafting.triton_repository import files, pbtxt
from triton_plugin.errors import FolderError
from triton_plugin.reading import python_files

LOADER = {"dataloader.py": "def get_dataloader_fn(batch_size: int): ...\n"}


def spec(folder: Path, texts: Mapping[str, str], path: str = "") -> dict[str, Any]:
    """The spec of the object, which is valid in any case."""
    write(folder, {**LOADER, **texts})
    body = yaml.safe_load(valid_yaml(read(folder, path), ObjectOptions(source="pvc://models/x")))
    found: dict[str, Any] = body["spec"]
    return found


def told(folder: Path, texts: Mapping[str, str], path: str = "") -> list[str]:
    write(folder, {**LOADER, **texts})
    return list(notices(read(folder, path)))


def refusal(folder: Path, texts: Mapping[str, str], path: str = "") -> str:
    write(folder, {**LOADER, **texts})
    with pytest.raises(FolderError) as refused:
        valid_yaml(read(folder, path), ObjectOptions(source="pvc://models/x"))
    return str(refused.value)


def changed(name: str, old: str, new: str) -> dict[str, str]:
    """The classifier with another text in one file."""
    assert old in CLASSIFIER[name]
    return {**CLASSIFIER, name: CLASSIFIER[name].replace(old, new)}


# What is taken ------------------------------------------------------------------------------------------------------


def test_an_ensemble_and_its_models_are_one_object_with_the_names_types_and_batches_of_its_configuration(
    tmp_path: Path,
) -> None:
    made = spec(tmp_path, CLASSIFIER)
    tokenizer, network, labels = made["models"]
    assert tokenizer == {
        "name": "tokenizer",
        "format": "triton-python",
        "entrypoint": "models/tokenizer/1/model.py",
        "arguments": {"scale": "2"},
        "config": {
            "maxBatchSize": 8,
            "instances": 2,
            "dynamicBatching": {"preferredBatchSizes": [4, 8], "maxQueueDelay": "500us"},
            # REJECT is Triton's default.
            "overrides": "dynamic_batching { default_queue_policy { default_timeout_microseconds: 900 } }",
        },
        "inputs": [{"name": "text", "dataType": "BYTES", "dims": [1]}],
        "outputs": [
            {"name": "ids", "dataType": "INT64", "dims": [-1]},
            {"name": "mask", "dataType": "INT64", "dims": [-1]},
        ],
    }
    assert network == {"name": "network", "path": "models/network", "config": {"maxBatchSize": 16}}
    assert [each["name"] for each in labels["outputs"]] == ["label", "score"]
    assert made["ensemble"] == {
        "name": "classifier",
        "maxBatchSize": 8,
        "inputs": [{"name": "TEXT", "dataType": "BYTES", "dims": [1]}],
        "outputs": [{"name": "LABEL", "dataType": "BYTES", "dims": [1]}],
        "steps": [
            {
                "model": "tokenizer",
                "inputMap": [{"input": "text", "tensor": "TEXT"}],
                "outputMap": [{"output": "ids", "tensor": "IDS"}, {"output": "mask", "tensor": "MASK"}],
            },
            {
                "model": "network",
                "inputMap": [{"input": "ids", "tensor": "IDS"}, {"input": "mask", "tensor": "MASK"}],
                "outputMap": [{"output": "logits", "tensor": "LOGITS"}],
            },
            {
                "model": "labels",
                "inputMap": [{"input": "logits", "tensor": "LOGITS"}],
                "outputMap": [{"output": "label", "tensor": "LABEL"}],
            },
        ],
    }
    assert made["dataloader"] == {"entrypoint": "dataloader.py"}


def test_what_is_left_out_is_a_comment_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {**LOADER, **CLASSIFIER, "models/other/config.pbtxt": NETWORK, "models/other/1/model.onnx": "x"})
    assert main(["init", str(tmp_path), "--source", "pvc://models/x"]) == 0
    printed = capsys.readouterr()
    said = [
        "Left out: network: output.label_filename: no file with labels is served, and answers hold numbers.",
        "Left out: network: instance_group.gpus: spec.gpu says how many GPUs the server has, and it uses all of them.",
        "Left out: 'other': not in this pipeline: write another object to serve it.",
    ]
    assert printed.err.splitlines() == said
    assert [line.strip() for line in printed.out.splitlines() if "Left out" in line] == [f"# {each}" for each in said]
    assert "name: classifier" in printed.out


def test_run_serves_the_whole_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {**LOADER, **CLASSIFIER})
    assert main(["run", str(tmp_path), "--dry-run"]) == 0
    printed = capsys.readouterr()
    body = yaml.safe_load(printed.out)
    assert body["metadata"]["name"] == "classifier"
    assert body["spec"]["source"]["uri"] == "pvc://models/classifier"
    assert len(body["spec"]["source"]["sha256"]) == 64
    assert [each["name"] for each in body["spec"]["models"]] == ["tokenizer", "network", "labels"]
    assert "Left out: network: output.label_filename" in printed.err


def test_one_python_model_is_an_ensemble_with_one_step_under_the_name_that_clients_use(tmp_path: Path) -> None:
    made = spec(tmp_path, ALONE)
    assert [each["name"] for each in made["models"]] == ["counter_step"]
    assert made["ensemble"]["name"] == "counter"
    assert made["ensemble"]["maxBatchSize"] == 8
    assert made["ensemble"]["outputs"] == made["models"][0]["outputs"]


def test_models_without_a_configuration_are_taken_as_triton_completes_them(tmp_path: Path) -> None:
    texts = {name: text for name, text in CLASSIFIER.items() if name != "models/network/config.pbtxt"}
    made = spec(tmp_path, texts)
    assert made["models"][1] == {
        "name": "network",
        "path": "models/network/2/model.onnx",
        "config": {"maxBatchSize": 0},
    }


def test_a_step_without_declared_tensors_lets_its_class_complete_them(tmp_path: Path) -> None:
    texts = {name: text for name, text in CLASSIFIER.items() if name != "models/labels/config.pbtxt"}
    made = spec(tmp_path, texts)
    assert made["models"][2] == {
        "name": "labels",
        "format": "triton-python",
        "entrypoint": "models/labels/1/model.py",
        "config": {"maxBatchSize": 8},
    }
    assert any("the largest batch that auto_complete_config sets" in each for each in told(tmp_path, texts))


def test_a_model_that_is_used_twice_is_served_twice(tmp_path: Path) -> None:
    step = """{ model_name: "labels" model_version: -1
      input_map { key: "logits" value: "LOGITS" } output_map { key: "score" value: "SCORE" } },"""
    texts = changed("models/classifier/config.pbtxt", "step [", f"step [ {step}")
    score = 'output [ { name: "SCORE" data_type: TYPE_FP32 dims: [ 1 ] },'
    texts["models/classifier/config.pbtxt"] = texts["models/classifier/config.pbtxt"].replace(
        "\noutput [", f"\n{score}"
    )
    made = spec(tmp_path, texts)
    names = [each["name"] for each in made["models"]]
    assert names == ["tokenizer", "network", "labels", "labels_2"]
    assert len({each.get("entrypoint") for each in made["models"][2:]}) == 1
    assert any("used twice" in each for each in told(tmp_path, texts))


OUTER = """platform: "ensemble" max_batch_size: 4
  input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }
  ensemble_scheduling { step { model_name: "classifier" input_map { key: "TEXT" value: "IN" }
    output_map { key: "LABEL" value: "OUT" } } }"""


def test_the_steps_of_an_ensemble_within_another_are_its_own(tmp_path: Path) -> None:
    texts = {**CLASSIFIER, "models/outer/config.pbtxt": OUTER}
    made = spec(tmp_path, texts)
    assert made["ensemble"]["name"] == "outer"
    assert [each["name"] for each in made["models"]] == ["tokenizer", "network", "labels"]
    first, _, last = made["ensemble"]["steps"]
    assert first["inputMap"] == [{"input": "text", "tensor": "IN"}]
    assert [each["tensor"] for each in first["outputMap"]] == ["classifier_0_IDS", "classifier_0_MASK"]
    assert last["outputMap"] == [{"output": "label", "tensor": "OUT"}]
    assert any(each.startswith("Left out: classifier: the ensemble within this one") for each in told(tmp_path, texts))
    itself = OUTER.replace('"classifier"', '"inner"')
    inner = OUTER.replace('"classifier"', '"outer2"')
    circle = {"m/outer2/config.pbtxt": itself, "m/inner/config.pbtxt": inner}
    assert "this ensemble is a step of itself" in refusal(tmp_path / "circle", circle, "m/outer2")


def test_an_output_of_an_ensemble_within_another_may_be_left(tmp_path: Path) -> None:
    label = 'output_map { key: "label" value: "LABEL" }'
    inner = changed("models/classifier/config.pbtxt", label, f'{label} output_map {{ key: "score" value: "SCORE" }}')
    score = 'output [ { name: "SCORE" data_type: TYPE_FP32 dims: [ 1 ] },'
    wide = inner["models/classifier/config.pbtxt"].replace("\noutput [", f"\n{score}")
    texts = {**CLASSIFIER, "models/classifier/config.pbtxt": wide, "models/outer/config.pbtxt": OUTER}
    assert spec(tmp_path, texts)["ensemble"]["steps"][-1]["outputMap"] == [{"output": "label", "tensor": "OUT"}]


def test_an_optional_input_is_left_out_if_no_request_has_it(tmp_path: Path) -> None:
    optional = 'input [ { name: "top" data_type: TYPE_INT32 dims: [ 1 ] optional: true }, '
    texts = changed("models/labels/config.pbtxt", "input [ ", optional)
    made = spec(tmp_path, texts)
    assert [each["name"] for each in made["models"][2]["inputs"]] == ["logits"]
    assert "Left out: labels: optional inputs 'top': it runs as if no request had them." in told(tmp_path, texts)
    alone = spec(
        tmp_path / "alone", {"x/config.pbtxt": texts["models/labels/config.pbtxt"], "x/1/model.py": PLAIN_STEP}
    )
    assert [each["name"] for each in alone["ensemble"]["inputs"]] == ["logits"]


def test_no_batch_dimension_stays_none(tmp_path: Path) -> None:
    texts = {name: re.sub(r"max_batch_size: \d+", "", text) for name, text in CLASSIFIER.items()}
    tokenizer = "models/tokenizer/config.pbtxt"
    # Triton's batcher does nothing there.
    texts[tokenizer] = f"{texts[tokenizer].partition('dynamic_batching')[0]} dynamic_batching {{ }}"
    made = spec(tmp_path, texts)
    assert made["models"][0]["config"] == {"maxBatchSize": 0, "instances": 2}
    said = "Left out: tokenizer: dynamic_batching: max_batch_size is 0, so no requests are batched."
    assert said in told(tmp_path, texts)
    assert [each["config"]["maxBatchSize"] for each in made["models"]] == [0, 0, 0]
    assert made["ensemble"]["maxBatchSize"] == 0


def test_names_that_no_object_can_have_are_replaced_within_it(tmp_path: Path) -> None:
    text = ENSEMBLE.replace('"network"', '"net.v2"')
    texts = {name.replace("/network/", "/net.v2/"): each for name, each in CLASSIFIER.items()}
    made = spec(tmp_path, {**texts, "models/classifier/config.pbtxt": text})
    assert made["models"][1]["name"] == made["ensemble"]["steps"][1]["model"] == "net_v2"
    assert made["models"][1]["path"] == "models/net.v2"


def test_the_operator_takes_the_object(tmp_path: Path) -> None:
    write(tmp_path, {**LOADER, **CLASSIFIER})
    body = yaml.safe_load(valid_yaml(read(tmp_path), ObjectOptions(source="pvc://models/x")))
    body["metadata"] |= {"namespace": "default", "uid": "", "generation": 1}
    assert [model.is_step for model in parse(body).spec.models] == [True, False, True]


# What is missing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import cv2, json\n", "it imports 'cv2' ('models/labels/1/model.py', line 1): list the packages in"),
        ("import near\n", "it imports 'near' from outside its folder: copy it into 'models/labels/1'"),
    ],
)
def test_run_waits_for_what_a_step_lacks(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, {**LOADER, **CLASSIFIER, "near.py": "", "models/labels/1/model.py": text + PLAIN_STEP})
    folder = read(tmp_path)
    assert any(each.startswith(f"TODO: labels: {words}") for each in notices(folder))
    with pytest.raises(FolderError, match="cannot run before this is filled in"):
        complete_yaml(folder, ObjectOptions(source="pvc://models/x"))


@pytest.mark.parametrize(
    "place", ["models/labels/requirements.txt", "models/labels/1/requirements.txt", "requirements.txt"]
)
def test_the_packages_of_a_step_are_those_of_the_nearest_requirements_file(tmp_path: Path, place: str) -> None:
    texts = {**CLASSIFIER, "models/labels/1/model.py": "import cv2\n" + PLAIN_STEP}
    assert any("list the packages in 'models/labels/requirements.txt'" in each for each in told(tmp_path, texts))
    write(tmp_path, {place: "opencv-python-headless\n"})
    folder = read(tmp_path)
    assert not any("cv2" in each for each in notices(folder))
    assert folder.pipeline is not None
    assert folder.pipeline.models[2]["requirements"] == place
    # The other step imports nothing of it.
    assert "requirements" not in folder.pipeline.models[0]
    valid_yaml(folder, ObjectOptions(source="pvc://models/x"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('NAME = open("/models/labels/1/names.json")\n', "it names '/models/labels/1/names.json': on a server"),
        (
            "import words\nwords.AutoTokenizer.from_pretrained(words.NAME)\n",
            "it calls 'from_pretrained': a server reaches nothing, so the files have to lie in the step's folder, named"
            " from Path(__file__).parent, or in 'models/labels/1/huggingface' if they",
        ),
        ("import words\nwords.cuda()\n", "it names cuda: a step runs on the CPU"),
        (
            "ROW = hash('word') % 8\n",
            "it calls hash ('models/labels/1/model.py', line 1), which is another number for the",
        ),
    ],
)
def test_what_may_fail_on_a_server_is_told(tmp_path: Path, text: str, words: str) -> None:
    texts = {**CLASSIFIER, "models/labels/1/words.py": "", "models/labels/1/model.py": text + PLAIN_STEP}
    assert any(each.startswith(f"Check: labels: {words}") for each in told(tmp_path, texts))


# What cannot be served ----------------------------------------------------------------------------------------------

BLS = "def ask(): return pb_utils.InferenceRequest(model_name='x').exec()\n"
SENDER = "def answer(request): request.get_response_sender().send(None)\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("labels/1/model.py", "class", f"{BLS}class", "labels: it asks model 'x', of which the repository has no"),
        ("labels/1/model.py", "class", f"{SENDER}class", "labels: it sends responses by itself"),
        ("labels/1/model.py", "import numpy", "import cupy", "labels: it imports 'cupy', but a step runs on the CPU"),
        ("labels/1/model.py", "class TritonPythonModel", "class Model", "defines no class TritonPythonModel"),
        ("labels/1/model.py", "class", "class class", "is not valid Python"),
        (
            "labels/config.pbtxt",
            "max_batch_size: 8",
            "max_batch_size: 8 model_transaction_policy { decoupled: True }",
            "labels: model_transaction_policy is not supported: the gates expect one answer for each request",
        ),
        (
            "labels/config.pbtxt",
            "max_batch_size: 8",
            "sequence_batching { }",
            "labels: sequence_batching is not supported: the gates send no correlation IDs",
        ),
        ("labels/config.pbtxt", "TYPE_FP32", "TYPE_BF16", "labels: input 'logits' is 'BF16', but may be BOOL"),
        ("labels/config.pbtxt", "dims: [ 3 ]", "dims: [ 3 ] reshape { shape: [ ] }", "input 'logits' is reshaped"),
        ("labels/config.pbtxt", "max_batch_size: 8", "max_batch: 8", 'has no field named "max_batch"'),
        ("labels/config.pbtxt", "max_batch_size: 8", "max_batch_size: many", "parse integer: many"),
        ("labels/config.pbtxt", "dims: [ 3 ]", "dims: [ 3", "this version knows: 4:57 : "),
        ("network/config.pbtxt", '"onnxruntime"', '"tensorrt"', "network: backend 'tensorrt' is not supported"),
        ("network/config.pbtxt", '"onnxruntime"', '"fil"', "network: backend 'fil' is not supported: convert"),
        ("network/config.pbtxt", "versions: [ 2 ]", "versions: [ 7 ]", "network: its folder has no version"),
        (
            "classifier/config.pbtxt",
            '"network" model_version: 2',
            '"network" model_version: 1',
            "network: the ensemble asks for version 1, but served is 2",
        ),
        ("classifier/config.pbtxt", '"network"', '"gone"', "'gone': the repository has no folder of this model"),
        ("classifier/config.pbtxt", 'value: "IDS" }, {', 'value: "SELF" }, {', "network: no step of classifier makes"),
        ("classifier/config.pbtxt", 'key: "logits" value: "LOGITS" }\n      output_map { key: "label"',
         'key: "other" value: "LOGITS" }\n      output_map { key: "label"',
         "labels: no step's input_map has its input 'logits'"),
        ("classifier/config.pbtxt", "max_batch_size: 8", "max_batch_size: 64", "at least ensemble.maxBatchSize"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused_with_the_model_and_what_to_do(
    tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    assert words in refusal(tmp_path, changed(f"models/{name}", old, new))


def test_all_that_cannot_be_served_is_told_at_once(tmp_path: Path) -> None:
    texts = changed("models/network/config.pbtxt", '"onnxruntime"', '"tensorrt_plan"')
    words = refusal(tmp_path, {**texts, "models/labels/1/model.py": PLAIN_STEP + BLS})
    assert words.startswith("models/classifier cannot become an object:\n  ")
    assert len(words.splitlines()) == 3


def test_a_step_of_one_name_for_an_input_and_an_output_cannot_be_alone(tmp_path: Path) -> None:
    text = LABELS.replace('"label"', '"logits"')
    assert "'logits' is the name of an input and of an output" in refusal(
        tmp_path, {"x/config.pbtxt": text, "x/1/model.py": PLAIN_STEP}
    )


# Which of them ------------------------------------------------------------------------------------------------------


def test_of_several_ensembles_one_is_chosen(tmp_path: Path) -> None:
    second = ENSEMBLE.replace('name: "classifier"', 'name: "second"')
    texts = {**CLASSIFIER, "models/second/config.pbtxt": second}
    assert "contains several models: models/classifier (triton-repository), models/second" in refusal(tmp_path, texts)
    assert spec(tmp_path, texts, "models/second")["ensemble"]["name"] == "second"


def test_a_member_can_still_be_served_alone(tmp_path: Path) -> None:
    write(tmp_path, CLASSIFIER)
    made = yaml.safe_load(valid_yaml(read(tmp_path, "models/network"), ObjectOptions(source="pvc://models/x")))["spec"]
    assert "ensemble" not in made
    assert made["models"][0]["path"] == "models/network"
    assert spec(tmp_path, CLASSIFIER, "models/labels")["ensemble"]["name"] == "labels"


def test_steps_that_nothing_connects_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"net.onnx": "graph", "decode/decode.py": PLAIN_STEP})
    assert main(["init", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    where, steps = printed.err.splitlines()
    assert where.startswith("TODO: where the folder's files are")
    assert steps.startswith("Python steps are left out: decode/decode.py. To serve them, write a model of format")
    assert f"# {steps}" in printed.out
    (tmp_path / "net.onnx").unlink()
    with pytest.raises(FolderError, match="contains no model but Python steps"):
        read(tmp_path)


# Hostile folders ----------------------------------------------------------------------------------------------------


def test_neither_links_out_of_the_folder_nor_pipes_are_read(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"config.pbtxt": ENSEMBLE, "1/model.py": PLAIN_STEP})
    write(tmp_path / "given", {**CLASSIFIER, "models/piped/1/.keep": ""})
    models = tmp_path / "given" / "models"
    (models / "classifier" / "config.pbtxt").unlink()
    (models / "classifier" / "config.pbtxt").symlink_to(tmp_path / "outside" / "config.pbtxt")
    (models / "linked").symlink_to(tmp_path / "outside")
    (models / "labels" / "2").symlink_to(tmp_path / "outside" / "1")
    os.mkfifo(models / "piped" / "config.pbtxt")
    found = files.read(tmp_path / "given", {})
    assert sorted(found.models) == ["models/labels", "models/network", "models/tokenizer"]
    assert list(found.models["models/labels"].versions) == [1]


def test_a_long_or_deep_configuration_is_refused_at_once(tmp_path: Path) -> None:
    for text in ("#" * 70_000, "a { " * 5000, 'name: "' + "x" * 70_000):
        write(tmp_path, {**CLASSIFIER, "models/labels/config.pbtxt": text})
        with pytest.raises(FolderError, match=r"labels/config\.pbtxt: (it|line)"):
            read(tmp_path)


def test_names_are_data(tmp_path: Path) -> None:
    evil = 'x\\"}]\\nmodels: []  # '
    texts = changed("models/tokenizer/config.pbtxt", 'string_value: "2"', f'string_value: "{evil}"')
    made = spec(tmp_path, texts)
    assert made["models"][0]["arguments"] == {"scale": 'x"}]\nmodels: []  # '}
    words = refusal(tmp_path, changed("models/classifier/config.pbtxt", '"network"', '"\\n\\t../x"'))
    assert "'\\n\\t../x': the repository has no folder" in words


def test_ensembles_of_ensembles_do_not_take_the_power_of_their_depth(tmp_path: Path) -> None:
    """Thirty levels, two steps each, would be a billion steps."""
    texts = {}
    for level in range(30):
        step = f'{{ model_name: "e{level + 1}" input_map {{ key: "x" value: "x" }} }}'
        texts[f"m/e{level}/config.pbtxt"] = f'platform: "ensemble" ensemble_scheduling {{ step [ {step}, {step} ] }}'
    assert "e0: it has more than 64 steps; an object has at most 8 models" in refusal(tmp_path, texts, "m/e0")


@pytest.mark.parametrize("inner", ["classifier", "other"])
def test_an_ensemble_that_contains_itself_is_refused(tmp_path: Path, inner: str) -> None:
    texts = changed("models/classifier/config.pbtxt", 'model_name: "labels"', f'model_name: "{inner}"')
    if inner == "other":
        texts["models/other/config.pbtxt"] = ENSEMBLE.replace("classifier", "other").replace("labels", "classifier")
    assert "classifier: this ensemble is a step of itself" in refusal(tmp_path, texts)


@pytest.mark.parametrize(("more", "has"), [(6, "9 steps"), (120, "more than 64 steps")])
def test_a_model_that_is_used_often_is_an_object_with_too_many_models(tmp_path: Path, more: int, has: str) -> None:
    step = '{ model_name: "tokenizer" input_map { key: "text" value: "TEXT" } output_map { key: "ids" value: "T%d" } },'
    steps = "step [" + "".join(step % number for number in range(more))
    texts = changed("models/classifier/config.pbtxt", "step [", steps)
    assert f"classifier: it has {has}; an object has at most 8 models" in refusal(tmp_path, texts)


def test_a_python_model_of_an_ensemble_can_be_chosen_alone(tmp_path: Path) -> None:
    made = spec(tmp_path, CLASSIFIER, "models/labels")
    assert [each["entrypoint"] for each in made["models"]] == ["models/labels/1/model.py"]
    assert made["ensemble"]["name"] == "labels"


@pytest.mark.parametrize(("number", "is_taken"), [("010", True), ("0x8", True), ("-08", False), ("9" * 19, False)])
def test_a_number_is_what_triton_reads(tmp_path: Path, number: str, is_taken: bool) -> None:
    texts = changed("models/tokenizer/config.pbtxt", "max_batch_size: 8", f"max_batch_size: {number}")
    if is_taken:
        assert spec(tmp_path, texts)["models"][0]["config"]["maxBatchSize"] == 8
    else:
        assert "tokenizer/config.pbtxt: it is no config.pbtxt that this version knows" in refusal(tmp_path, texts)


def test_a_number_of_a_type_that_no_server_has_is_told(tmp_path: Path) -> None:
    texts = changed("models/tokenizer/config.pbtxt", "data_type: TYPE_INT64", "data_type: 99")
    assert "tokenizer: output 'ids' is '99', but may be BOOL, " in refusal(tmp_path, texts)


@pytest.mark.parametrize("word", ["1", "t", "True"])
def test_a_switch_has_all_words_of_the_text(tmp_path: Path, word: str) -> None:
    more = f"[ {{ name: 'hint' data_type: TYPE_FP32 dims: 1 optional: {word} }}, {{ name: \"text\""
    texts = changed("models/tokenizer/config.pbtxt", '[ { name: "text"', more)
    assert any("optional inputs 'hint': it runs as if no request had them" in each for each in told(tmp_path, texts))


# The reader ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_batch_size: 8\nof_a_later_release: 1", '2:1 : Message type "inference.ModelConfig" has no field named'),
        ("input { name: 'x' data_type: TYPE_FP4 }", "has no value named TYPE_FP4"),
        ("max_batch_size: 1 max_batch_size: 2", "should not have multiple"),
        ("instance_group {" * 4_000, "no field named"),
        ("input { reshape {" + "[a.b/c] {" * 5_000, ""),
        ("name: '\xff\xfe'", "can't decode"),
        ("#" * (64 * 1024 + 1), "it is longer than 65536 bytes"),
        ("#" * 30_000 + "\n " * 10_000 + "$", ""),
        ("input " * 10_000, ""),
        ("[" * 60_000, ""),
        ("name: '" + "\\\\x" * 15_000, ""),
        ("name: " + "'a' " * 16_000 + "'", ""),
    ],
    ids=[
        "a later field",
        "a later type",
        "twice",
        "deep",
        "any",
        "no text",
        "long",
        "comments",
        "names",
        "lists",
        "x",
        "y",
    ],
)
def test_a_hostile_file_is_refused_at_once_with_a_sentence(text: str, words: str) -> None:
    started = time.process_time()
    with pytest.raises(pbtxt.PbtxtError) as refused:
        pbtxt.read(text.encode("latin-1"))
    assert time.process_time() - started < 5, "seconds"
    assert words in str(refused.value)
    assert str(refused.value).startswith("it is ")
    assert len(str(refused.value)) < 400


@given(st.text(alphabet=st.sampled_from(list("ab:{}[]<>\",;# \n\\1-'")), max_size=200))
def test_the_reader_ends_with_fields_or_its_own_error(text: str) -> None:
    with contextlib.suppress(pbtxt.PbtxtError):
        assert pbtxt.read(text.encode()) is not None


@pytest.mark.parametrize("number", ["0", "false", "f"])
def test_what_says_false_is_not_set(tmp_path: Path, number: str) -> None:
    more = f"max_batch_size: 8 model_transaction_policy {{ decoupled: {number} }}"
    assert spec(tmp_path, changed("models/labels/config.pbtxt", "max_batch_size: 8", more))
    # In a list, a zero is a value.
    assert any("instance_group.gpus" in each for each in told(tmp_path, CLASSIFIER))


def test_a_parameter_that_no_step_gets_is_left_out_with_a_notice(tmp_path: Path) -> None:
    more = '} parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "x.so" } }'
    texts = changed("models/tokenizer/config.pbtxt", '"2" } }', f'"2" }} {more}')
    assert (
        "Left out: tokenizer: parameters 'TRITON_BATCH_STRATEGY_PATH': Triton or the operator reads them, no step does."
        in told(tmp_path, texts)
    )


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_models_file_that_is_none_is_named(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "given", {**LOADER, **CLASSIFIER})
    file = tmp_path / "given" / "models" / "network" / "2" / "model.onnx"
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        write(tmp_path, {"other.onnx": "graph"})
        file.symlink_to(tmp_path / "other.onnx")
    with pytest.raises(FolderError, match=r"network/2/model\.onnx: it is a link out of the folder, or neither a file"):
        read(tmp_path / "given")
    with pytest.raises(FolderError, match=r"network: 2/model\.onnx: it is a link"):
        read(tmp_path / "given", "models/classifier")


def test_many_empty_folders_are_walked_through_quickly(tmp_path: Path) -> None:
    write(tmp_path, {**LOADER, **CLASSIFIER})
    for number in range(5_000):
        (tmp_path / "empty" / f"d{number}").mkdir(parents=True)
    walked = [str(name) for _, name in python_files.paths_below(tmp_path)]
    assert walked == sorted(walked, key=lambda each: each.split("/"))
    assert walked[0] == "dataloader.py"
    assert len(walked) == len(set(walked)) == 1 + len(CLASSIFIER)
    assert read(tmp_path).name == "classifier"
