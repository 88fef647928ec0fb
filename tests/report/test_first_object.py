from pathlib import Path

import pytest
import yaml

from triton_plugin.first_object import first_object, object_name
from triton_plugin.model_folder import FolderError, read
from triton_plugin.validation.validate import check

DIGITS = Path(__file__).parents[2] / "manifests/examples/digits"


def test_a_first_object_of_the_example_is_valid_and_names_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "Digits v2"
    folder.mkdir()
    for name in ("model.py", "dataloader.py", "metrics.py"):
        (folder / name).write_text((DIGITS / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "digits.safetensors").write_bytes(b"0")
    (folder / "older.pt").write_bytes(b"00")
    text = first_object(read(folder))
    body = yaml.safe_load(text)
    assert check(body) == []
    assert body["metadata"]["name"] == "digits-v2"
    spec = body["spec"]
    assert spec["models"][0]["entrypoint"] == "model.py"
    assert spec["models"][0]["arguments"] == {"checkpoint": "digits.safetensors"}
    assert spec["dataloader"] == {"entrypoint": "dataloader.py", "arguments": {"data_dir": "$(DATA)"}}
    assert spec["data"]["uri"] == "pvc://datasets/digits-v2"
    assert spec["metrics"] == {"entrypoint": "metrics.py"}
    assert "also there: older.pt" in text
    assert "TODO" not in text


def test_what_is_not_known_is_marked(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\ndef get_model(checkpoint, *, classes, batch_size): ...\n")
    text = first_object(read(tmp_path))
    assert yaml.safe_load(text)["spec"]["models"][0]["arguments"] == {"checkpoint": "TODO", "classes": "TODO"}
    assert "# TODO: no file defines get_dataloader_fn" in text
    assert "metrics:" not in text
    assert check(yaml.safe_load(text)) == []


def test_no_file_is_run(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("raise SystemExit('run')\ndef get_model(): ...\n")
    assert read(tmp_path).model.path == "model.py"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "none of the 0 Python files"),
        ({"a.py": "def get_model(): ...", "b/c.py": "def get_model(): ..."}, "a.py, b/c.py; keep one"),
        ({"a.py": "def get_model(:"}, "is not Python"),
        ({"a.py": "from tensorflow import keras\ndef get_model(): ..."}, "imports TensorFlow"),
    ],
    ids=["empty", "two", "broken", "tensorflow"],
)
def test_a_folder_that_is_none_says_why(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(FolderError, match=words):
        first_object(read(tmp_path))


@pytest.mark.parametrize(
    ("text", "name"),
    [("ResNet_50", "resnet-50"), ("50", "model"), ("---", "model"), ("a" * 60, "a" * 40), ("Modèle", "mod-le")],
)
def test_a_name_the_crd_takes(text: str, name: str) -> None:
    assert object_name(text) == name
