"""No worse than before: holds a candidate's metrics against those of earlier revisions. Standard library only.

A comparison Job knows no bounds: it says what an earlier revision, a mark, reaches on the candidate's own samples, and
how sure each difference is. So an edit of the tolerance computes nothing again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from triton_converters.contract.accuracy import Accuracy, Threshold
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.figures import telling

FALSE_REFUSALS = 0.01
"""The largest share of candidates that are refused although they are as good as every mark, in every metric."""
NOTICED_SHARE = 0.95
"""How often the loss is refused that messages say would have been noticed."""
LEAST_SAMPLES = 20
"""Samples below which nothing is compared: a standard error of fewer is often too small, and of one it is 0."""
ASKED_PERCENT = 2
"""The loss, in percent of what the mark reaches, of which messages say how many samples it takes to notice it."""


def direction(threshold: Threshold | None) -> int:
    """Return 1 if more of a metric is better, -1 if less is, and 0 if its threshold does not say so.

    A minimum alone says that more is better, and a maximum alone that less is.
    """
    if threshold is None:
        return 0
    return (threshold.min is not None) - (threshold.max is not None)


def compared_metrics(thresholds: Sequence[Threshold]) -> tuple[str, ...]:
    """Return the names of the metrics that can be compared, sorted."""
    return tuple(sorted(each.metric for each in thresholds if direction(each)))


@dataclass(frozen=True)
class Difference:
    """A metric of a candidate and of a mark, on the same samples."""

    metric: str
    before: float
    """What the mark reaches."""
    now: float
    """What the candidate reaches."""
    error: float
    """Standard error of the difference."""
    noise: float
    """How much the variance of a difference grows with the loss."""
    direction: int
    """1: more is better; -1: less is."""
    max_percent: float
    """How much worse the candidate may be besides, in percent of what the mark reaches."""
    together: int = 1
    """How many differences the candidate is judged by, of all metrics and marks: of more, one is larger by chance."""

    @property
    def refused_errors(self) -> float:
        """Standard errors by which a candidate has to be worse: 2.33 of one difference, 2.81 of four (Bonferroni)."""
        return -NormalDist().inv_cdf(FALSE_REFUSALS / self.together)

    @property
    def noticed_errors(self) -> float:
        """Standard errors by which a candidate has to be worse to be refused in NOTICED_SHARE of all cases."""
        return self.refused_errors + NormalDist().inv_cdf(NOTICED_SHARE)

    @property
    def loss(self) -> float:
        """The amount by which the candidate is worse; negative: it is better."""
        return self.direction * (self.before - self.now)

    @property
    def tolerance(self) -> float:
        """How much worse the candidate may be besides what its samples leave unsure."""
        return abs(self.before) * self.max_percent / 100

    @property
    def bound(self) -> float:
        """The largest loss that is not refused."""
        return self.refused_errors * self.error + self.tolerance

    @property
    def is_worse(self) -> bool:
        """Whether the candidate is refused."""
        return self.loss > self.bound

    @property
    def is_better(self) -> bool:
        """Whether the candidate is better beyond the same bound."""
        return -self.loss > self.bound

    @property
    def noticed(self) -> float:
        """The loss that is refused 95 times in 100.

        It solves loss = tolerance + noticed_errors * sqrt(error^2 + noise * loss): who is worse disagrees more.
        """
        half = self.tolerance + self.noticed_errors * self.noticed_errors * self.noise / 2
        chance = self.noticed_errors * self.error
        # Products, because a power of a large number raises an error.
        return half + math.sqrt(half * half - self.tolerance * self.tolerance + chance * chance)

    def samples_asked(self, samples: int) -> int:
        """Return how many samples it takes to notice a loss of ASKED_PERCENT; 0: no number does.

        ``samples``: how many the error is of; its square falls with their number, as the noise does.
        """
        asked = abs(self.before) * ASKED_PERCENT / 100
        room = asked - self.tolerance
        if room <= 0:
            return 0
        share = self.noticed_errors / room
        needed = samples * share * share * (self.error * self.error + self.noise * asked)
        return math.ceil(needed) if math.isfinite(needed) else 0

    def words(self, samples: int) -> str:
        """Return both values and what is noticed: "accuracy 0.97 (0.96 before; ...)"."""
        now, before = telling((self.now, self.before), lambda now, before: now < before)
        needed = self.samples_asked(samples)
        takes = f"one of {ASKED_PERCENT} %, on {needed:,}" if needed > samples else ""
        noticed = f"a loss of {self.noticed:.2g} is noticed 95 times in 100 on {samples:,} samples"
        worse = "worse, by what may be chance" if self.loss > self.tolerance else ""
        return f"{self.metric} {now} ({'; '.join(filter(None, (f'{before} before', worse, noticed, takes)))})"

    def worse_words(self, mark: str, samples: int) -> str:
        """Return by how much the candidate is worse than ``mark``, in whose words, and than it may be."""
        now, before = telling((self.now, self.before), lambda now, before: now < before)
        allowed = f"{self.bound:.3g} is allowed on {samples:,} samples"
        return f"{self.metric} {now} is worse than {before} of {mark} by {self.loss:.3g}, and {allowed}"


@dataclass(frozen=True)
class MarkComparison:
    """A candidate and a mark."""

    revision: str
    """Key of the mark's revision."""
    samples: int
    differences: tuple[Difference, ...] = ()
    """The differences of the metrics that are compared, in the thresholds' order."""
    obstacle: str = ""
    """Why metrics are not compared, in words; empty: all are."""

    @property
    def worse(self) -> tuple[Difference, ...]:
        """The metrics for which the candidate is refused."""
        return tuple(each for each in self.differences if each.is_worse)

    @property
    def is_better(self) -> bool:
        """Whether the candidate is better by one metric at least, beyond the bound, and worse by none."""
        return any(each.is_better for each in self.differences) and all(each.loss <= 0 for each in self.differences)


def compare(
    result: ComparisonResult,
    profile: str,
    accuracy: Sequence[Accuracy],
    max_percent: float,
) -> tuple[MarkComparison, ...]:
    """Compare the candidate whose outputs the profile with that key kept with each mark, in the result's order.

    ``accuracy``: the candidate's metrics, which are finite. Empty: the result does not hold the candidate.
    """
    if profile not in result.profiles:
        return ()
    place = result.profiles.index(profile)
    found = [_compared(result, place, mark, accuracy, max_percent) for mark in result.marks]
    together = sum(len(each.differences) for each in found)
    return tuple(
        replace(each, differences=tuple(replace(one, together=together) for one in each.differences)) for each in found
    )


def _compared(
    result: ComparisonResult, place: int, mark: MarkMetrics, accuracy: Sequence[Accuracy], max_percent: float
) -> MarkComparison:
    """Compare the candidate in that place of the result with a mark."""
    if not mark.message and result.samples < LEAST_SAMPLES:
        message = f"{result.samples} samples are too few: let the dataloader give {LEAST_SAMPLES} or more"
        return MarkComparison(mark.revision, result.samples, obstacle=message)
    differences, missing = [], []
    for each in accuracy:
        if not (better := direction(each.threshold)):
            continue
        before, error, noise = None, None, None
        if mark.values and each.metric in result.metrics:
            number = result.metrics.index(each.metric)
            before, error, noise = mark.values[number], mark.errors[place][number], mark.noise[number]
        if before is None or error is None:
            missing.append(each.metric)
        else:
            # Without a loss of the spoilt answers, nothing is known of what a loss adds.
            difference = Difference(each.metric, before, each.served, error, noise or 0.0, better, max_percent)
            differences.append(difference)
    obstacle = mark.message
    if missing and not obstacle:
        obstacle = f"{', '.join(missing)}: {result.message or 'the comparison Job computed no figure of it'}"
    return MarkComparison(mark.revision, result.samples, tuple(differences), obstacle)
