"""Save a Keras model as a .keras file, and others as SavedModels. `python3 keras_models.py FOLDER`, where Keras is."""

import sys
from pathlib import Path

import keras


def pictures() -> keras.Model:
    """Return a small convolutional classifier."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)), layers.Conv2D(16, 3, strides=2, activation="relu"), layers.BatchNormalization(),
            layers.DepthwiseConv2D(3, activation="relu"), layers.Flatten(), layers.Dense(10, activation="softmax"),
        ]
    )  # fmt: skip


def texts() -> keras.Model:
    """Return a classifier of 40 words."""
    words = keras.Input((40,), dtype="int32", name="words")
    hidden = keras.layers.GRU(24)(keras.layers.Embedding(500, 16)(words))
    return keras.Model(words, keras.layers.Dense(3, activation="softmax", name="topic")(hidden))


def main(folder: Path) -> None:
    """Write every model."""
    keras.utils.set_random_seed(0)
    pictures().save(folder / "pictures.keras")
    pictures().export(folder / "pictures", verbose=False)
    texts().export(folder / "texts", verbose=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
