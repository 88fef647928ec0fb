"""How often the class is right."""

from collections.abc import Mapping, Sequence

import numpy as np


class MetricsCalculator:
    """Top-1 accuracy of the classes, top-5 accuracy of their probabilities."""

    def __init__(self, output_used_for_metrics: str = "classes", probabilities: str = "probabilities") -> None:
        self.output = output_used_for_metrics
        self.probabilities = probabilities

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y_real: Mapping[str, np.ndarray],
    ) -> dict[str, float]:
        """Compare answers with the classes (pictures,); each value is a fraction from 0 to 1."""
        right = y_real[self.output].reshape(-1)
        best = np.argsort(-y_pred[self.probabilities], axis=1, kind="stable")[:, :5]
        return {
            "top1": float((y_pred[self.output].reshape(-1) == right).mean()),
            "top5": float((best == right[:, None]).any(axis=1).mean()),
        }
