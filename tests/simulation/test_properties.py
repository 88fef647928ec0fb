"""Whatever is edited, deleted and fails, in whatever order: it ends, and what serves has passed and goes on serving."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulation.answers import FINAL, GOOD, Script
from tests.simulation.cluster import ORDER, Cluster
from tests.simulation.deployments import CANDIDATES, a_model, candidate
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters, MeasureResult
from triton_operator import names
from triton_operator.observed.snapshot import observe

STAGES = ("source", "reference", "convert", "profile", "search", "measure", "snapshot")
FATES = (
    FINAL,
    Script(exit_code=137, killed="OOMKilled"),
    Script(exit_code=139, message="Segmentation fault"),
    Script(answer="not a result"),
    Script(sidecar_crashes="failed to load all models"),
    Script(sidecar_exit=137),
    Script(p99=20_000),
    Script(speed=0.5),
    Script(cpu="another CPU"),
    Script(exit_code=1, reason=Reason.STORAGE_FULL, message="no space left"),
)
EDITS: tuple[dict[str, Any], ...] = (
    {"source": {"uri": "pvc://models/digits", "version": "v2"}},
    {"source": {"uri": "pvc://models/other"}},
    {"models": [a_model(config={"maxBatchSize": 16})]},
    {"models": [a_model(candidates=CANDIDATES[:1])]},
    {"models": [a_model(candidates=CANDIDATES[::-1])]},
    {"models": [a_model(candidates=[candidate("trt-fp16"), *CANDIDATES[2:]])]},
    {"models": [a_model()]},
    {"conversion": {"parallelism": 1}},
    {"conversion": {"pod": {"resources": {"limits": {"memory": "1Gi"}}}}},
    {"accuracy": {"thresholds": []}},
    {"selection": {"constraints": {"p99Latency": "100us"}}},
    {"selection": {"constraints": {"p99Latency": "50ms"}}},
    {"selection": {"scenario": "Offline", "objectives": [{"metric": "p99Latency"}]}},
    {"selection": {"search": {"mode": "Quick"}}},
    {"selection": {"search": {"mode": "Exhaustive", "measurements": 9}}},
    {"selection": {"approval": "Manual"}},
    {"selection": {"minImprovementPercent": 50, "search": {"mode": "Quick"}}},
    {
        "selection": {
            "fallback": "Closest",
            "constraints": {"p99Latency": "100us"},
        }
    },
    {"performance": {"regression": {"maxPercent": 5, "block": True}}},
    {"serving": {"replicas": 2}},
    {"serving": {"replicas": 0}},
    {"serving": {"soak": {"duration": "10s"}}, "rollout": {"onInconclusive": "Continue"}},
    {"serving": {"soak": {"duration": "10s"}}, "rollout": {"onInconclusive": "Undo"}},
    {"serving": {"arguments": ["--backend-config=default-max-batch-size=4"]}},
    {"suspend": True},
    {"suspend": False},
)
KINDS = ("Job", "Deployment", "Service", "ConfigMap", "NetworkPolicy")

scripts = st.dictionaries(
    st.tuples(
        st.sampled_from(STAGES), st.sampled_from(["", "onnx-fp32.tuned", *(each["name"] for each in CANDIDATES)])
    ),
    st.sampled_from(FATES),
    max_size=3,
)
actions = st.one_of(
    st.tuples(st.just("edit"), st.sampled_from(EDITS)),
    st.tuples(st.just("delete"), st.sampled_from(KINDS)),
    st.tuples(st.just("scripts"), scripts),
    st.tuples(st.just("traffic"), st.sampled_from([0.0, 0.5])),
    st.tuples(st.just("restart"), st.just(None)),
    st.tuples(st.just("approve"), st.integers(0, 5)),
    st.tuples(st.just("roll back"), st.integers(0, 3)),
    st.tuples(st.just("run"), st.integers(1, 25)),
)


def act_out(cluster: Cluster, action: tuple[str, Any]) -> None:
    """Let one thing happen to the cluster."""
    kind, what = action
    if kind == "edit":
        cluster.edit(**deepcopy(what))
    elif kind == "delete":
        for name in [each["metadata"]["name"] for each in cluster.of_kind(what)]:
            cluster.delete(what, name)
    elif kind == "approve":
        keys = [each["revision"] for each in cluster.status.get("candidates", []) if "revision" in each]
        if keys:
            cluster.edit(selection={"approval": "Manual", "approvedRevision": keys[what % len(keys)]})
    elif kind == "roll back":
        known = [*observe("digits", cluster.objects.values()).history.revisions, "0123456789abcdef"]
        cluster.edit(rollout={"onInconclusive": "Undo", "revision": known[what % len(known)]})
    elif kind == "traffic":
        cluster.counters = counting(cluster, what)
    elif kind == "restart":
        for pod in cluster.of_kind("Pod"):
            if names.SERVER_LABEL in pod["metadata"]["labels"] and pod["status"]["phase"] == "Running":
                cluster.restart(pod["metadata"]["name"])
    elif kind == "scripts":
        cluster.scripts = told(what)
    else:
        for _ in range(what):
            checked_pass(cluster)
            cluster.step()


def counting(cluster: Cluster, failing: float) -> Callable[[str], Counters]:
    """Clients that send ten requests a second to every server, of which a share fails."""

    def counters(pod: str) -> Counters:
        requests = int(cluster.now.timestamp() % 1_000_000) * 10
        failed = int(requests * failing)
        return Counters(pod, requests - failed, failed, requests * 2000)

    return counters


def told(choices: Mapping[tuple[str, str], Script]) -> Any:
    """Scripts by stage and candidate."""
    return lambda stage, candidate, request: choices.get((stage, candidate), GOOD)


def settle(cluster: Cluster) -> None:
    """Checked passes until nothing changes and none is due; fails where that does not come about."""
    for _ in range(300):
        if checked_pass(cluster) + cluster.step() == 0 and cluster.intent().requeue_after is None:
            return
    raise AssertionError(f"no end: {cluster.condition('Ready')} after {cluster.story[-8:]}")


def checked_pass(cluster: Cluster) -> int:
    """A pass, and what has to hold of every one; how many writes it made."""
    before, revision = cluster.serving(), (cluster.status.get("serving") or {}).get("revision")
    servers = {each["metadata"]["name"] for each in cluster.of_kind("Deployment")}
    writes = cluster.act()
    after = cluster.serving()
    if before is not None:
        assert after is not None, "what serves was taken away"
        if before in servers and after == before:
            assert ("Deployment", before) in cluster.objects, "the server that serves was deleted"
    if after is not None and after not in cluster.served:
        assert ("Deployment", after) in cluster.objects
        assert_has_passed(cluster, after, revision, first=not cluster.served)
        cluster.served.add(after)
    measured = cluster.active("profile") + cluster.active("search")
    assert len(measured) <= 1, "candidates disturb each other's figures"
    return writes


def assert_has_passed(cluster: Cluster, server: str, served: str | None, first: bool) -> None:
    """The target of a promotion was profiled, measured, approved where that is asked for, and meets the constraints.

    Or it is the revision that the spec names, which served before.

    ``served``: the revision that served before; another server of it needs no approval.
    """
    status, labels = cluster.status, cluster.objects["Deployment", server]["metadata"]["labels"]
    if named := cluster.spec.get("rollout", {}).get("revision"):
        assert named == labels[names.KEY_LABEL]
        assert named in observe("digits", cluster.objects.values()).history.revisions
        return
    (chosen,) = [each for each in status["candidates"] if each["state"] == "Selected"]
    assert chosen["revision"] == labels[names.KEY_LABEL]
    selection = cluster.spec.get("selection", {})
    assert chosen["satisfiesConstraints"] is True or selection.get("fallback") == "Closest"
    if selection.get("approval") == "Manual":
        assert chosen["revision"] in (selection.get("approvedRevision"), served)
    observed = observe("digits", cluster.objects.values())
    measured = [record.outcome.result for record in observed.records.values()]
    assert any(isinstance(each, MeasureResult) for each in measured)
    if not first:
        assert cluster.condition("PerformanceMeasured")["status"] == "True"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    happenings=st.lists(actions, max_size=8),
    order=st.sampled_from([ORDER, ("containers", "job", "pod"), ("job", "containers", "pod")]),
    ready=st.booleans(),
)
def test_it_always_ends_and_never_serves_what_has_not_passed(
    settled: Cluster, happenings: list[tuple[str, Any]], order: tuple[str, ...], ready: bool
) -> None:
    cluster = deepcopy(settled) if ready else Cluster(deepcopy(settled.spec))
    cluster.order = order
    cluster.served.update(filter(None, [cluster.serving()]))
    for action in happenings:
        act_out(cluster, action)
    settle(cluster)
    assert cluster.condition("Reconciling")["status"] == "False"
    cluster.scripts = told({})
    cluster.retry()
    cluster.edit(suspend=False, serving={}, selection={}, performance={}, rollout={})
    settle(cluster)
    assert cluster.condition("Ready")["status"] == "True"
