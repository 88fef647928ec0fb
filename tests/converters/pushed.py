"""Small files and folders of each kind that people push, as their own programs write them, a few bytes of each."""

import io
import json
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping

from onnx import TensorProto

from tests.converters.onnx_models import Graph

Files = Mapping[str, bytes]
GRAPH = Graph().model({"x": (TensorProto.FLOAT, ["n"])}, {"y": ("x", TensorProto.FLOAT, ["n"])}).SerializeToString()
SAVED_MODEL = b"\x08\x01\x12\x00"
"""saved_model_schema_version: 1, and one empty meta_graphs."""


def archive(*names: str) -> bytes:
    """A zip archive of empty files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name in names:
            file.writestr(name, b"")
    return made.getvalue()


def tar() -> bytes:
    """A tar archive of a model."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as file:
        file.addfile(tarfile.TarInfo("model.onnx"))
    return made.getvalue()


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protobuf: bytes or a small number."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    tag = number << 3 | 2
    return (bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])) + bytes([len(value)]) + value


PICKLED = (
    b"\x80\x04\x95" + struct.pack("<Q", 60) + b"\x8c\x18sklearn.ensemble._forest\x94\x8c\x16RandomForestClassifier"
)
"""How the pickle of a random forest begins."""
NODE = field(1, b"input") + field(2, b"Placeholder")
STATE_DICT = archive("best/data.pkl", "best/version", "best/data/0")
TORCHSCRIPT = archive("net/data.pkl", "net/constants.pkl", "net/code/__torch__/net.py")
SAFETENSORS = (2).to_bytes(8, "little") + b"{}"

XGBOOST = b'{"learner":{"attributes":{}}}'
SKOPS = archive("schema.json", "140123456789.npy")
LIGHTGBM = b"tree\nversion=v4\nnum_class=1\n"

SERVED: Mapping[str, tuple[Files, str, str]] = {
    "an ONNX graph": ({"m.onnx": GRAPH}, "m.onnx", "onnx"),
    "an ONNX graph under another name": ({"m.bin": GRAPH}, "m.bin", "onnx"),
    "an ONNX graph with external data": ({"a/m.onnx": GRAPH, "a/m.onnx.data": b"1"}, "a/m.onnx", "onnx"),
    "a TorchScript file": ({"m.pt": TORCHSCRIPT}, "m.pt", "ts-script"),
    "a SavedModel": ({"m/saved_model.pb": SAVED_MODEL, "m/variables/variables.index": b"1"}, "m", "tf-savedmodel"),
    "XGBoost as JSON": ({"m.json": XGBOOST, "settings.json": b"{}"}, "m.json", "xgboost"),
    "XGBoost as UBJSON": ({"m.ubj": b"{L" + bytes(7) + b"\x07learner{L"}, "m.ubj", "xgboost"),
    "LightGBM": ({"m.txt": LIGHTGBM, "readme.txt": b"Read me."}, "m.txt", "lightgbm"),
    "scikit-learn by skops": ({"m.skops": SKOPS}, "m.skops", "sklearn"),
    "a model of a Triton repository": ({"m/config.pbtxt": b"", "m/1/model.onnx": GRAPH}, "m", "onnx"),
}
"""The files, the path that the spec names, and the format that is found."""

REFUSED: Mapping[str, tuple[Files, str, str]] = {
    "an empty file": ({"m.onnx": b""}, "EMPTY", "copy or download it again"),
    "a pointer of Git LFS": (
        {"m.onnx": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"},
        "LFS",
        "git lfs pull",
    ),
    "a page of a web site": ({"m.onnx": b"\n<!DOCTYPE html>\n<html><title>Sign in"}, "WEB_PAGE", "may need a login"),
    "an error of a bucket": (
        {"m.onnx": b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code>'},
        "WEB_PAGE",
        "download the file again",
    ),
    "a GGUF file": ({"m.gguf": b"GGUF" + bytes(20)}, "GGUF", "the weights that it was made from"),
    "an OpenVINO IR": (
        {"m.xml": b'<?xml version="1.0"?>\n<net name="Model0" version="11">', "m.bin": b"1"},
        "OPENVINO",
        "the ONNX file",
    ),
    "XGBoost before 2": ({"m.model": b"binf" + bytes(20)}, "OLD_XGBOOST", "model.save_model('model.json')"),
    "CatBoost": ({"m.cbm": b"CBM1" + bytes(20)}, "CATBOOST", "format='onnx'"),
    "a scikit-learn pickle": ({"m.pkl": PICKLED}, "PICKLED_MODEL", "skops.io.dump"),
    "joblib, compressed": ({"m.joblib": zlib.compress(PICKLED)}, "PICKLED_MODEL", "skops.io.dump"),
    "another pickle": ({"m.pkl": pickle.dumps({"weight": [1.0]})}, "PICKLE", "load it in a Python file"),
    "a PyTorch checkpoint": ({"m.pth": STATE_DICT}, "STATE_DICT", "format: pyt, entrypoint: model.py"),
    "a PyTorch checkpoint before 1.6": (
        {"m.pth": pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)},
        "STATE_DICT",
        "torch.load(checkpoint)",
    ),
    "a torch.compile'd module": ({"m.pt": STATE_DICT}, "STATE_DICT", "torch.load(checkpoint)"),
    "an ExportedProgram": (
        {"m.pt2": archive("m/archive_format", "m/models/model.json")},
        "EXPORTED_PROGRAM",
        "torch.onnx.export",
    ),
    "safetensors": ({"m.safetensors": SAFETENSORS}, "SAFETENSORS", "def get_model(checkpoint: str)"),
    "a folder of a hub": (
        {"m/config.json": b"{}", "m/model.safetensors": SAFETENSORS},
        "HUB_FOLDER",
        "AutoModel.from_pretrained(checkpoint)",
    ),
    "Keras 3": ({"m.keras": archive("metadata.json", "config.json", "model.weights.h5")}, "KERAS", "model.export"),
    "HDF5": ({"m.h5": b"\x89HDF\r\n\x1a\n" + bytes(64)}, "KERAS", "format tf-keras"),
    "a frozen graph": ({"m.pb": field(1, NODE) + field(4, b"\x08\x16")}, "FROZEN_GRAPH", "save it as a SavedModel"),
    "a SavedModel's file": ({"saved_model.pb": SAVED_MODEL}, "SAVED_MODEL_FILE", "the folder that holds it"),
    "a checkpoint of TensorFlow": (
        {"m/checkpoint": b"model_checkpoint_path", "m/c.index": b"1", "m/c.data-00000-of-00001": b"1"},
        "TENSORFLOW_CHECKPOINT",
        "model.export",
    ),
    "an index of TensorFlow": (
        {"c.index": bytes(40) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"},
        "TENSORFLOW_CHECKPOINT",
        "format tf-keras",
    ),
    "TensorFlow Lite": ({"m.tflite": b"\x1c\x00\x00\x00TFL3" + bytes(64)}, "TFLITE", "give the SavedModel"),
    "TensorFlow.js": ({"model.json": b'{"format": "layers-model", "modelTopology": {}}'}, "TFJS", "Keras model"),
    "a TensorRT engine": ({"m.plan": b"ptrt" + bytes(64)}, "TENSORRT", "give the ONNX file"),
    "an older TensorRT engine": ({"m.engine": b"ftrt" + bytes(64)}, "TENSORRT", "give the ONNX file"),
    "the format ORT": ({"m.ort": b"\x18\x00\x00\x00ORTM" + bytes(64)}, "ORT", "give the ONNX file"),
    "a cut ONNX graph": ({"m.onnx": GRAPH[:-3]}, "CUT_ONNX", "copy or download it again"),
    "a cut archive": ({"m.pt": STATE_DICT[:-30]}, "CUT_ARCHIVE", "copy or download it again"),
    "a zip of a model": ({"m.zip": archive("model.onnx")}, "ARCHIVE", "unpack it"),
    "a tar of a model": ({"m.tar": tar()}, "ARCHIVE", "unpack it"),
    "a tar.gz of a model": ({"m.tar.gz": b"\x1f\x8b\x08" + bytes(20)}, "ARCHIVE", "unpack it"),
    "a package of Core ML": (
        {"m/Manifest.json": b"{}", "m/Data/com.apple.CoreML/model.mlmodel": b"1"},
        "COREML",
        "the model that it was made from",
    ),
    "a file of Core ML": (
        {"m.mlmodel": field(1, 4) + field(2, b"") + field(500, b"")},
        "COREML",
        "the model that it was made from",
    ),
    "a dump of XGBoost": ({"m.txt": b"booster[0]:\n0:[f0<46] yes=1,no=2,missing=2\n"}, "TREE_DUMP", "save_model"),
    "a JSON dump of XGBoost": ({"m.json": b'[\n  { "nodeid": 0, "depth": 0, "split": "f0"'}, "TREE_DUMP", "save_model"),
    "a dump of LightGBM": ({"m.json": b'{"name": "tree", "version": "v4", "num_class": 1'}, "TREE_DUMP", "save_model"),
    "PaddlePaddle": ({"m.pdmodel": field(1, field(1, 0) + field(2, 0)) + field(4, b"")}, "PADDLE", "paddle2onnx"),
    "PaddlePaddle 3": ({"m.json": b'{"base_code": {"magic": "pir"}}'}, "PADDLE", "paddle2onnx"),
    "a symbol of MXNet": ({"m.json": b'{"nodes": [{"op": "null", "name": "data"}]}'}, "MXNET", "mxnet.onnx"),
    "arrays of MXNet": ({"m.params": (0x112).to_bytes(8, "little") + bytes(20)}, "MXNET", "mxnet.onnx"),
    "NumPy arrays": ({"m.npy": b"\x93NUMPY\x01\x00" + bytes(64)}, "DATA", "spec.dataset"),
    "an archive of NumPy arrays": ({"m.npz": archive("a.npy", "b.npy")}, "DATA", "spec.dataset"),
    "a dataset": ({"m.parquet": b"PAR1" + bytes(20)}, "DATA", "spec.dataset"),
    "a picture": ({"m.png": b"\x89PNG\r\n\x1a\n"}, "DATA", "spec.dataset"),
    "a notebook": ({"m.ipynb": json.dumps({"cells": []}).encode()}, "NOTEBOOK", "the model's file that it saves"),
    "settings": ({"config.json": b'{"hidden": 1}'}, "JSON", "set path to the model's file"),
    "Python code": ({"model.py": b'"""A net."""\n\nimport torch\n'}, "PYTHON", "set entrypoint in place of path"),
}
"""The files, of which the first is named (or its folder), the kind, and what its owner is told to do."""

FOLDERS: Mapping[str, tuple[Files, str]] = {
    "a folder with an ONNX graph": (
        {"m/model.onnx": GRAPH, "m/labels.txt": b"cat"},
        "m is a folder: set path to the model in it, m/model.onnx",
    ),
    "a repository of several models": (
        {"m/a/config.pbtxt": b"", "m/a/1/model.onnx": GRAPH, "m/b/config.pbtxt": b"", "m/b/1/model.onnx": GRAPH},
        "m is a model repository: set path to the folder of one model, m/a, m/b",
    ),
    "several models": (
        {"m/detect.onnx": GRAPH, "m/read/saved_model.pb": SAVED_MODEL, "m/read/assets/a.onnx": GRAPH},
        "set path to the model in it, m/detect.onnx or m/read",
    ),
    "a hub's folder with an ONNX graph": (
        {"m/config.json": b"{}", "m/onnx/model.onnx": GRAPH},
        "set path to the model in it, m/onnx/model.onnx",
    ),
    "notebooks": (
        {"m/a.ipynb": b'{"cells": []}', "m/b.txt": b"notes"},
        "m is a folder without a model: set path to one; it has: 'a.ipynb' (a Jupyter notebook), 'b.txt'",
    ),
    "pointers of Git LFS": (
        {"m/a.onnx": b"version https://git-lfs.github.com/spec/v1\n"},
        "it has: 'a.onnx' (a pointer of Git LFS in place of the file)",
    ),
}
"""Folders that are no model, and what is said of each."""
