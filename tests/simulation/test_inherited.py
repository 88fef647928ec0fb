"""Labels and annotations of a TritonDeployment on everything that the operator makes for it, and on no pod."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Attack
from tests.simulation.api_server import ApiServer
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_spec
from tests.states.deployment import ROUTE
from triton_operator.kube.errors import ForbiddenError
from triton_operator.names import is_inherited

Body = dict[str, Any]
SPEC = a_spec(serving={"autoscaling": {"maxReplicas": 6}, "replicas": 2, "route": ROUTE})


def cluster_of(**fields: Any) -> Cluster:
    return Cluster(SPEC, has_keda=True, has_gateway_api=True, **fields)


def children(cluster: Cluster) -> list[Body]:
    return [each for each in cluster.objects.values() if each["kind"] not in ("Pod", "Event", "Node")]


def test_every_child_has_the_labels_of_its_object_and_no_pod_has() -> None:
    cluster = cluster_of(labels={"team": "vision", "app.kubernetes.io/component": "mine"})
    cluster.settle()
    kinds = {each["kind"] for each in children(cluster)}
    assert {"Job", "Deployment", "Service", "PersistentVolumeClaim", "NetworkPolicy", "ConfigMap"} <= kinds
    for each in children(cluster):
        labels = each["metadata"]["labels"]
        assert labels["team"] == "vision", each["kind"]
        assert labels["app.kubernetes.io/component"] != "mine"
        template = each["spec"].get("template", {}) if each["kind"] in ("Job", "Deployment") else {}
        assert "team" not in template.get("metadata", {}).get("labels", {})


def test_what_has_no_owner_has_nothing_by_which_a_deployer_would_prune_it() -> None:
    """Argo CD's label of tracking may have any name. It prunes what has that label, unless it has an owner."""
    cluster = cluster_of(labels={"ci.example/app": "models"}, annotations={"cost.example/center": "17"})
    cluster.settings = replace(SETTINGS, inherited_annotations=("cost.example/",), gateway_api=True)
    for policy in ("Delete", "Retain"):
        cluster.edit(repository={"retentionPolicy": {"whenDeleted": policy}})
        cluster.settle()
        for each in (child["metadata"] for child in children(cluster)):
            found = {"ci.example/app", "cost.example/center"} & {*each["labels"], *each.get("annotations", {})}
            assert bool(found) is bool(each["ownerReferences"]), each["name"]
    claim = cluster.objects["PersistentVolumeClaim", "digits-repository"]["metadata"]
    assert claim["labels"]["triton-operator.dev/deployment"] == "digits", "by which the operator knows it"


def test_an_object_that_serves_goes_on_whatever_labels_it_gets() -> None:
    cluster = cluster_of(labels={"team": "vision"})
    cluster.settle()
    jobs = {each["metadata"]["uid"] for each in cluster.of_kind("Job")}
    (deployment,) = cluster.of_kind("Deployment")
    cluster.labels = {f"many.example/{number}": "x" * 63 for number in range(2_000)}
    cluster.run(30)
    assert cluster.has("InvalidSpec", words="metadata.labels has more than 16384 bytes")
    (kept,) = cluster.of_kind("Deployment")
    assert (kept["metadata"]["uid"], kept["spec"]["replicas"]) == (deployment["metadata"]["uid"], 2)
    assert cluster.condition("Available")["status"] == "True"
    cluster.labels = {"team": "speech"}
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert {each["metadata"]["uid"] for each in cluster.of_kind("Job")} == jobs


class Fixed(ApiServer):
    """An API server whose StorageClass has no volumes that grow, so that it refuses a larger claim as a whole."""

    def apply(self, body: Body) -> Body:
        stored = self.cluster.objects[body["kind"], body["metadata"]["name"]]
        if body["kind"] == "PersistentVolumeClaim" and body["spec"]["resources"] != stored["spec"]["resources"]:
            raise ForbiddenError("only dynamically provisioned pvc can be resized")
        return super().apply(body)


def test_a_claim_loses_its_owner_and_what_a_deployer_goes_by_at_once() -> None:
    cluster = cluster_of(labels={"ci.example/app": "models"}, annotations={"cost.example/center": "17"})
    cluster.settings = replace(SETTINGS, inherited_annotations=("cost.example/",), gateway_api=True)
    cluster.settle()
    key = ("PersistentVolumeClaim", "digits-repository")
    cluster.objects[key]["metadata"]["labels"]["mine.example/label"] = "stays"
    template = {"spec": {"resources": {"requests": {"storage": "500Gi"}}}}
    cluster.edit(repository={"retentionPolicy": {"whenDeleted": "Retain"}, "volumeClaimTemplate": template})
    api = Fixed(cluster)
    for _ in range(3):
        cluster.report(api)
    claim = cluster.objects[key]["metadata"]
    assert claim["ownerReferences"] == []
    assert {"ci.example/app", "cost.example/center", "mine.example/label"} & {
        *claim["labels"],
        *claim["annotations"],
    } == {"mine.example/label"}


def test_labels_are_in_no_name_so_new_ones_run_nothing_again() -> None:
    cluster = cluster_of()
    cluster.settle()
    jobs = {each["metadata"]["name"] for each in cluster.of_kind("Job")}
    cluster.labels = {"team": "vision"}
    cluster.settle()
    assert {each["metadata"]["name"] for each in cluster.of_kind("Job")} == jobs
    (deployment,) = cluster.of_kind("Deployment")
    assert deployment["metadata"]["labels"]["team"] == "vision"


def test_annotations_are_handed_on_where_the_installation_says() -> None:
    cluster = cluster_of(annotations={"cost.example/center": "17", "other.example/x": "1"})
    cluster.settings = replace(SETTINGS, inherited_annotations=("cost.example/",), gateway_api=True)
    cluster.settle()
    for each in children(cluster):
        annotations = each["metadata"].get("annotations", {})
        assert annotations.get("cost.example/center") == "17", each["kind"]
        assert "other.example/x" not in annotations
    pods = [each["metadata"] for each in cluster.of_kind("Pod")]
    assert not any("cost.example/center" in each.get("annotations", {}) for each in pods)


def test_annotations_are_in_no_name_and_go_when_the_object_has_them_no_more() -> None:
    cluster = cluster_of()
    cluster.settings = replace(SETTINGS, inherited_annotations=("cost.example",), gateway_api=True)
    cluster.settle()
    before = [each["metadata"]["name"] for kind in ("Job", "Pod") for each in cluster.of_kind(kind)]
    own = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in cluster.of_kind("Deployment")}
    for given in ({"cost.example/center": "17"}, {"cost.example/center": "18"}, {}):
        cluster.annotations = given
        cluster.settle()
        for each in cluster.of_kind("Deployment"):
            assert each["metadata"].get("annotations", {}) == own[each["metadata"]["name"]] | given
    assert [each["metadata"]["name"] for kind in ("Job", "Pod") for each in cluster.of_kind(kind)] == before
    assert cluster.condition("Ready")["status"] == "True"


def test_no_setting_hands_on_what_kubernetes_a_deployer_or_the_operator_reads(attack: Attack) -> None:
    reserved = {
        "triton-operator.dev/pod-template": "{}",
        "triton-operator.dev/makes-way-for": "mine",
        "service.kubernetes.io/topology-mode": "Auto",
        "deployment.kubernetes.io/revision": "7",
        "pv.kubernetes.io/bind-completed": "no",
        "argocd.argoproj.io/tracking-id": "mine",
        "helm.sh/resource-policy": "keep",
    }
    plain, bad = cluster_of(), cluster_of(annotations=reserved)
    domains = ("triton-operator.dev", "service.kubernetes.io", "deployment.", "pv.", "argocd.argoproj.io", "helm.sh")
    plain.settings = replace(SETTINGS, gateway_api=True)
    bad.settings = replace(plain.settings, inherited_annotations=domains)
    for each in (plain, bad):
        each.settle()
    expected, found = (
        {(each["kind"], each["metadata"]["name"]): each["metadata"].get("annotations") for each in children(cluster)}
        for cluster in (plain, bad)
    )
    strange = {each for each, given in found.items() if given != expected[each]}
    attack(
        "author of an object", "Services, claims and servers, by annotations that an installation lists", f"{strange}"
    )
    assert strange == set()


@pytest.mark.parametrize(
    ("key", "inherited"),
    [
        ("team", True),
        ("example.com/owner", True),
        ("app.kubernetes.io/version", True),
        ("app.kubernetes.io/instance", False),
        ("triton-operator.dev/key", False),
        ("service.kubernetes.io/service-proxy-name", False),
        ("kueue.x-k8s.io/queue-name", False),
        ("argocd.argoproj.io/instance", False),
        ("kustomize.toolkit.fluxcd.io/name", False),
        ("notkubernetes.io/x", True),
    ],
)
def test_what_tells_kubernetes_or_a_deployer_something_stays_with_the_object(key: str, inherited: bool) -> None:
    assert is_inherited(key) is inherited
