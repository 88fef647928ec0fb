"""How good the answers are."""

from collections.abc import Mapping, Sequence

import numpy as np


class MetricsCalculator:
    """Top-1 accuracy of one output."""

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
        """Compare logits (samples, 10) with digits (samples,); the accuracy is a fraction from 0 to 1."""
        predictions = np.argmax(y_pred[self.output], axis=-1)
        return {"accuracy": float(np.mean(predictions == y_real[self.output].reshape(-1)))}
