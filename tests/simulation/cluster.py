"""A cluster in memory: the real Reconciler acts on it, Jobs and servers run in small steps, and tests inject failures.

It stands for the API server (apply, delete, immutable templates), the Job and Deployment controllers and the kubelet,
as far as the operator sees them. Time passes only in `step`. Jobs and pods arrive over different watches: `order` says
in which order the end of a Job's containers, of its pod and of the Job itself become visible.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

from tests.simulation.api_server import KEY, ApiServer
from tests.simulation.controllers import STEP, Controllers
from tests.simulation.edits import Edit
from tests.simulation.kubelet import gpu_of
from tests.simulation.objects import ORDER, PROMETHEUS, SETTINGS, Body, accepted, pulled
from triton_local.applied import as_stored
from triton_operator import names
from triton_operator.api.triton_deployment import parse
from triton_operator.kube.kinds import HTTP_ROUTE, SCALED_OBJECT
from triton_operator.observed.gpu import Nodes
from triton_operator.observed.snapshot import observe
from triton_operator.planning.plan import Plan, plan
from triton_operator.planning.setbacks import TOLD_AFTER
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler

__all__ = ["ORDER", "PROMETHEUS", "SETTINGS", "STEP", "Body", "Cluster", "accepted", "gpu_of", "pulled"]
MOST_PASSES = 20
"""Passes in a row that may start something before one reports."""
METRICS = Metrics()
"""Of all operators; nobody reads them."""
SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "generation", "resourceVersion", "managedFields")
"""Fields of `metadata` that the API server sets, so that an apply does not change them."""


class Cluster(Controllers):
    """One TritonDeployment, its children, and the operator that makes them."""

    # The operator's side ---------------------------------------------------------------------------------------

    def body(self) -> Body:
        """The TritonDeployment."""
        metadata: Body = {"name": "digits", "namespace": "vision", "uid": self.uid, "generation": self.generation}
        metadata["creationTimestamp"] = self.born
        asked = {names.RETRY_ANNOTATION: self.retries, names.UPDATE_IMAGES_ANNOTATION: self.updates}
        metadata["annotations"] = self.annotations | {name: str(number) for name, number in asked.items() if number}
        metadata |= {"labels": self.labels} if self.labels else {}
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": metadata,
            "spec": self.spec,
            "status": self.status,
        }

    def ask(self, /, *edits: Edit, **fields: Any) -> None:
        """The spec is another one from the beginning: with these edits, and with these fields as they are."""
        for each in edits:
            self.spec = self.spec | each(self.spec)
        self.spec = self.spec | deepcopy(fields)

    def edit(self, /, *edits: Edit, **fields: Any) -> None:
        """The user changes the spec: by these edits, and by these fields as they are."""
        self.ask(*edits, **fields)
        self.generation += 1

    def retry(self) -> None:
        """The user asks for another try of what failed."""
        self.retries += 1

    def intent(self) -> Plan:
        """What plan() wants now."""
        deployment = parse(self.body())
        observed = observe(
            "digits",
            self.objects.values(),
            Nodes(self.gpu_product_exists),
            self.neighbours,
            deployment.claim_name,
            self.has_keda,
            self.has_gateway_api,
        )
        observed = replace(observed, host_holder=self.host_holder, looks_beside=self.looks_beside)
        return plan(deployment, observed, self.settings, self.now)

    def act(self) -> int:
        """The operator's passes until one of them reports; how many writes they made."""
        api = ApiServer(self, refused=self.refuses)
        result = self.report(api)
        expected = self.refuses or self.broken
        assert expected or not result.failed, f"a pass failed: {self.status.get('conditions')}"
        again = 0.0 if result.failed else result.again_after
        self.due = None if again is None else self.now + timedelta(seconds=again)
        return api.count

    def act_on(self, changes: int) -> int:
        """The same if there were changes or a pass is due; otherwise nothing, as nothing wakes the operator."""
        return self.act() if changes or (self.due is not None and self.due <= self.now) else 0

    def report(self, api: ApiServer) -> Result:
        """The operator's passes over that API server until one of them reports; what the queue is told.

        A pass that makes room, or starts Jobs, is followed by another one at once. One that reports is followed by the
        next one after a step: the operator itself would look again before time passes. Where the operator is broken,
        it is so for long enough to be told.
        """
        known = [(SCALED_OBJECT, self.has_keda), (HTTP_ROUTE, self.has_gateway_api)]
        operator = Reconciler(
            api,
            api,
            self.settings,
            METRICS,
            lambda: self.now,
            optional=[kind for kind, served in known if served],
            turns=self.turns,
        )
        if self.broken:
            operator.reconcile(KEY)
            self.now += TOLD_AFTER
        for _ in range(MOST_PASSES):
            before = api.starts
            result = operator.reconcile(KEY)
            api.rests(result)
            if api.starts == before:
                return result
        raise AssertionError(f"{MOST_PASSES} passes in a row started something: {self.story[-8:]}")

    def run(self, steps: int) -> None:
        """Passes, where there is something to do, and steps in turn."""
        for _ in self.steps(steps):
            pass

    def steps(self, count: int) -> Iterator[int]:
        """The same; yields a number after each step. Who looks in between changes nothing, so it wakes nobody."""
        changes = 1
        for number in range(count):
            self.act_on(changes)
            changes = self.step()
            yield number

    def passes(self, most: int = 300, until: Callable[[Self], object] | None = None) -> Iterator[int]:
        """Passes and steps in turn, up to the first pass that finds it so; yields a number after each pass.

        A loop that is left is left before the step. Fails where what is waited for does not come about.
        """
        for number in range(most):
            if until is not None and until(self):
                return
            self.act()
            yield number
            self.step()
        if until is not None:
            raise AssertionError(f"it did not come about in {most} steps: {self.story[-8:]}")

    def until(self, holds: Callable[[Self], object], most: int = 300) -> Self:
        """Passes and steps up to the first pass that finds it so; fails where that does not come about."""
        if not holds(self) and not any(holds(self) for _ in self.steps(most)):
            raise AssertionError(f"it did not come about in {most} steps: {self.story[-8:]}")
        return self

    def until_active(self, stage: str, count: int = 1) -> Self:
        """Passes and steps until so many Jobs of a stage run, or more."""
        return self.until(lambda cluster: len(cluster.active(stage)) >= count)

    def until_has(self, reason: str, kind: str = "Ready", words: str = "") -> Self:
        """Passes and steps until a condition has that reason, and these words in its message."""
        return self.until(lambda cluster: cluster.has(reason, kind, words))

    def settle(self, steps: int = 300) -> None:
        """Passes and steps until nothing changes and no pass is due; fails where that does not come about."""
        quiet, changes = 0, 1
        for _ in range(steps):
            writes = self.act_on(changes)
            changes = self.step()
            quiet = quiet + 1 if writes + changes == 0 else 0
            if quiet == 2 and (wanted := self.intent()).requeue_after is None:
                others = [name for each in wanted.objects if (name := self._other(each))]
                assert not others, f"the operator rests, and these are not what it wants: {others}"
                return
        raise AssertionError(f"no end after {steps} steps: {self.story[-8:]}")

    # What tests look at ------------------------------------------------------------------------------------------

    def active(self, stage: str) -> list[str]:
        """Candidates (empty: none) of a stage's Jobs whose own container still runs, or is to."""
        return [
            each["metadata"]["labels"].get(names.CANDIDATE_LABEL, "")
            for each in self.of_kind("Job")
            if each["metadata"]["labels"][names.STAGE_LABEL] == stage and not each["status"].get("shown")
        ]

    def serving(self) -> str | None:
        """Name of the Deployment that the Service points to."""
        service = self.objects.get(("Service", "digits"))
        return None if service is None else service["spec"]["selector"].get(names.SERVER_LABEL)

    def condition(self, kind: str) -> Body:
        """A condition of the status."""
        return next(each for each in self.status["conditions"] if each["type"] == kind)

    def has(self, reason: str, kind: str = "Ready", words: str = "") -> bool:
        """Whether a condition was written with that reason, and with these words in its message."""
        return any(
            (each["type"], each["reason"]) == (kind, reason) and words in each["message"]
            for each in self.status.get("conditions", [])
        )

    def candidate(self, name: str) -> Body:
        """A candidate of the status."""
        return next(each for each in self.status["candidates"] if each["name"] == name)

    def started(self, stage: str) -> int:
        """How many Jobs of a stage were made so far."""
        return sum(each.split()[0] == stage for each in self.story)

    # The API server's side ---------------------------------------------------------------------------------------

    def apply(self, desired: Body) -> bool:
        """Store an object as somebody wants it; whether that made it, or made it another one.

        What the API server and the controllers set stays, and a Job that is there stays as it is.
        """
        key = (desired["kind"], desired["metadata"]["name"])
        old = self.objects.get(key)
        new = deepcopy(desired)
        if old is None:
            new["metadata"] |= self._identity()
            new["status"] = {}
            if self.quota is not None and names.QUEUE_LABEL in new["metadata"]["labels"]:
                new["spec"]["suspend"] = True
            self._tell(new)
        else:
            new = _kept(new, old)
            if new == old and key[0] != "Job":
                # What somebody took away from the object is no longer the operator's.
                self.objects[key] = as_stored(new, desired, int(old["metadata"]["resourceVersion"]))
            if new == old or key[0] == "Job":
                return False
            new["metadata"]["generation"] += 1
            template = old.get("spec", {}).get("template")
            assert new.get("spec", {}).get("template") == template, f"the template of {key} was patched"
            if key == ("Service", "digits"):
                self.story.append("promotion")
        self.version += 1
        self.objects[key] = as_stored(new, desired, self.version)
        return True

    def _other(self, desired: Body) -> str:
        """The name of a wanted object if the one that is there is another one; empty: it is as it is wanted."""
        name = f"{desired['kind']} {desired['metadata']['name']}"
        old = self.objects.get((desired["kind"], desired["metadata"]["name"]))
        return "" if desired["kind"] == "Job" or (old is not None and _kept(desired, old) == old) else name

    def _tell(self, body: Body) -> None:
        labels, kind, name = body["metadata"]["labels"], body["kind"], body["metadata"]["name"]
        if kind == "Job":
            self.story.append(f"{labels[names.STAGE_LABEL]} {labels.get(names.CANDIDATE_LABEL, '')}".strip())
        elif kind == "Deployment":
            self.story.append("server")
        elif (kind, name) == ("Service", "digits"):
            self.story.append("service")


def _kept(desired: Body, old: Body) -> Body:
    """An object as it is wanted, with what the API server and the controllers have set of it."""
    metadata = {name: old["metadata"][name] for name in SERVER_SET if name in old["metadata"]}
    kept = {**desired, "status": old["status"], "metadata": desired["metadata"] | metadata}
    if desired["kind"] == "PersistentVolumeClaim":
        # Its class, its volume and a person's annotation, which an apply that does not name them leaves as they are.
        kept["spec"] = old["spec"] | desired["spec"]
        if uid := old["metadata"].get("annotations", {}).get(names.RELEASE_ANNOTATION):
            annotations = desired["metadata"].get("annotations", {}) | {names.RELEASE_ANNOTATION: uid}
            kept["metadata"] = kept["metadata"] | {"annotations": annotations}
    return kept


def framework(pod: Body) -> Body:
    """The container of a Job's pod that runs the model's framework; without one, the main container."""
    own: Body = next((each for each in pod.get("initContainers", []) if each["name"] == "run"), pod["containers"][0])
    return own
