"""Train the small model of this sample, as the network of the sample digits is trained, and write its file.

`python3 train.py`, where scikit-learn 1.9.1 and skl2onnx 1.20.0 are. The file is in the repository: nobody has to.
"""

from pathlib import Path

import numpy
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


def main() -> None:
    """Write small.onnx, which knows none of the pictures that digits.npz holds."""
    pictures, labels = load_digits(return_X_y=True)
    train_x, _, train_y, _ = train_test_split(
        pictures.astype(numpy.float32), labels, test_size=0.2, random_state=0, stratify=labels
    )
    model = LogisticRegression(max_iter=1000).fit(train_x / 16, train_y)
    graph = to_onnx(model, train_x[:1], options={"zipmap": False}, target_opset=17)
    (Path(__file__).parent / "small.onnx").write_bytes(graph.SerializeToString())


if __name__ == "__main__":
    main()
