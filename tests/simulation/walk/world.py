"""All that a walk changes: the cluster, its API server, and the operator that runs there."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from unittest import mock

from tests.simulation.answers import GOOD, Script
from tests.simulation.api_server import KEY, ApiServer, Body, BrokenError, require
from tests.simulation.cluster import Cluster
from tests.simulation.edits import Edit
from tests.simulation.walk.invariants import (
    Service,
    check_job,
    check_object,
    check_plan,
    check_soak,
    check_status,
    check_turn,
)
from tests.simulation.walk.origin import Origin
from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.kube.kinds import HTTP_ROUTE, SCALED_OBJECT
from triton_operator.planning.plan import Plan, plan
from triton_operator.runtime import reconcile
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result

MOST_PASSES = 8
"""Passes in a row that may write before the operator waits for something; it fights after 20."""
STATUS_CHECKED = 4
"""One of so many statuses is compared with its schema; the last one of a walk is too."""
KEPT = 12
"""Statuses and results that a backup may bring back."""


@dataclass
class World:
    """One object, its cluster, and the operator."""

    cluster: Cluster
    scripts: Mapping[tuple[str, str], Script] = field(default_factory=dict)
    """How Jobs fare, by stage and candidate, whatever they work on; without a candidate, all of the stage do so."""
    skew: timedelta = timedelta()
    """How far the operator's clock is ahead."""
    earlier: list[tuple[Body, Body]] = field(default_factory=list)
    """Statuses and results as they were."""
    passes: int = 0
    plans: int = 0
    statuses: int = 0
    wanted: Plan | None = None
    """Of the newest pass."""

    def __post_init__(self) -> None:
        self.api = ApiServer(self.cluster, self._look, claims={"team"})
        self.service = Service(self.cluster)
        self.origin = Origin(self.cluster)
        self.cluster.scripts = self._fares
        self.metrics = Metrics()
        self.start()

    def _fares(self, stage: str, candidate: str, request: Any) -> Script:
        of_version = self.origin.script(stage, request)
        chosen = self.scripts.get((stage, candidate)) or self.scripts.get((stage, "")) or of_version or GOOD
        # Code in a Job with a GPU is not rehearsed: it gets the GPU, or fails.
        return replace(chosen, rehearsed=chosen.rehearsed and not self.cluster.spec.get("gpu"))

    def start(self) -> None:
        """Start the operator, as after an upgrade or a crash."""
        known = [(SCALED_OBJECT, self.cluster.has_keda), (HTTP_ROUTE, self.cluster.has_gateway_api)]
        self.operator = reconcile.Reconciler(
            self.api,
            self.api,
            self.cluster.settings,
            self.metrics,
            lambda: self.cluster.now + self.skew,
            optional=[kind for kind, served in known if served],
        )

    def settings(self, **changed: Any) -> None:
        """Upgrade the operator."""
        self.cluster.settings = replace(self.cluster.settings, **changed)
        self.start()

    def reconcile(self) -> Result:
        """Passes until one waits for something."""
        for _ in range(MOST_PASSES):
            result = self._pass()
            self.api.rests(result)
            if result.failed or result.again_after != 0.0:
                return result
        raise BrokenError(f"{MOST_PASSES} passes in a row wrote: {self.cluster.story[-4:]}")

    def _pass(self) -> Result:
        self.passes += 1
        with mock.patch.object(reconcile, "plan", self._plan), mock.patch.object(reconcile.log, "exception", _raise):
            return self.operator.reconcile(KEY)

    def _plan(self, *arguments: Any) -> Plan:
        self.plans += 1
        self.service.look()
        self.wanted = plan(*arguments)
        check_plan(self.wanted)
        check_soak(self.cluster, self.wanted)
        return self.wanted

    def _look(self, verb: str, body: Body) -> None:
        """Look at a write of the operator before it is made."""
        if verb == "status":
            self.statuses += 1
            found = [
                each["message"] for each in body["status"]["conditions"] if each["reason"] == Reason.INTERNAL_ERROR
            ]
            require(not found, f"a pass failed: {found}")
            if self.statuses % STATUS_CHECKED == 0:
                check_status(body["status"])
            self.origin.check_status(body["status"])
            self._keep()
            return
        if verb != "delete":
            check_object(body)
        if verb == "create" and body["kind"] == "Job":
            check_job(self.cluster, body)
            check_turn(self.cluster, body)
        if verb != "delete" and (body["kind"], body["metadata"]["name"]) == ("ConfigMap", names.results("digits")):
            self.origin.check_results(body["data"])
        if verb != "delete" and (body["kind"], body["metadata"]["name"]) == ("Service", "digits"):
            self.origin.check_active(body["spec"]["selector"][names.SERVER_LABEL])
        self.service.write(verb, body, self.wanted)

    def _keep(self) -> None:
        found = self.cluster.objects.get(("ConfigMap", "digits-results"))
        if found is not None and self.statuses % 5 == 0:
            self.earlier = [*self.earlier[1 - KEPT :], (self.cluster.status, dict(found["data"]))]

    def edit(self, /, *edits: Edit, **fields: Any) -> None:
        """Edit the spec; what was undone may be tried again."""
        self.cluster.edit(*edits, **fields)
        self.service.undone.clear()


def _raise(*arguments: Any) -> None:
    """Stand for the log of a bug: end the walk by it."""
    error = sys.exception()
    require(error is not None, str(arguments))
    raise BrokenError(f"{type(error).__name__}: {error}") from error
