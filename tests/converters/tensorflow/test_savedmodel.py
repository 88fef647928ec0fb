"""A SavedModel as the source: its serving signature, and what else a directory may hold."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import tensorflow as tf
from tensorflow.python.saved_model import revived_types

from tests.converters.run_stage import run_convert, run_reference
from tests.converters.tensorflow.cases import REFERENCE, SOURCE, converted, request, run_file, savedmodel_code
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.load import tf_savedmodel
from triton_converters.load.graph_inputs import GraphInput

pytestmark = pytest.mark.tensorflow
Refer = Callable[..., ReferenceResult]


class Linear(tf.Module):
    """(batch, 4) to scores (batch, 3) and the largest (batch)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(tf.random.stateless_normal((4, 3), (1, 2)))

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, "x")])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        scores = x @ self.weight
        return {"scores": scores, "largest": tf.reduce_max(scores, axis=-1)}


class Mean(tf.Module):
    """Any number of rows to one number and the doubled rows, without a batch dimension."""

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, "x")])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"mean": tf.reduce_mean(x), "double": 2 * x}


@pytest.mark.parametrize("format_name", ["tf-savedmodel", "onnx"])
def test_a_number_has_the_dimension_that_a_server_needs(published: Path, refer: Refer, format_name: str) -> None:
    model = Mean()
    tf.saved_model.save(model, str(published / "export/mean"), signatures={"serving_default": model.serve})
    code = replace(savedmodel_code("export/mean"), max_batch_size=0)
    signature = refer(code, "Linear").signature
    assert {each.name: each.dims for each in signature.outputs}["mean"] == (1,)
    run_convert(request(code, format_name))
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        answers = run_file(format_name, batch.inputs, signature)
        assert answers["mean"].shape == (1,)
        numpy.testing.assert_allclose(answers["mean"], batch.outputs["mean"], rtol=1e-4)


class Threshold(tf.Module):
    """Rows and a scalar, such as a detector's threshold or a rate of dropout that was left as an input."""

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, "x"), tf.TensorSpec((), tf.float32, "least")])
    def serve(self, x: tf.Tensor, least: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"kept": tf.where(x > least, x, tf.fill(tf.shape(x), least))}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("format_name", ["tf-savedmodel", "onnx"])
def test_a_scalar_input_has_the_dimension_that_a_server_needs(
    published: Path, refer: Refer, format_name: str, precision: str
) -> None:
    model = Threshold()
    tf.saved_model.save(model, str(published / "export/least"), signatures={"serving_default": model.serve})
    code = replace(savedmodel_code("export/least"), max_batch_size=0)
    signature = refer(code, "Threshold").signature
    assert {each.name: each.dims for each in signature.inputs}["least"] == (1,)
    run_convert(request(code, format_name, precision))
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        assert batch.inputs["least"].shape == (1,)
        answers = run_file(format_name, batch.inputs, signature)
        numpy.testing.assert_allclose(answers["kept"], batch.outputs["kept"], rtol=1e-2, atol=1e-2)


@pytest.fixture
def exported(published: Path) -> Path:
    """A SavedModel in the source, at ``export/linear``."""
    model = Linear()
    tf.saved_model.save(model, str(published / "export/linear"), signatures={"serving_default": model.serve})
    return published


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("format_name", ["tf-savedmodel", "onnx"])
def test_it_converts_like_a_model_made_of_code(exported: Path, refer: Refer, format_name: str, precision: str) -> None:
    code = savedmodel_code("export/linear")
    signature = refer(code, "Linear").signature
    assert signature.inputs == (Tensor("x", "FP32", (4,)),)
    assert sorted(signature.outputs, key=lambda tensor: tensor.name) == [
        Tensor("largest", "FP32", ()), Tensor("scores", "FP32", (3,)),
    ]  # fmt: skip
    result = run_convert(request(code, format_name, precision))
    assert result.data_types[0] == {"fp32": "FP32", "fp16": "FP16"}[precision]
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        for name, answer in run_file(format_name, batch.inputs, signature).items():
            numpy.testing.assert_allclose(answer, batch.outputs[name], atol=2e-2 if precision == "fp16" else 1e-5)


class Sequence(tf.Module):
    """(batch, steps, 4) to itself, for any number of steps."""

    @tf.function(input_signature=[tf.TensorSpec((None, None, 4), tf.float32, "x")])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": 2 * x}


def test_sizes_that_the_signature_leaves_open_are_known(published: Path) -> None:
    model = Sequence()
    tf.saved_model.save(model, str(published / "sequence"), signatures={"serving_default": model.serve})
    loaded = tf_savedmodel.load(published, savedmodel_code("sequence"), "onnx")
    assert loaded.open_axes == {"x": (0, 1), "y": (0, 1)}
    assert loaded.declared == (GraphInput("x", "float32", ("x[0]", "x[1]", 4)),)


def test_without_a_dataloader_inputs_are_generated(published: Path) -> None:
    model = Sequence()
    tf.saved_model.save(model, str(published / "sequence"), signatures={"serving_default": model.serve})
    digest = published.name
    result = run_reference(ReferenceRequest(REFERENCE, digest, savedmodel_code("sequence"), None, 8, False))
    assert result.warnings == ("inputs were generated: x FP32[224, 4]",)


def test_triton_s_layout(exported: Path, refer: Refer) -> None:
    code = savedmodel_code("export/linear")
    refer(code, "Linear")
    run_convert(request(code, "tf-savedmodel"))
    directory = converted("tf-savedmodel")
    assert directory.name == "model.savedmodel"
    assert directory.parent.name == "1"
    names = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert {"saved_model.pb", "variables/variables.index"} <= names
    config = (directory.parent.parent / "config.pbtxt").read_text()
    assert 'platform: "tensorflow_savedmodel"' in config


def load(source: Path, path: str) -> StageError:
    with pytest.raises(StageError) as caught:
        tf_savedmodel.load(source, savedmodel_code(path), "onnx")
    assert caught.value.final
    return caught.value


def test_a_directory_that_is_none_names_those_that_are(exported: Path) -> None:
    error = load(exported, "export")
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert "export/linear/saved_model.pb" in error.message


def test_a_corrupt_file(exported: Path) -> None:
    (exported / "export/linear/saved_model.pb").write_bytes(b"no protobuf")
    error = load(exported, "export/linear")
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert "export/linear is not a SavedModel" in error.message


def test_lost_variables(exported: Path) -> None:
    (exported / "export/linear/variables/variables.index").unlink()
    assert load(exported, "export/linear").reason is Reason.CHECKPOINT_INVALID


def test_without_a_serving_signature(published: Path) -> None:
    model = Linear()
    tf.saved_model.save(model, str(published / "other"), signatures={"score": model.serve})
    error = load(published, "other")
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert "has no signature serving_default; it has: score" in error.message


class Words(tf.Module):
    """(batch) of text to (batch), in upper case."""

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"upper": tf.strings.upper(text)}


def test_text_goes_in_and_out(published: Path) -> None:
    model = Words()
    tf.saved_model.save(model, str(published / "words"), signatures={"serving_default": model.serve})
    code = savedmodel_code("words")
    framework = tf_savedmodel.load(published, code, "tf-savedmodel")
    answer = framework({"text": numpy.array(["good", "day"])})["upper"]
    assert answer.dtype.kind == "U"
    assert list(answer) == ["GOOD", "DAY"]
    run_reference(ReferenceRequest(REFERENCE, SOURCE, code, None, 8, needs_labels=False))
    run_convert(request(code, "tf-savedmodel", "fp32"))


class Momentum(tf.Module):
    """An optimizer as Keras 2 had them: it keeps a variable for each weight."""

    def __init__(self, weight: tf.Variable) -> None:
        super().__init__()
        self.weight = weight
        moment = tf.Variable(tf.ones_like(weight))
        # An attribute that is a variable would be tracked twice.
        self.moment = lambda: moment

    def get_slot_names(self) -> list[str]:
        return ["m"]

    def get_slot(self, variable: tf.Variable, name: str) -> tf.Variable | None:
        return self.moment() if variable is self.weight else None

    def _create_or_restore_slot_variable(self, **slot: object) -> None:
        raise AssertionError("nothing is restored while saving")


def test_an_optimizer_of_keras_2_is_left_alone(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Linear()
    model.optimizer = Momentum(model.weight)
    with monkeypatch.context() as patch:
        for name in ("_REVIVED_TYPE_REGISTRY", "_TYPE_IDENTIFIERS"):
            patch.setattr(revived_types, name, getattr(revived_types, name).copy())
        version = revived_types.VersionedTypeRegistration(
            lambda proto: None, version=2, min_producer_version=1, min_consumer_version=1
        )
        revived_types.register_revived_type("optimizer", lambda each: isinstance(each, Momentum), versions=[version])
        tf.saved_model.save(model, str(published / "trained"), signatures={"serving_default": model.serve})
    with pytest.raises(AttributeError, match="add_slot"):
        tf.saved_model.load(str(published / "trained"))
    framework = tf_savedmodel.load(published, savedmodel_code("trained"), "onnx")
    values = numpy.ones((2, 4), numpy.float32)
    numpy.testing.assert_allclose(framework({"x": values})["scores"], values @ model.weight.numpy(), atol=1e-6)


DECLARED = Signature(
    (Tensor("x", "FP32", (4,)),), (Tensor("scores", "FP32", (3,)), Tensor("largest", "FP32", ())), max_batch_size=4
)


def test_a_directory_of_a_triton_repository_is_served_as_it_is(exported: Path) -> None:
    code = replace(savedmodel_code("export/linear"), declared=DECLARED)
    (exported / "export/linear/variables/libplanted.so").write_text("planted")
    (exported / "export/linear/assets").mkdir(exist_ok=True)
    found = run_reference(ReferenceRequest(REFERENCE, SOURCE, code, None, 64, needs_labels=False))
    assert set(found.signature.outputs) == set(DECLARED.outputs)
    run_convert(request(code, "tf-savedmodel"))
    given, served = exported / "export/linear", converted("tf-savedmodel")
    names = {str(each.relative_to(served)) for each in served.rglob("*") if each.is_file()}
    assert {"saved_model.pb", "variables/variables.index"} < names
    assert not any("planted" in each for each in names)
    assert all((served / each).read_bytes() == (given / each).read_bytes() for each in names)


def test_a_declaration_that_does_not_fit_the_signature_says_so(exported: Path) -> None:
    wrong = replace(DECLARED, inputs=(Tensor("x", "FP32", (5,)),))
    code = replace(savedmodel_code("export/linear"), declared=wrong)
    with pytest.raises(StageError, match="declares input x as FP32") as caught:
        run_reference(ReferenceRequest(REFERENCE, SOURCE, code, None, 64, needs_labels=False))
    assert caught.value.reason is Reason.MODEL_CONFIG_REFUSED
