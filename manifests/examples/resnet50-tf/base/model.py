"""ResNet-50 v1.5 for pictures of 224x224 pixels, as a Keras model.

The architecture of He et al., "Deep Residual Learning for Image Recognition" (2015), table 1, in the variant that all
of NVIDIA's examples train: in a bottleneck that halves the size, the 3x3 convolution has the stride, not the first 1x1.
"""

import keras
import tensorflow as tf
from keras import layers

CLASSES = 1000
SIZE = 224
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels inside a bottleneck, and bottlenecks, of each of the four stages."""
EXPANSION = 4
"""A bottleneck gives this many times the channels it has inside."""
WEIGHTS = 25_557_032
"""What training changes: 23,454,912 of convolutions, 53,120 of normalisations, 2,049,000 of the last layer."""
STATISTICS = 53_120
"""Means and variances that the normalisations keep besides."""


class Best(layers.Layer):
    """Index of the largest of (batch, classes), as INT64 (batch,).

    Not keras.ops.argmax, which tells -0.0 from 0.0 by an operator that ONNX does not have.
    """

    def call(self, scores: tf.Tensor) -> tf.Tensor:
        """Scores to classes."""
        return tf.argmax(scores, axis=-1)


def convolve(x: keras.KerasTensor, channels: int, size: int, stride: int = 1) -> keras.KerasTensor:
    """A convolution without bias, and the normalisation after it."""
    x = layers.ZeroPadding2D(size // 2)(x) if size > 1 else x
    x = layers.Conv2D(channels, size, stride, use_bias=False, kernel_initializer="he_normal")(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def bottleneck(x: keras.KerasTensor, channels: int, stride: int) -> keras.KerasTensor:
    """Down to ``channels``, over the plane, and up to EXPANSION times as many, with a shortcut."""
    shortcut = x
    if stride > 1 or x.shape[-1] != EXPANSION * channels:
        shortcut = convolve(x, EXPANSION * channels, 1, stride)
    x = layers.ReLU()(convolve(x, channels, 1))
    x = layers.ReLU()(convolve(x, channels, 3, stride))
    return layers.ReLU()(layers.Add()([convolve(x, EXPANSION * channels, 1), shortcut]))


def resnet50() -> keras.Model:
    """Pictures (batch, 224, 224, 3) to classes INT64 (batch,) and their probabilities (batch, 1000).

    The layer ``features`` gives (batch, 2048), the layer ``scores`` what the softmax takes.
    """
    pictures = keras.Input((SIZE, SIZE, 3), name="input")
    x = layers.ReLU()(convolve(pictures, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage, (channels, depth) in enumerate(STAGES):
        for block in range(depth):
            x = bottleneck(x, channels, stride=2 if stage and not block else 1)
    x = layers.GlobalAveragePooling2D(name="features")(x)
    scores = layers.Dense(CLASSES, name="scores")(x)
    outputs = {"classes": Best(name="classes")(scores), "probabilities": layers.Softmax(name="probabilities")(scores)}
    model = keras.Model({"input": pictures}, outputs, name="resnet50")
    trained = sum(weight.shape.num_elements() for weight in model.trainable_weights)
    assert trained == WEIGHTS, trained
    assert model.count_params() == WEIGHTS + STATISTICS, model.count_params()
    return model


def get_model(checkpoint: str) -> keras.Model:
    """Load the weights; inputs and outputs have the model's own names."""
    model = resnet50()
    model.load_weights(checkpoint)
    return model
