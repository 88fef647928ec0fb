"""The accuracy gate: judges a candidate's metrics by the thresholds of the spec. Standard library only.

The user's code computes the metrics, in a Job that knows no thresholds. So an edit of a threshold computes none again.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from triton_converters.contract.figures import as_written, difference, in_decimal, telling
from triton_converters.contract.reasons import Reason, known_reason
from triton_converters.contract.results import MetricsResult

NEAR = 0.01
"""Share of a bound by which the framework may miss it before any candidate is judged: the gates let a candidate differ
as much, and so it may meet a bound that the framework just misses."""


@dataclass(frozen=True)
class Threshold:
    """Bounds on a metric; those that are not None apply."""

    metric: str
    min: float | None
    max: float | None
    max_degradation: float | None
    """Largest |framework's value - served value|."""

    @property
    def is_absolute(self) -> bool:
        """Whether the threshold bounds the metric itself, so that the framework may miss it too."""
        return self.min is not None or self.max is not None

    def words(self) -> str:
        """Return the bounds as the spec has them: "min 0.95"."""
        bounds = (("min", self.min), ("max", self.max), ("maxDegradation", self.max_degradation))
        return ", ".join(f"{name} {as_written(bound)}" for name, bound in bounds if bound is not None)

    def is_met(self, framework: float, served: float) -> bool:
        """Whether the metric of the served outputs keeps to every bound, which NaN never does."""
        return (
            math.isfinite(served)
            and (self.min is None or served >= self.min)
            and (self.max is None or served <= self.max)
            and (self.max_degradation is None or difference(framework, served) <= in_decimal(self.max_degradation))
        )


@dataclass(frozen=True)
class Accuracy:
    """One metric of the framework's and of the served outputs."""

    metric: str
    framework: float
    served: float
    threshold: Threshold | None = None
    """The threshold; None: there is none."""
    converted: float = math.nan
    """The metric of the converted file's outputs outside Triton; NaN: it did not run there."""

    @property
    def threshold_words(self) -> str:
        """The threshold in words ("min 0.95"); empty if there is none."""
        return self.threshold.words() if self.threshold else ""

    @property
    def passed(self) -> bool:
        """Whether the metric meets its threshold; true if there is none."""
        return self.threshold is None or self.threshold.is_met(self.framework, self.served)

    @property
    def converted_figure(self) -> str:
        """The value of the converted file outside Triton in words; empty if it did not run there."""
        return f"{self.converted:.6g}" if math.isfinite(self.converted) else ""

    @property
    def figures(self) -> tuple[str, str]:
        """The framework's and the served value in words, which miss the threshold only if the values do."""

        def verdict(framework: float, served: float) -> object:
            return self.threshold and (
                self.threshold.is_met(framework, framework),
                self.threshold.is_met(framework, served),
            )

        values = self.framework, self.served
        framework, served = (
            text if math.isfinite(value) else "missing or not finite"
            for text, value in zip(telling(values, verdict), values, strict=True)
        )
        return framework, served


@dataclass(frozen=True)
class Verdict:
    """What the accuracy gate says of one candidate."""

    accuracy: tuple[Accuracy, ...]
    """The metrics that are finite: first those with a threshold, in the spec's order, then the others by name."""
    reason: Reason = Reason.PASSED
    """Passed, or why the candidate fails."""
    message: str = ""


def judge(result: MetricsResult, profile: str, thresholds: Sequence[Threshold]) -> Verdict:
    """Judge the candidate whose outputs the profile with that key kept."""
    found = next((each for each in result.candidates if each.profile == profile), None)
    if found is None:
        message = f"the metrics Job's result does not hold the metrics of profile {profile}"
        return Verdict((), Reason.RESULT_MISSING, message)
    if found.reason:
        return Verdict((), known_reason(found.reason) or Reason.METRIC_FAILED, found.message)
    if missing := _missing(result.metrics, thresholds):
        return missing
    framework, served, converted = (
        _named(result.metrics, values) for values in (result.framework, found.values, found.converted)
    )

    def of(name: str, threshold: Threshold | None = None) -> Accuracy:
        return Accuracy(name, framework[name], served[name], threshold, converted[name])

    bound = {threshold.metric for threshold in thresholds}
    bounded = [of(each.metric, each) for each in thresholds]
    accuracy = [*bounded, *(of(name) for name in result.metrics if name not in bound)]
    finite = tuple(each for each in accuracy if math.isfinite(each.framework) and math.isfinite(each.served))
    if failed := [_words(each.threshold, each) for each in bounded if each.threshold and not each.passed]:
        return Verdict(finite, Reason.THRESHOLD_NOT_MET, "; ".join(failed))
    return Verdict(finite)


def judge_framework(result: MetricsResult, thresholds: Sequence[Threshold]) -> Verdict:
    """Judge the framework's own outputs: a bound that they miss by more than ``NEAR`` is met by no candidate.

    The verdict has no `accuracy`, because nothing was served.
    """
    if missing := _missing(result.metrics, thresholds):
        return missing
    framework = _named(result.metrics, result.framework)
    own = [(each, framework[each.metric]) for each in thresholds]
    if failed := [_framework_words(asked, value) for asked, value in own if not _widened(asked).is_met(value, value)]:
        return Verdict((), Reason.THRESHOLD_NOT_MET, "; ".join(failed))
    return Verdict(())


def nearest_name(name: str, known: Collection[str]) -> str:
    """Return the name that ``name`` may be a misspelling of; empty: none is like it."""
    # Sorted, so that a set gives the same answer in each process.
    by_lower_case = {each.lower(): each for each in sorted(known)}
    return next((by_lower_case[each] for each in get_close_matches(name.lower(), by_lower_case, 1)), "")


def _missing(metrics: Sequence[str], thresholds: Sequence[Threshold]) -> Verdict | None:
    """Return the verdict on thresholds of metrics that nobody computed; None: all were computed."""
    missing = [_with_nearest(each.metric, metrics) for each in thresholds if each.metric not in metrics]
    if not missing:
        return None
    known = ", ".join(metrics) or "no metric"
    message = f"accuracy.thresholds names {', '.join(missing)}; the metrics entrypoint returns {known}"
    return Verdict((), Reason.METRIC_FAILED, message)


def _with_nearest(name: str, metrics: Sequence[str]) -> str:
    nearest = nearest_name(name, metrics)
    return f"{name!r} (nearest: {nearest})" if nearest else repr(name)


def _named(names: Sequence[str], values: Sequence[float | None]) -> Mapping[str, float]:
    """Return the values by name; NaN if there is none."""
    known = dict(zip(names, values, strict=False))
    return {name: math.nan if (value := known.get(name)) is None else value for name in names}


def _words(asked: Threshold, failed: Accuracy) -> str:
    framework, served = failed.figures
    outside = f", the converted file outside Triton {failed.converted_figure}" if failed.converted_figure else ""
    words = f"{asked.metric} of the served outputs is {served} (framework {framework}{outside}), but the threshold is"
    return f"{words} {asked.words()}{_in_percent(failed.framework, asked)}"


def _in_percent(framework: float, asked: Threshold) -> str:
    """Return what to write for a minimum in percent of what seems to be a fraction; empty: it is not such a pair."""
    if asked.min is None or not 0 <= framework <= 1 < asked.min <= 100:
        return ""
    return f" ({asked.metric} seems to be a fraction: write {asked.min / 100:.12g} for {as_written(asked.min)} %)"


def _framework_words(asked: Threshold, value: float) -> str:
    figure, _ = Accuracy(asked.metric, value, value, asked).figures
    words = f"{asked.metric} of the framework's own outputs is {figure}, but the threshold is {asked.words()}"
    return f"{words}{_in_percent(value, asked)}"


def _widened(asked: Threshold) -> Threshold:
    low = None if asked.min is None else asked.min - NEAR * abs(asked.min)
    high = None if asked.max is None else asked.max + NEAR * abs(asked.max)
    return replace(asked, min=low, max=high)
