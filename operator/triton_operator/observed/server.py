"""A revision's Deployment as one pass sees it, with what its pods report. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import is_time
from triton_operator import names
from triton_operator.observed.ending import revision_trouble, server_crash
from triton_operator.observed.events import node_is_coming
from triton_operator.observed.pod import PodView
from triton_operator.observed.trouble import Trouble, pod_trouble, refusal_trouble

DAMAGES = (Reason.REPOSITORY_DAMAGED, Reason.RESULT_MISSING)
"""Reasons for which a revision is published anew if a server cannot start on it. No kind has them: a Job
without a result damages nothing."""

LONGEST_NUMBER = 10
"""A note of this many digits is no number of pods, and somebody wrote it by hand. Python refuses to read thousands of
digits."""


@dataclass(frozen=True)
class ServerView:
    """A revision's Deployment and what its pods report."""

    name: str
    uid: str
    replicas: int
    """How many replicas the Deployment should have."""
    pods: int
    """How many pods the Deployment has."""
    ready_pods: int
    """How many of the Deployment's pods are ready."""
    placed_pods: int
    """How many of the Deployment's pods have a node and go on, ready or not: so many hold their GPUs."""
    nodes: frozenset[str]
    """The nodes that have its pods."""
    ready: bool
    """Whether all desired pods, and at least one, are ready with the newest template."""
    was_ready: bool
    """Whether an annotation notes that all pods of the Deployment were ready since it last had no replicas. If they are
    not ready now, pods were added or have failed."""
    waits_note: str
    """Since when its pods are waited for, in RFC 3339, as an annotation notes; empty: since the Deployment was made."""
    trouble: Trouble | None
    damage: Trouble | None
    """What is wrong with the server's revision on the claim, as a pod that starts found."""
    image_id: str
    """The server image's ID, as the kubelet reports it."""
    created_at: datetime
    revision_key: str
    """Key of the server's revision on the claim."""
    makes_way_for: str
    """Name of the Deployment for which it has fewer replicas than desired; empty: there is none."""
    makes_way_since: datetime | None
    """When the Deployment made way; None: it does not."""
    makes_way_pods: int | None
    """How many pods the Deployment gave up; None: it does not make way."""
    node_is_coming: bool
    """Whether an autoscaler makes a node for one of its pods."""
    progress_deadline_exceeded: bool
    addresses: Mapping[str, str]
    """The IP addresses of the pods that run, by the pods' names."""
    restarts: Mapping[str, datetime]
    """When tritonserver last ended before the kubelet started it again, by the names of the pods where it did."""
    body: Mapping[str, Any] = field(repr=False)

    @property
    def answers(self) -> bool:
        """Whether at least one pod is ready and should go on."""
        return self.replicas > 0 and self.ready_pods > 0

    def waiting_seconds(self, now: datetime) -> float:
        """Seconds for which the Deployment's pods have been waited for."""
        since = datetime.fromisoformat(self.waits_note) if self.waits_note else self.created_at
        return (now - since).total_seconds()


def server_view(body: Mapping[str, Any], pods: Iterable[PodView], events: Sequence[Mapping[str, Any]]) -> ServerView:
    """Read a revision's Deployment, its pods among `pods`, and Events about them."""
    metadata, status = body["metadata"], body.get("status", {})
    name = metadata["name"]
    notes = metadata.get("annotations", {})
    revision = metadata.get("labels", {}).get(names.KEY_LABEL, "")
    # The trouble of an evicted pod's successor says more than the eviction.
    own_pods = sorted((pod for pod in pods if pod.server == name), key=lambda pod: pod.is_disrupted)
    placed = [pod.node for pod in own_pods if pod.node is not None and not (pod.is_deleted or pod.has_ended)]
    damages = (
        trouble for pod in own_pods if (trouble := revision_trouble(pod, revision)) and trouble.reason in DAMAGES
    )
    makes_way_since = _valid_time(notes.get(names.MAKES_WAY_SINCE_ANNOTATION, ""))
    pods_note = notes.get(names.MAKES_WAY_PODS_ANNOTATION, "")
    return ServerView(
        name=name,
        uid=metadata["uid"],
        replicas=_desired_replicas(body),
        pods=status.get("replicas", 0),
        ready_pods=status.get("readyReplicas", 0),
        placed_pods=len(placed),
        nodes=frozenset(placed),
        ready=_is_ready(body),
        was_ready=names.WAS_READY_ANNOTATION in notes,
        waits_note=_valid_time(notes.get(names.WAITS_ANNOTATION, "")),
        trouble=next(_troubles(body, revision, own_pods, events), None),
        damage=next(damages, None),
        image_id=min(filter(None, (pod.server_image_id for pod in own_pods)), default=""),
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        revision_key=revision,
        makes_way_for=notes.get(names.MAKES_WAY_ANNOTATION, ""),
        makes_way_since=datetime.fromisoformat(makes_way_since) if makes_way_since else None,
        makes_way_pods=int(pods_note) if pods_note.isdecimal() and len(pods_note) < LONGEST_NUMBER else None,
        node_is_coming=any(node_is_coming(pod.uid, events) for pod in own_pods),
        progress_deadline_exceeded=_condition(body, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        addresses={pod.name: pod.address for pod in own_pods if pod.address},
        restarts={pod.name: restarted_at for pod in own_pods if (restarted_at := pod.restarted_at) is not None},
        body=body,
    )


def _troubles(
    body: Mapping[str, Any], revision: str, pods: Iterable[PodView], events: Sequence[Mapping[str, Any]]
) -> Iterator[Trouble]:
    """Yield what keeps the pods from serving, what says most first."""
    replica_failure = _condition(body, "ReplicaFailure")
    if replica_failure.get("status") == "True":
        yield refusal_trouble(f"Deployment {body['metadata']['name']}", replica_failure.get("message", ""))
    for pod in pods:
        if trouble := revision_trouble(pod, revision) or server_crash(pod) or pod_trouble(pod, events):
            yield trouble


def _is_ready(body: Mapping[str, Any]) -> bool:
    desired = _desired_replicas(body)
    status = body.get("status", {})
    is_current = status.get("observedGeneration") == body["metadata"].get("generation")
    return bool(is_current and 0 < desired <= min(status.get("updatedReplicas", 0), status.get("readyReplicas", 0)))


def _desired_replicas(body: Mapping[str, Any]) -> int:
    return int(body["spec"].get("replicas", 1))


def _condition(body: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions = body.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def _valid_time(note: str) -> str:
    """Return a note that is a time; empty for any other, which somebody wrote by hand."""
    return note if is_time(note) else ""
