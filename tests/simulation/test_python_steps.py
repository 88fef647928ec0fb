"""A Python step: who may have one, what its Jobs are asked, and the box that its pods have."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_step, an_ensemble
from tests.simulation.test_status_fits import answering
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest
from triton_converters.contract.results import ReferenceResult, Signature, Tensor

Body = dict[str, Any]
ALLOWED = replace(SETTINGS, allowed_python_steps=True)
BOXED = replace(ALLOWED, user_code_runtime_class="gvisor", user_code_host_users=False)
WITH_SERVERS = {"profile", "search"}


def a_cluster(settings: Any = ALLOWED, spec: Body | None = None) -> Cluster:
    """A cluster with the object, which nothing has looked at yet."""
    cluster = Cluster(spec or a_step())
    cluster.settings = settings
    return cluster


def pods(cluster: Cluster) -> dict[str, Body]:
    """The templates of pods, by the Job's stage or ``server``."""
    jobs = {each["metadata"]["labels"]["app.kubernetes.io/component"]: each for each in cluster.of_kind("Job")}
    for each in cluster.of_kind("Deployment"):
        jobs["server"] = each
    return {name: each["spec"]["template"] for name, each in jobs.items()}


def asked(cluster: Cluster, stage: str) -> str:
    """The request of a stage's first Job, which its last container has."""
    container = pods(cluster)[stage]["spec"]["containers"][0]
    return str(container["args"][-1])


def test_a_step_that_is_not_allowed_starts_nothing_and_says_whom_to_ask() -> None:
    cluster = a_cluster(SETTINGS)
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert stalled["message"] == (
        "spec.models: model sparse has format triton-python, which runs Python code inside the server, and this"
        " installation does not allow that; use another format, or ask the administrator who installed the operator to"
        " set the Helm value allowed.pythonSteps to true"
    )
    assert cluster.of_kind("Job") == []
    cluster.settings = ALLOWED
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.candidate("onnx-fp32")["members"] == ["triton-python-fp32-none", "onnx-fp32-none"]


def test_a_server_that_serves_a_step_stays_when_steps_are_forbidden() -> None:
    cluster = a_cluster()
    cluster.settle()
    cluster.settings = SETTINGS
    cluster.settle()
    assert cluster.condition("UpToDate")["reason"] == "NotAllowed"
    assert len(cluster.of_kind("Deployment")) == 1


def test_the_jobs_are_told_the_tensors_and_the_name() -> None:
    tensors = [{"name": "x", "dataType": "BYTES", "dims": [-1]}]
    spec = a_step(inputs=tensors, outputs=tensors, arguments={"scale": "2"}, config={"maxBatchSize": 4096})
    cluster = a_cluster(spec=spec)
    cluster.settle()
    declared = (Tensor("x", "BYTES", (-1,)),)
    ensemble = ReferenceRequest.from_json(asked(cluster, "reference")).model.ensemble
    assert ensemble is not None
    code = ensemble.steps[0].code
    assert (code.name, code.declared) == ("sparse", Signature(declared, declared, 4096))
    assert ensemble.steps[1].code.name == ""
    member = ConvertRequest.from_json(asked(cluster, "convert")).members[0]
    assert (member.model, member.format, member.config.instance_group_kind) == (code, "triton-python", "KIND_CPU")


def test_what_a_step_answered_otherwise_than_declared_is_told_as_the_candidates_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = "output y is declared as [7], but is [3], so it is served as [-1]"

    def opened(result: Any) -> Any:
        return replace(result, warnings=(told,)) if isinstance(result, ReferenceResult) else result

    answering(monkeypatch, opened)
    cluster = a_cluster()
    cluster.settle()
    verified = cluster.condition("Verified")
    assert (verified["status"], verified["reason"]) == ("True", "Verified")
    assert verified["message"].endswith(f"candidates passed every gate: onnx-fp32; {told}")


def test_every_pod_with_a_step_is_boxed_and_no_other() -> None:
    spec = a_step() | {"pod": {"annotations": {"prometheus.io/scrape": "true"}}}
    cluster = a_cluster(replace(BOXED, allowed_annotations=("prometheus.io/",)), spec)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    found = pods(cluster)
    assert {"source", "reference", "convert", "profile", "server"} <= found.keys()
    for stage, template in found.items():
        boxed = stage in {"reference", "convert", "metrics", "profile", "server"}
        pod = template["spec"]
        expected = ("gvisor", False) if boxed else (None, None)
        assert (pod.get("runtimeClassName"), pod.get("hostUsers")) == expected, stage
        assert (
            "annotations" in template["metadata"] and "prometheus.io/scrape" in template["metadata"]["annotations"]
        ) is not boxed


def test_no_pod_with_a_step_has_a_token_or_reaches_anything() -> None:
    cluster = a_cluster()
    cluster.settle()
    for name, template in pods(cluster).items():
        pod = template["spec"]
        assert pod["automountServiceAccountToken"] is False, name
        assert "serviceAccountName" not in pod, name
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
            }, name  # fmt: skip
    server = pods(cluster)["server"]["spec"]
    mounts = [each for each in server["containers"][0]["volumeMounts"] if each["name"] == "repository"]
    assert [each["readOnly"] for each in mounts] == [True]
    policies = {each["metadata"]["name"]: each["spec"] for each in cluster.of_kind("NetworkPolicy")}
    closing = [each for each in policies.values() if each["policyTypes"] == ["Ingress", "Egress"]]
    assert sum(each.get("egress", []) == [] for each in closing) >= 2, "that of Jobs, and that of servers"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"serving": {"pod": {"runtimeClassName": "runc"}}}, "has runtimeClassName runc, but servers with a model"),
        ({"pod": {"runtimeClassName": "runc"}}, "has runtimeClassName runc, but servers with a model"),
        ({"serving": {"tracing": True}}, "spec.serving.tracing lets the server reach a collector"),
    ],
)
def test_what_would_open_the_box_is_refused(fields: Body, words: str) -> None:
    cluster = a_cluster(replace(BOXED, tracing_endpoint="http://collector:4318/v1/traces"), a_step() | fields)
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert words in stalled["message"]


def let_out(cluster: Cluster) -> set[str]:
    """The names of the servers that a NetworkPolicy lets reach something."""
    opening = [each["spec"] for each in cluster.of_kind("NetworkPolicy") if each["spec"]["egress"]]
    found: set[str] = set()
    for server in cluster.of_kind("Deployment"):
        labels = server["spec"]["template"]["metadata"]["labels"]
        if any(_selects(spec["podSelector"], labels) for spec in opening):
            found.add(server["metadata"]["name"])
    return found


def _selects(selector: Body, labels: Body) -> bool:
    every = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return every and all(
        each["key"] in labels and labels[each["key"]] in each.get("values", [labels[each["key"]]])
        for each in selector.get("matchExpressions", [])
    )


def test_a_step_that_a_spec_no_longer_names_reaches_no_collector_either() -> None:
    egress = {"ports": [{"protocol": "TCP", "port": 4318}]}
    settings = replace(ALLOWED, tracing_endpoint="http://collector:4318/v1/traces", tracing_egress=(egress,))
    cluster = a_cluster(settings)
    cluster.settle()
    (server,) = cluster.of_kind("Deployment")
    step, key = server["metadata"]["name"], server["metadata"]["labels"]["triton-operator.dev/key"]
    cluster.edit(models=an_ensemble("onnx-fp32")["models"], serving={"tracing": True})
    for _ in cluster.passes(until=lambda each: each.active("profile")):
        assert let_out(cluster) == set(), "the step still serves"
    cluster.settle()
    assert let_out(cluster) == {cluster.serving()} != {step}
    cluster.edit(rollout={"revision": key})
    cluster.settle()
    assert (cluster.serving(), let_out(cluster)) == (step, set())


def test_another_class_makes_another_server_of_a_step_alone() -> None:
    names = {}
    for form, spec in (("step", a_step()), ("tables", an_ensemble("onnx-fp32"))):
        for settings in (ALLOWED, BOXED):
            cluster = a_cluster(settings, spec)
            cluster.settle()
            (server,) = cluster.of_kind("Deployment")
            names[form, settings is BOXED] = server["metadata"]["name"]
    assert names["step", False] != names["step", True]
    assert names["tables", False] == names["tables", True]
