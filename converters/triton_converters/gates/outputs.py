"""The numerical gate: what the answers of a server must be worth."""

import math
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.gates import exact
from triton_converters.gates.agreement import (
    CHANGE_SHARE,
    ERROR_SHARES,
    LEAST_SIGNAL_TO_NOISE,
    Agreement,
    describe,
)
from triton_converters.gates.answers import Answers

MOST_STEPS = 4
"""Farther apart, integers are no amounts that only round differently."""


@dataclass(frozen=True)
class Failed:
    """An output that does not pass."""

    agreement: Agreement
    complaint: str
    """In words, that it does not vary as the framework's does, or that a rare value is lost; empty: neither."""

    @property
    def share(self) -> float:
        """How much of it does not agree."""
        return self.agreement.outside / max(1, self.agreement.elements)


@dataclass(frozen=True)
class Judged:
    """All that failed, and by which rule."""

    answers: Answers
    precision: str
    """What the candidate computes in."""
    candidate: str
    """The candidate's precision, by which the spec names a tolerance."""
    tolerance: Tolerance
    failed: tuple[Failed, ...]

    def described(self, worst: Failed) -> str:
        """Return how much of the worst output disagrees."""
        rule = _rule(self.answers, worst.agreement, self.precision, self.tolerance)
        words = describe(worst.agreement, self.tolerance, rule)
        if self.precision != "int8" or not worst.agreement.is_floating or worst.agreement.not_finite:
            return words
        ratio = f"the signal-to-noise ratio is {worst.agreement.signal_to_noise:.1f} dB"
        return f"{words}; {ratio}, and INT8 needs {LEAST_SIGNAL_TO_NOISE:g} dB"

    def range_of_halves(self) -> str:
        """Return what may have made values infinite."""
        return " (a float16 holds at most 65504)" if self.precision == "fp16" else ""

    def wider(self) -> str:
        """Return the tolerance by which all outputs agree; empty if there is none that helps."""
        # Of INT8 only a metric says what is close enough, so there is no tolerance to set.
        if self.precision == "int8" or any(each.agreement.other_lengths or each.complaint for each in self.failed):
            return ""
        floating = [each.agreement.is_floating for each in self.failed]
        return self._wider() if all(floating) else "" if any(floating) else self._more_steps()

    def _wider(self) -> str:
        """Return the tolerance by which all floating point outputs agree."""
        needed = max(each.needed for each in self.answers.agreements.values())
        if not math.isfinite(needed):
            return ""
        precision, tolerance = self.precision, self.tolerance
        if not math.isfinite(enough := _rounded_up(needed)):
            return ""
        wider = replace(tolerance, absolute=enough)
        if wider.is_default(precision) or wider.is_default(self.candidate):
            wider = replace(wider, absolute=_rounded_up(1.01 * wider.absolute))
        advice = f". If this error is acceptable for {self.candidate}, set {self._field(wider)}"
        if not tolerance.is_default(precision):
            return advice
        return f"{advice}: it is not scaled, and ends the rule for the size of the whole output's errors"

    def _more_steps(self) -> str:
        """Return the tolerance for outputs that hold amounts; empty where they are far apart, or are no integers."""
        steps = [each.agreement.largest_step for each in self.failed]
        if not 0 < min(steps) <= max(steps) <= MOST_STEPS:
            return ""
        names = " and ".join(each.agreement.output for each in self.failed)
        field = self._field(replace(self.tolerance, integers=replace(self.tolerance.integers, steps=max(steps))))
        return f". If {names} holds amounts, as a picture does, and no class numbers, set {field}"

    def _field(self, tolerance: Tolerance) -> str:
        """Return the field of the spec with a tolerance, to be copied."""
        given = [("steps", tolerance.integers.steps or None), ("share", tolerance.integers.share)]
        integers = ", ".join(f"{name}: {value:g}" for name, value in given if value is not None)
        more = f", integers: {{{integers}}}" if integers else ""
        numbers = f"absolute: {tolerance.absolute:g}, relative: {tolerance.relative:g}"
        return f"spec.conversion.tolerances to [{{precision: {self.candidate}, {numbers}{more}}}]"


@dataclass(frozen=True)
class Fault:
    """A way to fail; the message tells of the worst output that failed so."""

    is_broken: Callable[[Failed], bool]
    reason: Reason
    words: Callable[[Judged, Failed], str]
    advice: Callable[[Judged], str]


RULES = (
    Fault(
        lambda each: each.agreement.not_finite > 0, Reason.OUTPUTS_NOT_FINITE, Judged.described, Judged.range_of_halves
    ),
    Fault(
        lambda each: bool(each.complaint),
        Reason.OUTPUTS_DIFFER,
        lambda _, worst: f"output {worst.agreement.output} {worst.complaint}",
        lambda _: "",
    ),
    Fault(lambda _: True, Reason.OUTPUTS_DIFFER, Judged.described, Judged.wider),
)
"""The first that is broken decides the reason and the words."""


def check_outputs(answers: Answers, precision: str, tolerance: Tolerance, candidate: str = "") -> None:
    """Check that the outputs agree, that none is constant that should not be, and that there was a sample.

    ``precision``: what the candidate computes in (fp32, fp16, int8); ``candidate``: its own precision, if another.
    Raises StageError: OutputsNotFinite, OutputsDiffer. The message describes the worst output and names the others.
    """
    if not answers.agreements or not answers.requests:
        raise StageError(Reason.OUTPUTS_DIFFER, "nothing was compared: the reference holds no sample")
    judged = Judged(
        answers, precision, candidate or precision, tolerance, tuple(_failed(answers, precision, tolerance))
    )
    for rule in RULES:
        if broken := [each for each in judged.failed if rule.is_broken(each)]:
            worst = max(broken, key=lambda each: each.share)
            others = ", ".join(each.agreement.output for each in judged.failed if each is not worst)
            also = f"; these outputs do not agree either: {others}" if others else ""
            words = _composed(f"output {worst.agreement.output} does not agree", rule.words, judged, worst)
            raise StageError(rule.reason, f"{words}{also}{_composed('', rule.advice, judged)}")


def _rule(answers: Answers, agreement: Agreement, precision: str, tolerance: Tolerance) -> exact.Rule:
    rare = answers.rare.get(agreement.output)
    rounds = agreement.largest_step == 1 and rare is not None and rare.number_of_values >= exact.AMOUNTS
    return exact.rule_of(precision, tolerance.integers, rounds)


def _failed(answers: Answers, precision: str, tolerance: Tolerance) -> Iterator[Failed]:
    for name, agreement in answers.agreements.items():
        holds = agreement.holds(_rule(answers, agreement, precision, tolerance), ERROR_SHARES[precision], CHANGE_SHARE)
        # All that varies of an integer output may be within the share that need not be equal.
        judges_variation = agreement.is_floating or not holds
        complaint = answers.variations[name].complaint(precision) if judges_variation else ""
        if holds and not complaint and name in answers.rare and tolerance.integers.share is None:
            complaint = answers.rare[name].complaint()
        if complaint or not holds:
            yield Failed(agreement, complaint)


def _composed(otherwise: str, compose: Callable[..., str], *facts: Judged | Failed) -> str:
    """Return what ``compose`` makes of the facts. A verdict stands, even if its figures cannot be put into words."""
    try:
        return compose(*facts)
    except Exception:
        traceback.print_exc()
        return otherwise


def _rounded_up(value: float) -> float:
    """Return a number of two digits that is no less."""
    if value <= 0:
        return 0.0
    mantissa, exponent = f"{value:.12e}".split("e")
    return float(f"{math.ceil(float(mantissa) * 10 * (1 + 1e-9))}e{int(exponent) - 1}")
