"""The admission policies on a real API server: which pods the operator's token cannot have."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import rendered
from tests.apiserver.planned import HOLDER, Body, one, pod, refused, told
from tests.conftest import Attack
from triton_operator import names

KIND, POLICY = "ValidatingAdmissionPolicy", "triton-operator-pods"
GONE = None
"""Stands for a field that is removed."""


def part(body: Body, where: str) -> Any:
    """The part of an object that is attacked. Of a Job it is the main container, of a server the one before it."""
    template = body["spec"]["template"]
    container = pod(body)["containers" if body["kind"] == "Job" else "initContainers"][0]
    parts: dict[str, Callable[[], Any]] = {
        "job": lambda: body["spec"],
        "template": lambda: template["metadata"],
        "labels": lambda: template["metadata"]["labels"],
        "annotations": lambda: template["metadata"].setdefault("annotations", {}),
        "pod": lambda: pod(body),
        "security": lambda: pod(body)["securityContext"],
        "container": lambda: container,
        "its security": lambda: container["securityContext"],
        "server": lambda: pod(body)["containers"][0],
    }
    return parts[where]()


def spoiled(kind: str, where: str, change: Body) -> Body:
    """A Job or Deployment of the operator's with changed fields at one place; lists grow, and GONE removes."""
    body = one(kind, "profile" if kind == "Job" else "")
    found = part(body, where)
    if "procMount" in change:
        # Kubernetes asks for it.
        pod(body)["hostUsers"] = False
    if kind == "Deployment" and names.SERVER_LABEL in change:
        # Kubernetes refuses a template that its selector does not match.
        body["spec"]["selector"]["matchLabels"] |= change
    for name, value in change.items():
        if value is GONE:
            del found[name]
        elif isinstance(value, list):
            found[name] = [*found.get(name, []), *value]
        else:
            found[name] = value
    return body


def volume(**source: Any) -> Body:
    return {"volumes": [{"name": "stolen", **source}]}


def probe(**action: Any) -> Body:
    return {"livenessProbe": {"periodSeconds": 1, **action}}


def mount(**fields: str) -> Body:
    return {"volumeMounts": [{"name": "tmp", "mountPath": "/a", **fields}]}


def env(**source: Any) -> Body:
    return {"env": [{"name": "STOLEN", "valueFrom": source}]}


HOST = {"host": "192.0.2.1", "port": 80}
HEADER = {"name": "Host", "value": "a.example"}
ISCSI = {"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
LOCAL = {"type": "Localhost", "localhostProfile": "a.json"}
RESIZED = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
PROFILES = {"matchLabels": {names.STAGE_LABEL: "profile"}}
ROOT = "runs as non-root user"
SECURITY = "no user, seccomp, AppArmor, SELinux or Windows settings of its own"
VOLUMES = "mounts only emptyDir, persistentVolumeClaim, configMap and secret volumes"
SECRET = "mounts a Secret only in a look, source, packages or publish Job"
LITERAL = "has a literal value, or is the uid of the pod"
LABELS = "have another value: "
BY_HTTP = "asks the pod itself, by HTTP"
TOKEN = "does not mount the token"

ATTACKS: list[tuple[str, str, Body, str]] = [
    # The node.
    ("the node's network", "pod", {"hostNetwork": True}, "fields hostNetwork"),
    ("the node's processes", "pod", {"hostPID": True}, "fields hostPID"),
    ("the node's memory", "pod", {"hostIPC": True}, "fields hostIPC"),
    ("a chosen node", "pod", {"nodeName": "control-plane"}, "fields nodeName"),
    ("another scheduler", "pod", {"schedulerName": "mine"}, "placed by the default scheduler"),
    ("the node's DNS", "pod", {"dnsPolicy": "Default"}, "asks the cluster's DNS"),
    ("another DNS", "pod", {"dnsConfig": {"nameservers": ["192.0.2.1"]}}, "fields dnsConfig"),
    ("names of hosts", "pod", {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a.example"]}]}, "fields hostAliases"),
    ("a name of a host", "pod", {"hostname": "database"}, "fields hostname"),
    ("a name in a domain", "pod", {"subdomain": "database"}, "fields subdomain"),
    ("a long name", "pod", {"setHostnameAsFQDN": True}, "fields setHostnameAsFQDN"),
    ("processes of all containers", "pod", {"shareProcessNamespace": True}, "fields shareProcessNamespace"),
    ("the first priority", "pod", {"priorityClassName": "system-node-critical"}, "priority system-node-critical"),
    ("the second priority", "pod", {"priorityClassName": "system-cluster-critical"}, "priority system-cluster"),
    ("a priority by number", "pod", {"priority": 2000001000}, "fields priority"),
    ("preemption", "pod", {"preemptionPolicy": "Never"}, "fields preemptionPolicy"),
    ("an overhead", "pod", {"overhead": {"cpu": "1m"}, "runtimeClassName": "kata"}, "fields overhead"),
    ("gates", "pod", {"schedulingGates": [{"name": "a.example/wait"}]}, "fields schedulingGates"),
    ("readiness by others", "pod", {"readinessGates": [{"conditionType": "a.example/up"}]}, "fields readinessGates"),
    ("another system", "pod", {"os": {"name": "linux"}}, "fields os"),
    ("claimed devices", "pod", {"resourceClaims": [{"name": "gpu", "resourceClaimName": "theirs"}]}, "resourceClaims"),
    # Tokens and Secrets.
    ("a ServiceAccount", "pod", {"serviceAccountName": "cluster-admin"}, "the ServiceAccount cluster-admin is not one"),
    ("its old name", "pod", {"serviceAccount": "cluster-admin"}, "the ServiceAccount cluster-admin is not one"),
    ("that of downloads", "pod", {"serviceAccountName": "models-reader"}, "allowed.serviceAccounts, for source Jobs"),
    ("a mounted token", "pod", {"automountServiceAccountToken": True}, TOKEN),
    ("a token by default", "pod", {"automountServiceAccountToken": GONE}, TOKEN),
    ("a Secret", "pod", volume(secret={"secretName": "database"}), SECRET),
    ("a token", "pod", volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}), VOLUMES),
    ("a projected Secret", "pod", volume(projected={"sources": [{"secret": {"name": "database"}}]}), VOLUMES),
    ("a Secret as a variable", "container", env(secretKeyRef={"name": "database", "key": "password"}), LITERAL),
    ("a ConfigMap as a variable", "container", env(configMapKeyRef={"name": "database", "key": "host"}), LITERAL),
    ("a limit as a variable", "container", env(resourceFieldRef={"resource": "limits.cpu"}), LITERAL),
    ("the node as a variable", "container", env(fieldRef={"fieldPath": "status.hostIP"}), LITERAL),
    ("all of a Secret", "container", {"envFrom": [{"secretRef": {"name": "database"}}]}, ".envFrom"),
    ("all of a ConfigMap", "container", {"envFrom": [{"configMapRef": {"name": "database"}}]}, ".envFrom"),
    # Volumes.
    ("the node's files", "pod", volume(hostPath={"path": "/"}), VOLUMES),
    ("a file server", "pod", volume(nfs={"server": "192.0.2.1", "path": "/"}), VOLUMES),
    ("a block device by network", "pod", volume(iscsi=ISCSI), VOLUMES),
    ("a driver's volume", "pod", volume(csi={"driver": "secrets-store.csi.k8s.io"}), VOLUMES),
    ("the pod's own fields", "pod", volume(downwardAPI={"items": []}), VOLUMES),
    ("a volume of its own", "pod", volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}), VOLUMES),
    ("mounts that spread", "container", mount(mountPropagation="HostToContainer"), "without propagation"),
    ("an expression in a path", "container", mount(subPathExpr="$(HOME)"), "without expressions"),
    # Users, groups and the kernel's settings.
    ("root, perhaps", "security", {"runAsNonRoot": False}, ROOT),
    ("any user", "security", {"runAsUser": GONE}, ROOT),
    ("root's group", "security", {"runAsGroup": 0}, ROOT),
    ("root's group by default", "security", {"runAsGroup": GONE}, ROOT),
    ("files of root's group", "security", {"fsGroup": 0}, ROOT),
    ("further groups", "security", {"supplementalGroups": [0]}, ROOT),
    ("groups of the image", "security", {"supplementalGroupsPolicy": "Merge"}, ROOT),
    ("no seccomp", "security", {"seccompProfile": {"type": "Unconfined"}}, ROOT),
    ("a seccomp of the node", "security", {"seccompProfile": LOCAL}, ROOT),
    ("no AppArmor", "security", {"appArmorProfile": {"type": "Unconfined"}}, ROOT),
    ("SELinux", "security", {"seLinuxOptions": {"type": "spc_t"}}, ROOT),
    ("kernel settings", "security", {"sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "1 2"}]}, ROOT),
    ("Windows", "security", {"windowsOptions": {"runAsUserName": "ContainerAdministrator"}}, ROOT),
    ("a privileged container", "its security", {"privileged": True, "allowPrivilegeEscalation": GONE}, SECURITY),
    ("escalation", "its security", {"allowPrivilegeEscalation": True}, SECURITY),
    ("escalation by default", "its security", {"allowPrivilegeEscalation": GONE}, SECURITY),
    ("a capability", "its security", {"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}, SECURITY),
    ("capabilities by default", "its security", {"capabilities": GONE}, SECURITY),
    ("some capabilities", "its security", {"capabilities": {"drop": ["NET_RAW"]}}, SECURITY),
    ("a root to write to", "its security", {"readOnlyRootFilesystem": False}, SECURITY),
    ("no security", "container", {"securityContext": GONE}, SECURITY),
    ("root in a container", "its security", {"runAsUser": 0, "runAsNonRoot": False}, SECURITY),
    ("another user in a container", "its security", {"runAsUser": 1001}, SECURITY),
    ("root's group in a container", "its security", {"runAsGroup": 0}, SECURITY),
    ("root in a container, perhaps", "its security", {"runAsNonRoot": False}, SECURITY),
    ("no seccomp in a container", "its security", {"seccompProfile": {"type": "Unconfined"}}, SECURITY),
    ("no AppArmor in a container", "its security", {"appArmorProfile": {"type": "Unconfined"}}, SECURITY),
    ("SELinux in a container", "its security", {"seLinuxOptions": {"level": "s0"}}, SECURITY),
    ("Windows in a container", "its security", {"windowsOptions": {"runAsUserName": "A"}}, SECURITY),
    ("all of /proc", "its security", {"procMount": "Unmasked"}, SECURITY),
    # The rest of a container.
    ("a port of the node", "container", {"ports": [{"containerPort": 22, "hostPort": 22}]}, "has no hostPort"),
    ("an address of the node", "container", {"ports": [{"containerPort": 22, "hostIP": "192.0.2.1"}]}, "no hostPort"),
    ("a terminal", "container", {"stdin": True, "tty": True}, ".stdin"),
    ("resizing", "container", {"resizePolicy": [RESIZED]}, "resizePolicy"),
    # Labels, annotations and the rest of the template.
    ("another object", "labels", {"app.kubernetes.io/instance": "theirs"}, LABELS + "app.kubernetes.io/instance"),
    ("another program", "labels", {"app.kubernetes.io/name": "billing"}, LABELS + "app.kubernetes.io/name"),
    ("another part", "labels", {names.COMPONENT_LABEL: "billing"}, LABELS),
    ("another manager", "labels", {names.MANAGED_BY_LABEL: "Helm"}, LABELS + names.MANAGED_BY_LABEL),
    ("downloads", "labels", {names.DOWNLOADS_LABEL: "true"}, LABELS + names.DOWNLOADS_LABEL),
    ("another label of the operator", "labels", {f"{names.GROUP}/mine": "1"}, LABELS + f"{names.GROUP}/mine"),
    ("another's pods", "labels", {"pod-template-hash": "1"}, LABELS + "pod-template-hash"),
    ("an index", "labels", {"apps.kubernetes.io/pod-index": "0"}, LABELS + "apps.kubernetes.io/pod-index"),
    ("an annotation of the operator", "annotations", {f"{names.GROUP}/mine": "1"}, f"annotations {names.GROUP}/mine"),
    ("a static pod", "annotations", {"kubernetes.io/config.source": "file"}, "annotations kubernetes.io/config.source"),
    ("a finalizer", "template", {"finalizers": ["example.com/stay"]}, "no other metadata"),
]  # fmt: skip

OF_A_JOB: list[tuple[str, str, Body, str]] = [
    ("no object", "labels", {names.TRITON_DEPLOYMENT_LABEL: GONE}, LABELS + names.TRITON_DEPLOYMENT_LABEL),
    ("a server", "labels", {names.SERVER_LABEL: "digits-0"}, LABELS + names.SERVER_LABEL),
    ("another stage", "labels", {names.STAGE_LABEL: "source"}, LABELS),
    ("no stage", "labels", {names.STAGE_LABEL: GONE}, LABELS),
    ("pods of its choice", "job", {"manualSelector": True, "selector": PROFILES}, "the pods of its own"),
]  # fmt: skip

OF_A_SERVER: list[tuple[str, str, Body, str]] = [
    ("a probe of another host", "server", probe(httpGet=HOST), BY_HTTP),
    ("a probe with headers", "server", probe(httpGet={"port": 80, "httpHeaders": [HEADER]}), BY_HTTP),
    ("a probe by TCP", "server", probe(tcpSocket=HOST), BY_HTTP),
    ("a probe by gRPC", "server", probe(grpc={"port": 80}), BY_HTTP),
    ("a probe by a program", "server", probe(exec={"command": ["sh"]}), BY_HTTP),
    ("a hook before the end", "server", {"lifecycle": {"preStop": {"exec": {"command": ["sh"]}}}}, "nothing but sleep"),
    ("a hook to another host", "server", {"lifecycle": {"preStop": {"httpGet": HOST}}}, "nothing but sleep"),
    ("a hook at the start", "server", {"lifecycle": {"postStart": {"sleep": {"seconds": 1}}}}, "nothing but sleep"),
    ("a Job", "labels", {names.STAGE_LABEL: "measure"}, LABELS + names.STAGE_LABEL),
    ("another server", "labels", {names.SERVER_LABEL: "digits-9"}, LABELS + names.SERVER_LABEL),
]  # fmt: skip


EACH = [
    *((kind, attack) for attack in ATTACKS for kind in ("Job", "Deployment")),
    *(("Job", attack) for attack in OF_A_JOB),
    *(("Deployment", attack) for attack in OF_A_SERVER),
]


@pytest.mark.parametrize(("kind", "row"), EACH, ids=[f"{kind}: {row[0]}" for kind, row in EACH])
def test_a_pod_beyond_its_bounds_is_refused(
    as_operator: Kubectl, attack: Attack, kind: str, row: tuple[str, str, Body, str]
) -> None:
    name, where, change, words = row
    said = refused(as_operator, spoiled(kind, where, change))
    attack(HOLDER, f"{kind}: {name}", told(said))
    assert f"ValidatingAdmissionPolicy '{POLICY}'" in said
    assert words in said


def credentials(stage: str) -> Body:
    """A Job that mounts a Secret, in a namespace that allows a ServiceAccount to source Jobs."""
    body = one("Job", "source")
    for labels in (body["metadata"]["labels"], body["spec"]["template"]["metadata"]["labels"]):
        labels |= {names.STAGE_LABEL: stage, names.COMPONENT_LABEL: stage, "app.kubernetes.io/name": f"triton-{stage}"}
    pod(body)["volumes"].append({"name": "credentials", "secret": {"secretName": "registry"}})
    return body


@pytest.mark.parametrize("stage", ["source", "packages"])
def test_the_job_of_a_download_may_mount_its_secret(as_operator: Kubectl, stage: str) -> None:
    assert refused(as_operator, credentials(stage)) == ""


def test_several_containers_of_ours_may_stand_beside_the_one_with_the_secret(as_operator: Kubectl) -> None:
    body = credentials("packages")
    main = pod(body)["containers"][0]
    pod(body)["initContainers"] = [main | {"name": name, "workingDir": "/"} for name in ("prepare", "run")]
    assert refused(as_operator, body) == ""


@pytest.mark.parametrize("stage", ["convert", "reference", "profile", "measure", "clean"])
def test_no_other_job_may(as_operator: Kubectl, attack: Attack, stage: str) -> None:
    said = refused(as_operator, credentials(stage))
    attack(HOLDER, f"Job: a Secret in {stage}", told(said))
    assert SECRET in said


@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_a_secret_is_beside_no_other_program(as_operator: Kubectl, attack: Attack, group: str) -> None:
    body = credentials("source")
    other = pod(body)["containers"][0] | {"name": "other", "command": ["sh", "-c"]}
    pod(body)[group] = [*pod(body).get(group, []), other]
    said = refused(as_operator, body)
    attack(HOLDER, f"Job: a Secret for another program of its {group}", told(said))
    assert SECRET in said


def test_the_job_of_a_download_may_have_a_serviceaccount_that_the_installation_names(
    as_operator: Kubectl, kubectl: Kubectl
) -> None:
    body = credentials("source")
    pod(body)["serviceAccountName"] = "models-reader"
    assert refused(as_operator, body) == ""
    said = refused(as_operator.within(kubectl.namespace), body)
    assert f"name {kubectl.namespace}/models-reader in the Helm value allowed.serviceAccounts" in said
    pod(body)["automountServiceAccountToken"] = True
    assert TOKEN in refused(as_operator, body)


def test_what_an_admission_webhook_repeats_of_the_pods_settings_is_allowed(as_operator: Kubectl) -> None:
    repeated = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "privileged": False}
    assert refused(as_operator, spoiled("Deployment", "its security", repeated)) == ""


def test_a_template_from_before_the_policy_may_still_be_scaled(as_operator: Kubectl, kubectl: Kubectl) -> None:
    body = spoiled("Deployment", "pod", volume(secret={"secretName": "database"}))
    kubectl("create", "-f", "-", body=body)
    operator = as_operator.within(kubectl.namespace)
    name = body["metadata"]["name"]
    operator("patch", "deployment", name, "--type=merge", "-p", '{"spec":{"replicas":0}}')
    assert kubectl.get("deployment", name)["spec"]["replicas"] == 0
    change = {"spec": {"template": {"spec": {"priorityClassName": "batch"}}}}
    with pytest.raises(KubectlError, match=SECRET):
        operator("patch", "deployment", name, "--type=merge", "-p", json.dumps(change))


def test_the_policy_reserves_the_labels_that_a_spec_may_not_set() -> None:
    (policy,) = (body for body in rendered() if (body["kind"], body["metadata"]["name"]) == (KIND, POLICY))
    variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
    assert json.loads(variables["reservedKeys"]) == list(names.RESERVED_KEYS)
    assert json.loads(variables["reservedPrefixes"]) == list(names.RESERVED_PREFIXES)
