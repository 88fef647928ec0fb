"""What TensorFlow and Keras themselves write is told apart by its content."""

from pathlib import Path

import pytest
import tensorflow as tf

from triton_converters.found.batches import has_batch_dimension
from triton_converters.found.kinds import FileKind, kind_of

pytestmark = pytest.mark.tensorflow


def test_each_file_of_keras_has_its_kind(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)])
    model.export(str(tmp_path / "export"))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    assert {each.name: kind_of(each) for each in tmp_path.iterdir()} == {
        "export": FileKind.SAVED_MODEL,
        "model.keras": FileKind.KERAS,
        "model.weights.h5": FileKind.KERAS,
    }
    assert has_batch_dimension(tmp_path, "export")


def test_a_signature_of_one_size_has_no_batch_dimension(tmp_path: Path) -> None:
    module = tf.Module()
    module.double = tf.function(lambda x: {"y": 2 * x}, input_signature=[tf.TensorSpec((1, 4), tf.float32, "x")])
    tf.saved_model.save(module, str(tmp_path / "export"), signatures={"serving_default": module.double})
    assert kind_of(tmp_path / "export") is FileKind.SAVED_MODEL
    assert not has_batch_dimension(tmp_path, "export")
