"""Computes how good answers are; larger is better."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class MetricsCalculator:
    """One metric, by its name in the arguments."""

    def __init__(self, metric: str, output: str) -> None:
        self.metric, self.output = metric, output

    def calc(self, *, ids: Sequence[object], y_pred: Arrays, x: Arrays, y_real: Arrays) -> dict[str, float]:
        """Compare an output with the labels; the first dimension of each is the sample."""
        functions = {"accuracy": accuracy, "boundaries": boundaries, "psnr": psnr}
        return {self.metric: functions[self.metric](y_pred[self.output], y_real["label"])}


def accuracy(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the share of samples whose best score [samples, classes] is that of the label [samples]."""
    return float(numpy.mean(scores.argmax(axis=-1) == labels))


def boundaries(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the F1 score of word boundaries.

    ``scores``: [samples, length, 2], of letters that begin a word and of those that do not. ``labels``: 0 and 1 in the
    same order [samples, length]; -1: not judged.
    """
    found, wanted = scores.argmax(axis=-1)[labels >= 0] == 0, labels[labels >= 0] == 0
    return float(2 * numpy.sum(found & wanted) / (numpy.sum(found) + numpy.sum(wanted)))


def psnr(pictures: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the peak signal-to-noise ratio, in dB, of pictures whose values are from 0 to 1."""
    return float(-10 * numpy.log10(numpy.mean(numpy.square(pictures - labels, dtype=numpy.float64))))
