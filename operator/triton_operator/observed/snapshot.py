"""The children of a TritonDeployment as one pass sees them: parsed once, no client. Pure."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from triton_converters.contract.document import DocumentError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import (
    ACTIVE,
    CLAIM,
    DAMAGED,
    FAILURE,
    FINISHED,
    HISTORY,
    IMAGE,
    SOAK,
    is_record,
    read_record,
    record_name,
)
from triton_operator import names
from triton_operator.observed.active import Active
from triton_operator.observed.failures import Damage, Failure
from triton_operator.observed.flips import Flip
from triton_operator.observed.history import History
from triton_operator.observed.job import JobView, Record, job_view
from triton_operator.observed.pod import (
    Trouble,
    address,
    disrupted,
    lacking,
    node_is_coming,
    pod_trouble,
    restarted_at,
    revision_trouble,
    server_crash,
    server_image_id,
)
from triton_operator.observed.routes import RouteView, route_view

DAMAGES = (Reason.REPOSITORY_DAMAGED, Reason.RESULT_MISSING)
"""Reasons for which a revision is published anew if a server cannot start on it."""


@dataclass(frozen=True)
class ServerView:
    """A revision's Deployment and what its pods report."""

    name: str
    uid: str
    replicas: int
    """How many replicas it should have."""
    pods: int
    """How many pods it has."""
    ready_pods: int
    """How many of them are ready."""
    ready: bool
    """Whether all wanted pods, and at least one, are ready with the newest template."""
    was_ready: bool
    """Whether that was noted since it last had no replicas; if it is not so now, pods were added or have failed."""
    waits_note: str
    """Since when its pods are waited for, as noted; empty: since it was made."""
    trouble: Trouble | None
    damage: Trouble | None
    """What is wrong with its revision on the claim, as a pod that starts found."""
    image_id: str
    """The server image's ID, as the kubelet reports it."""
    created_at: datetime
    revision_key: str
    """Key of its revision on the claim."""
    makes_way_for: str
    """Name of the Deployment for which it has fewer replicas than wanted; empty: there is none."""
    makes_way_since: datetime | None
    """When it made way; None: it does not, or an earlier version of the operator did not note it."""
    makes_way_pods: int | None
    """How many pods it gave up; None likewise."""
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

    def waited(self, now: datetime) -> float:
        """Seconds since its pods are waited for."""
        since = datetime.fromisoformat(self.waits_note) if self.waits_note else self.created_at
        return (now - since).total_seconds()


@dataclass(frozen=True)
class Observed:
    """A snapshot of the children."""

    jobs: Mapping[str, JobView]
    servers: Mapping[str, ServerView]
    records: Mapping[str, Record]
    """The Jobs' results by ``<stage>.<key>``, from the results ConfigMap and from pods that ended since."""
    failures: Mapping[str, Failure]
    """The recorded failures, by the Job's name. The Job may be gone, or another one may have its name. Those of figures
    have the name of their record."""
    damaged: Mapping[str, Damage]
    """The revisions that are not what was published, by their keys, as recorded."""
    flips: Mapping[str, Flip]
    """The recorded changes of the active revision, by the uid of the Deployment that became active."""
    active: Active | None
    """The Deployment that was recorded as the active one; None: none was."""
    unreadable: Mapping[str, str]
    """Entries of the results ConfigMap that cannot be read: a newer version may have written them."""
    serving: str | None
    """Name of the Deployment that the Service points to."""
    claim: Mapping[str, Any] | None
    """The repository claim; None: there is none yet."""
    recorded_claim: str
    """Name and uid, NAME/UID, of the claim that holds the recorded results; empty: not recorded."""
    history: History
    """The states that served, as recorded."""
    neighbours: tuple[str, ...]
    """Names of the other TritonDeployments that use the same claim."""
    gpu_product_exists: bool | None
    """Whether a node has the GPU product that a candidate is built for; None: not known, or not asked."""
    scaled_object: str | None
    """Name of the ScaledObject that the operator made; None: there is none."""
    http_route: RouteView | None
    """The HTTPRoute that the operator made; None: there is none."""
    disruption_budget: str | None
    """Name of the PodDisruptionBudget that the operator made; None: there is none."""
    has_keda: bool
    """Whether the API server knows the kind ScaledObject."""
    has_gateway_api: bool
    """Whether the API server knows the kind HTTPRoute."""


def observe(
    deployment: str,
    children: Iterable[Mapping[str, Any]],
    gpu_product_exists: bool | None = None,
    neighbours: Iterable[str] = (),
    claim_name: str = "",
    has_keda: bool = False,
    has_gateway_api: bool = False,
) -> Observed:
    """Parse the children of one TritonDeployment; Events about its pods may be among them, and the claim it names.

    ``claim_name``: the repository claim, whose results alone count; empty: those of any claim do.
    """
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for child in children:
        by_kind.setdefault(child["kind"], []).append(child)
    pods, events = by_kind.get("Pod", []), by_kind.get("Event", [])
    claim = _named(by_kind.get("PersistentVolumeClaim", []), claim_name)
    jobs = [_on_claim(job_view(job, pods, events), claim_name) for job in by_kind.get("Job", [])]
    entries = (_named(by_kind.get("ConfigMap", []), names.results(deployment)) or {}).get("data") or {}
    records, failures, unreadable = _recorded(entries)
    damaged = dict(_damaged(entries))
    history = History.from_json(entries.get(HISTORY, ""))
    if entries.get(HISTORY) and not history.served:
        unreadable[HISTORY] = entries[HISTORY]
    if _is_other_claim(entries.get(CLAIM, ""), claim_name, claim):
        records, failures, damaged, unreadable, history = {}, {}, {}, {}, History()
        jobs = [_forgotten(job) if claim is not None and _older(job.body, claim) else job for job in jobs]
    # Another Job reads an answer that was cut, in a pod without the image.
    images = {(job.stage, job.key): job.image_id for job in jobs if job.cut}
    for job in jobs:
        if job.record is not None:
            image = job.record.image_id or images.get((job.stage, job.key), "")
            records.setdefault(record_name(job.stage, job.key), replace(job.record, image_id=image))
    service = _named(by_kind.get("Service", []), deployment)
    return Observed(
        jobs={job.name: job for job in jobs},
        servers={body["metadata"]["name"]: _server(body, pods, events) for body in by_kind.get("Deployment", [])},
        records=records,
        failures=failures,
        damaged=damaged,
        flips=dict(_flips(entries)),
        active=_active(entries.get(ACTIVE, "")),
        unreadable=unreadable,
        serving=None if service is None else service["spec"].get("selector", {}).get(names.REVISION_LABEL),
        claim=claim,
        recorded_claim=entries.get(CLAIM, ""),
        history=history,
        neighbours=tuple(sorted(neighbours)),
        gpu_product_exists=gpu_product_exists,
        scaled_object=_only(by_kind.get(names.SCALED_OBJECT, [])),
        http_route=next(map(route_view, by_kind.get(names.HTTP_ROUTE, [])), None),
        disruption_budget=_only(by_kind.get(names.DISRUPTION_BUDGET, [])),
        has_keda=has_keda,
        has_gateway_api=has_gateway_api,
    )


def _named(objects: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((each for each in objects if each["metadata"]["name"] == name), None)


def _only(objects: Iterable[Mapping[str, Any]]) -> str | None:
    return next((each["metadata"]["name"] for each in objects), None)


def _is_other_claim(recorded: str, name: str, claim: Mapping[str, Any] | None) -> bool:
    """Whether the recorded results are on another claim than the one that is used now."""
    if not recorded or not name:
        return False
    recorded_name, _, uid = recorded.partition("/")
    return recorded_name != name or (claim is not None and claim["metadata"]["uid"] != uid)


def _on_claim(job: JobView, claim_name: str) -> JobView:
    """The Job, without its result if that is on another claim than the one that is used now."""
    volumes = job.body["spec"].get("template", {}).get("spec", {}).get("volumes", [])
    used = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes}
    own = used.get("repository") in (claim_name, None) or not claim_name
    return job if own else replace(job, record=None, cut=False)


def _older(job: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    return bool(job["metadata"]["creationTimestamp"] < claim["metadata"]["creationTimestamp"])


def _forgotten(job: JobView) -> JobView:
    """A Job whose result is lost with its claim, so that it runs again."""
    return replace(job, state="Succeeded", record=None, cut=False, failure=None, pending=None, ended_unseen=None)


def _recorded(entries: Mapping[str, str]) -> tuple[dict[str, Record], dict[str, Failure], dict[str, str]]:
    """Return the records, the recorded failures, and the texts of unreadable records.

    An unreadable record counts as absent, so its Job runs again and replays the result.
    """
    records, failures, unreadable = {}, {}, {}
    for name, text in entries.items():
        try:
            if is_record(name):
                finished, image = entries.get(FINISHED + name, ""), entries.get(IMAGE + name, "")
                records[name] = Record(read_record(name, text), text, finished, image)
            elif name.startswith(FAILURE):
                failures[name.removeprefix(FAILURE)] = Failure.from_json(text)
        except DocumentError:
            if is_record(name):
                unreadable[name] = text
    return records, failures, unreadable


def _damaged(entries: Mapping[str, str]) -> Iterator[tuple[str, Damage]]:
    """Yield the readable ones: a revision that is damaged is found again when a server starts on it."""
    for name, text in entries.items():
        if name.startswith(DAMAGED):
            with contextlib.suppress(DocumentError):
                yield name.removeprefix(DAMAGED), Damage.from_json(text)


def _flips(entries: Mapping[str, str]) -> Iterator[tuple[str, Flip]]:
    """Yield the readable ones: without its record, a revision stays active and is not soaked."""
    for name, text in entries.items():
        if name.startswith(SOAK) and name != ACTIVE:
            with contextlib.suppress(DocumentError):
                yield name.removeprefix(SOAK), Flip.from_json(text)


def _time(note: str) -> str:
    """Return a note that is a time with its zone; empty for any other, which somebody wrote by hand."""
    try:
        return note if note and datetime.fromisoformat(note).tzinfo else ""
    except ValueError:
        return ""


def _active(text: str) -> Active | None:
    """Return the record; None if it cannot be read, and then the Service's selector tells."""
    with contextlib.suppress(DocumentError):
        return Active.from_json(text)
    return None


def _server(body: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], events: list[Mapping[str, Any]]) -> ServerView:
    name, status = body["metadata"]["name"], body.get("status", {})
    own = [pod for pod in pods if pod["metadata"].get("labels", {}).get(names.REVISION_LABEL) == name]
    # The trouble of an evicted pod's successor says more than the eviction.
    own.sort(key=disrupted)
    revision = body["metadata"].get("labels", {}).get(names.KEY_LABEL, "")
    refused = [
        Trouble(Reason.APPLY_REFUSED, f"Deployment {name} gets no pod: {words}", lacking(words))
        for condition in status.get("conditions", [])
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True"
        for words in (condition.get("message", ""),)
    ]
    checks = [(pod, revision_trouble(pod, revision)) for pod in own]
    troubles = refused + [
        found for pod, checked in checks if (found := checked or server_crash(pod) or pod_trouble(pod, events))
    ]
    wanted, notes = body["spec"].get("replicas", 1), body["metadata"].get("annotations", {})
    since, gives = (
        _time(notes.get(names.MAKES_WAY_SINCE_ANNOTATION, "")),
        notes.get(names.MAKES_WAY_PODS_ANNOTATION, ""),
    )
    current = status.get("observedGeneration") == body["metadata"].get("generation")
    progressing = [each.get("reason") for each in status.get("conditions", []) if each["type"] == "Progressing"]
    return ServerView(
        name=name,
        uid=body["metadata"]["uid"],
        replicas=wanted,
        pods=status.get("replicas", 0),
        ready_pods=status.get("readyReplicas", 0),
        ready=current and wanted > 0 and status.get("updatedReplicas", 0) >= wanted <= status.get("readyReplicas", 0),
        was_ready=names.WAS_READY_ANNOTATION in notes,
        waits_note=_time(notes.get(names.WAITS_ANNOTATION, "")),
        trouble=troubles[0] if troubles else None,
        damage=next((found for _, found in checks if found is not None and found.reason in DAMAGES), None),
        image_id=min(filter(None, map(server_image_id, own)), default=""),
        created_at=datetime.fromisoformat(body["metadata"]["creationTimestamp"]),
        revision_key=revision,
        makes_way_for=notes.get(names.MAKES_WAY_ANNOTATION, ""),
        makes_way_since=datetime.fromisoformat(since) if since else None,
        makes_way_pods=int(gives) if gives.isdecimal() else None,
        node_is_coming=any(node_is_coming(pod, events) for pod in own),
        progress_deadline_exceeded="ProgressDeadlineExceeded" in progressing,
        addresses={pod["metadata"]["name"]: ip for pod in own if (ip := address(pod))},
        restarts={pod["metadata"]["name"]: at for pod in own if (at := restarted_at(pod)) is not None},
        body=body,
    )
