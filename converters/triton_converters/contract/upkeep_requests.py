"""The requests that keep what serves sound: counters of servers, the check before one starts, the clean Job.

Standard library only.
"""

from dataclasses import dataclass

from triton_converters.contract.document import Document


@dataclass(frozen=True)
class ServerPod:
    """A server's pod, as the operator sees it."""

    name: str
    metrics: str
    """host:port of its metrics; an IPv6 address is in brackets."""


@dataclass(frozen=True)
class SnapshotRequest(Document):
    """Read the counters of the served model from the metrics of servers."""

    key: str
    model_name: str
    active: tuple[ServerPod, ...]
    """Pods of the active revision."""
    previous: tuple[ServerPod, ...] = ()
    """Pods of the revision that was active before, while it is soaked against."""


@dataclass(frozen=True)
class CheckRequest(Document):
    """Check a revision before a server starts on it; not a stage, but it ends a pod as a stage does."""

    stage: str
    """The stage of the Job, or ``serve``; with ``key`` it tells whose answer it is."""
    key: str
    """Key of the Job's result, or of the revision."""
    revision: str
    content: str = ""
    """``ConvertResult.content``; empty: not recorded."""
    stat_digest: str = ""
    """``ProfileResult.stat_digest``; empty: the content is compared."""
    verification: str = "Stat"
    """``Stat``: the content is compared only if the files' attributes differ. ``Content``: it always is."""


@dataclass(frozen=True)
class CleanRequest(Document):
    """Remove from the claim what no record names any longer."""

    key: str
    minimum_age_seconds: int
    """Shortest time since a directory was written or replayed, before it is removed."""
    minimum_temporary_age_seconds: int
    """The least age of what a killed Job left; a running Job writes into such a directory too."""
