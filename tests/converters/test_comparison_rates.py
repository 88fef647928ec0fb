"""How often models that are as good as before are refused, and worse ones noticed, with models that are really trained.

Logistic regressions are trained on other draws of one training set. What they really reach is known by a pool of 40,000
samples; the comparison sees a few of these.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy
import pytest

from tests.simulation.nights.models import CLASSES, FEATURES, accuracy, log_loss, softmax, trained
from triton_converters.contract.comparison import Difference
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.measurement_requests import ComparisonRequest, KeptOutputs
from triton_converters.stages.comparison import produce

Array = numpy.ndarray[Any, Any]
Metric = Callable[[Array, Array], Any]
POOL, MODELS = 40_000, 8
TRIALS = 100
PERCENT = 0.5
SAMPLES = [100, 500, pytest.param(2000, marks=pytest.mark.thorough)]

DIRECTIONS = {accuracy: 1, log_loss: -1}
REQUEST = ComparisonRequest(
    "", "", "", "", 8, Entrypoint("metrics.py", {}), (KeptOutputs("", "onnx", "fp32"),), ("metric",)
)


class Nights:
    """Models of several nights, and the pool that tells what they really reach."""

    def __init__(self) -> None:
        self.chance = numpy.random.default_rng(7)
        centres = self.chance.normal(size=(CLASSES, FEATURES)) * 0.85
        self.labels = self.chance.integers(CLASSES, size=POOL)
        pool = centres[self.labels] + self.chance.normal(size=(POOL, FEATURES))
        y = self.chance.integers(CLASSES, size=3000)
        x = centres[y] + self.chance.normal(size=(3000, FEATURES))
        models = [trained(x[rows], y[rows]) for rows in self.chance.integers(3000, size=(MODELS, 3000))]
        self.answers = [softmax(pool @ each) for each in models]

    def pair(self, metric: Metric) -> tuple[Array, Array]:
        """The answers of two models to the pool: of one that serves, and of one that is really not worse."""
        first, second = self.chance.choice(MODELS, 2, replace=False)
        mark, candidate = self.answers[first], self.answers[second]
        gain = metric(candidate, self.labels) - metric(mark, self.labels)
        return (mark, candidate) if DIRECTIONS[metric] * gain >= 0 else (candidate, mark)

    def spoilt(self, answers: Array, value: float) -> Array:
        """Answers of which some right ones become wrong, so that so many are right."""
        right = numpy.flatnonzero(answers.argmax(axis=1) == self.labels)
        chosen = self.chance.choice(right, len(right) - round(value * POOL), replace=False)
        found = answers.copy()
        found[chosen] = numpy.roll(found[chosen], 1, axis=1)
        return found

    def compared(self, mark: Array, candidate: Array, metric: Metric, samples: int) -> Difference:
        """The comparison of two models by so many samples."""
        rows = self.chance.integers(POOL, size=samples)
        labels = self.labels[rows]

        class Calculator:
            def values(self, answers: produce._Answers, rows: Array) -> list[float]:
                return [float(metric(answers.y_pred["p"][rows], labels[rows]))]

        served, new = (produce._Answers(REQUEST.candidates[0], {"p": each[rows]}) for each in (mark, candidate))
        calculator: Any = Calculator()
        table, message = produce._resampled(calculator, (new, served, produce._spoilt(served, samples)), samples, 1)
        assert not message
        error, noise = produce._errors(REQUEST, table, 1)[0]["metric"], produce._noise(REQUEST, table, 1)["metric"]
        assert error is not None
        assert noise is not None
        before, now = (float(metric(each[rows], labels)) for each in (mark, candidate))
        return Difference("metric", before, now, error, noise, DIRECTIONS[metric], PERCENT)


@pytest.fixture(scope="module")
def nights() -> Nights:
    return Nights()


@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("metric", DIRECTIONS)
def test_of_models_that_are_as_good_as_before_one_in_a_hundred_is_refused(
    nights: Nights, metric: Metric, samples: int
) -> None:
    refused = sum(nights.compared(*nights.pair(metric), metric, samples).is_worse for _ in range(TRIALS))
    print(f"{metric.__name__}, {samples} samples: {refused} of {TRIALS} refused")
    # At a rate of 1 in 100, five or more of 100 are less likely than 1 in 250.
    assert refused <= 4 * TRIALS / 100


@pytest.mark.parametrize("samples", SAMPLES)
def test_the_loss_that_is_told_is_noticed(nights: Nights, samples: int) -> None:
    told = [nights.compared(*nights.pair(accuracy), accuracy, samples).noticed for _ in range(20)]
    loss, refused = median(told), 0
    for _ in range(TRIALS):
        mark, candidate = nights.pair(accuracy)
        worse = nights.spoilt(candidate, accuracy(mark, nights.labels) - loss)
        refused += nights.compared(mark, worse, accuracy, samples).is_worse
    print(f"{samples} samples: a loss of {loss:.3f} is refused {refused} of {TRIALS} times")
    # At a rate of 95 in 100, 88 or fewer are less likely than 1 in 200.
    assert refused >= 0.89 * TRIALS
