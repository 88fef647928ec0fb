"""Write down some of scikit-learn's 1,797 real handwritten digits: those to fit to, and others to measure with."""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 0


def main() -> None:
    """One npz: fitted and held_out (n, 8, 8) of grey levels 0 to 16, fitted_classes and held_out_classes (n,)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--fitted", type=int, required=True)
    parser.add_argument("--held-out", type=int, required=True)
    options = parser.parse_args()
    digits = load_digits()
    fitted, held_out, fitted_classes, held_out_classes = train_test_split(
        digits.images.astype(np.float32), digits.target.astype(np.int64),
        train_size=options.fitted, test_size=options.held_out, stratify=digits.target, random_state=SEED,
    )  # fmt: skip
    np.savez(
        options.file,
        fitted=fitted,
        fitted_classes=fitted_classes,
        held_out=held_out,
        held_out_classes=held_out_classes,
    )


if __name__ == "__main__":
    main()
