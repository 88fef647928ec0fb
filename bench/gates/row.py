"""One variant before the gates."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One variant before the gates of one precision, judged by one reference."""

    subject: str
    rule: str
    place: str
    """The output, input or layer that the rule changed; empty: the whole graph."""
    precision: str
    dataloader: bool
    wrong: bool
    """Whether clients would notice, by samples that no gate sees."""
    is_right: bool
    """Whether it is made by a rule for right ones, and clients would not notice."""
    decibels: float | None
    """Signal over error of the worst floating point output; None: no error, or no finite number."""
    changed: float
    """Share of changed decisions."""
    reason: str
    """``Passed``, or that with which the gates fail it."""
    message: str
