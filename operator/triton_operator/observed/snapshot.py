"""The children of a TritonDeployment as one pass sees them: parsed once, no client. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.observed.entries import Entries, read_entries, read_moves
from triton_operator.observed.failures import Failure
from triton_operator.observed.gpu import NO_GPU, NodeGpu, Nodes
from triton_operator.observed.job import JobView, job_view
from triton_operator.observed.pod import pod_view
from triton_operator.observed.record import Record
from triton_operator.observed.revision import is_server_name
from triton_operator.observed.routes import RouteView, route_view
from triton_operator.observed.server import ServerView, server_view
from triton_operator.observed.turn import FREE, Turn

COUNTED = "snapshot"
"""The stage whose results are counters of servers, and not on the claim."""
PRIVATE = ("profile", "search")
"""The stages whose pods have a server, and so the GPU that their figures are of."""


@dataclass(frozen=True, kw_only=True)
class Observed(Entries):
    """A snapshot of the children, and what is recorded of them."""

    jobs: Mapping[str, JobView]
    servers: Mapping[str, ServerView]
    routed_server: str | None
    """Name of the Deployment that the Service points to."""
    claim: Mapping[str, Any] | None
    """The repository claim; None: there is none yet."""
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
    network_policies: frozenset[str]
    """Names of the NetworkPolicies that the operator made."""
    has_keda: bool
    """Whether the API server knows the kind ScaledObject."""
    has_gateway_api: bool
    """Whether the API server knows the kind HTTPRoute."""
    host_holder: str = ""
    """NAMESPACE/NAME of another TritonDeployment whose HTTPRoute has a host name that the spec asks for; or empty."""
    looks_beside: int = 0
    """How many Jobs of other objects of the namespace look at sources."""
    turn: Turn = FREE
    """Whether a Job that measures may start."""
    has_results: bool = False
    """Whether the results ConfigMap is there."""
    has_preview: bool = False
    """Whether the preview Service is there; one of that name may be another object's."""

    @property
    def claim_terminates(self) -> bool:
        """Whether the repository claim is being deleted: it goes with the last pod that has it."""
        return self.claim is not None and "deletionTimestamp" in self.claim["metadata"]

    def without_results(self, missing: Mapping[str, Failure]) -> "Observed":
        """Return what still holds where the claim lacks a recorded result: each Job looks for its own there again.

        ``missing``: the failures that tell so, by their Jobs' names. What is known of servers is not on it.
        """
        late = {name: each for name, each in self.failures.items() if name.rpartition(".")[0] in self.servers}
        known = {name: each for name, each in self.failures.items() if each.reason is Reason.INPUT_MISSING}
        return replace(
            self,
            jobs={
                name: job if job.active or job.stage == COUNTED else _job_to_repeat(job)
                for name, job in self.jobs.items()
            },
            records={name: each for name, each in self.records.items() if name.startswith(record_name(COUNTED, ""))},
            failures={**late, **known, **missing},
        )


def observe(
    owner_name: str,
    children: Iterable[Mapping[str, Any]],
    nodes: Nodes = Nodes(),  # noqa: B008 - it cannot be changed
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
    pods, events = [pod_view(pod) for pod in by_kind.get("Pod", [])], by_kind.get("Event", [])
    claim = _object_named(by_kind.get("PersistentVolumeClaim", []), claim_name)
    jobs = [_without_result_of_other_claim(job_view(job, pods, events), claim_name) for job in by_kind.get("Job", [])]
    results = _object_named(by_kind.get("ConfigMap", []), names.results(owner_name)) or {}
    entries = read_entries(results.get("data") or {})
    if _is_other_claim(entries.recorded_claim, claim_name, claim):
        entries = entries.on_another_claim()
        jobs = [_job_to_repeat(job) if claim is not None and _is_older(job.body, claim) else job for job in jobs]
    service = _object_named(by_kind.get("Service", []), owner_name) or {}
    return Observed(
        **vars(entries) | {"records": _records(entries, jobs, nodes.gpus)},
        jobs={job.name: job for job in jobs},
        servers={body["metadata"]["name"]: server_view(body, pods, events) for body in by_kind.get("Deployment", [])},
        routed_server=service.get("spec", {}).get("selector", {}).get(names.SERVER_LABEL),
        claim=claim,
        neighbours=tuple(sorted(neighbours)),
        gpu_product_exists=nodes.has_product,
        scaled_object=_first_name(by_kind.get(names.SCALED_OBJECT, [])),
        http_route=next(map(route_view, by_kind.get(names.HTTP_ROUTE, [])), None),
        disruption_budget=_first_name(by_kind.get(names.DISRUPTION_BUDGET, [])),
        network_policies=frozenset(each["metadata"]["name"] for each in by_kind.get("NetworkPolicy", [])),
        has_keda=has_keda,
        has_gateway_api=has_gateway_api,
        has_results=bool(results),
        has_preview=_object_named(by_kind.get("Service", []), names.preview(owner_name)) is not None,
    )


def measured_nodes(owner_name: str, children: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the nodes on which private servers are or were measured, where no result is recorded yet."""
    known = list(children)
    results = _object_named((each for each in known if each["kind"] == "ConfigMap"), names.results(owner_name)) or {}
    recorded = results.get("data") or {}
    found = set()
    for pod in (each for each in known if each["kind"] == "Pod" and each.get("status", {}).get("phase") != "Failed"):
        labels, node = pod["metadata"].get("labels", {}), pod["spec"].get("nodeName")
        stage = labels.get(names.STAGE_LABEL)
        if node and stage in PRIVATE and record_name(stage, labels.get(names.KEY_LABEL, "")) not in recorded:
            found.add(node)
    return frozenset(found)


def recorded_servers(owner_name: str, children: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    """Return the names of the Deployments that should be there: the active one, and those that a trial compares.

    A trial that is over needs the previous one only if the new one failed, and is still active.
    """
    configs = (each for each in children if each["kind"] == "ConfigMap")
    results = _object_named(configs, names.results(owner_name)) or {}
    promotions, active_record = read_moves(results.get("data") or {})
    active = active_record.server if active_record is not None and active_record.has_server else ""
    tried = [
        each
        for each in promotions.values()
        if each.reason is None or (each.reason is Reason.SOAK_FAILED and each.server == active)
    ]
    found = {active, *(each.server for each in tried), *(each.previous for each in tried)}
    return sorted(filter(is_server_name, found))


def _records(entries: Entries, jobs: Iterable[JobView], gpus: Mapping[str, NodeGpu]) -> Mapping[str, Record]:
    """Return what is recorded, and what pods have answered since."""
    # Another Job reads an answer that was cut, in a pod without the image.
    cut = {(job.stage, job.key): job for job in jobs if job.cut}
    records = dict(entries.records)
    for job in jobs:
        if job.record is not None:
            first = cut.get((job.stage, job.key))
            image = job.record.image_id or (first.image_id if first is not None else "")
            node = job.record.node if job.record.image_id or first is None else first.cut_node
            gpu = gpus.get(node, NO_GPU) if job.stage in PRIVATE else NO_GPU
            record = replace(job.record, image_id=image, gpu=gpu)
            records.setdefault(record_name(job.stage, job.key), record)
    return records


def _object_named(objects: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((each for each in objects if each["metadata"]["name"] == name), None)


def _first_name(objects: Iterable[Mapping[str, Any]]) -> str | None:
    return next((each["metadata"]["name"] for each in objects), None)


def _is_other_claim(recorded: str, name: str, claim: Mapping[str, Any] | None) -> bool:
    """Whether the recorded results are on another claim than the one that is used now."""
    if not recorded or not name:
        return False
    recorded_name, _, uid = recorded.partition("/")
    return recorded_name != name or (claim is not None and claim["metadata"]["uid"] != uid)


def _without_result_of_other_claim(job: JobView, claim_name: str) -> JobView:
    """The Job, without its result if that is on another claim than the one that is used now."""
    volumes = job.body["spec"].get("template", {}).get("spec", {}).get("volumes", [])
    claims = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes}
    is_on_claim = claims.get(names.REPOSITORY) in (claim_name, None) or not claim_name
    return job if is_on_claim else replace(job, record=None, cut=False)


def _is_older(job: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    return bool(job["metadata"]["creationTimestamp"] < claim["metadata"]["creationTimestamp"])


def _job_to_repeat(job: JobView) -> JobView:
    """A Job whose result is lost with its claim, so that it runs again."""
    return replace(job, state="Succeeded", record=None, cut=False, failure=None, pending=None, ended_unseen=None)
