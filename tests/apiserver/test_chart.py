"""The chart against the code: the rules are the verbs that are used, the environment is what the settings read."""

import json
import subprocess
from dataclasses import fields
from typing import Any

import pytest

from hack.devcluster.binaries import program
from tests.apiserver.operator_process import CHART, rendered
from triton_operator.kube.kinds import ALL, HTTP_ROUTE, LEASE, NODE, SCALED_OBJECT, TRITON_DEPLOYMENT, ApiKind
from triton_operator.policy_rules import PolicyPeer
from triton_operator.settings import DefaultResources, Settings

Rules = set[tuple[str, str, str]]
DIGEST = "sha256:" + "0" * 64


def verbs(rules: list[dict[str, Any]]) -> Rules:
    """(group, resource, verb) of every combination that the rules grant."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(kinds: tuple[ApiKind, ...]) -> Rules:
    """(group, resource, verb) of everything the code can do: cluster.py refuses what kinds.py does not name."""
    own = {(kind.group, kind.plural, verb) for kind in kinds for verb in kind.verbs}
    return own | {(kind.group, f"{kind.plural}/status", verb) for kind in kinds for verb in kind.status_verbs}


def granted(bodies: list[dict[str, Any]], kind: str, namespace: str | None, name: str = "triton-operator") -> Rules:
    found = [
        body
        for body in bodies
        if (body["kind"], body["metadata"]["name"]) == (kind, name) and body["metadata"].get("namespace") == namespace
    ]
    assert len(found) == 1
    return verbs(found[0]["rules"])


def test_in_all_namespaces_the_rules_are_what_the_code_does() -> None:
    assert granted(rendered(), "ClusterRole", None) == used((*ALL, NODE))


def test_nodes_are_read_only_where_that_is_granted() -> None:
    assert granted(rendered("--set", "rbac.readNodes=false"), "ClusterRole", None) == used(ALL)


def test_scaled_objects_are_made_only_with_a_prometheus() -> None:
    scaling = ("--set", "autoscaling.prometheusAddress=http://prometheus.monitoring:9090")
    assert granted(rendered(*scaling), "ClusterRole", None) == used((*ALL, NODE, SCALED_OBJECT))
    bodies = rendered(*scaling, "--set", "watchNamespaces={blue}")
    assert granted(bodies, "Role", "blue") == used((*ALL, SCALED_OBJECT))


def test_routes_are_made_only_if_the_values_say_so() -> None:
    routes = ("--set", "gatewayApi.enabled=true")
    assert granted(rendered(*routes), "ClusterRole", None) == used((*ALL, NODE, HTTP_ROUTE))
    bodies = rendered(*routes, "--set", "watchNamespaces={blue}")
    assert granted(bodies, "Role", "blue") == used((*ALL, HTTP_ROUTE))


def test_in_some_namespaces_the_same_rules_hold_there_only() -> None:
    bodies = rendered("--set", "watchNamespaces={blue,green}")
    for namespace in ("blue", "green"):
        assert granted(bodies, "Role", namespace) == used(ALL)
    cluster_wide = {body["metadata"]["name"] for body in bodies if body["kind"].startswith("ClusterRole")}
    assert cluster_wide == {"triton-operator-view", "triton-operator-edit"}


def test_the_lease_is_the_releases_own() -> None:
    lease = {(LEASE.group, LEASE.plural, verb) for verb in LEASE.verbs}
    for namespaces in ((), ("--set", "watchNamespaces={blue}")):
        assert granted(rendered(*namespaces), "Role", "triton-operator", "triton-operator-lease") == lease


def test_the_test_of_a_release_may_do_only_what_it_tries() -> None:
    tried = {(TRITON_DEPLOYMENT.group, TRITON_DEPLOYMENT.plural, verb) for verb in TRITON_DEPLOYMENT.dry_run_verbs}
    assert granted(rendered(), "Role", "triton-operator", "triton-operator-test") == tried


def test_who_may_edit_a_namespace_may_scale_its_objects_and_who_may_view_it_may_look() -> None:
    bodies = rendered()
    for role, wanted in (("view", {"get"}), ("edit", {"patch", "update"})):
        rules = granted(bodies, "ClusterRole", None, f"triton-operator-{role}")
        scale = {verb for group, resource, verb in rules if resource == "tritondeployments/scale"}
        assert scale == wanted


def test_two_replicas_may_not_be_evicted_together() -> None:
    def budgets(*settings: str) -> list[dict[str, Any]]:
        return [body["spec"] for body in rendered(*settings) if body["kind"] == "PodDisruptionBudget"]

    assert [budget["maxUnavailable"] for budget in budgets()] == [1]
    assert budgets("--set", "replicas=1") == []


def test_the_cpu_server_is_used_if_the_values_say_so() -> None:
    bodies = rendered("--set", "server.cpu=true,images.serverCpu.repository=r.example/s,images.serverCpu.tag=v1")
    (container,) = next(each for each in bodies if each["kind"] == "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    assert {"name": "SERVER_IMAGE", "value": "r.example/s:v1"} in container["env"]


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ((), "images.operator, images.converter, images.converterTensorflow"),
        (
            ("--set", "server.cpu=true"),
            "images.operator, images.converter, images.converterTensorflow, images.serverCpu",
        ),
        (
            ("--set", "images.operator.repository=r.example/operator"),
            "images.operator, images.converter, images.converterTensorflow",
        ),
        (
            ("--set", "images.converterGpu.repository=r.example/converter-gpu"),
            "images.operator, images.converter, images.converterTensorflow, images.converterGpu",
        ),
    ],
)
def test_a_chart_without_images_says_what_to_set(settings: tuple[str, ...], missing: str) -> None:
    argv = [str(program("helm")), "template", "triton-operator", str(CHART), *settings]
    outcome = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert outcome.returncode != 0
    assert f"set the repository and the digest (or the tag) of {missing}: " in outcome.stderr


def test_the_pod_is_restricted() -> None:
    deployment = next(body for body in rendered() if body["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_environment_is_what_the_settings_read() -> None:
    values = (
        "images.converter.repository=r.example:5000/c,images.converterTensorflow.repository=t,"
        "images.converterGpu.repository=g,images.converterGpu.tag=v2,"
        f"images.server.tag=26.07-py3,images.server.digest={DIGEST},server.instanceGroupKind=Auto,"
        "server.arguments={--a=1,--b},watchNamespaces={blue,green},architecture=arm64,logFormat=text,metrics.port=9090,"
        "unschedulableSeconds=60,repository.verification=Content,servers.resources.requests=null,servers.resources.limits.memory=8Gi,"
        "userCode.runtimeClassName=gvisor,userCode.hostUsers=false,allowed.images={r.example/a/,r.example/b},"
        "allowed.claims={team-*},allowed.gateways={gateways/*},allowed.hostnames={*.models.example},"
        "allowed.annotations={prometheus.io/,linkerd.io/inject},allowed.pythonSteps=true,"
        "sources.proxy=http://proxy.example:3128,sources.noProxy={models.example,10.0.0.1},"
        "sources.hub=https://mirror.example/hub,sources.packageIndex=https://mirror.example/simple,"
        "tracing.endpoint=http://collector:4318/v1/traces,"
        "autoscaling.prometheusAddress=http://prometheus.monitoring:9090,gatewayApi.enabled=true"
    )
    vision: PolicyPeer = {"namespaceSelector": {"matchLabels": {"team": "vision"}}, "podSelector": {}}
    inside: PolicyPeer = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}
    egress = {"ports": [{"protocol": "TCP", "port": 3128}]}
    traces = {"ports": [{"protocol": "TCP", "port": 4318}]}
    peers = json.dumps(
        {"clients": [vision], "metrics": [inside], "sources": {"egress": [egress]}, "tracing": {"egress": [traces]}}
    )
    more = json.dumps([vision])
    deployment = next(
        body
        for body in rendered("--set", values, "--set-json", f"networkPolicy={peers},allowed.clients={more}")
        if body["kind"] == "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    # The pod's own name comes from the pod.
    environment = {variable["name"]: variable.get("value", "pod-0") for variable in container["env"]}
    lease = ("triton-operator", "triton-operator")
    expected = Settings(
        converter_image="r.example:5000/c:1",
        server_image=f"nvcr.io/nvidia/tritonserver:26.07-py3@{DIGEST}",
        converter_tensorflow_image="t:1",
        converter_gpu_image="g:v2",
        instance_group_kind="Auto",
        server_arguments=("--a=1", "--b"),
        namespaces=("blue", "green"),
        architecture="arm64",
        log_format="text",
        metrics_port=9090,
        unschedulable_seconds=60,
        clients=(vision,),
        metrics_readers=(inside,),
        sources_egress=(egress,),
        sources_proxy="http://proxy.example:3128",
        sources_no_proxy=("models.example", "10.0.0.1"),
        sources_hub="https://mirror.example/hub",
        sources_package_index="https://mirror.example/simple",
        tracing_endpoint="http://collector:4318/v1/traces",
        tracing_egress=(traces,),
        prometheus_address="http://prometheus.monitoring:9090",
        gateway_api=True,
        lease=lease,
        holder="pod-0",
        job_resources=DefaultResources(
            {"memory": "256Mi", "ephemeral-storage": "64Mi"}, {"memory": "16Gi", "ephemeral-storage": "2Gi"}
        ),
        server_resources=DefaultResources({}, {"memory": "8Gi", "ephemeral-storage": "2Gi"}),
        user_code_runtime_class="gvisor",
        user_code_host_users=False,
        allowed_images=("r.example/a/", "r.example/b"),
        allowed_claims=("team-*",),
        allowed_gateways=("gateways/*",),
        allowed_hostnames=("*.models.example",),
        allowed_annotations=("prometheus.io/", "linkerd.io/inject"),
        allowed_clients=(vision,),
        allowed_python_steps=True,
        verification="Content",
    )
    assert Settings.from_environment(environment) == expected
    # The kubelet tells the family of addresses, a check without a cluster its machine and its image of trees.
    untold = {"ipv6", "machine", "converter_trees_image"}
    assert len(environment) == len({field.name for field in fields(Settings)} - untold)


@pytest.mark.parametrize(
    ("settings", "kept", "installed"),
    [((), True, True), (("--set", "crds.keep=false"), False, True), (("--set", "crds.install=false"), False, False)],
)
def test_the_crd_is_installed_and_kept_as_asked(settings: tuple[str, ...], kept: bool, installed: bool) -> None:
    crds = [body for body in rendered(*settings) if body["kind"] == "CustomResourceDefinition"]
    assert len(crds) == installed
    for crd in crds:
        assert (crd["metadata"].get("annotations") == {"helm.sh/resource-policy": "keep"}) is kept
