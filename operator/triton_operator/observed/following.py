"""What is known of a source that is followed, as the results ConfigMap keeps it. Pure.

Each look is told here and nowhere else, so a Job whose answer is told may go. A version that was found for the first
time is settled at once if its scheme has digests or commits. Else another look has to find it too: somebody may be
writing it. So has one that an earlier look found before another one came: an alias may change back and forth, and a
mirror may answer with what is old.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import is_time, shortened

APART_SECONDS = 60.0
"""Seconds between the first of two looks that find the same and the one that settles it. Without them, two that
somebody asked for in a row would find the same half of an upload; most clients send its next file within a minute."""
MOST_SEEN = 16
"""Versions that earlier looks found and that are remembered: an alias that changes back has rarely more than two."""
MOST_REFUSED = 16
"""Refused versions that are remembered, newest last: two weeks of nights. One that is forgotten is verified again."""
REFUSAL_BYTES = 240
"""The longest message of a refused version, which is what happened: what to do, its night told."""


@dataclass(frozen=True)
class FoundVersion(Document):
    """A version of the source."""

    version: str
    """`LookResult.version` of the look."""
    label: str
    """`LookResult.label` of the last look that found it."""
    found_at: str
    """When a look first found it, in RFC 3339, UTC."""

    def __post_init__(self) -> None:
        """Raise DocumentError for what no look told: whoever may edit the ConfigMap may have written it."""
        LookResult(self.version, exact=True, label=self.label)
        check_times(self.found_at)


@dataclass(frozen=True)
class RefusedVersion(Document):
    """A version that did not pass."""

    version: str
    basis: str
    """A digest of all else that decided it; what another one decides is tried again."""
    reason: Reason
    message: str
    at: str
    """When the version was refused, in RFC 3339, UTC."""


@dataclass(frozen=True)
class FullComparison(Document):
    """The last time that all candidates of a version were tried."""

    version: str
    basis: str
    """A digest of all else that decides how candidates rank."""
    at: str
    """When the version was served, in RFC 3339, UTC."""

    def __post_init__(self) -> None:
        """Raise DocumentError for a time that is none."""
        check_times(self.at)


@dataclass(frozen=True)
class FailedLook(Document):
    """Why the last look found nothing."""

    reason: Reason
    message: str
    since: str
    """When the first of the looks failed that failed in a row, in RFC 3339, UTC."""

    def __post_init__(self) -> None:
        """Raise DocumentError for a time that is none."""
        check_times(self.since)


@dataclass(frozen=True)
class Following(Document):
    """What looks found, and what became of it."""

    source: str
    """A digest of what the spec asks for; what is known of another source does not count."""
    looked_at: str = ""
    """When the last look ended, in RFC 3339, UTC; empty: there was none."""
    checked_at: str = ""
    """When a look last found a version, in RFC 3339, UTC; empty: none has."""
    request: str = ""
    """`TritonDeployment.requested_at` that the last look answered."""
    retry: str = ""
    """`TritonDeployment.retry` at that time; another value asks for a look too."""
    failed: FailedLook | None = None
    """Why the last look found nothing; None: it found a version, or there was none."""
    latest: FoundVersion | None = None
    """The version that a look last found."""
    is_settled: bool = False
    """Whether the latest version may be taken, as far as the looks are concerned."""
    seen: tuple[str, ...] = ()
    """The versions that looks found before the latest one, newest last."""
    taken: FoundVersion | None = None
    """The version that is published, and served if it passes; None: none was taken yet."""
    is_asked: bool = False
    """Whether that version is the one that an edit of the spec asked for, and no newer one."""
    only: str = ""
    """The candidate that alone is tried of that version; empty: all are."""
    compared: FullComparison | None = None
    """When all candidates were last tried; None: they were not yet."""
    refused: tuple[RefusedVersion, ...] = ()
    """The versions that did not pass, newest last."""

    def __post_init__(self) -> None:
        """Raise DocumentError for times that are none."""
        check_times(*filter(None, (self.looked_at, self.checked_at)))

    def after_answer(self, result: LookResult, at: str) -> "Following":
        """Return what is known after a look that found a version. ``at``: when it ended, in RFC 3339, UTC."""
        latest, seen, is_settled = self.latest, self.seen, self.is_settled
        if latest is None or latest.version != result.version:
            if latest is not None:
                # Two between which an alias changes again and again take no room of the others.
                seen = (*(each for each in seen if each != latest.version), latest.version)[-MOST_SEEN:]
            latest = FoundVersion(result.version, result.label, at)
            is_settled = result.exact and result.version not in seen
        elif _seconds_between(latest.found_at, at) >= APART_SECONDS:
            is_settled = True
        # A person may have given the same version another alias.
        latest = replace(latest, label=result.label)
        return replace(
            self,
            looked_at=at,
            checked_at=at,
            failed=None,
            latest=latest,
            is_settled=is_settled,
            seen=seen,
        )

    def after_failure(self, reason: Reason, message: str, at: str) -> "Following":
        """Return what is known after a look that found nothing. What was found before stays."""
        failed = FailedLook(reason, message, self.failed.since if self.failed is not None else at)
        return replace(self, looked_at=at, failed=failed)

    def with_refused(self, refused: RefusedVersion) -> "Following":
        """Return what is known once a version did not pass."""
        others = tuple(each for each in self.refused if each.version != refused.version)
        short = replace(refused, message=shortened(refused.message.partition("; ")[0], REFUSAL_BYTES))
        return replace(self, refused=(*others, short)[-MOST_REFUSED:])

    def refusal(self, version: str, basis: str) -> RefusedVersion | None:
        """Return how a version was refused by the same that would decide it now; None: it was not."""
        return next((each for each in self.refused if (each.version, each.basis) == (version, basis)), None)


def _seconds_between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def check_times(*times: str) -> None:
    """Raise DocumentError unless all are times."""
    if not all(map(is_time, times)):
        raise DocumentError("a time in the record of the source is none")
