"""The result of a comparison Job: what earlier revisions reach, and how sure differences are. Standard library only."""

from dataclasses import dataclass

from triton_converters.contract.document import Document, DocumentError


@dataclass(frozen=True)
class MarkMetrics(Document):
    """What an earlier revision reaches on the samples of the candidates, and how sure a difference from it is."""

    revision: str
    """Key of the earlier revision."""
    values: tuple[float | None, ...] = ()
    """The revision's metrics, in the order of ``ComparisonResult.metrics``; None: not finite. Empty: it is not
    comparable."""
    errors: tuple[tuple[float | None, ...], ...] = ()
    """For each candidate, the standard errors of its metrics' differences from those, in the same order; None: not
    known. Empty: it is not comparable."""
    noise: tuple[float | None, ...] = ()
    """How much the variance of a difference grows with the loss, in the same order: the variance that a loss adds,
    divided by the loss; None: not known. Empty: it is not comparable."""
    message: str = ""
    """Why the revision is not comparable, in words; empty: it is."""

    def __post_init__(self) -> None:
        """Raise DocumentError for a number that is no standard error or variance."""
        if any(each is not None and each < 0 for row in (*self.errors, self.noise) for each in row):
            raise DocumentError("a standard error or variance is negative")


@dataclass(frozen=True)
class ComparisonResult(Document):
    """The metrics of earlier revisions on the samples of the candidates."""

    samples: int
    metrics: tuple[str, ...]
    """The metrics' names."""
    profiles: tuple[str, ...]
    """Keys of the candidates' profiles."""
    marks: tuple[MarkMetrics, ...]
    """In the request's order."""
    message: str = ""
    """Why standard errors are missing, in words; empty: none is."""

    def __post_init__(self) -> None:
        """Raise DocumentError if the tables of a mark do not have its metrics and candidates."""
        for mark in self.marks:
            if mark.values or mark.errors or mark.noise:
                lengths = {len(mark.values), len(mark.noise), *map(len, mark.errors)}
                if lengths != {len(self.metrics)} or len(mark.errors) != len(self.profiles):
                    raise DocumentError("the metrics of an earlier revision are not those of the comparison")
