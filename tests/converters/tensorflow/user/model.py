"""Small Keras models of every kind the converters know; ``get_model(kind)`` picks one."""

from collections.abc import Mapping

import keras
import tensorflow as tf
from keras import layers


class Best(layers.Layer):
    """Index of the largest; keras.ops.argmax looks at the sign's bit, for which ONNX has no operator."""

    def call(self, scores: tf.Tensor) -> tf.Tensor:
        return tf.argmax(scores, axis=-1)


def classifier() -> keras.Model:
    """Images (batch, 8, 8, 1) to probabilities (batch, 4): convolution, batch norm, pooling."""
    images = keras.Input((8, 8, 1), name="images")
    x = layers.Conv2D(6, 3, padding="same")(images)
    x = layers.BatchNormalization(
        moving_mean_initializer=keras.initializers.RandomUniform(-1, 1, seed=1),
        moving_variance_initializer=keras.initializers.RandomUniform(0.5, 2, seed=2),
    )(x)
    x = layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(layers.ReLU()(x)))
    return keras.Model(images, layers.Dense(4, activation="softmax", name="probabilities")(x))


def recommender() -> keras.Model:
    """Items (batch, 5) of INT64 and a visitor (batch, 4) to scores (batch, 3) and the best one (batch)."""
    items, visitor = keras.Input((5,), dtype="int64", name="items"), keras.Input((4,), name="visitor")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(20, 4, name="embedding")(items))
    scores = layers.Dense(3)(layers.Add()([x, visitor]))
    return keras.Model({"items": items, "visitor": visitor}, {"scores": scores, "best": Best()(scores)})


def masked() -> keras.Model:
    """Sequences (batch, time, 4), a mask (batch, time) of BOOL: one output a step, one a sequence; lengths vary."""
    steps, mask = keras.Input((None, 4), name="steps"), keras.Input((None,), dtype="bool", name="mask")
    tags = layers.Dense(3, activation="tanh")(steps)
    tags = layers.Multiply()([tags, keras.ops.cast(keras.ops.expand_dims(mask, -1), "float32")])
    return keras.Model([steps, mask], [tags, keras.ops.sum(tags, axis=1)])


def recurrent() -> keras.Model:
    """Sequences (batch, time, 8) to (batch, time, 6)."""
    x = keras.Input((None, 8), name="x")
    return keras.Model(x, layers.LSTM(6, return_sequences=True)(x))


class Attention(keras.Model):
    """Sequences (batch, time, 8) to (batch, time, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4)
        self.norm = layers.LayerNormalization()

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.norm(x + self.attention(x, x, use_causal_mask=True))


class Points(keras.Model):
    """A cloud (points, 3) without batch dimension to one direction (3)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = layers.Dense(3)

    def call(self, points: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(self.embed(points), axis=0)


class Pair(keras.Model):
    """(batch, 4) twice to (batch, 3), by two arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.head = layers.Dense(3)

    def call(self, left: tf.Tensor, right: tf.Tensor, training: bool = False) -> tf.Tensor:
        return self.head(left - 2 * right)


class Parts(Pair):
    """The same by one argument, a dict."""

    def call(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return self.head(inputs["left"] - 2 * inputs["right"])


class Branching(keras.Model):
    """(batch, 4) to (batch, 3); a branch on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.head = layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(seed=3))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        y = self.head(x)
        return tf.cond(tf.reduce_sum(x) > 0, lambda: y * 2, lambda: y)


class Python(Branching):
    """The branch as Keras does not trace it."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        y = self.head(x)
        if tf.reduce_all(x < 100.0):
            y = y * 2
        return y


class Overflowing(Branching):
    """Finite in fp32; a weight is beyond fp16."""

    def build(self, shape: tuple[int, ...]) -> None:
        self.scale = self.add_weight(shape=(1,), initializer=keras.initializers.Constant(1e6))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.head(x) * self.scale / 1e6


class Stochastic(Branching):
    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.dropout(self.head(x), 0.5)


class Exotic(Branching):
    """An operator that no ONNX operator set has."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.head(x) + tf.cast(keras.ops.argmax(x, axis=-1, keepdims=True), tf.float32)


class Half(Branching):
    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.cast(self.head(x), tf.float16)


class Table(Branching):
    """State that is no variable."""

    def __init__(self) -> None:
        super().__init__()
        pairs = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1], tf.int64), tf.constant([2.0, 3.0]))
        self.table = tf.lookup.StaticHashTable(pairs, 1.0)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.head(x) * self.table.lookup(tf.cast(x[:, :1] > 0, tf.int64))


MODELS = {"Classifier": classifier, "Recommender": recommender, "Masked": masked, "Recurrent": recurrent}
NAMES = {
    "Masked": (["steps", "mask"], ["tags", "summary"]),
    "Recurrent": (["x"], ["y"]),
    "Points": (["points"], ["direction"]),
    "Pair": (["left", "right"], ["y"]),
    "Parts": (["left", "right"], ["y"]),
}


def get_model(
    kind: str, checkpoint: str = "", names: tuple[str, ...] = ()
) -> keras.Model | tuple[keras.Model, dict[str, list[str]]]:
    keras.utils.set_random_seed(7)
    model = MODELS[kind]() if kind in MODELS else globals()[kind]()
    if checkpoint:
        model.load_weights(checkpoint)
    if kind in ("Classifier", "Recommender") and not names:
        return model
    inputs, outputs = NAMES.get(kind, (["x"], ["y"]))
    return model, {"inputs": list(names) or inputs, "outputs": outputs}
