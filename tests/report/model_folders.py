"""Folders as users have them: one for each source of the API. What lies in them is no more than what is looked at."""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

LOADER = "def get_dataloader_fn(data_dir: str, batch_size: int): ...\n"
METRICS = "class MetricsCalculator:\n    def __init__(self, output): ...\n"


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Texts by path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def archive(path: Path, *names: str) -> None:
    """As torch writes it, with the stem as its top folder."""
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(f"{path.stem}/{name}", "")


def torchscript(path: Path) -> None:
    """What torch.jit.save writes."""
    archive(path, "data.pkl", "constants.pkl", "version", "code/__torch__/net.py", "data/0")


def state_dict(path: Path) -> None:
    """What torch.save writes."""
    archive(path, "data.pkl", "version", "byteorder", "data/0")


def _pyt(folder: Path) -> None:
    write(
        folder,
        {"model.py": "from net import Net\ndef get_model(checkpoint: str): ...\n", "net.py": "import torch.nn\n"},
    )
    state_dict(folder / "best.pt")


def _keras(folder: Path) -> None:
    write(folder, {"model.py": "from tensorflow import keras\ndef get_model(checkpoint, *, classes): ...\n"})
    write(folder, {"resnet.weights.h5": ""})


def _estimator(folder: Path) -> None:
    text = """import tensorflow as tf
def get_model(checkpoint_dir, precision): ...
def get_serving_input_receiver_fn(image_size, batch_size): ...
"""
    write(folder, {"model.py": text, "checkpoints/weights.h5": ""})


def _savedmodel(folder: Path) -> None:
    write(folder, {"export/1/saved_model.pb": "", "export/1/variables/variables.index": ""})


def _onnx(folder: Path) -> None:
    write(folder, {"net.onnx": "graph", "net.onnx.data": ""})


def _torchscript(folder: Path) -> None:
    torchscript(folder / "net.pt")
    state_dict(folder / "weights.pt")


def _repository(folder: Path) -> None:
    write(folder, {"ocr/config.pbtxt": 'backend: "onnxruntime"', "ocr/1/model.onnx": "graph", "ocr/1/labels.pt": ""})


def _xgboost(folder: Path) -> None:
    write(folder, {"model.json": '{"learner":{}}', "settings.json": "{}"})


def _lightgbm(folder: Path) -> None:
    write(folder, {"model.txt": "tree\nversion=v4\n", "readme.txt": "Read me."})


def _sklearn(folder: Path) -> None:
    with zipfile.ZipFile(folder / "model.skops", "w") as file:
        file.writestr("schema.json", "{}")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "pyt": _pyt,
    "tf-keras": _keras,
    "tf-estimator": _estimator,
    "tf-savedmodel": _savedmodel,
    "onnx": _onnx,
    "ts-script": _torchscript,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "sklearn": _sklearn,
    "triton-repository": _repository,
}
"""By the source format that is told."""
