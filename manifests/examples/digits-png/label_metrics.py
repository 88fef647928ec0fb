"""How many labels are right."""

from collections.abc import Mapping, Sequence

import numpy as np


class MetricsCalculator:
    """Accuracy of an output of text."""

    def __init__(self, output_used_for_metrics: str = "LABEL") -> None:
        self.output = output_used_for_metrics

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y_real: Mapping[str, np.ndarray],
    ) -> dict[str, float]:
        """Compare labels (samples, 1) with the right ones (samples,); the accuracy is a fraction from 0 to 1."""
        return {"accuracy": float(np.mean(y_pred[self.output].ravel() == y_real[self.output].ravel()))}
