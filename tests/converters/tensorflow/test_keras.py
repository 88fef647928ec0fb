"""Loading a user's Keras model: names, structures, checkpoints, and what goes wrong with them."""

from pathlib import Path

import keras
import numpy
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from tests.converters.sources import WriteSource
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import tf_keras
from triton_converters.load.tf_framework import TensorFlowFramework, select_outputs

pytestmark = pytest.mark.tensorflow
HEADER = """
import keras
import tensorflow as tf
from keras import layers
from safetensors.numpy import load_file
NAMES = {"inputs": ["x"], "outputs": ["y"]}
def small():
    return keras.Sequential([keras.Input((3,), name="x"), layers.Dense(2, name="y")])
"""
WEIGHTS = """
def get_model(checkpoint: str, precision: str, output_format: str):
    model = small()
    if checkpoint.endswith(".safetensors"):
        weights = load_file(checkpoint)
        model.get_layer("y").set_weights([weights["kernel"], weights["bias"]])
    else:
        model.load_weights(checkpoint)
    return model
"""
WHOLE = "def get_model(checkpoint: str):\n    return keras.saving.load_model(checkpoint)"
X = numpy.array([[1.0, 2.0, 3.0]], numpy.float32)


def load(source: Path, **arguments: str) -> TensorFlowFramework:
    return tf_keras.load(source, ModelCode("tf-keras", Entrypoint("model.py", arguments), 4), "onnx")


def refusal(source: Path, **arguments: str) -> StageError:
    with pytest.raises(StageError) as caught:
        load(source, **arguments)
    assert caught.value.final
    return caught.value


def small(units: int = 2) -> keras.Model:
    return keras.Sequential([keras.Input((3,), name="x"), keras.layers.Dense(units, name="y")])


@pytest.mark.parametrize("name", ["net.weights.h5", "net.safetensors", "net.keras"])
def test_a_checkpoint_gives_the_weights(write_source: WriteSource, name: str) -> None:
    text = WHOLE if name.endswith(".keras") else WEIGHTS
    source, trained = write_source({"model.py": HEADER + text}), small()
    if name.endswith(".safetensors"):
        kernel, bias = trained.get_weights()
        save_file({"kernel": kernel, "bias": bias}, source / name)
    elif name.endswith(".keras"):
        trained.save(source / name)
    else:
        trained.save_weights(source / name)
    framework = load(source, checkpoint=name)
    assert (framework.inputs, framework.outputs) == (("x",), ("y",))
    numpy.testing.assert_array_equal(framework({"x": X})["y"], trained(X).numpy())


@pytest.mark.parametrize(
    ("model", "inputs", "outputs"),
    [
        ("small()", ("x",), ("y",)),
        ("(small(), NAMES)", ("x",), ("y",)),
        ("(small(), {'inputs': ['INPUT__0'], 'outputs': ['OUTPUT__0']})", ("INPUT__0",), ("OUTPUT__0",)),
        ("keras.Model({'b': B, 'a': A}, {'sum': A + B, 'difference': A - B})", ("b", "a"), ("sum", "difference")),
        ("keras.Model([B, A], [A - B])", ("second", "first"), ("subtract",)),
    ],
)
def test_names_come_from_the_model_or_from_get_model(
    write_source: WriteSource, model: str, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> None:
    header = f"{HEADER}A, B = keras.Input((3,), name='first'), keras.Input((3,), name='second')\n"
    framework = load(write_source({"model.py": f"{header}def get_model():\n    return {model}"}))
    assert framework.inputs == inputs
    assert [name.rstrip("_0123456789") for name in framework.outputs] == [
        name.rstrip("_0123456789") for name in outputs
    ]


def test_structures_are_filled_by_name(write_source: WriteSource) -> None:
    inputs = "a, b = keras.Input((1,), name='a'), keras.Input((1,), name='b')"
    text = f"{inputs}\n    return keras.Model({{'b': b, 'a': a}}, a - b)"
    source = write_source({"model.py": f"{HEADER}def get_model():\n    {text}"})
    framework = load(source)
    one, two = numpy.ones((1, 1), numpy.float32), numpy.full((1, 1), 2, numpy.float32)
    assert next(iter(framework({"a": two, "b": one}).values())) == [[1.0]]


TWO = "a, b = keras.Input((1,), name='a'), keras.Input((1,), name='b')\n"
OWN = """
class Own(keras.Model):
    def call(self, a, c=1.0, b=0.0):
        return a - 2 * b * c
"""


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
@pytest.mark.parametrize(
    "model", ["keras.Model([a, b], a - 2 * b)", "keras.Model({'a': a, 'b': b}, a - 2 * b)", "Own()"]
)
def test_inputs_are_given_by_name_in_whatever_order_they_are_listed(
    write_source: WriteSource, model: str, names: list[str]
) -> None:
    body = f"    return {model}, {{'inputs': {names}, 'outputs': ['y']}}"
    framework = load(write_source({"model.py": f"{HEADER}{TWO}{OWN}def get_model():\n{body}"}))
    assert framework.inputs == tuple(names)
    one, two = numpy.ones((1, 1), numpy.float32), numpy.full((1, 1), 2, numpy.float32)
    assert framework({"a": one, "b": two})["y"] == [[-3.0]]


@pytest.mark.parametrize("names", [["difference", "total"], ["total", "difference"], ["total"], ["difference"]])
def test_outputs_are_told_by_name_in_whatever_order_they_are_listed(
    write_source: WriteSource, names: list[str]
) -> None:
    outputs = "layers.Add(name='total')([a, b]), layers.Subtract(name='difference')([a, b])"
    body = f"    return keras.Model([a, b], [{outputs}]), {{'inputs': ['a', 'b'], 'outputs': {names}}}"
    framework = load(write_source({"model.py": f"{HEADER}{TWO}def get_model():\n{body}"}))
    one, two = numpy.ones((1, 1), numpy.float32), numpy.full((1, 1), 2, numpy.float32)
    answers = framework({"a": one, "b": two})
    assert list(answers) == names
    assert {name: float(array.item()) for name, array in answers.items()}.items() <= {
        "total": 3.0,
        "difference": -1.0,
    }.items()


@pytest.mark.parametrize("model", ["keras.Model([a, b], a - b)", "Own()"])
def test_names_that_contradict_the_order_are_refused(write_source: WriteSource, model: str) -> None:
    body = f"    return {model}, {{'inputs': ['b', 'x'], 'outputs': ['y']}}"
    error = refusal(write_source({"model.py": f"{HEADER}{TWO}{OWN}def get_model():\n{body}"}))
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert "get_model names b, x, but the" in error.message


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("return tf.Module()", Reason.ENTRYPOINT_INVALID, "get_model returned Module; return a keras.Model"),
        ("return small(), ['x'], ['y']", Reason.ENTRYPOINT_INVALID, "get_model returned tuple"),
        ("return small(), {'inputs': ['x']}", Reason.ENTRYPOINT_INVALID, "the second item is"),
        (
            "return small(), {'inputs': ['x x'], 'outputs': ['y']}",
            Reason.ENTRYPOINT_INVALID,
            "'x x' is there twice or does not match",
        ),
        ("return small(), {'inputs': ['x'], 'outputs': ['x']}", Reason.ENTRYPOINT_INVALID, "'x' is there twice"),
        ("return Own()", Reason.ENTRYPOINT_INVALID, "Own does not name its tensors"),
        ("return 1 / 0", Reason.USER_CODE_FAILED, "model.py:14: ZeroDivisionError"),
        ("raise SystemExit(3)", Reason.USER_CODE_FAILED, "model.py:14"),
        ("import absent", Reason.USER_CODE_FAILED, "No module named 'absent'"),
        (
            "return keras.Sequential([keras.Input((3,)), layers.Dense(2, name='narrow', dtype='mixed_float16')])",
            Reason.ENTRYPOINT_INVALID,
            "layer narrow computes in float16",
        ),
    ],
)
def test_what_get_model_does_wrong_is_named(write_source: WriteSource, body: str, reason: Reason, words: str) -> None:
    text = f"class Own(keras.Model):\n    def call(self, x):\n        return x\n\ndef get_model():\n    {body}"
    error = refusal(write_source({"model.py": HEADER + text}))
    assert error.reason is reason
    assert words in error.message


def test_a_lambda_in_a_checkpoint_is_not_executed(write_source: WriteSource) -> None:
    source = write_source({"model.py": HEADER + WHOLE})
    keras.Sequential([keras.Input((3,)), keras.layers.Lambda(lambda x: x * 2)]).save(source / "net.keras")
    error = refusal(source, checkpoint="net.keras")
    assert error.reason is Reason.PICKLE_REFUSED
    assert "net.keras holds Python code" in error.message
    assert error.message.startswith("model.py:10: ")


@pytest.mark.parametrize(
    ("text", "name", "content"),
    [
        (WHOLE, "net.keras", b"no zip"),
        (WEIGHTS, "net.weights.h5", b"no HDF5"),
        (WEIGHTS, "net.safetensors", b"no safetensors"),
    ],
)
def test_a_checkpoint_that_cannot_be_read(write_source: WriteSource, text: str, name: str, content: bytes) -> None:
    source = write_source({"model.py": HEADER + text})
    (source / name).write_bytes(content)
    error = refusal(source, checkpoint=name)
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert f"the checkpoint {name} cannot be read" in error.message


def test_a_checkpoint_that_is_missing_or_of_another_model(write_source: WriteSource) -> None:
    source = write_source({"model.py": HEADER + WEIGHTS})
    assert refusal(source, checkpoint="net.weights.h5").reason is Reason.CHECKPOINT_INVALID
    small(5).save_weights(source / "net.weights.h5")
    error = refusal(source, checkpoint="net.weights.h5")
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert "(3, 5)" in error.message


def test_call_s_exceptions_name_line_and_shapes(write_source: WriteSource) -> None:
    text = "class Net(keras.Model):\n    def call(self, x):\n        return x @ tf.ones((5, 2))\n"
    framework = load(write_source({"model.py": f"{HEADER}{text}def get_model():\n    return Net(), NAMES"}))
    with pytest.raises(StageError) as caught:
        framework({"x": X})
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
    assert caught.value.message.startswith("model.py:11: ")
    assert caught.value.message.endswith("(inputs: x float32[1, 3])")


def test_outputs_are_selected_from_what_call_returns() -> None:
    one, two = tf.ones(1), tf.zeros(1)
    assert select_outputs(one, ("y",)) == (one,)
    assert select_outputs((one, two), ("y",)) == (one,)
    assert select_outputs([one, two], ("y", "z")) == (one, two)
    assert select_outputs({"z": two, "y": one, "loss": None}, ("y", "z")) == (one, two)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (tf.ones(1), "1 outputs, but its names are ['y', 'z']"),
        ((tf.ones(1), None), "NoneType for the output z"),
        ({"y": tf.ones(1)}, "a dict of ['y']"),
        (tf.ragged.constant([[1], [2, 3]]), "RaggedTensor for the output y"),
    ],
)
def test_outputs_that_are_missing_are_named(result: object, words: str) -> None:
    names = ("y",) if isinstance(result, tf.RaggedTensor) else ("y", "z")
    with pytest.raises(StageError) as caught:
        select_outputs(result, names)
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
    assert words in caught.value.message
