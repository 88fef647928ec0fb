"""Who may measure, as one pass sees it: the Jobs of all objects that measure, and the turn of the one object. Pure."""

from dataclasses import dataclass

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.observed.job import JobView

MEASURING = ("measure", "profile", "search")
"""The stages whose figures another load on the node would change."""
NOT_STARTING = frozenset(
    {
        Reason.UNSCHEDULABLE,
        Reason.IMAGE_PULL_FAILED,
        Reason.CONTAINER_CONFIG_INVALID,
        Reason.MOUNT_FAILED,
        Reason.SIDECAR_NOT_STARTED,
        Reason.APPLY_REFUSED,
        Reason.NODE_NOT_READY,
    }
)
"""What keeps a Job from measuring for an unknown time, while it has the place of another."""


@dataclass(frozen=True)
class Measurement:
    """A Job that measures, or is about to."""

    owner: tuple[str, str]
    """Namespace and name of its TritonDeployment."""
    nodes: frozenset[str]
    """The nodes that it loads: its pod's and, if it measures through a Service, those of the object's servers."""
    is_placed: bool = True
    """Whether a node has its pod."""

    def __str__(self) -> str:
        """Return "NAMESPACE/NAME", with the nodes."""
        where = f" on node {', '.join(sorted(self.nodes))}" if self.nodes else ""
        return f"{'/'.join(self.owner)}{where}"


@dataclass(frozen=True)
class Turn:
    """Whether the object may start a Job that measures. By default it may, on any node."""

    waits_for: str = ""
    """Its place in the queue and what it waits for; empty: it may start."""
    again_after: float | None = None
    """Seconds until it asks again; None: a watch tells."""
    taken: frozenset[str] = frozenset()
    """The nodes that its Job has to keep off."""
    withdrawn: str = ""
    """The name of its Job that gives its place back, because it does not start; empty: none does."""

    def lets(self, job: str) -> bool:
        """Whether a Job goes on; empty: whether one may start."""
        return job != self.withdrawn if job else not self.waits_for


FREE = Turn()
"""The turn of an object beside which none measures."""


def held_up(job: JobView) -> bool:
    """Whether a Job that is to measure does not begin to, for a reason that may last."""
    is_measuring = names.MEASURES_LABEL in job.body["metadata"]["labels"]
    return is_measuring and job.active and job.pending is not None and job.pending.reason in NOT_STARTING
