"""The folder of an MLflow model: its MLmodel stands for the model's file, and is read, never run."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.converters.deployed import served, settled, stalled
from tests.converters.pushed import GRAPH, LIGHTGBM, PICKLED, SAVED_MODEL, STATE_DICT, TORCHSCRIPT, XGBOOST
from tests.converters.test_smallest_object import classifier
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.found import mlflow

ONNX = """artifact_path: mlflow-artifacts:/1/models/m-9b6f/artifacts
flavors:
  onnx:
    code: null
    data: model.onnx
    onnx_session_options: null
    onnx_version: 1.23.2
    providers:
    - CUDAExecutionProvider
    - CPUExecutionProvider
  python_function:
    data: model.onnx
    env:
      conda: conda.yaml
      virtualenv: python_env.yaml
    loader_module: mlflow.onnx
    python_version: 3.11.7
mlflow_version: 3.17.2
saved_input_example_info:
    data: input_example.json
"""
"""As MLflow 3.17.2 writes it; the last lines are not a flavor's."""


def mlmodel(line: str) -> bytes:
    """An MLmodel with one flavor."""
    return f"flavors:\n  flavor:\n    {line}\nmodel_id: m-1\n".encode()


def found(folder: Path, files: Mapping[str, bytes]) -> tuple[str, str]:
    for name, content in files.items():
        place = folder / "in" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return mlflow.model_file(folder, "in/MLmodel")


@pytest.mark.parametrize(
    ("files", "file", "form"),
    [
        ({"MLmodel": ONNX.encode(), "model.onnx": GRAPH, "other.onnx": GRAPH}, "model.onnx", "onnx"),
        ({"MLmodel": mlmodel("data: 'model.onnx' "), "model.onnx": GRAPH}, "model.onnx", "onnx"),
        ({"MLmodel": mlmodel("model_data: data"), "data/model.pth": TORCHSCRIPT}, "data/model.pth", "ts-script"),
        ({"MLmodel": mlmodel("saved_model_dir: tf2/"), "tf2/saved_model.pb": SAVED_MODEL}, "tf2", "tf-savedmodel"),
        ({"MLmodel": mlmodel("data: data"), "data/model/saved_model.pb": SAVED_MODEL}, "data/model", "tf-savedmodel"),
        ({"MLmodel": mlmodel("data: model.xgb"), "model.xgb": XGBOOST}, "model.xgb", "xgboost"),
        ({"MLmodel": mlmodel("data: model.lgb"), "model.lgb": LIGHTGBM}, "model.lgb", "lightgbm"),
    ],
)  # fmt: skip
def test_an_mlmodel_names_the_models_file(tmp_path: Path, files: Mapping[str, bytes], file: str, form: str) -> None:
    assert found(tmp_path, files) == (f"in/{file}", form)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"MLmodel": mlmodel("pickled_model: model.pkl"), "model.pkl": PICKLED}, "in/model.pkl is a pickled model"),
        ({"MLmodel": mlmodel("model_data: data"), "data/model.pth": STATE_DICT}, "which holds weights and no model"),
        ({"MLmodel": mlmodel("data: d"), "d/a.onnx": GRAPH, "d/b.onnx": GRAPH}, "in/d/a.onnx or in/d/b.onnx"),
        ({"MLmodel": mlmodel("data: model.onnx")}, "names no model that can be served"),
        ({"MLmodel": mlmodel("data: ../m.onnx"), "../m.onnx": GRAPH}, "names no model"),
        ({"MLmodel": mlmodel("data: /etc/passwd")}, "names no model"),
        ({"MLmodel": b"flavors: {onnx: {data: model.onnx}}", "model.onnx": GRAPH}, "names no model"),
        ({"MLmodel": b"x: y\n" + b" " * mlflow.LONGEST + mlmodel("data: m"), "m": GRAPH}, "names no model"),
        ({"MLmodel": b"\xff\x00!!python/object/apply:os.system [true]"}, "names no model"),
    ],
)
def test_what_is_not_served_says_what_to_give_instead(tmp_path: Path, files: Mapping[str, bytes], words: str) -> None:
    with pytest.raises(StageError) as caught:
        found(tmp_path, files)
    assert caught.value.reason is Reason.FORMAT_NOT_FOUND
    assert words in caught.value.message


@given(content=st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    with pytest.raises(StageError):
        found(tmp_path_factory.mktemp("mlmodel"), {"MLmodel": b"flavors:\n" + content})


def test_an_object_of_an_mlmodel_serves_the_file_that_it_names(mount: Path) -> None:
    files: dict[str, bytes | str] = {"ocr/MLmodel": ONNX, "ocr/model.onnx": classifier("N", "N"), "other.bin": b"1"}
    cluster, ran = settled(files, path="ocr/MLmodel")
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    (model,) = cluster.status["resolved"]["models"]
    assert (model["format"], model["maxBatchSize"], model["repository"]) == ("onnx", 4, {"file": "ocr/model.onnx"})
    message = cluster.condition("SourceResolved")["message"]
    assert "ocr/MLmodel is of format onnx; ocr/MLmodel names ocr/model.onnx" in message
    folder, config = served(ran)
    assert (folder / "1/model.onnx").is_file()
    assert config.max_batch_size == 4


def test_an_object_of_an_mlmodel_without_a_model_says_so(mount: Path) -> None:
    reason, message = stalled(settled({"ocr/MLmodel": ONNX, "ocr/model.onnx": b"?"}, path="ocr/MLmodel")[0])
    assert reason == Reason.FORMAT_NOT_FOUND
    assert "ocr/MLmodel names no model that can be served" in message
