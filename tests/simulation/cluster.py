"""A cluster in memory: it applies plans and plays the Job controller, the kubelet and the Deployment controller."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from triton_operator import names
from triton_operator.deployment import parse
from triton_operator.drift import drift
from triton_operator.observed import observe
from triton_operator.plan import Plan, plan
from triton_operator.settings import Settings

from tests.simulation import results

SETTINGS = Settings(converter_image="example/converter:1", server_image="example/server:1")
Behaviour = Callable[[str, str, str], str | None]
"""(stage, candidate, key) -> the termination message of a failure, or None: the Job succeeds."""


def succeed(stage: str, candidate: str, key: str) -> str | None:
    """Nothing fails."""
    return None


@dataclass
class FakeCluster:
    """Objects by kind and name, and the order in which things happened."""

    body: dict[str, Any]
    behaviour: Behaviour = succeed
    settings: Settings = SETTINGS
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    server_starts: bool = True
    writes: int = 0

    def run_pass(self) -> Plan:
        """One pass of the operator: plan, apply, delete, status."""
        observed = observe(self.body["metadata"]["name"], copy.deepcopy(list(self.objects.values())))
        this = plan(parse(self.body), observed, self.settings, self.now)
        for body in this.objects:
            self._apply(body)
        for reference in this.deletions:
            self._delete(reference.kind, reference.name)
        status = this.status.model_dump(mode="json", by_alias=True, exclude_none=True)
        if status != self.body.get("status"):
            self.body["status"] = status
            self.writes += 1
        return this

    def tick(self) -> None:
        """Two seconds pass; every Job that runs ends, every server gets ready."""
        self.now += timedelta(seconds=2)
        for (kind, _), body in list(self.objects.items()):
            if kind == "Job" and not body["status"].get("conditions") and not body["spec"].get("suspend"):
                self._end(body)
            if kind == "Deployment" and self.server_starts:
                body["status"] = {
                    "observedGeneration": body["metadata"]["generation"],
                    "updatedReplicas": body["spec"]["replicas"],
                    "readyReplicas": body["spec"]["replicas"],
                }

    def settle(self, passes: int = 80) -> Plan:
        """Passes and ticks until a pass writes nothing and nothing runs; the last plan."""
        for _ in range(passes):
            before = self.writes
            this = self.run_pass()
            quiet = self.writes == before
            self.tick()
            if quiet and not self.active_jobs():
                return this
        raise AssertionError(f"no fixpoint after {passes} passes: {self.story[-10:]}")

    def edit(self, **spec: Any) -> None:
        """The user changes the spec."""
        self.body["spec"] |= spec
        self.body["metadata"]["generation"] += 1

    def active_jobs(self) -> list[str]:
        """Names of Jobs that have not ended and are not suspended."""
        return [
            name
            for (kind, name), body in self.objects.items()
            if kind == "Job" and not body["status"].get("conditions") and not body["spec"].get("suspend")
        ]

    def serving(self) -> str | None:
        """Key of the revision that the Service points to."""
        service = self.objects.get(("Service", self.body["metadata"]["name"]))
        if service is None:
            return None
        server = self.objects[("Deployment", service["spec"]["selector"][names.REVISION_LABEL])]
        key: str = server["metadata"]["labels"][names.KEY_LABEL]
        return key

    def condition(self, kind: str) -> dict[str, Any]:
        """A condition of the status."""
        return next(each for each in self.body["status"]["conditions"] if each["type"] == kind)

    def candidate(self, name: str) -> dict[str, Any]:
        """A candidate of the status."""
        return next(each for each in self.body["status"]["candidates"] if each["name"] == name)

    def _apply(self, body: dict[str, Any]) -> None:
        place = (body["kind"], body["metadata"]["name"])
        known = self.objects.get(place)
        if known is not None and drift(body, known) is None:
            return
        self.writes += 1
        body = copy.deepcopy(body)
        if known is None:
            body["metadata"] |= {
                "uid": f"{place[0]}-{place[1]}-{self.writes}",
                "creationTimestamp": self.now.isoformat(),
                "generation": 1,
            }
            body.setdefault("status", {})
            self._tell(body)
        else:
            meta = known["metadata"]
            body["metadata"] |= {key: meta[key] for key in ("uid", "creationTimestamp")}
            body["metadata"]["generation"] = meta["generation"] + 1
            body["status"] = known["status"]
            if place == ("Service", self.body["metadata"]["name"]):
                self.story.append("flip")
        self.objects[place] = body

    def _tell(self, body: dict[str, Any]) -> None:
        labels = body["metadata"]["labels"]
        if body["kind"] == "Job":
            candidate = labels.get(names.CANDIDATE_LABEL)
            self.story.append(labels[names.STAGE_LABEL] + (f" {candidate}" if candidate else ""))
        elif body["kind"] == "Deployment":
            self.story.append("server")
        elif body["kind"] == "Service" and body["metadata"]["name"] == self.body["metadata"]["name"]:
            self.story.append("service")

    def _delete(self, kind: str, name: str) -> None:
        body = self.objects.pop((kind, name))
        self.writes += 1
        for place, pod in list(self.objects.items()):
            owners = pod["metadata"].get("ownerReferences", [])
            if place[0] == "Pod" and any(owner.get("uid") == body["metadata"]["uid"] for owner in owners):
                del self.objects[place]

    def _end(self, job: dict[str, Any]) -> None:
        labels = job["metadata"]["labels"]
        stage, key = labels[names.STAGE_LABEL], labels[names.KEY_LABEL]
        candidate = labels.get(names.CANDIDATE_LABEL, "")
        words = self.behaviour(stage, candidate, key)
        ended = {
            "exitCode": 0 if words is None else 42,
            "message": results.answer(stage, key, candidate) if words is None else words,
            "finishedAt": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        job["status"] = {"conditions": [{"type": "Complete" if words is None else "Failed", "status": "True"}]}
        name = f"{job['metadata']['name']}-pod"
        self.objects["Pod", name] = {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "uid": f"pod-{name}",
                "labels": labels,
                "creationTimestamp": self.now.isoformat(),
                "ownerReferences": [{"uid": job["metadata"]["uid"]}],
            },
            "status": {
                "phase": "Succeeded" if words is None else "Failed",
                "containerStatuses": [{"name": stage, "state": {"terminated": ended}}],
            },
        }
