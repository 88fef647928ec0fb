"""How often the gates were right, from the rows that `make bench-gates` writes. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PASSED = "Passed"


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
    """Whether a rule for right variants made it, and clients would not notice."""
    decibels: float | None
    """Signal over error of the worst floating point output; None: no error, or no finite number."""
    changed: float
    """Share of changed decisions."""
    reason: str
    """``Passed``, or that with which the gates fail it."""
    message: str


@dataclass(frozen=True)
class Rates:
    """What became of the variants of one precision, with or without a dataloader."""

    precision: str
    dataloader: bool
    rows: tuple[Row, ...]

    @property
    def wrong(self) -> list[Row]:
        """Variants that clients would notice."""
        return [row for row in self.rows if row.wrong]

    @property
    def right(self) -> list[Row]:
        """Variants that only round differently, and that clients would not notice."""
        return [row for row in self.rows if row.is_right]

    @property
    def harmless(self) -> list[Row]:
        """Changes by a rule for wrong ones that clients would not notice: whether they pass says nothing of a gate."""
        return [row for row in self.rows if not row.wrong and not row.is_right]

    @property
    def missed(self) -> list[Row]:
        """Wrong variants that pass."""
        return [row for row in self.wrong if row.reason == PASSED]

    @property
    def refused(self) -> list[Row]:
        """Right variants that fail."""
        return [row for row in self.right if row.reason != PASSED]

    @property
    def caught(self) -> list[Row]:
        """Wrong variants that fail."""
        return [row for row in self.wrong if row.reason != PASSED]

    @property
    def passed(self) -> list[Row]:
        """Right variants that pass."""
        return [row for row in self.right if row.reason == PASSED]

    def caught_by(self) -> Counter[str]:
        """Return how many wrong variants each reason failed."""
        return Counter(row.reason for row in self.caught)


def rates(rows: Iterable[Row]) -> list[Rates]:
    """Return the rates by precision, with a dataloader first."""
    found: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        found.setdefault((row.precision, row.dataloader), []).append(row)
    order = sorted(found, key=lambda each: (not each[1], each[0] != "fp32"))
    return [Rates(precision, loads, tuple(found[precision, loads])) for precision, loads in order]


def share(part: Sequence[object], whole: Sequence[object]) -> str:
    """Return "57 of 60 (95.0 %)"."""
    return f"{len(part)} of {len(whole)} ({100 * len(part) / len(whole):.1f} %)" if whole else "none"
