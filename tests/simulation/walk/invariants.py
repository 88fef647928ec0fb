"""What holds of every object, of every status and of every change of what serves. Pure but for what it remembers."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from tests.simulation.api_server import Body, require
from tests.simulation.cluster import Cluster, gpu_of
from tests.simulation.walk.schema import faults
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import ACTIVE, CLAIM, DAMAGED, FOLLOWING, record_name
from triton_converters.contract.results import MeasureResult
from triton_operator import names
from triton_operator.api.status import MetricValue
from triton_operator.crdgen import crd
from triton_operator.observed.snapshot import observe
from triton_operator.planning.plan import Plan

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?|")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MOST_DATA_BYTES = 1024 * 1024
"""Of a ConfigMap."""


@cache
def _schema() -> Body:
    """The schema of the status."""
    root = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    status: Body = root["properties"]["status"]
    return status


def check_status(status: Body) -> None:
    """The API server takes the status."""
    found = next(faults(status, _schema(), "status"), "")
    require(not found, f"the status is refused: {found}")


def check_plan(plan: Plan) -> None:
    """No two objects of a plan are the same one, and nothing is wanted and deleted."""
    named = [(each["kind"], each["metadata"]["name"]) for each in plan.objects]
    require(len(named) == len(set(named)), f"two objects of one name: {sorted(named)}")
    both = {(each.kind, each.name) for each in plan.deletions} & set(named)
    require(not both, f"wanted and deleted: {sorted(both)}")
    require(plan.requeue_after is None or plan.requeue_after > 0, f"a pass after {plan.requeue_after} s")


def check_object(body: Body) -> None:
    """The API server takes the object, as far as its rules are simple."""
    metadata, kind = body["metadata"], body["kind"]
    what = f"{kind} {metadata['name']}"
    require(NAME.fullmatch(metadata["name"]), f"{what}: its name is refused")
    template = body.get("spec", {}).get("template", {}) if kind in ("Job", "Deployment") else {}
    for labels in (metadata["labels"], template.get("metadata", {}).get("labels", {})):
        require(all(LABEL.fullmatch(value) for value in labels.values()), f"{what}: a label is refused: {labels}")
    data = body.get("data", {})
    size = sum(len(name) + len(value.encode()) for name, value in data.items())
    require(size < MOST_DATA_BYTES, f"{what} has {size} bytes")
    if template:
        _check_pod(what, template["spec"])


def _check_pod(what: str, pod: Body) -> None:
    volumes = [each["name"] for each in pod["volumes"]]
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    mounts = [mount["name"] for each in containers for mount in each.get("volumeMounts", [])]
    _check_distinct(f"{what}: volumes", volumes)
    _check_distinct(f"{what}: containers", [each["name"] for each in containers])
    require(set(mounts) == set(volumes), f"{what}: volumes {sorted(volumes)}, mounts {sorted(set(mounts))}")
    for each in containers:
        _check_distinct(f"{what}: mounts of {each['name']}", [mount["mountPath"] for mount in each["volumeMounts"]])
        _check_distinct(f"{what}: variables of {each['name']}", [item["name"] for item in each.get("env", [])])


def _check_distinct(what: str, values: Sequence[str]) -> None:
    require(len(values) == len(set(values)), f"{what} are not distinct: {sorted(values)}")


@dataclass
class Service:
    """What the Service points to, and what it did before."""

    cluster: Cluster
    active: str | None = None
    """Name of the Deployment that the operator made active; None: nobody knows."""
    passed: set[str] = field(default_factory=set)
    """Names of the Deployments that were active."""
    rebooted: bool = False
    """Whether all servers were started again at once since the Service moved, and none alone."""
    down_since: datetime | None = None
    """Since when each pass found that nothing answers that is active; None: something did."""
    undone: set[str] = field(default_factory=set)
    """Names of the Deployments that failed a soak, until somebody changes something."""

    def look(self) -> None:
        """See whether what is active answers, as a pass is about to."""
        body = self.cluster.objects.get(("Deployment", self.active or ""))
        answers = body is None or body["status"].get("readyReplicas", 0) > 0
        self.down_since = None if answers else self.down_since or self.cluster.now

    def forget(self) -> None:
        """Somebody destroyed what tells which revision is active: now the Service tells, as it is."""
        self.active = self.cluster.serving()
        if self.active is not None:
            self.passed.add(self.active)

    @property
    def is_recorded(self) -> bool:
        """Whether the cluster still holds what tells which Deployment is active, wherever the Service points."""
        text, revision = self.template, self.cluster.status.get("serving", {}).get("revision")
        return text is not None and bool(revision) and f'"{revision}"' in text

    @property
    def template(self) -> str | None:
        """The record of the active revision, which names its Deployment and has its template."""
        found = self.cluster.objects.get(("ConfigMap", "digits-results"))
        text: str | None = found["data"].get(ACTIVE) if found is not None else None
        return text if text is not None and self.active is not None and f'"{self.active}"' in text else None

    def write(self, verb: str, body: Body, wanted: Plan | None) -> None:
        """Look at a write before it is made."""
        kind, name = body["kind"], body["metadata"]["name"]
        if kind == "Deployment" and name == self.active:
            self._check_kept(verb, body)
        if kind == "Deployment" and verb == "delete":
            self._check_previous(name)
        if (kind, name) == ("Service", "digits"):
            require(verb != "delete", "the Service is deleted")
            self._point(body["spec"]["selector"][names.SERVER_LABEL], wanted)

    def _check_previous(self, name: str) -> None:
        """What is to be active again is not deleted while what failed is active, unless nobody asks for a soak."""
        found = self.cluster.objects.get(("ConfigMap", "digits-results"))
        asks = "soak" in self.cluster.spec.get("serving", {}) and "revision" not in self.cluster.spec.get("rollout", {})
        for entry, text in found["data"].items() if found is not None and asks else ():
            record = json.loads(text) if entry.startswith("soak.digits-") else {}
            failed = (record.get("server"), record.get("previous")) == (self.active, name)
            require(
                not (failed and record.get("reason") == Reason.SOAK_FAILED and not record.get("by_route")),
                f"Deployment {name} is deleted, and {self.active} failed its soak",
            )

    def _check_kept(self, verb: str, body: Body) -> None:
        """Only where GPUs lack may what serves stop."""
        require(verb != "delete", f"Deployment {self.active} is deleted while it is active")
        gpu = self.cluster.spec.get("gpu") or {}
        # GPUs that were added right now are in no pod's status yet, which is all that the operator can see.
        waits = any(each["status"].get("phase") == "Pending" for each in self.cluster.of_kind("Pod"))
        lacks = self.cluster.gpus is not None or waits
        helps = lacks and gpu_of(body["spec"]["template"]["spec"]) == gpu.get("resourceName")
        wanted = self.cluster.spec.get("serving", {}).get("replicas", 1)
        before = self.cluster.objects.get(("Deployment", body["metadata"]["name"]))
        runs = before is not None and before["spec"]["replicas"] > 0
        stops = wanted > 0 and runs and body["spec"]["replicas"] == 0
        pods = self.cluster.pods_of(body["metadata"]["name"]) if stops else []
        placed = [each for each in pods if "nodeName" in each["spec"]]
        require(len(placed) < 2, f"Deployment {self.active} is stopped, and has {len(placed)} pods")
        require(helps or not stops, f"Deployment {self.active} is stopped while it is active, and that frees no GPU")

    def _point(self, server: str, wanted: Plan | None) -> None:
        if server == self.active:
            return
        body = self.cluster.objects.get(("Deployment", server))
        require(server not in self.undone, f"Deployment {server} was undone, and is active again")
        if self.active is not None and server not in self.passed:
            require(body is not None, f"the Service moves to {server}, which is not there")
            require(wanted is not None, f"the Service moves to {server} without a plan")
            assert body is not None
            assert wanted is not None
            self._check_passed(server, body, wanted)
        reason, message = _soaked(wanted) if wanted is not None else ("", "")
        if self.active is not None and reason == Reason.SOAK_FAILED:
            self.undone.add(self.active)
            require(
                not (self.rebooted and "started again" in message), f"undone for a reboot of all servers: {message}"
            )
        self.rebooted = False
        self.active = server
        self.passed.add(server)

    def _check_passed(self, server: str, body: Body, wanted: Plan) -> None:
        """The target was profiled, measured, approved where that is asked for, and meets the constraints."""
        status = wanted.status
        chosen = [each for each in status.candidates if each.state == "Selected"]
        key, spec = body["metadata"]["labels"][names.KEY_LABEL], self.cluster.spec.get("selection", {})
        require([each.revision for each in chosen] == [key], f"{server} becomes active, and {chosen} is selected")
        meets = chosen[0].satisfies_constraints is True or spec.get("fallback") == "Closest"
        served = self.cluster.status.get("serving", {}).get("revision")
        require(meets or served is None, f"{server} becomes active and misses a constraint")
        # One that is damaged is published anew under another key, and stays approved.
        earlier = spec.get("approvedRevision")
        anew = f"{DAMAGED}{earlier}" in self.cluster.objects["ConfigMap", "digits-results"]["data"]
        # So does another server of the revision that is active, whether the status tells of that one yet or not.
        old = self.cluster.objects.get(("Deployment", self.active or ""))
        known = (earlier, served, old["metadata"]["labels"][names.KEY_LABEL] if old is not None else None)
        approved = spec.get("approval") != "Manual" or anew or key in known
        require(approved, f"{server} becomes active without approval")
        require(key in known or not self._is_staged(), f"{server} becomes active, and its version is staged")
        observed = observe("digits", self.cluster.objects.values())
        measured = [each for each in observed.records.values() if isinstance(each.outcome.result, MeasureResult)]
        require(measured, f"{server} becomes active, and nothing was measured")
        accepted = {*known, *(each.key for each in observed.history.revisions.values())}
        ignored = self.cluster.spec.get("accuracy", {}).get("regression", {}).get("policy") == "Ignore"
        worse = [each.metric for each in chosen[0].metrics if _is_worse(each)]
        require(not worse or anew or ignored or key in accepted, f"{server} becomes active, and is worse: {worse}")
        self._check_canary(server, body)
        require(body["status"].get("readyReplicas", 0) > 0, f"{server} becomes active, and no pod of it answers")

    def _is_staged(self) -> bool:
        """Whether what is taken of the source is another version than the one that serves, and a person approves it."""
        text = self.cluster.objects["ConfigMap", "digits-results"]["data"].get(FOLLOWING, "{}")
        known, serving = json.loads(text), self.cluster.status.get("source", {}).get("serving")
        taken = known.get("taken", {}).get("version")
        is_newer = taken is not None and not known.get("is_asked") and serving is not None
        asked = self.cluster.spec["source"].get("onChange") == "Stage"
        return asked and is_newer and serving["version"] != taken

    def _check_canary(self, server: str, body: Body) -> None:
        """A step judged what becomes active, where steps are asked for and what is active answered not long ago."""
        serving, active = (
            self.cluster.spec.get("serving", {}),
            self.cluster.objects.get(("Deployment", self.active or "")),
        )
        asked = serving.get("route", {}).get("canary") and "soak" in serving and self.cluster.has_gateway_api
        if not asked or active is None or names.MAKES_WAY_ANNOTATION in active["metadata"]["annotations"]:
            return
        down = (self.cluster.now - self.down_since).total_seconds() if self.down_since is not None else 0.0
        record = json.loads(self.cluster.objects["ConfigMap", "digits-results"]["data"][f"soak.{server}"])
        is_down = down > serving.get("progressDeadlineSeconds", 600) / 2
        require(is_down or record.get("steps"), f"{server} becomes active, and no step of its canary was judged")


def _is_worse(metric: MetricValue) -> bool:
    """Whether a metric is worse than before by more than any walk's chance and tolerance."""
    return any(float(metric.value) < 0.99 * float(before) for before in (metric.previous, metric.anchor) if before)


def check_available(cluster: Cluster, service: Service) -> None:
    """What is told to answer does."""
    body = cluster.objects.get(("Deployment", service.active or ""))
    told: Body = next((each for each in cluster.status.get("conditions", []) if each["type"] == "Available"), {})
    if body is not None and told.get("status") == "True" and cluster.serving() == service.active:
        require(body["status"].get("readyReplicas", 0) > 0, f"Available is True, and {service.active} does not answer")


def check_soak(cluster: Cluster, plan: Plan) -> None:
    """No soak ends without a verdict only because its Jobs were not allowed to run."""
    reason, message = _soaked(plan)
    held = [each for each in cluster.of_kind("Job") if each["spec"].get("suspend")]
    unread = reason == Reason.SOAK_INCONCLUSIVE and "were not read" in message
    before: Body = next((each for each in cluster.status.get("conditions", []) if each["type"] == "Soaked"), {})
    broken = reason == Reason.SOAK_INCONCLUSIVE and "requests failed in" in message and "maxErrorPercent is" in message
    require(not broken or "is gone" in message, f"a broken limit is no verdict: {message}")
    if unread and before.get("message") != message:
        made = [each["metadata"]["name"] for each in plan.objects if each["kind"] == "Job"]
        new = [each for each in made if "-snapshot-" in each and ("Job", each) not in cluster.objects]
        require(not new, f"the Job that reads is made in the pass that does not wait for it: {message}")
        require(not held and not cluster.spec.get("suspend"), f"a soak ended while its Jobs were held: {message}")


def _soaked(plan: Plan) -> tuple[str, str]:
    return next(((each.reason, each.message) for each in plan.status.conditions if each.type == "Soaked"), ("", ""))


def check_turn(cluster: Cluster, job: Body) -> None:
    """No Job that measures is made where another object's Job may measure."""
    if names.MEASURES_LABEL not in job["metadata"]["labels"] or not cluster.settings.measurements_per_node:
        return
    taken = {node for each in cluster.measured_beside() for node in each.nodes}
    rules = job["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {}).values()
    terms = [term for rule in rules for term in rule["nodeSelectorTerms"]]
    for term in terms or [{}]:
        kept_off = {value for field in term.get("matchFields", []) for value in field["values"]}
        require(taken <= kept_off, f"{job['metadata']['name']} may measure beside another on {taken - kept_off}")
    require(all(each.is_placed for each in cluster.measured_beside()), "a Job measures beside one without a node")


def check_job(cluster: Cluster, job: Body) -> None:
    """A Job's record is not there, and no other Job measures at the same time."""
    labels, found = job["metadata"]["labels"], cluster.objects.get(("ConfigMap", "digits-results"))
    record = record_name(labels[names.STAGE_LABEL], labels[names.KEY_LABEL])
    known = found["data"] if found is not None and _is_of(cluster, found["data"].get(CLAIM, "")) else ()
    require(record not in known, f"{record} is recorded, and its Job runs again")


def _is_of(cluster: Cluster, claim: str) -> bool:
    """Whether the results of a claim, NAME/UID, are those of the claim that is used now."""
    named = cluster.spec.get("repository", {}).get("claimName")
    own = cluster.objects.get(("PersistentVolumeClaim", "digits-repository"))
    if named is not None:
        return claim == f"{named}/uid-{named}"
    return own is not None and claim == f"digits-repository/{own['metadata']['uid']}"


def check_measurements(cluster: Cluster) -> None:
    """Candidates do not disturb each other's figures."""
    measured = list(_measured(cluster.of_kind("Job")))
    require(len(measured) <= 1, f"measured at the same time: {measured}")


def _measured(jobs: Iterable[Body]) -> Iterator[str]:
    for job in jobs:
        stage = job["metadata"]["labels"].get(names.STAGE_LABEL)
        if stage in ("profile", "search") and not job["status"].get("shown") and not job["spec"].get("suspend"):
            yield job["metadata"]["name"]
