"""The kinds of files and folders that people give as a model: how each is recognized, and what its owner is told.

docs/files.md is made of this table, and tests/converters/test_pushed.py makes a small one of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from triton_converters.contract.formats import SHOWN, SOURCE_FORMATS
from triton_converters.found import signs
from triton_converters.found.content import Content

SAVED_MODEL = SOURCE_FORMATS["tf-savedmodel"].marker
FILE, FOLDER = (False,), (True,)
EITHER = (*FILE, *FOLDER)


@dataclass(frozen=True)
class Described:
    """What is known of a kind."""

    words: str
    """The name in messages, with an article."""
    recognizes: Callable[[Content], bool]
    advice: str = ""
    """What to do with one that cannot be served; empty: it can."""
    format: str = ""
    """The value of spec.models[].format; empty: it cannot be served."""
    is_weights: bool = False
    """Whether a Python file that builds the model is all that it lacks."""
    is_folder: tuple[bool, ...] = FILE
    """What ``Content.is_folder`` may be; others are not tested."""


_CONVERT = "convert it to ONNX with"
_OTHER_LIBRARY = "no backend of Triton that the operator serves reads it: give"


class FileKind(Enum):
    """The kinds, in the order in which they are tested: the first that recognizes a file counts."""

    EMPTY = Described("an empty file", lambda content: content.size == 0, "copy or download it again")
    LFS = Described(
        "a pointer of Git LFS in place of the file",
        signs.begins(b"version https://git-lfs"),
        "fetch the file itself with `git lfs pull`, and push that",
    )
    WEB_PAGE = Described(
        "a page that a web server answered with",
        lambda content: signs.WEB.match(content.text) is not None,
        "download the file again, by the address of the file itself; it may need a login",
    )
    TORCHSCRIPT = Described(
        SHOWN["ts-script"],
        signs.is_torchscript,
        format="ts-script",
    )
    EXPORTED_PROGRAM = Described(
        "a program of torch.export",
        signs.is_exported_program,
        "export the module with torch.onnx.export or torch.jit.trace",
    )
    KERAS = Described(
        "a Keras file",
        signs.is_keras,
        "export it as a SavedModel (model.export), or load it in a Python file with get_model, format tf-keras",
    )
    STATE_DICT = Described(
        "a PyTorch checkpoint (torch.save), which holds weights and no model",
        signs.is_state_dict,
        is_weights=True,
    )
    SAFETENSORS = Described(
        "a safetensors file, which holds weights and no model",
        signs.is_safetensors,
        is_weights=True,
    )
    PICKLED_MODEL = Described(
        "a pickled model of scikit-learn, XGBoost, LightGBM or CatBoost",
        signs.is_pickled_model,
        "save scikit-learn's with skops (skops.io.dump(model, 'model.skops')), XGBoost's as JSON"
        " (model.save_model('model.json')) and LightGBM's as text (model.booster_.save_model('model.txt'))",
    )
    PICKLE = Described(
        "a pickle of Python objects",
        signs.is_pickle,
        "load it in a Python file with get_model, format pyt, if it holds a PyTorch module or its weights; convert"
        " models of other packages to ONNX",
    )
    SKOPS = Described(
        SHOWN["sklearn"],
        signs.is_skops,
        format="sklearn",
    )
    DATA = Described(
        "a file with data and no model (NumPy, Parquet, Arrow, PNG or JPEG)",
        signs.is_data,
        "set path to the model's file; spec.dataset is for the data that a dataloader reads",
    )
    CUT_ARCHIVE = Described(
        "a zip archive, as PyTorch and Keras write them, whose end is missing",
        signs.is_cut_archive,
        "copy or download it again",
    )
    ARCHIVE = Described(
        "an archive (zip, tar, gzip or the like)",
        signs.is_archive,
        "unpack it, and give the model's file or folder that is in it",
    )
    TENSORRT = Described(
        "a TensorRT engine",
        signs.begins(b"ptrt", b"ftrt"),
        "it runs only on the TensorRT that built it: give the ONNX file that it was built from",
    )
    TFLITE = Described(
        "a TensorFlow Lite model",
        signs.begins(b"TFL3", at=4),
        "give the SavedModel that it was made from",
    )
    ORT = Described(
        "a model in the format ORT of ONNX Runtime",
        signs.begins(b"ORTM", at=4),
        "give the ONNX file that it was made from",
    )
    GGUF = Described(
        "a GGUF file of llama.cpp",
        signs.begins(b"GGUF"),
        f"{_OTHER_LIBRARY} the weights that it was made from, with a Python file that has get_model",
    )
    CATBOOST = Described(
        "a CatBoost model",
        signs.begins(b"CBM1"),
        "save it as ONNX: model.save_model('model.onnx', format='onnx')",
    )
    LIGHTGBM = Described(
        SHOWN["lightgbm"],
        signs.begins(b"tree\n", b"tree\r\n"),
        format="lightgbm",
    )
    XGBOOST = Described(
        SHOWN["xgboost"],
        signs.is_xgboost,
        format="xgboost",
    )
    OLD_XGBOOST = Described(
        "a model as XGBoost saved it before version 2",
        signs.begins(b"binf"),
        "load it with the XGBoost that saved it, and save it as JSON: model.save_model('model.json')",
    )
    TREE_DUMP = Described(
        "a dump of trees, from which no library predicts",
        signs.is_tree_dump,
        "save the model itself: XGBoost's as JSON (model.save_model('model.json')) and LightGBM's as text"
        " (model.booster_.save_model('model.txt'))",
    )
    OPENVINO = Described(
        "an OpenVINO IR",
        lambda content: signs.NET.match(content.text) is not None,
        f"{_OTHER_LIBRARY} the ONNX file or the SavedModel that it was made from",
    )
    NOTEBOOK = Described(
        "a Jupyter notebook",
        signs.says("cells"),
        "give the model's file that it saves, or a Python file with get_model",
    )
    PADDLE = Described(
        "a model of PaddlePaddle",
        signs.is_paddle,
        f"{_CONVERT} paddle2onnx",
    )
    MXNET = Described(
        "a model of MXNet",
        signs.is_mxnet,
        f"{_CONVERT} mxnet.onnx.export_model",
    )
    TFJS = Described(
        "a model of TensorFlow.js",
        signs.says("modelTopology"),
        "give the SavedModel or the Keras model that it was made from",
    )
    JSON = Described(
        "a JSON file",
        signs.is_json,
        "set path to the model's file, or to the folder that has it",
    )
    PYTHON = Described(
        "Python code",
        lambda content: signs.CODE.search(content.text) is not None,
        "if it has get_model, set entrypoint in place of path, and format: pyt or tf-keras (docs/user-files.md)",
    )
    ONNX = Described(SHOWN["onnx"], signs.is_onnx, format="onnx")
    CUT_ONNX = Described(
        "a protobuf, as ONNX graphs are, whose end is missing",
        signs.is_cut_onnx,
        "copy or download it again",
    )
    FROZEN_GRAPH = Described(
        "a frozen graph of TensorFlow 1",
        signs.is_frozen_graph,
        "save it as a SavedModel (tf.compat.v1.saved_model.simple_save), or convert it with tf2onnx --graphdef",
    )
    SAVED_MODEL_FILE = Described(
        "the file of a SavedModel without its folder",
        signs.is_saved_model,
        "set path to the folder that holds it together with variables/",
    )
    COREML = Described(
        "a Core ML model",
        signs.is_coreml,
        f"{_OTHER_LIBRARY} the model that it was made from",
        is_folder=EITHER,
    )
    TENSORFLOW_CHECKPOINT = Described(
        "a checkpoint of TensorFlow, which holds weights and no model",
        signs.is_tensorflow_checkpoint,
        "export the model as a SavedModel (model.export), or load the weights in a Python file with get_model, format"
        " tf-keras",
        is_folder=EITHER,
    )
    SAVED_MODEL = Described(
        SHOWN["tf-savedmodel"],
        signs.is_saved_model,
        format="tf-savedmodel",
        is_folder=FOLDER,
    )
    HUB_FOLDER = Described(
        "a folder of a model hub, with weights and settings but no code",
        signs.is_hub_folder,
        is_weights=True,
        is_folder=FOLDER,
    )

    @property
    def words(self) -> str:
        """The name in messages."""
        return self.value.words

    @property
    def advice(self) -> str:
        """What to do with one that cannot be served; empty: it can, or it is weights."""
        return self.value.advice

    @property
    def is_weights(self) -> bool:
        """Whether a Python file that builds the model is all that it lacks."""
        return self.value.is_weights

    @property
    def format(self) -> str:
        """The value of spec.models[].format; empty: it cannot be served."""
        return self.value.format


def kind_of(path: Path) -> FileKind | None:
    """Return the kind of a file or folder; None: it is none of them. Raises OSError."""
    content = Content(path)
    return next(
        (kind for kind in FileKind if content.is_folder in kind.value.is_folder and kind.value.recognizes(content)),
        None,
    )
