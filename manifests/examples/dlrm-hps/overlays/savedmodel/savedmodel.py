"""Write the dense part that train.py has trained as a SavedModel too, and publish both.

Below --directory: what train.py has left in trained/ becomes data/ and model/, and model/dense is the SavedModel. Each
folder appears by one rename, so a reader finds it whole or not at all; the model's comes last.
"""

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf
from clicks import CARDINALITIES, NUMBERS
from safetensors.numpy import load_file

CATEGORIES = len(CARDINALITIES)
FEATURES = CATEGORIES + 1
ROWS, COLUMNS = np.tril_indices(FEATURES, -1)


class Stack(tf.Module):
    """Linear layers with rectifiers between them: ``stack`` of layers.py."""

    def __init__(self, weights: Mapping[str, np.ndarray], name: str) -> None:
        super().__init__(name)
        # PyTorch counts the rectifiers too.
        count = sum(key.startswith(f"{name}.") for key in weights)
        self.matrices = [tf.Variable(weights[f"{name}.{layer}.weight"].T) for layer in range(0, count, 2)]
        self.biases = [tf.Variable(weights[f"{name}.{layer}.bias"]) for layer in range(0, count, 2)]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Rows of the first layer's inputs to rows of the last layer's sums."""
        *inner, last = zip(self.matrices, self.biases, strict=True)
        for matrix, bias in inner:
            x = tf.nn.relu(x @ matrix + bias)
        matrix, bias = last
        return x @ matrix + bias


class DLRM(tf.Module):
    """The network of dense.py."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.bottom, self.top = Stack(weights, "bottom"), Stack(weights, "top")

    @tf.function(
        input_signature=[
            tf.TensorSpec((None,), tf.float32, "vectors"),
            tf.TensorSpec((1, None), tf.float32, "numerical"),
        ]
    )
    def serve(self, vectors: tf.Tensor, numerical: tf.Tensor) -> dict[str, tf.Tensor]:
        """Vectors (26 n 128,), category after category, and numbers (1, 13 n) to logits (n, 1)."""
        numbers = tf.nn.relu(self.bottom(tf.reshape(numerical, (-1, NUMBERS))))
        embedded = tf.transpose(tf.reshape(vectors, (CATEGORIES, -1, numbers.shape[1])), (1, 0, 2))
        features = tf.concat([numbers[:, None], embedded], axis=1)
        products = tf.reshape(tf.matmul(features, features, transpose_b=True), (-1, FEATURES**2))
        met = tf.gather(products, ROWS * FEATURES + COLUMNS, axis=1)
        return {"logits": self.top(tf.concat([numbers, met], axis=1))}


def main() -> None:
    """Write the SavedModel, and publish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, required=True)
    directory: Path = parser.parse_args().directory
    trained = directory / "trained"
    dense = DLRM(load_file(trained / "model" / "dense.safetensors"))
    tf.saved_model.save(dense, str(trained / "model" / "dense"), signatures={"serving_default": dense.serve})
    for name in ("data", "model"):
        shutil.rmtree(directory / name, ignore_errors=True)
        (trained / name).rename(directory / name)


if __name__ == "__main__":
    main()
