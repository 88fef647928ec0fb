"""What does not convert, and what a reference refuses: the reason, and that nothing is published."""

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import tensorflow as tf

from tests.converters.sources import WriteSource
from tests.converters.tensorflow.cases import model_code, request
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature, Tensor
from triton_converters.convert import tf_savedmodel
from triton_converters.convert.task import Task, TimingCaches
from triton_converters.load import tf_estimator
from triton_converters.load.tf_framework import TensorFlowFramework

pytestmark = pytest.mark.tensorflow
Convert = Callable[..., ConvertResult]
Refer = Callable[..., ReferenceResult]


def refusal(convert: Convert, *arguments: object, **named: object) -> StageError:
    with pytest.raises(StageError) as caught:
        convert(*arguments, **named)
    assert caught.value.final
    for folder in ("candidates", "revisions"):
        directory = layout.ROOT / folder
        assert not directory.exists() or list(directory.iterdir()) == []
    return caught.value


def test_an_operator_that_tf2onnx_does_not_know_is_named(convert: Convert) -> None:
    error = refusal(convert, "Exotic", "onnx")
    assert error.reason is Reason.CONVERSION_UNSUPPORTED
    assert "TensorFlow's Bitcast" in error.message


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_savedmodel_keeps_any_operator(convert: Convert, precision: str) -> None:
    error = convert("Exotic", "tf-savedmodel", precision).max_absolute_error
    assert error is not None
    assert error < 1e-2


@pytest.mark.parametrize("half", [False, True])
def test_a_dimension_or_type_that_tracing_changes_is_named(tmp_path: Path, half: bool) -> None:
    signature = Signature((Tensor("x", "FP32", (4,)),), (Tensor("y", "FP32", (3,)),), 4)
    for answer, words in ((tf.zeros((4, 3)), "float32(4, 3)"), (tf.zeros((0, 3), tf.float64), "float64(0, 3)")):
        framework = TensorFlowFramework(lambda x, answer=answer: answer, list, ("x",), ("y",), tmp_path, "model.py")
        caches = TimingCaches(Path, tmp_path / "timing.cache")
        task = Task(request(model_code("Branching"), "tf-savedmodel"), framework, signature, {}, caches)
        with pytest.raises(StageError) as caught:
            tf_savedmodel.write(task, tmp_path / "model.savedmodel", half=half)
        assert caught.value.reason is Reason.CONVERSION_FAILED
        assert f"the traced model's y is {words}, but the signature says FP32[None, 3]" in caught.value.message


def test_a_lookup_table_is_kept_in_fp32_and_refused_where_the_graph_freezes(convert: Convert) -> None:
    error = refusal(convert, "Table", "tf-savedmodel", "fp16")
    assert error.reason is Reason.CONVERSION_UNSUPPORTED
    assert "state that is not a variable" in error.message
    assert convert("Table", "tf-savedmodel").max_absolute_error == 0.0


def test_names_that_tensorflow_would_change(convert: Convert) -> None:
    error = refusal(convert, "Branching", "tf-savedmodel", loader={"rename": "x.1"}, names="x.1")
    assert error.reason is Reason.CONVERSION_UNSUPPORTED
    assert "cannot have an input x.1" in error.message
    assert convert("Branching", "onnx", loader={"rename": "x.1"}, names="x.1").data_types == ("FP32",)


def test_tf_trt_wants_a_tensorflow_that_has_tensorrt(convert: Convert) -> None:
    """None of our images has one; the message names what works instead."""
    error = refusal(convert, "Classifier", "tf-trt", "fp16")
    assert error.reason is Reason.TENSOR_RT_UNAVAILABLE
    assert "use format trt or onnx" in error.message


@pytest.mark.parametrize(
    ("kind", "reason", "words"),
    [
        ("Stochastic", Reason.REFERENCE_NOT_REPRODUCIBLE, "run twice"),
        ("Half", Reason.FRAMEWORK_FAILED, "float16"),
        ("Python", Reason.FRAMEWORK_FAILED, "model.py:109"),
    ],
)
def test_a_framework_that_proves_nothing_is_refused(refer: Refer, kind: str, reason: Reason, words: str) -> None:
    with pytest.raises(StageError) as caught:
        refer(model_code(kind), kind)
    assert caught.value.reason is reason
    assert words in caught.value.message
    assert list(layout.ROOT.glob("references/*")) == []


ESTIMATOR = """
import tensorflow as tf

def get_model(model_dir: str, precision: str):
    def model_fn(features, labels, mode):
        x = features["x"]
        weight = tf.compat.v1.get_variable("weight", (4, 3), initializer=tf.compat.v1.random_normal_initializer(seed=1))
        scores = tf.matmul(x, weight)
        step = tf.compat.v1.train.get_or_create_global_step()
        train = step.assign_add(1)
        loss = tf.reduce_sum(scores)
        predictions = {"classes": tf.argmax(scores, -1), "scores": scores}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train)
    estimator = tf.estimator.Estimator(model_fn, model_dir=model_dir)
    estimator.train(lambda: tf.data.Dataset.from_tensors(({"x": tf.ones((2, 4))}, tf.ones(2))), steps=1)
    return estimator

def get_serving_input_receiver_fn(width: int, batch_size: int = None):
    def receiver():
        x = tf.compat.v1.placeholder(tf.float32, (batch_size, width), name="x")
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})
    return receiver
"""


def test_an_estimator_is_served_or_refused_by_what_this_tensorflow_has(
    write_source: WriteSource, tmp_path: Path
) -> None:
    """2.15 is the last release that has Estimators; the image's has none."""
    source = write_source({"model.py": ESTIMATOR})
    arguments = {"model_dir": str(tmp_path / "estimator"), "width": "4"}
    code = ModelCode("tf-estimator", Entrypoint("model.py", arguments), 4)
    if hasattr(tf, "estimator"):
        framework = tf_estimator.load(source, code, "onnx")
        assert (framework.inputs, sorted(framework.outputs)) == (("x",), ["classes", "scores"])
        answers = framework({"x": numpy.eye(4, dtype=numpy.float32)})
        numpy.testing.assert_array_equal(answers["classes"], answers["scores"].argmax(-1))
        return
    with pytest.raises(StageError) as caught:
        tf_estimator.load(source, code, "onnx")
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert "has no Estimators; 2.15 is the last version that has them" in caught.value.message
    assert "use format tf-savedmodel" in caught.value.message
