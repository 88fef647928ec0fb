"""How often the class is right."""

from collections.abc import Mapping, Sequence

import numpy as np


class MetricsCalculator:
    """Top-1 and top-5 accuracy of one output."""

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
        """Compare logits (pictures, classes) with classes (pictures,); each value is a fraction from 0 to 1."""
        best = np.argsort(-y_pred[self.output], axis=1, kind="stable")
        right = best == y_real[self.output].reshape(-1, 1)
        return {"top1": float(right[:, :1].any(1).mean()), "top5": float(right[:, :5].any(1).mean())}
