"""What `kubectl triton eject` writes of the objects that the golden cases plan, as the API server would show them."""

import copy
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.planned import EVERYTHING_OF_A_POD, ROUTED
from tests.simulation.cluster import Cluster
from tests.states.deployment import State, a_deployment
from triton_operator import names
from triton_operator.kube.kinds import ApiKind
from triton_plugin import __main__
from triton_plugin.drafting.eject import (
    AFTERWARDS,
    KEPT,
    Live,
    active_server,
    autoscaler,
    files,
    next_steps,
    own_labels,
)
from triton_plugin.errors import SubjectError

Body = dict[str, Any]
KUBECTL = "kubectl --kubeconfig 'a file' --context x --namespace vision"
PAGE = Path(__file__).parents[2] / "docs/leaving.md"
SCALER: Body = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {
        "name": "mine",
        "namespace": "vision",
        "labels": {"team": "vision", "argocd.argoproj.io/instance": "x"},
    },
    "spec": {
        "scaleTargetRef": {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": "digits"},
        "minReplicas": 1,
        "maxReplicas": 4,
        "metrics": [],
    },
    "status": {"currentReplicas": 1},
}


@cache
def settled(state: State) -> Cluster:
    """The cluster once the object serves, and nothing changes."""
    cluster = state.cluster()
    cluster.settle()
    return cluster


def shown(body: Body) -> Body:
    """An object as the API server shows it: with what it adds."""
    found = copy.deepcopy(body)
    found["metadata"] |= {
        "uid": "3f9d",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-11-26T00:00:00Z",
        "managedFields": [{"manager": "triton-operator"}],
    }
    if found["kind"] == "Deployment":
        found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
        found["spec"] |= {"revisionHistoryLimit": 10}
        found["spec"]["template"]["metadata"]["creationTimestamp"] = None
    if found["kind"] == "Service":
        found["spec"] |= {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "type": "ClusterIP"}
        found["spec"]["ports"] = [{"protocol": "TCP", **each, "nodePort": 30000} for each in found["spec"]["ports"]]
    return {**found, "status": {"replicas": 1}}


def live(cluster: Cluster, *others: Body, **changes: Any) -> Live:
    """What serves the cluster's object."""
    by_name = {(each["kind"], each["metadata"]["name"]): shown(each) for each in cluster.objects.values()}
    service = by_name["Service", "digits"]
    wanted = [
        ("NetworkPolicy", "digits-servers"),
        ("PodDisruptionBudget", "digits-servers"),
        ("HTTPRoute", "digits"),
    ]
    return Live(
        name="digits",
        deployment=by_name["Deployment", active_server("digits", service, "--context x")],
        service=service,
        claim=by_name.get(("PersistentVolumeClaim", "digits-repository")),
        others=(*(by_name[each] for each in wanted if each in by_name), *others),
        **changes,
    )


def written(found: Live) -> dict[str, Body]:
    return {path: yaml.safe_load(text) for path, text in files(found).items()}


def sharing(**serving: Any) -> State:
    """An object with two servers, whose claim all nodes share."""
    repository = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}
    return a_deployment().one_candidate().asking(serving={"replicas": 2, **serving}, repository=repository)


PLAIN = a_deployment().one_candidate()
EVERYTHING = {
    **EVERYTHING_OF_A_POD,
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: name}}, "topologyKey": "zone"}
                for name in ("digits", "other")
            ]
        }
    },
}
OBJECTS = {
    "one server": PLAIN,
    "two servers on several nodes": sharing(),
    "everything of a pod": PLAIN.asking(pod=EVERYTHING),
    "a route": PLAIN.asking(serving=ROUTED).where(has_gateway_api=True),
    "labels of the user's": PLAIN.asking(pod={"labels": {"team": "vision"}}),
}


@pytest.fixture(scope="module", params=OBJECTS)
def ejected(request: pytest.FixtureRequest) -> tuple[Live, dict[str, Body]]:
    found = live(settled(OBJECTS[request.param]), shown(SCALER))
    return found, written(found)


def texts(value: Any) -> list[str]:
    """All keys and texts of an object."""
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *texts(each))]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def test_no_copy_is_the_operators_or_owned_by_anything(ejected: tuple[Live, dict[str, Body]]) -> None:
    for path, body in ejected[1].items():
        assert body["metadata"].keys() <= {"name", "namespace", "labels", "annotations"}, path
        assert "status" not in body
        known = [body["metadata"], body["spec"].get("template", {}).get("metadata", {})]
        assert [each for each in texts(known) if "triton-operator" in each] == []
        reserved = {each for each in texts(known) if names.is_reserved(each)}
        assert reserved <= own_labels("digits").keys(), path
        expected = "digits" if path.startswith(AFTERWARDS) else "digits-ejected"
        assert body["metadata"]["name"] == expected
        assert body["metadata"]["namespace"] == "vision"


def test_every_selector_selects_the_copys_pods_and_none_of_the_operators(ejected: tuple[Live, dict[str, Body]]) -> None:
    found, bodies = ejected
    pods = bodies["deployment.yaml"]["spec"]["template"]["metadata"]["labels"]
    old = found.deployment["spec"]["template"]["metadata"]["labels"]
    own = own_labels("digits")
    assert own.items() <= pods.items()
    assert not own.items() <= old.items()
    assert not found.service["spec"]["selector"].items() <= pods.items()
    assert bodies["deployment.yaml"]["spec"]["selector"] == {"matchLabels": own}
    assert bodies["service.yaml"]["spec"]["selector"] == own
    assert bodies[f"{AFTERWARDS}/service.yaml"]["spec"] == bodies["service.yaml"]["spec"]
    assert bodies["networkpolicy.yaml"]["spec"]["podSelector"] == {"matchLabels": own}
    if budget := bodies.get("poddisruptionbudget.yaml"):
        assert budget["spec"] == {
            "selector": {"matchLabels": own},
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        }


def test_the_pod_is_the_same_but_for_the_operators_own(ejected: tuple[Live, dict[str, Body]]) -> None:
    found, bodies = ejected
    old, new = (each["spec"]["template"]["spec"] for each in (found.deployment, bodies["deployment.yaml"]))
    left_out = {"initContainers", "affinity", "topologySpreadConstraints"}
    assert {k: v for k, v in old.items() if k not in left_out} == {k: v for k, v in new.items() if k not in left_out}
    assert "initContainers" not in new
    assert any(each["name"] == "tritonserver" for each in new["containers"])


def test_a_container_that_somebody_else_put_before_the_server_stays() -> None:
    found = live(settled(PLAIN))
    found.deployment["spec"]["template"]["spec"]["initContainers"].append({"name": "mesh"})
    assert written(found)["deployment.yaml"]["spec"]["template"]["spec"]["initContainers"] == [{"name": "mesh"}]


def test_the_copy_keeps_together_and_starts_near_the_old_pods_which_it_can_outlive() -> None:
    found = written(live(settled(PLAIN)))["deployment.yaml"]["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    (term,) = found["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"] == {"matchLabels": own_labels("digits")}
    (near,) = found["preferredDuringSchedulingIgnoredDuringExecution"]
    assert near["podAffinityTerm"]["labelSelector"] == {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: "digits"}}


def test_selectors_of_the_users_follow_the_copy_but_those_of_other_objects_stay() -> None:
    spec = written(live(settled(OBJECTS["everything of a pod"])))["deployment.yaml"]["spec"]["template"]["spec"]
    own, other = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert own["labelSelector"] == {"matchLabels": own_labels("digits")}
    assert other["labelSelector"] == {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: "other"}}
    (spread,) = spec["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": own_labels("digits")}
    assert "matchLabelKeys" not in spread


def test_the_policy_lets_the_same_clients_in_and_no_job() -> None:
    found = live(settled(PLAIN))
    before = found.others[0]["spec"]["ingress"]
    policy = written(found)["networkpolicy.yaml"]["spec"]
    assert names.STAGE_LABEL in texts(before[0])
    assert policy["ingress"] == before[1:]
    assert (policy["egress"], policy["policyTypes"]) == ([], ["Ingress", "Egress"])


def test_a_route_leads_to_the_copy_alone() -> None:
    rules = written(live(settled(OBJECTS["a route"])))["httproute.yaml"]["spec"]["rules"]
    assert [each["backendRefs"] for each in rules] == [
        [{"name": "digits-ejected", "port": port, "weight": 100}] for port in (8001, 8000)
    ]


def test_the_users_autoscaler_scales_the_copy_and_keda_keeps_its_own() -> None:
    of_keda = {**SCALER, "metadata": {"name": "keda-hpa-digits", "ownerReferences": [{"kind": "ScaledObject"}]}}
    elsewhere = {**SCALER, "spec": {**SCALER["spec"], "scaleTargetRef": {"kind": names.KIND, "name": "other"}}}
    assert autoscaler("digits", [of_keda, elsewhere]) is None
    assert autoscaler("digits", [of_keda, elsewhere, SCALER]) is SCALER
    found = written(live(settled(PLAIN), shown(SCALER)))["horizontalpodautoscaler.yaml"]
    assert found["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "digits-ejected"}
    assert found["metadata"]["labels"] == {"team": "vision", **own_labels("digits")}


def test_the_service_has_no_address_of_the_old_one() -> None:
    spec = written(live(settled(PLAIN)))["service.yaml"]["spec"]
    assert spec.keys() == {"selector", "ports"}
    assert [(each["name"], each["port"], each["targetPort"]) for each in spec["ports"]] == [
        ("http", 8000, "http"),
        ("grpc", 8001, "grpc"),
        ("metrics", 8002, "metrics"),
    ]
    assert "nodePort" not in texts(spec)


def test_the_steps_keep_a_claim_that_would_go_with_the_object() -> None:
    steps = next_steps(live(settled(PLAIN)), "digits-ejected", KUBECTL)
    assert f"  {KUBECTL} patch td digits --type merge" in steps
    retained = PLAIN.asking(repository={"retentionPolicy": {"whenDeleted": "Retain"}})
    assert " patch td " not in next_steps(live(settled(retained)), "digits-ejected", KUBECTL)


def test_the_steps_name_what_does_not_go_along() -> None:
    plain, warned = (
        next_steps(live(settled(PLAIN), **changes), "out", KUBECTL)
        for changes in ({}, {"sharing": ("ocr", "tagger"), "has_scaled_object": True})
    )
    assert warned.startswith(plain)
    assert "another claim: ocr, tagger also use digits-repository" in warned
    assert "The ScaledObject digits was left out" in warned


def test_an_object_that_serves_nothing_is_told_so() -> None:
    for service in (None, {"spec": {"selector": {names.TRITON_DEPLOYMENT_LABEL: "digits"}}}):
        with pytest.raises(SubjectError, match=r"no active revision.*kubectl triton explain digits --context x"):
            active_server("digits", service, "--context x")


def test_the_page_has_the_table_of_what_is_kept() -> None:
    rows = [
        f"| {kind} | `{field}`{': ' if how else ''}{how} |"
        for kind, fields in KEPT.items()
        for field, how in fields.items()
    ]
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if re.match(rf"\| ({'|'.join(KEPT)}) \|", line)] == rows


class FakeCluster:
    """Holds the objects of one cluster."""

    found = settled(PLAIN)
    place = tuple(shlex.split(KUBECTL)[1:])

    def __init__(self, *_: str | None) -> None:
        """There is always a cluster."""

    def triton_deployment(self, name: str) -> Body:
        return {"metadata": {"name": name}, "spec": self.found.spec}

    def deployments(self) -> list[Body]:
        shared = {"repository": {"claimName": "digits-repository"}}
        others: list[Body] = [
            {"metadata": {"name": "ocr"}, "spec": shared},
            {"metadata": {"name": "tagger"}, "spec": {}},
        ]
        return [self.triton_deployment("digits"), *others]

    def child(self, kind: ApiKind, name: str) -> Body | None:
        body = self.found.objects.get((kind.kind, name))
        return shown(body) if body else None

    def children(self, kind: ApiKind) -> list[Body]:
        return []

    def kubectl(self) -> list[str]:
        return ["kubectl", *self.place]


def test_the_command_writes_a_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    monkeypatch.chdir(tmp_path)
    assert __main__.main(["eject", "digits"]) == 0
    folder = tmp_path / "digits-ejected"
    names_of_files = {"deployment.yaml", "service.yaml", "networkpolicy.yaml", f"{AFTERWARDS}/service.yaml"}
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")} == names_of_files
    out = capsys.readouterr().out
    assert f"  {KUBECTL} apply --filename digits-ejected\n" in out
    commands = [line.strip() for line in out.splitlines() if "kubectl" in line]
    assert [line for line in commands if not line.startswith(f"{KUBECTL} ")] == [], "one of them deletes the object"
    assert "another claim: ocr also use digits-repository" in out
    assert __main__.main(["eject", "digits"]) == 1
    assert "digits-ejected exists; pass --force" in capsys.readouterr().err
    (folder / "poddisruptionbudget.yaml").write_text("of an earlier time")
    assert __main__.main(["eject", "digits", "--force"]) == 0
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")} == names_of_files
    assert __main__.main(["eject", "digits", "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/deployment.yaml").is_file()
