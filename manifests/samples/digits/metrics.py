"""Computes how many pictures are recognized."""

from collections.abc import Mapping, Sequence

import numpy


class MetricsCalculator:
    """The share of pictures whose largest probability is that of the right digit."""

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, numpy.ndarray],
        x: Mapping[str, numpy.ndarray],
        y_real: Mapping[str, numpy.ndarray],
    ) -> dict[str, float]:
        """Compare probabilities [samples, 10] with digits [samples]; the accuracy is from 0 to 1."""
        return {"accuracy": float(numpy.mean(y_pred["probabilities"].argmax(axis=-1) == y_real["label"]))}
