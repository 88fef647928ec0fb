"""How well the tumours are found."""

from collections.abc import Mapping, Sequence

import numpy as np


def dice(found: np.ndarray, real: np.ndarray) -> float:
    """2 |found and real| / (|found| + |real|) of two boolean arrays; 1 where both are empty."""
    sizes = int(found.sum()) + int(real.sum())
    return 2.0 * int((found & real).sum()) / sizes if sizes else 1.0


class MetricsCalculator:
    """Dice coefficient of each class but the background, over all voxels of the set, and their mean."""

    def __init__(self, output_used_for_metrics: str = "OUTPUT__0") -> None:
        self.output = output_used_for_metrics

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y_real: Mapping[str, np.ndarray],
    ) -> dict[str, float]:
        """Compare logits (volumes, classes, ...) with classes (volumes, ...); each value is a fraction from 0 to 1."""
        logits, real = y_pred[self.output], y_real[self.output]
        found = np.argmax(logits, axis=1)
        each = {f"dice_{number}": dice(found == number, real == number) for number in range(1, logits.shape[1])}
        return {"dice": float(np.mean(list(each.values()))), **each}
