"""What users read of sentences of ONNX Runtime, Triton, PyTorch, Python and pip: theirs whole, then what to do.

The sentences are those of the versions in the images, and of public reports. Those of Kubernetes have a table of their
own.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from triton_converters.contract.reasons import Reason
from triton_converters.convert import exporter_words
from triton_converters.load import onnx
from triton_converters.measuring.server import own_words
from triton_converters.packages import pip_words
from triton_converters.user import missing
from triton_operator.observed.refusal import refusal

SOURCE = "/onnxruntime_src/onnxruntime/core/"
RUNNING = "Non-zero status code returned while running"
FILE = "is not an ONNX model that runs:"
PUT = "to the source, to the file that spec.conversion.requirements names, or to the image in spec.conversion.image"


def opened(words: str) -> str:
    return onnx._unreadable(onnx._line(RuntimeError(words)))


def ran(words: str) -> str:
    return onnx._line(RuntimeError(words))


def loaded(words: str) -> str:
    found = refusal(f'E1122 16:02:42.123456 1 model_lifecycle.cc:654] "{words}"\nerror: creating server: Internal\n')
    assert found is not None
    return f"{found.sentence}{found.advice}"


def lacking(words: str) -> str:
    kind = ModuleNotFoundError if words.startswith("No module") else ImportError
    return f"{words}; {missing.advice(kind(words, name=words.split(chr(39))[1] if chr(39) in words else None))}"


def exported(words: str) -> str:
    model = SimpleNamespace(source=Path("/source"), path="model.py")
    return exporter_words.told(RuntimeError(words), model)


def installed(words: str) -> str:
    return pip_words.failure(words, words, "index.example").message


TABLE: list[tuple[Callable[[str], str], str, str]] = [
    (
        opened,
        f"[ONNXRuntimeError] : 1 : FAIL : {SOURCE}graph/model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&,"
        " const onnxruntime::PathString&, const onnxruntime::ModelOptions&) Unsupported model IR version: 99, max"
        " supported IR version: 13\n",
        f"has IR version 99 of ONNX; {onnx.RUNTIME} reads none after 13: set ir_version of the loaded model to that and"
        " save it again, or export it by an older onnx package",
    ),
    (
        opened,
        f"[ONNXRuntimeError] : 1 : FAIL : {SOURCE}graph/model_load_utils.h:46 void"
        " onnxruntime::model_load_utils::ValidateOpsetForDomain(const std::unordered_map<std::__cxx11::basic_string<"
        "char>, int>&, const std::string&, int) ONNX Runtime only *guarantees* support for models stamped with official"
        " released onnx opset versions. Opset 99 is under development and support for this is limited. Current official"
        " support for domain ai.onnx is till opset 26.\n",
        f"has operator set 99 of ONNX; {onnx.RUNTIME} reads none after 26: export it with an older opset, by an older"
        " onnx package",
    ),
    (
        opened,
        '[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. In Node, ("", Nope, "", -1) : ("x":'
        ' tensor(float),) -> ("y": tensor(float),) , Error No Op registered for Nope with domain_version of 17',
        f'{FILE} This is an invalid model. In Node, ("", Nope, "", -1) : ("x": tensor(float),) -> ("y":'
        " tensor(float),) , Error No Op registered for Nope with domain_version of 17",
    ),
    (
        opened,
        "[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Failed to load model because protobuf parsing failed.",
        f"{FILE} Failed to load model because protobuf parsing failed.",
    ),
    (
        opened,
        "[ONNXRuntimeError] : 1 : FAIL : This is an invalid model. Error: Duplicate definition of name (embedding).",
        f"{FILE} This is an invalid model. Error: Duplicate definition of name (embedding).",
    ),
    (
        opened,
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Resize(13) node with name ''",
        f"{FILE} Could not find an implementation for Resize(13) node with name ''",
    ),
    (
        ran,
        f"[ONNXRuntimeError] : 1 : FAIL : {RUNNING} Reshape node. Name:'r' Status Message:"
        f" {SOURCE}providers/cpu/tensor/reshape_helper.h:84 onnxruntime::ReshapeHelper::ReshapeHelper(const"
        " onnxruntime::TensorShape&, onnxruntime::TensorShapeVector&, bool) size != 0 && (input_shape_size % size) == 0"
        " was false. The input tensor cannot be reshaped to the requested shape. Input shape:{1,224}, requested"
        " shape:{1,-1,480}\n",
        f"{RUNNING} Reshape node. Name:'r' Status Message: size != 0 && (input_shape_size % size) == 0 was false. The"
        " input tensor cannot be reshaped to the requested shape. Input shape:{1,224}, requested shape:{1,-1,480}",
    ),
    (
        ran,
        f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : {RUNNING} Gather node. Name:'g' Status Message: indices element"
        " out of data bounds, idx=7 must be within the inclusive range [-3,2]",
        f"{RUNNING} Gather node. Name:'g' Status Message: indices element out of data bounds, idx=7 must be within the"
        " inclusive range [-3,2]",
    ),
    (
        ran,
        f"[ONNXRuntimeError] : 1 : FAIL : {RUNNING} Add node. Name:'a' Status Message:"
        f" {SOURCE}providers/cpu/math/element_wise_ops.h:563 void onnxruntime::BroadcastIterator::Init(ptrdiff_t,"
        " ptrdiff_t) axis == 1 || axis == largest was false. Attempting to broadcast an axis by a dimension other than"
        " 1. 4 by 5\n",
        f"{RUNNING} Add node. Name:'a' Status Message: axis == 1 || axis == largest was false. Attempting to broadcast"
        " an axis by a dimension other than 1. 4 by 5",
    ),
    (
        ran,
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n"
        " index: 1 Got: 5 Expected: 4\n Please fix either the inputs/outputs or the model.",
        "Got invalid dimensions for input: x for the following indices index: 1 Got: 5 Expected: 4 Please fix either"
        " the inputs/outputs or the model.",
    ),
    (
        ran,
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. Actual: (tensor(double)) , expected:"
        " (tensor(float))",
        "Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))",
    ),
    (
        own_words,
        f"onnx runtime error 6: {RUNNING} Reshape node. Name:'r' Status Message:"
        " /workspace/onnxruntime/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:44"
        " onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, bool) input_shape_size == size was"
        " false. Input shape:{1,224}, requested shape:{1,-1,480}",
        f"onnx runtime error 6: {RUNNING} Reshape node. Name:'r' Status Message: input_shape_size == size was false."
        " Input shape:{1,224}, requested shape:{1,-1,480}",
    ),
    (
        loaded,
        "failed to load 'm' version 1: Invalid argument: model 'm', tensor 'y': the model expects 3 dimensions (shape"
        " [-1,22,-1]) but the model configuration specifies 2 dimensions (shape [22,2100])",
        "failed to load 'm' version 1: Invalid argument: model 'm', tensor 'y': the model expects 3 dimensions (shape"
        " [-1,22,-1]) but the model configuration specifies 2 dimensions (shape [22,2100])",
    ),
    (
        loaded,
        "failed to load 'm' version 1: Invalid argument: unable to find backend library for backend 'tensorflow', try"
        " specifying runtime on the model configuration.",
        "failed to load 'm' version 1: Invalid argument: unable to find backend library for backend 'tensorflow', try"
        " specifying runtime on the model configuration.; this server's image lacks the backend: use another format or"
        " spec.serving.image",
    ),
    (
        loaded,
        "failed to load 'm' version 1: Internal: Failed to increase the shared memory pool size for key 'x'",
        "failed to load 'm' version 1: Internal: Failed to increase the shared memory pool size for key 'x'; raise"
        " spec.serving.sharedMemorySize",
    ),
    (
        loaded,
        "failed to load 'm' version 1: Internal: RuntimeError: Unknown builtin op: torchvision::nms.",
        "failed to load 'm' version 1: Internal: RuntimeError: Unknown builtin op: torchvision::nms.",
    ),
    (
        lacking,
        "No module named 'cv2'",
        f"No module named 'cv2'; add the package opencv-python-headless, which has it, {PUT}",
    ),
    (
        lacking,
        "No module named 'google.protobuf'",
        f"No module named 'google.protobuf'; add the package protobuf, which has it, {PUT}",
    ),
    (
        lacking,
        "No module named 'transformers'",
        f"No module named 'transformers'; add the package that has it, which often has the same name, {PUT}",
    ),
    (
        lacking,
        "attempted relative import with no known parent package",
        f"attempted relative import with no known parent package; {missing.RELATIVE}",
    ),
    (
        lacking,
        "libGL.so.1: cannot open shared object file: No such file or directory",
        "libGL.so.1: cannot open shared object file: No such file or directory; the image has no libGL.so.1, which"
        " opencv-python needs for windows: in the file of spec.conversion.requirements, write opencv-python-headless"
        " for opencv-python, and opencv-contrib-python-headless for opencv-contrib-python; or install it in an image of"
        " your own, and name that in spec.conversion.image",
    ),
    (
        lacking,
        "libcudart.so.12: cannot open shared object file: No such file or directory",
        "libcudart.so.12: cannot open shared object file: No such file or directory; the image has no libcudart.so.12"
        " of CUDA: require the package's build for the CPU, or let the code run in an image with CUDA"
        " (spec.conversion.image)",
    ),
    (
        exported,
        "Exporting the operator 'aten::special_bessel_j0' to ONNX opset version 17 is not supported. Please feel free"
        " to request support or submit a pull request on PyTorch GitHub",
        "RuntimeError: Exporting the operator 'aten::special_bessel_j0' to ONNX opset version 17 is not supported."
        " Please feel free to request support or submit a pull request on PyTorch GitHub (at model.py)",
    ),
    (
        exported,
        "The following operation failed in the TorchScript interpreter.\n"
        'Traceback of TorchScript (most recent call last):\n  File "/source/net.py", line 12, in forward\n'
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x5 and 4x2)\n",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x5 and 4x2) (at net.py:12)",
    ),
    (
        installed,
        "ERROR: Could not find a version that satisfies the requirement numpy==9.9 (from versions: 2.1.0, 2.2.4)\n",
        "index.example has nothing for numpy==9.9: it has the versions 2.1.0, 2.2.4; packages are not built here",
    ),
    (
        installed,
        "ERROR: Could not find a version that satisfies the requirement sklearm (from versions: none)\n",
        "index.example has nothing for sklearm: it has no wheel of it for this image; packages are not built here",
    ),
    (
        installed,
        "The conflict is caused by:\n    The user requested numpy>=2.3\n"
        "    The user requested (constraint) numpy==2.2.4\n",
        "no versions fit together: the requirements file asks for numpy>=2.3; the image has numpy 2.2.4; change the"
        " requirements",
    ),
    (
        installed,
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
        "no space is left on the node's disk for the packages; enlarge the disk, or ask for fewer packages",
    ),
]


@pytest.mark.parametrize(("tell", "sentence", "told"), TABLE)
def test_a_sentence_stays_whole_and_what_follows_is_true(tell: Callable[[str], str], sentence: str, told: str) -> None:
    assert tell(sentence) == told


def test_the_reason_of_a_refused_model_fits_its_sentence() -> None:
    sentence = "unable to find backend library for backend 'tensorflow', try specifying runtime"
    found = refusal(f"E1122 16:02:42.123456 1 model_lifecycle.cc:654] {sentence}\n")
    assert found is not None
    assert found.reason is Reason.FORMAT_NOT_SERVED
