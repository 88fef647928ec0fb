"""A Keras layer that draws random numbers is named, as an ONNX operator is."""

from pathlib import Path

import numpy
import pytest
import tensorflow as tf

from triton_converters.load.tf_framework import TensorFlowFramework

pytestmark = pytest.mark.tensorflow


def test_a_layer_that_draws_random_numbers_is_named() -> None:
    layer = tf.keras.layers.RandomFlip("horizontal", name="flip")
    model = TensorFlowFramework(lambda x: layer(x, training=True), list, ("x",), ("y",), Path(), "model.py")
    assert model.random == ()
    model({"x": numpy.zeros((2, 4, 4, 3), numpy.float32)})
    assert "Random" in model.random[0]
    assert "flip" in model.random[0]


def test_a_layer_that_draws_none_is_not() -> None:
    layer = tf.keras.layers.Dense(3)
    model = TensorFlowFramework(layer, list, ("x",), ("y",), Path(), "model.py")
    model({"x": numpy.zeros((2, 4), numpy.float32)})
    assert model.random == ()
