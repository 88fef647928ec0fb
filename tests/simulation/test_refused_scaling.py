"""A ScaledObject or HTTPRoute that is refused, or is somebody else's: it is said, whatever else becomes of the pass."""

from copy import deepcopy
from typing import Any

import pytest

from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment
from triton_operator.kube.cluster import ConflictError, ForbiddenError, NotFoundError, ServerError
from triton_operator.kube.kinds import HTTP_ROUTE, SCALED_OBJECT, SERVICE, Kind, kind_of
from triton_operator.planning.setbacks import TOLD_AFTER
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store

Body = dict[str, Any]
KEY = Key("vision", "digits")
WEBHOOK = "admission webhook \"vscaledobject.kb.io\" denied the request: already managed by the hpa 'mine'"


class Api:
    """Takes statuses and events, and answers the first apply of an object by its kind."""

    def __init__(self, store: Store, answers: dict[Kind, Exception], found: Body | None = None) -> None:
        self._store = store
        self._answers = answers
        self._found = found
        self.events: list[Body] = []
        self.version = 1

    def put(self, body: Body) -> Body:
        self.version += 1
        body = deepcopy(body)
        body["metadata"] |= {"resourceVersion": str(self.version), "namespace": KEY.namespace}
        self._store.put(kind_of(body), body)
        return body

    def apply_new(self, body: Body) -> Body:
        raise self._answers[kind_of(body)]

    def get(self, kind: Any, namespace: str, name: str) -> Body | None:
        assert kind in self._answers
        return self._found

    def apply_status(self, body: Body) -> Body:
        return self.put((self._store.owner(KEY) or {}) | {"status": body["status"]})

    def create_event(self, body: Body) -> None:
        self.events.append(body)


class Bench:
    """A settled TritonDeployment of which objects were deleted, and an API server that refuses to have them again."""

    def __init__(self, cluster: Cluster, answers: dict[Kind, Exception], found: Body | None = None) -> None:
        for kind in answers:
            del cluster.objects[kind.kind, "digits"]
        self._store = Store()
        self.api = Api(self._store, answers, found)
        owner = cluster.body()
        owner["metadata"]["creationTimestamp"] = "2026-11-21T00:00:00Z"
        for body in (owner, *cluster.objects.values()):
            self.api.put(body)
        self.now = cluster.now
        self.metrics = Metrics()
        self._reconciler = Reconciler(
            self.api,  # type: ignore[arg-type]  # a stand-in
            self._store,
            cluster.settings,
            self.metrics,
            lambda: self.now,
            optional=(SCALED_OBJECT, HTTP_ROUTE),
        )

    def reconcile(self) -> Result:
        return self._reconciler.reconcile(KEY)

    def conditions(self) -> dict[str, Body]:
        return {each["type"]: each for each in (self._store.owner(KEY) or {})["status"]["conditions"]}

    def said(self, *types: str) -> list[tuple[str, str]]:
        found = self.conditions()
        return [(found[type]["status"], found[type]["reason"]) for type in types]


@pytest.mark.parametrize(
    ("answer", "found", "words"),
    [
        (ForbiddenError(WEBHOOK), None, "already managed by the hpa 'mine'"),
        (ConflictError("exists"), {"metadata": {"name": "digits"}}, "is not this TritonDeployment's"),
        (NotFoundError("the API server does not know the kind"), None, "does not know the kind"),
    ],
    ids=["another scaler of the object", "a user's own of the same name", "KEDA is gone"],
)
def test_a_scaler_that_is_refused_is_named_and_the_object_stays_ready(
    answer: Exception, found: Body | None, words: str
) -> None:
    bench = Bench(a_deployment().one_candidate().autoscaled().settled().cluster(), {SCALED_OBJECT: answer}, found)
    assert bench.reconcile() == Result(again_after=0.0)
    assert bench.reconcile() == Result(failed=True)
    conditions = bench.conditions()
    assert (conditions["Ready"]["status"], conditions["Stalled"]["status"]) == ("True", "False")
    assert bench.said("Autoscaling") == [("False", "ApplyRefused")]
    assert words in conditions["Autoscaling"]["message"]
    assert [(each["type"], each["reason"]) for each in bench.api.events] == [("Warning", "ApplyRefused")]


def test_a_route_that_is_refused_is_named_and_the_object_stays_ready() -> None:
    refusal = ForbiddenError("admission webhook denied the request: no such host name")
    bench = Bench(a_deployment().one_candidate().routed().settled().cluster(), {HTTP_ROUTE: refusal})
    assert bench.reconcile() == Result(again_after=0.0)
    assert bench.reconcile() == Result(failed=True)
    conditions = bench.conditions()
    assert (conditions["Ready"]["status"], conditions["Stalled"]["status"]) == ("True", "False")
    assert bench.said("Routed") == [("False", "ApplyRefused")]
    assert conditions["Routed"]["message"].endswith("no such host name; the route stays as it is")
    assert [(each["type"], each["reason"]) for each in bench.api.events] == [("Warning", "ApplyRefused")]


def test_a_scaler_that_is_refused_is_named_also_where_the_object_is_stalled() -> None:
    bench = Bench(
        a_deployment().one_candidate().autoscaled().settled().cluster(),
        {SCALED_OBJECT: ForbiddenError(WEBHOOK), SERVICE: ForbiddenError("exceeded quota: services")},
    )
    for _ in range(3):
        assert bench.reconcile() == Result(failed=True)
    assert bench.said("Stalled", "Autoscaling") == [("True", "ApplyRefused"), ("False", "ApplyRefused")]
    assert "exceeded quota" in bench.conditions()["Stalled"]["message"]
    assert "already managed by the hpa 'mine'" in bench.conditions()["Autoscaling"]["message"]
    first, second = [each["message"] for each in bench.api.events]
    assert first.startswith("Autoscaling: ScaledObject digits: ")
    assert second == bench.conditions()["Stalled"]["message"], "and what the plan took for granted is not posted"


def test_a_route_that_is_refused_is_named_also_while_other_objects_fail() -> None:
    bench = Bench(
        a_deployment().one_candidate().routed().settled().cluster(),
        {HTTP_ROUTE: ForbiddenError("no such host name"), SERVICE: ServerError("webhook down")},
    )
    assert bench.reconcile() == Result(failed=True)
    bench.now += TOLD_AFTER
    assert bench.reconcile() == Result(failed=True)
    assert bench.said("Ready", "Reconciling", "Routed") == [
        ("True", "Ready"),
        ("True", "ApplyFailed"),
        ("False", "ApplyRefused"),
    ]


def test_what_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(a_deployment().one_candidate().routed().settled().cluster(), {HTTP_ROUTE: ForbiddenError("no host")})
    bench.reconcile()
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        "vision/digits: HTTPRoute digits: no host"
    ]
