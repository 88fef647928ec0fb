"""The admission policy on a real API server: what the operator's token cannot do, though its rules name the kind."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import USER
from tests.conftest import Attack
from tests.golden.moments import MOMENTS
from tests.golden.passes import objects

HOLDER = "the operator's token"
Body = dict[str, Any]
KINDS = ("Job", "Deployment", "Service", "NetworkPolicy", "PersistentVolumeClaim", "ConfigMap", "PodDisruptionBudget")


def planned() -> list[Body]:
    """Every object that a golden case's plan creates, without its owner."""
    found = []
    for case in sorted(MOMENTS):
        for body in objects(case):
            if body["kind"] in KINDS:
                body["metadata"].pop("namespace")
                body["metadata"].pop("ownerReferences", None)
                found.append(body)
    return found


def one(kind: str) -> Body:
    return next(body for body in planned() if body["kind"] == kind)


@pytest.fixture(scope="session")
def as_operator(operator_kubeconfig: Path, kubectl_shared: Kubectl) -> Kubectl:
    """kubectl with the operator's token, in a namespace where nothing is written."""
    return Kubectl(operator_kubeconfig).within("default")


def refused(kubectl: Kubectl, body: Body) -> str:
    """Why the API server refuses to create the object; empty if it does not."""
    try:
        kubectl("create", "--dry-run=server", "--validate=false", "-f", "-", body=body)
    except KubectlError as error:
        return str(error)
    return ""


def told(said: str) -> str:
    """The policy's own words."""
    return said.rpartition("denied request: ")[2].strip() or said[:100]


def test_everything_that_a_plan_creates_is_allowed(as_operator: Kubectl) -> None:
    bodies = planned()
    assert {body["kind"] for body in bodies} >= {"Job", "Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"}
    # One call for all: each object of the list is admitted by itself.
    as_operator("create", "--dry-run=server", "--validate=false", "-f", "-", body=renamed(bodies))


@pytest.mark.parametrize("stage", ["source", "packages"])
def test_the_job_of_a_download_may_mount_its_secret(as_operator: Kubectl, stage: str) -> None:
    body = one("Job")
    credentials(body)
    pod(body)["containers"][0]["args"][0] = stage
    assert refused(as_operator, body) == ""


def test_the_job_of_a_download_may_have_a_serviceaccount_that_the_installation_names(
    as_operator: Kubectl, kubectl: Kubectl
) -> None:
    body = one("Job")
    credentials(body)
    pod(body)["serviceAccountName"] = "models-reader"
    assert refused(as_operator, body) == ""
    said = refused(as_operator.within(kubectl.namespace), body)
    assert f"name {kubectl.namespace}/models-reader in the Helm value allowed.serviceAccounts" in said
    mounted_token(body)
    assert "does not mount the token" in refused(as_operator, body)


def renamed(bodies: list[Body]) -> list[Body]:
    for number, body in enumerate(bodies):
        body["metadata"]["name"] = f"planned-{number}"
    return bodies


def pod(body: Body) -> Body:
    return body["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def unlabelled(body: Body) -> None:
    del body["metadata"]["labels"]["triton-operator.dev/deployment"]


def another_manager(body: Body) -> None:
    body["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"


def another_account(body: Body) -> None:
    pod(body)["serviceAccountName"] = "cluster-admin"


def account_of_downloads(body: Body) -> None:
    """An allowed ServiceAccount, in a pod that does not download."""
    if "args" in pod(body)["containers"][0]:
        pod(body)["containers"][0]["args"][0] = "profile"
    pod(body)["serviceAccountName"] = "models-reader"


def mounted_token(body: Body) -> None:
    pod(body)["automountServiceAccountToken"] = True


def default_token(body: Body) -> None:
    del pod(body)["automountServiceAccountToken"]


def projected_token(body: Body) -> None:
    token = {"serviceAccountToken": {"path": "token"}}
    pod(body)["volumes"].append({"name": "token", "projected": {"sources": [token]}})


def host_path(body: Body) -> None:
    pod(body)["volumes"].append({"name": "root", "hostPath": {"path": "/"}})


def secret(body: Body) -> None:
    if "args" in pod(body)["containers"][0]:
        pod(body)["containers"][0]["args"][0] = "profile"
    pod(body)["volumes"].append({"name": "stolen", "secret": {"secretName": "database"}})


def credentials(body: Body) -> None:
    """What the Job of a source that is downloaded has."""
    container = pod(body)["containers"][0]
    container["args"] = ["source", "{}"]
    pod(body)["volumes"].append({"name": "credentials", "secret": {"secretName": "registry"}})
    pod(body).pop("initContainers", None)
    # It names containers.
    body["spec"].pop("podFailurePolicy", None)


def credentials_for_others(body: Body) -> None:
    credentials(body)
    (container,) = pod(body)["containers"]
    other = {field: container[field] for field in ("image", "securityContext")}
    pod(body)["initContainers"] = [other | {"name": "other"}]


def credentials_for_a_shell(body: Body) -> None:
    credentials(body)
    pod(body)["containers"][0]["command"] = ["sh", "-c"]


def host_network(body: Body) -> None:
    pod(body)["hostNetwork"] = True


def host_processes(body: Body) -> None:
    pod(body)["hostPID"] = True


def as_root(body: Body) -> None:
    pod(body)["securityContext"]["runAsNonRoot"] = False


def unconfined(body: Body) -> None:
    pod(body)["securityContext"]["seccompProfile"] = {"type": "Unconfined"}


def privileged(body: Body) -> None:
    pod(body)["containers"][0]["securityContext"] = {"privileged": True}


def without_security(body: Body) -> None:
    del pod(body)["containers"][0]["securityContext"]


def capability(body: Body) -> None:
    pod(body)["containers"][0]["securityContext"]["capabilities"] = {"add": ["SYS_ADMIN"], "drop": ["ALL"]}


def privileged_before(body: Body) -> None:
    container = {"name": "before", "image": "busybox", "securityContext": {"privileged": True}}
    pod(body)["initContainers"] = [*pod(body).get("initContainers", []), container]


def host_port(body: Body) -> None:
    pod(body)["containers"][0]["ports"] = [{"containerPort": 22, "hostPort": 22}]


JOB_ATTACKS = [
    (unlabelled, "has not the labels of an object of a TritonDeployment"),
    (another_manager, "has not the labels of an object of a TritonDeployment"),
    (another_account, "the ServiceAccount cluster-admin is not one that the operator may use"),
    (account_of_downloads, "name default/models-reader in the Helm value allowed.serviceAccounts, for source Jobs"),
    (mounted_token, "does not mount the token"),
    (default_token, "does not mount the token"),
    (projected_token, "mounts only emptyDir, persistentVolumeClaim and configMap"),
    (host_path, "mounts only emptyDir, persistentVolumeClaim and configMap"),
    (secret, "mounts only emptyDir, persistentVolumeClaim and configMap"),
    (credentials_for_others, "mounts only emptyDir, persistentVolumeClaim and configMap"),
    (credentials_for_a_shell, "mounts only emptyDir, persistentVolumeClaim and configMap"),
    (host_network, "does not use the node's network"),
    (host_processes, "does not use the node's network"),
    (as_root, "runs as non-root"),
    (unconfined, "runs as non-root"),
    (privileged, "no privilege escalation"),
    (without_security, "no privilege escalation"),
    (capability, "no capabilities"),
    (privileged_before, "no privilege escalation"),
    (host_port, "no hostPort"),
]


@pytest.mark.parametrize(("spoil", "reason"), JOB_ATTACKS, ids=[attack.__name__ for attack, _ in JOB_ATTACKS])
@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_a_pod_beyond_its_bounds_is_refused(
    as_operator: Kubectl, attack: Attack, kind: str, spoil: Callable[[Body], None], reason: str
) -> None:
    body = one(kind)
    spoil(body)
    said = refused(as_operator, body)
    attack(HOLDER, f"{kind}: {spoil.__name__.replace('_', ' ')}", told(said))
    assert "ValidatingAdmissionPolicy 'triton-operator'" in said
    assert reason in said


def test_a_system_namespace_is_refused(as_operator: Kubectl, attack: Attack) -> None:
    said = refused(as_operator.within("kube-system"), one("Job"))
    attack(HOLDER, "Job in kube-system", told(said))
    assert "the operator does not work in the system namespace kube-system" in said


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "LoadBalancer"},
        {"type": "NodePort"},
        {"type": "ExternalName", "externalName": "elsewhere.example"},
        {"externalIPs": ["192.0.2.1"]},
        {"selector": {"app": "somebody-elses"}},
    ],
)
def test_a_service_is_only_a_clusterip_of_our_own_pods(as_operator: Kubectl, attack: Attack, spec: Body) -> None:
    body = one("Service")
    body["spec"] |= spec
    said = refused(as_operator, body)
    attack(HOLDER, f"Service with {spec}", told(said))
    assert "a Service of the operator has type ClusterIP" in said


def test_a_network_policy_opens_no_pods_of_others(as_operator: Kubectl, attack: Attack) -> None:
    body = one("NetworkPolicy")
    body["spec"]["podSelector"] = {}
    said = refused(as_operator, body)
    attack(HOLDER, "NetworkPolicy for all pods", told(said))
    assert "selects the pods of one TritonDeployment" in said


def test_a_disruption_budget_keeps_no_pods_of_others(as_operator: Kubectl, attack: Attack) -> None:
    body = one("PodDisruptionBudget")
    body["spec"]["selector"] = {}
    said = refused(as_operator, body)
    attack(HOLDER, "PodDisruptionBudget for all pods", told(said))
    assert "a PodDisruptionBudget of the operator selects the pods of one TritonDeployment" in said


def test_nothing_of_others_is_taken_over_or_deleted(as_operator: Kubectl, kubectl: Kubectl, attack: Attack) -> None:
    theirs: Body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "theirs", "labels": {"app": "theirs"}},
        "data": {"mine": "1"},
    }
    ours = deepcopy(theirs)
    ours["metadata"]["labels"] = one("Job")["metadata"]["labels"]
    job = one("Job") | {"metadata": {"name": "their-job", "labels": {"app": "theirs"}}}
    job["spec"]["suspend"] = True
    kubectl("create", "-f", "-", body=[theirs, job])
    operator = as_operator.within(kubectl.namespace)
    with pytest.raises(KubectlError, match="ConfigMap theirs belongs to no TritonDeployment"):
        operator("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-", body=ours)
    with pytest.raises(KubectlError, match="Job their-job belongs to no TritonDeployment"):
        operator("delete", "job", "their-job", "--wait=false")
    attack(HOLDER, "another's ConfigMap taken over, another's Job deleted", "belongs to no TritonDeployment")
    assert kubectl.get("configmap", "theirs")["data"] == {"mine": "1"}


def test_a_template_from_before_the_policy_may_still_be_scaled(as_operator: Kubectl, kubectl: Kubectl) -> None:
    body = one("Deployment")
    secret(body)
    kubectl("create", "-f", "-", body=body)
    operator = as_operator.within(kubectl.namespace)
    patch = '{"spec":{"replicas":0}}'
    operator("patch", "deployment", body["metadata"]["name"], "--type=merge", "-p", patch)
    assert kubectl.get("deployment", body["metadata"]["name"])["spec"]["replicas"] == 0


def test_others_are_not_judged(kubectl: Kubectl) -> None:
    body = one("Job")
    host_path(body)
    assert refused(kubectl, body) == ""
    assert USER not in kubectl("auth", "whoami")
