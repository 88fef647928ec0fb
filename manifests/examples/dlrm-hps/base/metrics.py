"""How well clicks are told from other impressions."""

from collections.abc import Mapping, Sequence

import numpy as np


class MetricsCalculator:
    """Area under the ROC curve of one output."""

    def __init__(self, output_used_for_metrics: str = "DENSE_OUTPUT") -> None:
        self.output = output_used_for_metrics

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y_real: Mapping[str, np.ndarray],
    ) -> dict[str, float]:
        """Compare logits with clicks, one each of every impression; 0.5 is chance."""
        return {"auc": area_under_curve(y_pred[self.output].reshape(-1), y_real["clicks"].reshape(-1))}


def area_under_curve(scores: np.ndarray, clicks: np.ndarray) -> float:
    """Chance that a clicked impression's score is above another's; equal ones count half (Mann and Whitney's U)."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    # Equal scores share the mean of their ranks.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    clicked = clicks > 0.5
    positive, negative = int(clicked.sum()), int((~clicked).sum())
    return float((ranks[clicked].sum() - positive * (positive + 1) / 2) / (positive * negative))
