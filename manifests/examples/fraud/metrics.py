"""How good the answers are."""

from collections.abc import Mapping, Sequence

import numpy as np

DECISION_THRESHOLD = 0.5
"""The probability above which a transaction counts as a fraud."""


class MetricsCalculator:
    """F1 score, precision, recall and accuracy of the output `prediction`."""

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y_real: Mapping[str, np.ndarray],
    ) -> dict[str, float]:
        """Compare probabilities (samples, 1) with labels (samples,), 1 for a fraud; all figures are from 0 to 1."""
        told = y_pred["prediction"].reshape(-1) > DECISION_THRESHOLD
        frauds = y_real["prediction"].reshape(-1) == 1
        caught, alarms, all_frauds = (int(each.sum()) for each in (told & frauds, told, frauds))
        return {
            "f1_score": 2 * caught / max(alarms + all_frauds, 1),
            "precision": caught / max(alarms, 1),
            "recall": caught / max(all_frauds, 1),
            "accuracy": float(np.mean(told == frauds)),
        }
