"""Train the network of this sample on scikit-learn's handwritten digits, and write its files.

`python3 train.py`, where scikit-learn 1.9.1 and skl2onnx 1.20.0 are. The files are in the repository: nobody has to.
"""

from pathlib import Path

import numpy
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

FOLDER = Path(__file__).parent


def main() -> None:
    """Write digits.onnx, and digits.npz with the fifth of the pictures that it was not trained on."""
    pictures, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        pictures.astype(numpy.float32), labels, test_size=0.2, random_state=0, stratify=labels
    )
    model = MLPClassifier((64,), max_iter=400, random_state=0).fit(train_x / 16, train_y)
    graph = to_onnx(model, train_x[:1], options={"zipmap": False}, target_opset=17)
    (FOLDER / "digits.onnx").write_bytes(graph.SerializeToString())
    numpy.savez_compressed(
        FOLDER / "digits.npz", pictures=test_x.astype(numpy.uint8), labels=test_y.astype(numpy.int64)
    )


if __name__ == "__main__":
    main()
