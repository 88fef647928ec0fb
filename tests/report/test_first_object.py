import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.converters.pushed import GRAPH, STATE_DICT
from tests.report.model_folders import FOLDERS, LOADER, METRICS, state_dict, torchscript, write
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_plugin.__main__ import main
from triton_plugin.argument_groups import FORMATS
from triton_plugin.drafting.first_object import ObjectOptions, first_object, object_name
from triton_plugin.drafting.marks import marks
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.validation.validate import check
from triton_plugin.errors import FolderError

DIGITS = Path(__file__).parents[2] / "manifests/examples/digits"
PRODUCT = "NVIDIA-A100-SXM4-80GB"


def first(folder: Path, form: str = "", **known: Any) -> tuple[dict[str, Any], str]:
    """The spec and the text it was read from; valid in any case."""
    text = first_object(read(folder, form=form), ObjectOptions(**known))
    body = yaml.safe_load(text)
    assert check(body) == []
    spec: dict[str, Any] = body["spec"]
    return spec, text


# Each source --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FOLDERS)
@pytest.mark.parametrize(
    "options", [[], ["--gpu", PRODUCT], ["--max-batch-size", "0"]], ids=["cpu", "gpu", "unbatched"]
)
def test_the_object_of_every_source_is_what_validate_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, options: list[str]
) -> None:
    folder = tmp_path / "My model"
    folder.mkdir()
    FOLDERS[form](folder)
    assert main(["init", str(folder), *options]) == 0
    file = tmp_path / "td.yaml"
    file.write_text(capsys.readouterr().out)
    needed = [each.line for each in marks(file.read_text()) if each.is_needed]
    assert main(["validate", str(file)]) == bool(needed)
    lines = capsys.readouterr().out.splitlines()
    assert [int(each.removeprefix(f"{file}:").split(":")[0]) for each in lines[: len(needed)]] == needed
    open_part = " apart from what is to be filled in" if needed else ""
    assert lines[len(needed)] == f"{file}: my-model: valid{open_part}"
    (model,) = yaml.safe_load(file.read_text())["spec"]["models"]
    assert ("path" in model) == SOURCE_FORMATS[form].is_file
    assert model.get("format") == (None if SOURCE_FORMATS[form].is_file else form), "a file tells its format"
    assert "candidates" not in model


def test_a_requirements_file_is_named_where_python_files_are(tmp_path: Path) -> None:
    for form, requirements in (("pyt", "requirements.txt"), ("onnx", None)):
        folder = tmp_path / form
        folder.mkdir()
        FOLDERS[form](folder)
        assert "requirements" not in first(folder)[0]["conversion"]
        write(folder, {"requirements.txt": "timm==1.0.9\n"})
        for name in ("dataloader.py", "metrics.py"):
            (folder / name).unlink(missing_ok=True)
        assert first(folder)[0]["conversion"].get("requirements") == requirements


def test_no_source_of_the_api_is_left_out() -> None:
    assert set(FORMATS) - {"ts-trace"} == set(FOLDERS)


def test_the_operator_chooses_the_candidates_also_for_a_gpu(tmp_path: Path) -> None:
    FOLDERS["onnx"](tmp_path)
    spec, text = first(tmp_path, gpu=PRODUCT)
    assert spec["gpu"] == {"product": PRODUCT}
    assert "candidates" not in spec["models"][0]
    assert "list them in `candidates` (docs/formats.md)" in text


def test_a_first_object_of_the_example_is_whole_where_the_user_says_what_is_not_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "Digits v2"
    folder.mkdir()
    for name in ("model.py", "dataloader.py", "metrics.py"):
        (folder / name).write_text((DIGITS / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "digits.safetensors").write_bytes(b"0")
    (folder / "older.pt").write_bytes(b"00")
    spec, text = first(folder, source="pvc://claim/digits", dataset="pvc://claim/data", max_batch_size=32)
    assert spec["source"]["uri"] == "pvc://claim/digits"
    assert spec["models"][0]["entrypoint"] == "model.py"
    assert spec["models"][0]["arguments"] == {"checkpoint": "digits.safetensors"}
    assert spec["models"][0]["config"]["maxBatchSize"] == 32
    assert spec["dataloader"] == {"entrypoint": "dataloader.py", "arguments": {"data_dir": "$(DATASET)"}}
    assert spec["dataset"]["uri"] == "pvc://claim/data"
    assert spec["metrics"] == {"entrypoint": "metrics.py"}
    assert "also found: older.pt" in text
    assert "# TODO" not in text
    assert "constraints" not in spec["selection"]


@pytest.mark.parametrize("form", ["pyt", "tf-estimator"])
def test_every_pod_requests_some_cpu_so_that_a_busy_node_does_not_starve_it(tmp_path: Path, form: str) -> None:
    FOLDERS[form](tmp_path)
    spec, text = first(tmp_path)
    assert [spec[each]["pod"]["resources"] for each in ("conversion", "serving")] == 2 * [{"requests": {"cpu": "100m"}}]
    assert "# A pod that requests no CPU gets next to none on a busy node" in text


def test_a_first_run_has_a_time_and_the_object_says_how_to_measure_more(tmp_path: Path) -> None:
    FOLDERS["pyt"](tmp_path)
    spec, text = first(tmp_path, max_batch_size=64)
    assert "performance" not in spec
    assert "requests in flight until a server is saturated, within\n  # a short time." in text
    measuring_more = yaml.safe_load(text.replace("# performance:", "performance:"))
    assert check(measuring_more) == []
    assert measuring_more["spec"]["performance"] == {"online": {"concurrency": {"start": 1}}}


# What only the user knows -------------------------------------------------------------------------------------------


def test_what_is_not_known_is_marked_and_its_option_named(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": "import torch\ndef get_model(checkpoint, *, classes, batch_size): ...\n"})
    spec, text = first(tmp_path)
    assert spec["models"][0]["arguments"] == {"checkpoint": "TODO", "classes": "TODO"}
    assert "# TODO: no file defines get_dataloader_fn" in text
    assert "metrics:" not in text
    assert "data:" not in spec
    for option in ("--source", "--max-batch-size", "--gpu"):
        assert option in text


@pytest.mark.parametrize("form", ["onnx", "tf-savedmodel"])
def test_a_graph_needs_no_dataloader_and_metrics_need_one(tmp_path: Path, form: str) -> None:
    FOLDERS[form](tmp_path)
    write(tmp_path, {"metrics.py": METRICS})
    spec, text = first(tmp_path)
    assert not {"dataloader", "metrics"} & set(spec)
    assert "Inputs are generated from what the model's graph declares" in text
    assert "thresholds" not in text


def test_the_threshold_to_take_over_is_a_minimum_that_has_to_be_filled_in(tmp_path: Path) -> None:
    FOLDERS["onnx"](tmp_path)
    write(tmp_path, {"loader.py": LOADER, "metrics.py": METRICS})
    text = first(tmp_path)[1]
    assert not any(each.is_needed and "metric" in each.text for each in marks(text)), "nobody has to set a threshold"
    taken = re.sub(r"  # (accuracy:|  thresholds:|  - {metric:)", r"  \1", text)
    assert yaml.safe_load(taken)["spec"]["accuracy"]["thresholds"] == [
        {"metric": "accuracy", "min": "TODO", "maxDegradation": 0.01}
    ]
    needed = [each.text for each in marks(taken) if each.is_needed]
    assert "- {metric: accuracy, min: TODO, maxDegradation: 0.01}" in needed


@pytest.mark.parametrize("form", ["onnx", "tf-savedmodel"])
def test_a_graph_shows_its_batch_dimension_itself(tmp_path: Path, form: str) -> None:
    FOLDERS[form](tmp_path)
    spec, text = first(tmp_path)
    assert "config" not in spec["models"][0]
    assert "performance" not in spec
    assert "--max-batch-size" not in text
    spec, text = first(tmp_path, max_batch_size=16)
    assert spec["models"][0]["config"] == {"maxBatchSize": 16, "dynamicBatching": {}}


def test_a_model_of_a_repository_says_everything_itself(tmp_path: Path) -> None:
    FOLDERS["triton-repository"](tmp_path)
    spec, text = first(tmp_path)
    assert spec["models"] == [{"name": spec["models"][0]["name"], "path": "ocr"}]
    assert "performance" not in spec
    assert "# The settings of config.pbtxt in that folder are taken." in text
    assert "Inputs are generated from what config.pbtxt or the graph declares" in text


def test_data_that_any_file_asks_for_is_mounted(tmp_path: Path) -> None:
    write(tmp_path, {"model.py": "import torch\ndef get_model(dataset_path, data_format): ...\n"})
    spec, text = first(tmp_path)
    assert spec["models"][0]["arguments"] == {"dataset_path": "$(DATASET)", "data_format": "TODO"}
    assert "dataset" in spec
    assert "--dataset" in text


def test_a_file_that_declares_arguments_may_have_defaults_for_them(tmp_path: Path) -> None:
    write(tmp_path, {"model.py": "import torch\ndef get_model(depth): ...\ndef update_argparser(parser): ...\n"})
    assert "# update_argparser in this file may set defaults" in first(tmp_path)[1]


def test_what_a_file_s_arguments_require_is_asked_for(tmp_path: Path) -> None:
    """As NVIDIA's ResNet-50 declares its network."""
    code = """
import torch
def update_argparser(parser):
    parser.add_argument("--config", required=True)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--fold-number", required=True, type=int)
    parser.add_argument("--precision", required=True)
def get_model(**arguments): ...
"""
    write(tmp_path, {"model.py": code})
    assert first(tmp_path)[0]["models"][0]["arguments"] == {"config": "TODO", "fold_number": "TODO"}


def test_of_several_dataloaders_the_first_is_taken_and_the_others_named(tmp_path: Path) -> None:
    FOLDERS["onnx"](tmp_path)
    write(tmp_path, {"a.py": LOADER, "b.py": LOADER, "metrics.py": METRICS})
    spec, text = first(tmp_path)
    assert spec["dataloader"]["entrypoint"] == "a.py"
    assert "TODO: check this choice; also found: b.py." in text
    assert spec["metrics"]["arguments"] == {"output": "TODO"}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("tf-estimator", "TODO: an image with TensorFlow 2.15"),
        ("ts-script", "INPUT__0, INPUT__1, ... in the order of forward's parameters"),
    ],
)
def test_what_a_source_wants_of_its_user_is_said(tmp_path: Path, form: str, words: str) -> None:
    FOLDERS[form](tmp_path)
    assert words in first(tmp_path)[1]


# What lies in the folder --------------------------------------------------------------------------------------------


def test_files_are_found_where_they_lie(tmp_path: Path) -> None:
    paths = {"tf-savedmodel": "export/1", "onnx": "net.onnx", "ts-script": "net.pt", "triton-repository": "ocr"}
    for form, path in paths.items():
        folder = tmp_path / form
        folder.mkdir()
        FOLDERS[form](folder)
        assert first(folder)[0]["models"][0]["path"] == path


def test_an_estimators_arguments_are_those_of_both_functions(tmp_path: Path) -> None:
    FOLDERS["tf-estimator"](tmp_path)
    arguments = first(tmp_path)[0]["models"][0]["arguments"]
    assert arguments == {"checkpoint_dir": "checkpoints", "image_size": "TODO", "batch_size": "TODO"}


def test_a_checkpoint_may_have_the_suffix_of_nvidias_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"model.py": "import torch\ndef get_model(checkpoint): ...\n", "nvidia_resnet50.pth.tar": "", "data.tar": ""},
    )
    assert first(tmp_path)[0]["models"][0]["arguments"] == {"checkpoint": "nvidia_resnet50.pth.tar"}


def test_a_keras_checkpoint_is_looked_for_by_keras_own_suffixes(tmp_path: Path) -> None:
    FOLDERS["tf-keras"](tmp_path)
    arguments = first(tmp_path)[0]["models"][0]["arguments"]
    assert arguments == {"checkpoint": "resnet.weights.h5", "classes": "TODO"}


@pytest.mark.parametrize(
    ("files", "form"),
    [
        ({"model.py": "import torchvision.models\ndef get_model(): ..."}, "pyt"),
        ({"model.py": "from . import net\ndef get_model(): ...", "net.py": "import torch"}, "pyt"),
        ({"m/model.py": "from lib.net import N\ndef get_model(): ...", "lib/net.py": "import keras"}, "tf-keras"),
        ({"m/model.py": "from ..lib import net\ndef get_model(): ...", "lib/net.py": "import torch"}, "pyt"),
        ({"model.py": "import net\ndef get_model(): ...", "net/__init__.py": "from torch import nn"}, "pyt"),
        ({"model.py": "import tensorflow as tf\ndef get_model(): return tf.estimator.Estimator()"}, "tf-estimator"),
        ({"model.py": "import keras\ndef get_model(): ...", "train.py": "import torch"}, "tf-keras"),
        ({"model.py": "from transformers import AutoModel\ndef get_model(): ..."}, "pyt"),
        ({"model.py": "from transformers import TFAutoModel\ndef get_model(): ..."}, "tf-keras"),
        ({"model.py": "import transformers as t\ndef get_model(): t.TFBertModel()"}, "tf-keras"),
    ],
    ids=[
        "torchvision",
        "beside",
        "from the top",
        "above",
        "a package",
        "estimator",
        "another file is no import",
        "transformers of PyTorch",
        "transformers of TensorFlow",
        "their names after a dot",
    ],
)
def test_the_framework_is_told_from_what_the_model_imports(tmp_path: Path, files: dict[str, str], form: str) -> None:
    write(tmp_path, files)
    assert read(tmp_path).model.format == form


def test_no_file_is_run(tmp_path: Path) -> None:
    write(tmp_path, {"model.py": "import torch\nraise SystemExit('run')\ndef get_model(): ...\n"})
    assert read(tmp_path).model.path == "model.py"


SEVERAL = {
    "a.py": "import torch\ndef get_model(): ...",
    "b/c.py": "import keras\ndef get_model(): ...",
    "n.onnx": "graph",
}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "contains no model"),
        ({"best.safetensors": ""}, "A checkpoint alone is not enough"),
        (SEVERAL, r"several models: a.py \(pyt\), b/c.py \(tf-keras\), n.onnx \(onnx\); choose one: --model PATH"),
        ({"a.py": "def get_model(:"}, "is not valid Python"),
        ({"a.py": "def get_model(): ..."}, "choose --format pyt or --format tf-keras or --format tf-estimator"),
        ({"a.py": "import torch, keras\ndef get_model(): ..."}, "choose --format pyt or"),
        ({"saved_model.pb": ""}, "is itself a SavedModel"),
        (
            {"config.pbtxt": "", "1/model.onnx": "graph"},
            "is itself a model of a Triton repository.*pass the folder that",
        ),
        (
            {"a/config.pbtxt": "", "b/config.pbtxt": ""},
            r"several models: a \(triton-repository\), b \(triton-repository\)",
        ),
    ],
    ids=["empty", "checkpoint", "several", "broken", "neither", "both", "a SavedModel", "a repository", "two served"],
)
def test_a_folder_that_does_not_tell_says_what_is_missing_or_which_option_tells(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    write(tmp_path, files)
    with pytest.raises(FolderError, match=words):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scripts/old.py", "print 'of Python 2'\n"),
        ("templates/{{name}}.py", "import {{name}}\n"),
        ("venv/lib/bad_coding.py", "# -*- coding: uft-8 -*-\n"),
        ("null.py", "x = 1\0\n"),
    ],
)
def test_a_file_that_is_no_python_stops_nothing_if_it_can_be_none_of_the_users_files(
    tmp_path: Path, name: str, text: str
) -> None:
    write(tmp_path, {"a.py": "import torch\ndef get_model(): ...", name: text})
    assert read(tmp_path).model.path == "a.py"
    write(tmp_path, {name: f"{text}def get_dataloader_fn(): ...\n"})
    with pytest.raises(FolderError, match="is not valid Python"):
        read(tmp_path)


def test_the_options_tell(tmp_path: Path) -> None:
    write(tmp_path, SEVERAL)
    assert read(tmp_path, "./b/c.py").model.format == "tf-keras"
    assert read(tmp_path, form="onnx").model.path == "n.onnx"
    with pytest.raises(FolderError, match=r"no model of format ts-trace; it contains a.py \(pyt\)"):
        read(tmp_path, form="ts-trace")
    with pytest.raises(FolderError, match=r"no model n.onnx of format pyt"):
        read(tmp_path, "n.onnx", "pyt")


def test_who_knows_better_says_the_format(tmp_path: Path) -> None:
    write(tmp_path, {"model.py": "def get_model(): ..."})
    assert first(tmp_path, form="tf-keras")[0]["models"][0]["format"] == "tf-keras"
    torchscript(tmp_path / "net.pt")
    assert first(tmp_path, form="ts-trace")[0]["models"][0]["path"] == "net.pt"


def test_weights_are_no_torchscript_whatever_they_are_called(tmp_path: Path) -> None:
    state_dict(tmp_path / "model.pt")
    (tmp_path / "cut.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(FolderError, match="contains no model"):
        read(tmp_path)


def test_a_file_that_the_api_cannot_name_is_refused_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my net.onnx").write_text("graph")
    assert main(["init", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "the name 'my net.onnx' cannot stand in a TritonDeployment: rename the file" in said.err


@pytest.mark.parametrize("name", ["model.onnx.bak", "m.bin", "M.ONNX", "a/graph"])
def test_a_model_with_another_name_counts_if_the_folder_has_no_other(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(GRAPH)
    spec, text = first(tmp_path)
    assert spec["models"][0]["path"] == name
    assert "    # It is an ONNX graph.\n" in text
    write(tmp_path, {"model.onnx": "graph"})
    assert first(tmp_path)[0]["models"][0]["path"] == "model.onnx"


def test_a_checkpoint_that_is_called_onnx_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(STATE_DICT)
    with pytest.raises(
        FolderError, match=r"contains no model; it has: 'x.onnx' \(a PyTorch checkpoint .*an ONNX graph"
    ):
        read(tmp_path)


def test_a_files_name_cannot_leave_its_comment(tmp_path: Path) -> None:
    write(tmp_path, {"model.py": "import torch\ndef get_model(checkpoint): ...\n"})
    (tmp_path / "a.safetensors").write_bytes(b"00")
    (tmp_path / "b\nsuspend: true\n.safetensors").touch()
    spec, _ = first(tmp_path)
    assert "suspend" not in spec


@pytest.mark.parametrize(
    ("text", "name"),
    [("ResNet_50", "resnet-50"), ("50", "model"), ("---", "model"), ("a" * 60, "a" * 40), ("Modèle", "mod-le")],
)
def test_a_name_the_crd_takes(text: str, name: str) -> None:
    assert object_name(text) == name


def test_a_dataloader_of_a_savedmodel_is_told_its_names(tmp_path: Path) -> None:
    FOLDERS["tf-savedmodel"](tmp_path)
    write(tmp_path, {"loader.py": LOADER})
    assert "those of the signature serving_default" in first(tmp_path)[1]
