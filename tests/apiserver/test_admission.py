"""The admission policies on a real API server: which objects the operator's token cannot make, change or delete."""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest

from tests.apiserver.definitions import SCALED_OBJECTS
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import USER
from tests.apiserver.planned import HOLDER, Body, anywhere, one, planned, pod, refused, simulated_objects, told
from tests.conftest import Attack
from triton_operator.names import MANAGED_BY_LABEL, SERVER_LABEL, TRITON_DEPLOYMENT_LABEL

KINDS = {
    *("Job", "Deployment", "Service", "NetworkPolicy", "PersistentVolumeClaim", "ConfigMap", "PodDisruptionBudget"),
    "ScaledObject",
}


@pytest.fixture(scope="module", autouse=True)
def keda(cluster_kubectl: Kubectl) -> Iterator[None]:
    with SCALED_OBJECTS.served(cluster_kubectl):
        yield


def allow(as_operator: Kubectl, bodies: list[Body]) -> None:
    """Fail unless each of the objects may be made. Of a route, tests/apiserver/test_gateway_api.py knows the kind."""
    # One call for all: each object of the list is admitted by itself.
    wanted = [anywhere(body) for body in bodies if body["kind"] in KINDS]
    as_operator("create", "--dry-run=server", "--validate=false", "-f", "-", body=wanted)


def test_everything_that_a_plan_creates_is_allowed(as_operator: Kubectl) -> None:
    bodies = planned()
    assert {body["kind"] for body in bodies} == {*KINDS, "HTTPRoute"}
    allow(as_operator, bodies)


def test_everything_that_a_spec_and_an_installation_may_ask_for_is_allowed(as_operator: Kubectl) -> None:
    bodies = list(simulated_objects())
    assert {body["kind"] for body in bodies} == {*KINDS, "HTTPRoute"}
    allow(as_operator, bodies)


def unlabelled(body: Body) -> None:
    del body["metadata"]["labels"][TRITON_DEPLOYMENT_LABEL]


def another_manager(body: Body) -> None:
    body["metadata"]["labels"][MANAGED_BY_LABEL] = "Helm"


def another_name(body: Body) -> None:
    body["metadata"]["name"] = "billing"


def no_owner(body: Body) -> None:
    body["metadata"]["ownerReferences"] = []


def owned(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["metadata"]["ownerReferences"][0] |= fields

    return change


def also_owned(body: Body) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "0-0"}
    body["metadata"]["ownerReferences"] = [*body["metadata"].get("ownerReferences", []), other]


def owned_twice(body: Body) -> None:
    """By its object, and by one of a kind that the garbage collector cannot look up."""
    owners = body["metadata"].get("ownerReferences") or [
        {"apiVersion": "triton-operator.dev/v1alpha1", "kind": "TritonDeployment", "name": "digits", "uid": "0-1"}
    ]
    body["metadata"]["ownerReferences"] = [*owners, owners[0] | {"apiVersion": "example.com/v1", "controller": False}]


def finalized(finalizer: str) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["metadata"]["finalizers"] = [finalizer]

    return change


def spec(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["spec"] |= fields

    return change


def annotated(**annotations: str) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["metadata"]["annotations"] = annotations

    return change


def trigger(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["spec"]["triggers"][0] |= fields

    return change


def query(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["spec"]["triggers"][0]["metadata"] |= fields

    return change


OTHER_FINALIZERS = ("kubernetes.io/never", "orphan", "foregroundDeletion")
THEIRS = {TRITON_DEPLOYMENT_LABEL: "theirs", SERVER_LABEL: "theirs-0"}
Row = tuple[str, str, Callable[[Body], None], str]
OF_PODS = "has the labels of its own object|selects the pods of its own"
"""What the policy of pods may say first of a Job or Deployment."""
LABELS = f"has not the labels of an object of a TritonDeployment|{OF_PODS}"
NAME = f"has not a name of an object of the TritonDeployment digits|{OF_PODS}"
OWNER = "has not the TritonDeployment digits as its owner"
ALONE = "of the operator has no other owner than its TritonDeployment, and no finalizer"
"""What the garbage collector would not remove although its owner does not exist."""
SERVICE = "has type ClusterIP, no externalIPs, and selects the pods of its own TritonDeployment"
CLAIM = "its StorageClass alone says of which volume"
SCALES = "scales its own TritonDeployment, by this installation's Prometheus alone"
SELECTS = "selects the pods of its own TritonDeployment"
ATTACKS: list[Row] = [
    *((kind, "no label", unlabelled, LABELS) for kind in sorted(KINDS)),
    ("Job", "another manager", another_manager, LABELS),
    *((kind, "another name", another_name, NAME) for kind in sorted(KINDS)),
    *((kind, "no owner", no_owner, OWNER) for kind in sorted(KINDS - {"PersistentVolumeClaim"})),
    *((kind, "another owner besides", also_owned, f"{ALONE}|{OWNER}") for kind in sorted(KINDS)),
    *((kind, "an owner besides that nobody can look up", owned_twice, f"{ALONE}|{OWNER}") for kind in sorted(KINDS)),
    *((kind, "a finalizer", finalized("example.com/never"), ALONE) for kind in sorted(KINDS)),
    *(("Deployment", f"the finalizer {each}", finalized(each), ALONE) for each in OTHER_FINALIZERS),
    ("Job", "an owner of another name", owned(name="theirs"), OWNER),
    ("Job", "an owner of another kind", owned(kind="ConfigMap", apiVersion="v1"), OWNER),
    ("Job", "an owner of another group", owned(apiVersion="example.com/v1"), OWNER),
    ("Job", "an owner of another version", owned(apiVersion="triton-operator.dev/v9"), OWNER),
    ("Job", "an owner that controls nothing", owned(controller=False), OWNER),
    ("PersistentVolumeClaim", "an owner of another name", owned(name="theirs"), OWNER),
    ("Service", "a load balancer", spec(type="LoadBalancer"), "fields externalTrafficPolicy"),
    ("Service", "a port of the nodes", spec(type="NodePort"), "fields externalTrafficPolicy"),
    ("Service", "a name elsewhere", spec(type="ExternalName", externalName="elsewhere.example"), "fields externalName"),
    ("Service", "an address", spec(externalIPs=["192.0.2.1"]), "fields externalIPs"),
    ("Service", "pods of others", spec(selector={"app": "somebody-elses"}), SERVICE),
    ("Service", "another object's pods", spec(selector=THEIRS), SERVICE),
    ("Service", "all pods of its object", spec(selector={TRITON_DEPLOYMENT_LABEL: "digits"}), SERVICE),
    ("Service", "pods that are not ready", spec(publishNotReadyAddresses=True), "fields publishNotReadyAddresses"),
    ("NetworkPolicy", "all pods", spec(podSelector={}), SELECTS),
    ("NetworkPolicy", "another object's pods", spec(podSelector={"matchLabels": THEIRS}), SELECTS),
    ("PodDisruptionBudget", "all pods", spec(selector={}), SELECTS),
    ("PodDisruptionBudget", "another object's pods", spec(selector={"matchLabels": THEIRS}), SELECTS),
    ("PersistentVolumeClaim", "a volume", spec(volumeName="theirs"), "has not the fields volumeName"),
    ("PersistentVolumeClaim", "labels of volumes", spec(selector={"matchLabels": {"a": "b"}}), "fields selector"),
    (
        "PersistentVolumeClaim",
        "a copy of a claim",
        spec(dataSource={"kind": "PersistentVolumeClaim", "name": "theirs"}),
        "has not the fields dataSource",
    ),
    ("PersistentVolumeClaim", "attributes", spec(volumeAttributesClassName="fast"), "volumeAttributesClassName"),
    ("PersistentVolumeClaim", "a volume of no class", spec(storageClassName=""), CLAIM),
    ("PersistentVolumeClaim", "a device", spec(volumeMode="Block"), CLAIM),
    (
        "PersistentVolumeClaim",
        "an old class",
        annotated(**{"volume.beta.kubernetes.io/storage-class": "theirs"}),
        CLAIM,
    ),
    ("PersistentVolumeClaim", "a bound claim", annotated(**{"pv.kubernetes.io/bind-completed": "yes"}), CLAIM),
    ("PersistentVolumeClaim", "a node", annotated(**{"volume.kubernetes.io/selected-node": "a"}), CLAIM),
    ("ScaledObject", "a Deployment", spec(scaleTargetRef={"name": "theirs"}), SCALES),
    ("ScaledObject", "another Prometheus", query(serverAddress="http://192.0.2.1"), SCALES),
    ("ScaledObject", "a header", query(customHeaders="a=b"), SCALES),
    ("ScaledObject", "credentials", trigger(authenticationRef={"name": "theirs"}), SCALES),
    ("ScaledObject", "another trigger", trigger(type="metrics-api"), SCALES),
    ("ScaledObject", "a formula", spec(advanced={"scalingModifiers": {"formula": "1"}}), "fields advanced"),
]


@pytest.mark.parametrize("row", ATTACKS, ids=[f"{kind}: {name}" for kind, name, *_ in ATTACKS])
def test_an_object_beyond_its_bounds_is_refused(as_operator: Kubectl, attack: Attack, row: Row) -> None:
    kind, name, change, words = row
    body = one(kind)
    change(body)
    said = refused(as_operator, body)
    attack(HOLDER, f"{kind}: {name}", told(said))
    assert "ValidatingAdmissionPolicy 'triton-operator" in said
    # A map has no order.
    assert re.search(words.replace("fields ", "fields .*"), said), said


def test_a_system_namespace_is_refused(as_operator: Kubectl, attack: Attack) -> None:
    said = refused(as_operator.within("kube-system"), one("Job"))
    attack(HOLDER, "Job in kube-system", told(said))
    assert "the operator does not work in the system namespace kube-system" in said


def test_nothing_of_others_is_taken_over_or_deleted(as_operator: Kubectl, kubectl: Kubectl, attack: Attack) -> None:
    ours = one("ConfigMap")
    theirs = deepcopy(ours) | {"data": {"mine": "1"}}
    # A label alone makes nobody's object the operator's.
    labels = {"app": "theirs", TRITON_DEPLOYMENT_LABEL: "digits"}
    theirs["metadata"] = {"name": ours["metadata"]["name"], "labels": labels}
    job = one("Job") | {"metadata": {"name": "their-job", "labels": labels}}
    job["spec"]["suspend"] = True
    policy = one("NetworkPolicy") | {"metadata": {"name": "their-policy", "labels": labels}}
    kubectl("create", "-f", "-", body=[theirs, job, policy])
    operator = as_operator.within(kubectl.namespace)
    with pytest.raises(KubectlError, match="ConfigMap digits-results belongs to no TritonDeployment"):
        operator("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-", body=ours)
    with pytest.raises(KubectlError, match="Job their-job belongs to no TritonDeployment"):
        operator("delete", "job", "their-job", "--wait=false")
    with pytest.raises(KubectlError, match="NetworkPolicy their-policy belongs to no TritonDeployment"):
        operator("delete", "networkpolicy", "their-policy", "--wait=false")
    attack(HOLDER, "another's ConfigMap taken over, another's Job deleted", "belongs to no TritonDeployment")
    assert kubectl.get("configmap", "digits-results")["data"] == {"mine": "1"}


def test_a_claim_gets_no_volume_later_either(as_operator: Kubectl, kubectl: Kubectl, attack: Attack) -> None:
    operator, body = as_operator.within(kubectl.namespace), one("PersistentVolumeClaim")
    operator("create", "-f", "-", body=body)
    change = ("patch", "pvc", body["metadata"]["name"], "--type=merge", "-p")
    with pytest.raises(KubectlError, match="has not the fields volumeName") as refusal:
        operator(*change, '{"spec": {"volumeName": "theirs"}}')
    attack(HOLDER, "PersistentVolumeClaim: a volume, later", told(str(refusal.value)))
    # The cluster's controller sets it, and then the operator may still let the claim grow.
    kubectl(*change, '{"spec": {"volumeName": "ours"}}')
    operator(*change, '{"metadata": {"annotations": {"example.com/a": "b"}}}')


def test_what_was_restored_from_a_backup_is_taken_over(as_operator: Kubectl, kubectl: Kubectl) -> None:
    """As docs/backup.md restores it: with the operator's labels, without an owner, and a claim from a snapshot."""
    bodies = [one("PersistentVolumeClaim"), one("ConfigMap")]
    saved = deepcopy(bodies)
    for each in saved:
        del each["metadata"]["ownerReferences"]
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "saved"}
    saved[0]["spec"]["dataSource"] = source
    kubectl("create", "-f", "-", body=saved)
    apply = ("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-")
    as_operator.within(kubectl.namespace)(*apply, body=bodies)
    for each in bodies:
        found = kubectl.get(each["kind"].lower(), each["metadata"]["name"])
        assert len(found["metadata"]["ownerReferences"]) == 1
    assert kubectl.get("pvc", bodies[0]["metadata"]["name"])["spec"]["dataSource"] == source


def test_what_a_user_set_on_a_service_stays(as_operator: Kubectl, kubectl: Kubectl) -> None:
    operator, body = as_operator.within(kubectl.namespace), one("Service")
    operator("create", "-f", "-", body=body)
    change = ("patch", "service", body["metadata"]["name"], "--type=merge", "-p")
    kubectl(
        *change, '{"spec": {"trafficDistribution": "PreferClose", "type": "NodePort", "externalIPs": ["192.0.2.1"]}}'
    )
    selector = body["spec"]["selector"] | {SERVER_LABEL: "digits-next"}
    operator(*change, f'{{"spec": {{"selector": {{"{SERVER_LABEL}": "{selector[SERVER_LABEL]}"}}}}}}')


def test_others_are_not_judged(kubectl: Kubectl) -> None:
    body = one("Job")
    pod(body)["volumes"].append({"name": "root", "hostPath": {"path": "/"}})
    assert refused(kubectl, body) == ""
    assert USER not in kubectl("auth", "whoami")
