"""Computes how many texts get the right label."""

from collections.abc import Mapping, Sequence

import numpy


class MetricsCalculator:
    """The share of texts whose label is right."""

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, numpy.ndarray],
        x: Mapping[str, numpy.ndarray],
        y_real: Mapping[str, numpy.ndarray],
    ) -> dict[str, float]:
        """Compare labels [samples, 1] with those of the data [samples]; the accuracy is from 0 to 1."""
        return {"accuracy": float(numpy.mean(y_pred["LABEL"][:, 0] == y_real["label"]))}
