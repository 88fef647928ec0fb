"""The order in which a plan becomes objects, and what waits for what. Whatever fails holds up nothing else.

| Step | Waits for |
|---|---|
| delete what is no longer desired, so that no quota refuses what is | the results, which Jobs that go may hold alone |
| claim and NetworkPolicies, then Jobs | Jobs: for claim and policies that are not there yet, and for Jobs that go |
| the results | |
| Deployments, Services, budgets | new Deployments: as Jobs; a Service that moves: the record of its move |
| objects of other projects' kinds | a route: for the Services that it leads to |
"""

from collections.abc import Collection, Iterable, Mapping

from triton_operator.api.status import ConditionType
from triton_operator.kube.errors import NotFoundError, RefusedError
from triton_operator.kube.kinds import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HTTP_ROUTE,
    JOB,
    NETWORK_POLICY,
    OPTIONAL,
    SCALED_OBJECT,
    SERVICE,
    ApiKind,
    kind_named,
    kind_of,
)
from triton_operator.names import Body
from triton_operator.planning.plan import Plan
from triton_operator.runtime.outcome import Carried
from triton_operator.runtime.writing import Children, Failures, Writer, Written, key_of, named

NEEDED_BY_PODS = {CLAIM, NETWORK_POLICY}
"""The kinds that must exist before a pod may run."""
TOLD_BY: Mapping[ApiKind, ConditionType] = {SCALED_OBJECT: "Autoscaling", HTTP_ROUTE: "Routed"}
"""The condition that tells if an object of a kind that a cluster may lack is refused."""


class CarryingOut:
    """A plan as it is carried out in one pass."""

    def __init__(self, writer: Writer, owner: Body, children: Children, planned: Plan) -> None:
        """`children`: as they are observed."""
        self._writer = writer
        self._owner = owner
        self._children = children
        self._plan = planned
        # A pass at rest looks at each object several times, and finds its kind once.
        self._objects = [(kind_of(each), each) for each in planned.objects]
        self._written: Written = []
        self._failures = Failures()
        self._without: dict[ConditionType, Failures] = {}
        self._are_recorded: bool | None = None
        """Whether the results are written; None: it was not tried yet."""
        self._may_run = True
        """Whether what pods need is there."""
        self._has_room = True
        """Whether no Job is left that is to go: the next one must not be measured beside it."""

    def take_steps(self, *, to_the_end: bool) -> Carried:
        """Take the steps. Raises DisconnectedError if nothing gets through.

        A pass that made room or started work ends there, because the next one plans by what is then observed.
        ``to_the_end``: it goes on all the same.
        """
        for step in (self._make_room, self._start_work):
            step()
            if self._written and not to_the_end:
                return self._carried(whole=False)
        self._apply_rest()
        for kind in OPTIONAL:
            self._apply_optional(kind)
        return self._carried(whole=True)

    def _carried(self, *, whole: bool) -> Carried:
        return Carried(self._plan, whole, self._written, self._failures, self._without)

    def _make_room(self) -> None:
        gone = [
            child
            for each in self._plan.deletions
            if (child := self._children.get((kind_named(each.api_version, each.kind), each.name)))
            and "deletionTimestamp" not in child["metadata"]
        ]
        deleted = self._writer.delete_all(self._owner, gone, self._failures) if gone and self._record() else []
        self._written += deleted
        self._has_room = not any(kind_of(each) is JOB and named(each) not in deleted for each in gone)

    def _start_work(self) -> None:
        needed = self._of(NEEDED_BY_PODS)
        self._may_run = self._write(needed) or all(key_of(each) in self._children for each in needed)
        if self._may_run and self._has_room:
            self._write(self._of({JOB}))

    def _record(self) -> bool:
        """Write the results, unless this pass has tried it; return whether they are as desired."""
        if self._are_recorded is None:
            self._are_recorded = self._write(self._of({CONFIG_MAP}))
        return self._are_recorded

    def _apply_rest(self) -> None:
        recorded = self._record()
        others = self._of({DEPLOYMENT, SERVICE, DISRUPTION_BUDGET})
        if not self._may_run:
            # No new server either. One that is there follows its replicas.
            others = [each for each in others if kind_of(each) is not DEPLOYMENT or key_of(each) in self._children]
        if not recorded:
            others = [each for each in others if not self._moves(each)]
        self._write(others)

    def _apply_optional(self, kind: ApiKind) -> None:
        """Apply the objects of another project's kind, such as the HTTPRoute, which ends the share of a failed canary.

        KEDA's webhook, for one, refuses a second scaler of one object: a user's own is left alone.
        """
        failures = Failures()
        objects = [each for each in self._of({kind}) if kind is not HTTP_ROUTE or self._leads_home(each)]
        self._written += self._writer.apply_all(self._owner, self._children, objects, failures)
        for error in failures:
            if isinstance(error, RefusedError | NotFoundError):
                # Not found: its project was uninstalled.
                self._without.setdefault(TOLD_BY[kind], Failures()).append(error)
            else:
                self._failures.append(error)

    def _leads_home(self, route: Body) -> bool:
        """Whether all Services to which an HTTPRoute leads requests are this object's.

        An object NAME-preview has a Service of the name that the preview Service of NAME has. Whoever came later is
        refused its own, and its route would lead clients to the other's servers.
        """
        backends = [each for rule in route["spec"]["rules"] for each in rule["backendRefs"] if each["weight"] > 0]
        names = {each["name"] for each in backends}
        return all((SERVICE, name) in self._children or f"{SERVICE} {name}" in self._written for name in names)

    def _of(self, kinds: Collection[ApiKind]) -> list[Body]:
        """The plan's objects of some kinds, in its order."""
        return [each for kind, each in self._objects if kind in kinds]

    def _write(self, objects: Iterable[Body]) -> bool:
        """Apply objects; return whether none failed."""
        known = len(self._failures)
        self._written += self._writer.apply_all(self._owner, self._children, objects, self._failures)
        return len(self._failures) == known

    def _moves(self, desired: Body) -> bool:
        """Whether an object is the active revision's Service, and leads to another server than before."""
        if key_of(desired) != (SERVICE, self._owner["metadata"]["name"]):
            return False
        found = self._children.get(key_of(desired))
        return found is not None and found["spec"].get("selector") != desired["spec"]["selector"]
