"""What TensorFlow and Keras themselves write is told apart by its content."""

from pathlib import Path

import pytest
import tensorflow as tf

from triton_converters.found.kinds import Kind, kind_of

pytestmark = pytest.mark.tensorflow


def test_each_file_of_keras_has_its_kind(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)])
    model.export(str(tmp_path / "export"))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    assert {each.name: kind_of(each) for each in tmp_path.iterdir()} == {
        "export": Kind.SAVED_MODEL,
        "model.keras": Kind.KERAS,
        "model.weights.h5": Kind.KERAS,
    }
