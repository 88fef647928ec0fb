"""A ScaledObject or HTTPRoute that is refused, or is somebody else's: it is said, and nothing else changes."""

from copy import deepcopy
from typing import Any

import pytest

from tests.states.deployment import a_deployment
from triton_operator.kube.cluster import ConflictError, ForbiddenError, NotFoundError
from triton_operator.kube.kinds import HTTP_ROUTE, SCALED_OBJECT, Kind, kind_of
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store

Body = dict[str, Any]
KEY = Key("vision", "digits")
WEBHOOK = "admission webhook \"vscaledobject.kb.io\" denied the request: already managed by the hpa 'mine'"


class Api:
    """Takes statuses and events, and answers the first apply of an object of a kind as it is told."""

    def __init__(self, store: Store, answer: Exception, found: Body | None, kind: Kind = SCALED_OBJECT) -> None:
        self._kind = kind
        self._store = store
        self._answer = answer
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
        assert kind_of(body) is self._kind
        raise self._answer

    def get(self, kind: Any, namespace: str, name: str) -> Body | None:
        assert kind is self._kind
        return self._found

    def apply_status(self, body: Body) -> Body:
        return self.put((self._store.deployment(KEY) or {}) | {"status": body["status"]})

    def create_event(self, body: Body) -> None:
        self.events.append(body)


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
    cluster = a_deployment().one_candidate().autoscaled().settled().cluster()
    del cluster.objects["ScaledObject", "digits"]
    store = Store()
    api = Api(store, answer, found)
    owner = cluster.body()
    owner["metadata"]["creationTimestamp"] = "2026-11-21T00:00:00Z"
    for body in (owner, *cluster.objects.values()):
        api.put(body)
    reconciler = Reconciler(api, store, cluster.settings, Metrics(), lambda: cluster.now, optional=(SCALED_OBJECT,))  # type: ignore[arg-type]  # a stand-in
    assert reconciler.reconcile(KEY) == Result(again_after=0.0)
    assert reconciler.reconcile(KEY) == Result(failed=True)
    status = (store.deployment(KEY) or {})["status"]
    conditions = {each["type"]: each for each in status["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Stalled"]["status"]) == ("True", "False")
    assert (conditions["Autoscaling"]["status"], conditions["Autoscaling"]["reason"]) == ("False", "ApplyRefused")
    assert words in conditions["Autoscaling"]["message"]
    assert [(each["type"], each["reason"]) for each in api.events] == [("Warning", "ApplyRefused")]


def test_a_route_that_is_refused_is_named_and_the_object_stays_ready() -> None:
    cluster = a_deployment().one_candidate().routed().settled().cluster()
    del cluster.objects["HTTPRoute", "digits"]
    store = Store()
    api = Api(store, ForbiddenError("admission webhook denied the request: no such host name"), None, HTTP_ROUTE)
    owner = cluster.body()
    owner["metadata"]["creationTimestamp"] = "2026-11-21T00:00:00Z"
    for body in (owner, *cluster.objects.values()):
        api.put(body)
    reconciler = Reconciler(api, store, cluster.settings, Metrics(), lambda: cluster.now, optional=(HTTP_ROUTE,))  # type: ignore[arg-type]  # a stand-in
    assert reconciler.reconcile(KEY) == Result(again_after=0.0)
    assert reconciler.reconcile(KEY) == Result(failed=True)
    conditions = {each["type"]: each for each in (store.deployment(KEY) or {})["status"]["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Stalled"]["status"]) == ("True", "False")
    assert (conditions["Routed"]["status"], conditions["Routed"]["reason"]) == ("False", "ApplyRefused")
    assert conditions["Routed"]["message"].endswith("no such host name; the route stays as it is")
    assert [(each["type"], each["reason"]) for each in api.events] == [("Warning", "ApplyRefused")]
