"""The chart's values, one by one: each is described, checked by the schema, and changes what is rendered."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from hack.docs.chart import CHART, Value, values
from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.operator_process import ROOT, rendered
from tests.states import passes
from triton_plugin.drafting.validation.validate import check

Body = dict[str, Any]
VALUES = [each for each in values() if not each.is_group]
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
ALL = yaml.safe_load((ROOT / "hack/lint/all-values.yaml").read_text())
ON_THE_CLUSTER = {"rbac.scope": "Cluster", "watchNamespaces": []}
NEEDS: dict[str, Body] = {
    "rbac.readNodes": ON_THE_CLUSTER,
    "admissionPolicy.enabled": ON_THE_CLUSTER,
    "images.server": {"server.cpu": False},
}
"""Values that have no effect unless others are so; their comments say so."""
OTHER_IMAGE = {"repository": "registry.example/other", "tag": "2"}


def only(*kinds: str, settings: tuple[str, ...] = (), name: str = "triton-operator") -> list[Body]:
    """The rendered objects of some kinds with that name."""
    return [each for each in rendered(*settings) if each["kind"] in kinds and each["metadata"]["name"] == name]


def operator_pod(*settings: str) -> Body:
    (deployment,) = only("Deployment", settings=settings)
    pod: Body = deployment["spec"]["template"]["spec"]
    return pod


@cache
def rendered_with(values: str) -> list[Body]:
    """The chart's objects, with values as YAML."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(values)
        file.flush()
        return rendered("--values", file.name)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.name)
def test_every_value_has_an_effect(value: Value) -> None:
    """All values are away from their defaults; with this one put back, other objects are rendered."""
    everything = changed(ALL, NEEDS.get(value.name, {}))
    # all-values.yaml has the default of crds.install, because the other values of the CRD need it. Most images have no
    # default.
    back = False if value.name == "crds.install" else value.default
    back = OTHER_IMAGE if value.path[0] == "images" else back
    one = changed(everything, {value.name: back})
    assert one != everything
    assert rendered_with(yaml.safe_dump(one)) != rendered_with(yaml.safe_dump(everything))


def objects(schema: Any) -> Iterator[Any]:
    """Every schema with fields, at any depth."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for each in schema.values():
            yield from objects(each)


def test_the_schema_knows_every_value_and_nothing_else() -> None:
    assert all(each["additionalProperties"] is False for each in objects(SCHEMA))
    assert set(SCHEMA["properties"]) == {value.path[0] for value in values()} | {"global"}
    for value in values():
        schema = SCHEMA
        for name in value.path:
            schema = schema.get("properties", {})[name]
            if "$ref" in schema:
                schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("nodeSelectors.pool=gpu", "nodeSelectors"),
        ("rbac.scope=Namespace", "rbac"),
        ("podSecurityContext.runAsUser=0", "runAsUser"),
        ("commonLabels.team=17", "commonLabels"),
        ("metrics.serviceMonitor.interval=30s", "interval"),
        ("extraEnv[0].value=1", "extraEnv"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(setting: str, words: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        rendered("--set", setting)
    assert words in error.value.stderr


def test_what_the_operators_pod_takes() -> None:
    pod = operator_pod("--values", str(ROOT / "hack/lint/all-values.yaml"))
    (container,) = pod["containers"]
    assert pod["nodeSelector"] == {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}
    assert pod["tolerations"] == ALL["tolerations"]
    assert pod["affinity"] == ALL["affinity"]
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    own = {"app.kubernetes.io/name": "triton-operator", "app.kubernetes.io/instance": "triton-operator"}
    (spread,) = pod["topologySpreadConstraints"]
    assert spread == ALL["topologySpreadConstraints"][0] | {"labelSelector": {"matchLabels": own}}
    assert container["env"][-1] == {"name": "NO_PROXY", "value": "10.0.0.1"}
    assert container["volumeMounts"][1:] == ALL["extraVolumeMounts"]
    assert pod["volumes"][1:] == ALL["extraVolumes"]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def test_a_spread_with_a_selector_keeps_it() -> None:
    given = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    given |= {"labelSelector": {"matchLabels": {"app": "mine"}}}
    assert operator_pod("--set-json", f"topologySpreadConstraints=[{json.dumps(given)}]")[
        "topologySpreadConstraints"
    ] == [given]


def test_the_architecture_is_amd64_unless_somebody_says_otherwise() -> None:
    assert operator_pod()["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    assert "nodeSelector" not in operator_pod("--set", "architecture=")
    chosen = operator_pod("--set", r"nodeSelector.kubernetes\.io/arch=arm64")
    assert chosen["nodeSelector"] == {"kubernetes.io/arch": "arm64"}


def test_on_openshift_the_cluster_chooses_the_user() -> None:
    null = ("--set", "podSecurityContext.runAsUser=null", "--set", "podSecurityContext.runAsGroup=null")
    assert operator_pod()["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}
    }  # fmt: skip
    for pod in (operator_pod(*null), only("Pod", settings=null, name="triton-operator-test")[0]["spec"]):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert all("runAsUser" not in each["securityContext"] for each in pod["containers"])
        assert {next(iter(each.keys() - {"name"})) for each in pod.get("volumes", [])} <= {"emptyDir"}


def test_further_labels_and_annotations_never_replace_the_charts() -> None:
    given = {
        "commonLabels": {"app.kubernetes.io/name": "mine", "team": "platform", "tier": "1"},
        "podLabels": {"app.kubernetes.io/instance": "mine", "team": "serving"},
        "podAnnotations": {"example.com/a": "b"},
        "metrics": {"service": {"labels": {"scrape": "yes"}, "annotations": {"example.com/c": "d"}}},
    }
    settings = [part for name, value in given.items() for part in ("--set-json", f"{name}={json.dumps(value)}")]
    found = rendered(*settings)
    # The pod of `helm test` has another name, because the Service would take it for a replica.
    (test,) = [each["metadata"]["labels"] for each in found if each["kind"] == "Pod"]
    assert (test["app.kubernetes.io/name"], test["team"]) == ("triton-operator-test", "platform")
    bodies = [each for each in found if each["kind"] not in ("CustomResourceDefinition", "Pod")]
    for body in bodies:
        labels = body["metadata"]["labels"]
        assert (labels["app.kubernetes.io/name"], labels["team"], labels["tier"]) == (
            "triton-operator",
            "platform",
            "1",
        )
    (deployment,) = [each for each in bodies if each["kind"] == "Deployment"]
    template = deployment["spec"]["template"]["metadata"]
    assert template["labels"].items() >= deployment["spec"]["selector"]["matchLabels"].items()
    assert (template["labels"]["team"], template["labels"]["tier"]) == ("serving", "1")
    assert template["annotations"] == {"example.com/a": "b"}
    (service,) = [each for each in bodies if each["kind"] == "Service"]
    assert service["metadata"]["labels"]["scrape"] == "yes"
    assert service["metadata"]["annotations"] == {"example.com/c": "d"}


def monitor(kind: str, name: str, *settings: str) -> Body:
    (found,) = only(kind, settings=settings, name=name)
    assert found["metadata"]["labels"]["release"] == "prometheus"
    spec: Body = found["spec"]
    return spec


def test_monitors_are_off_and_select_what_they_say() -> None:
    assert not [each for each in rendered() if each["kind"].endswith("Monitor")]
    operator = {"app.kubernetes.io/name": "triton-operator", "app.kubernetes.io/instance": "triton-operator"}
    for value, kind in (("metrics.serviceMonitor", "ServiceMonitor"), ("metrics.podMonitor", "PodMonitor")):
        on = ("--set", f"{value}.enabled=true,{value}.labels.release=prometheus")
        spec = monitor(kind, "triton-operator", *on)
        assert spec["selector"]["matchLabels"] == operator
    (service,) = only("Service", name="triton-operator-metrics")
    assert service["metadata"]["labels"].items() >= operator.items()


@pytest.mark.parametrize(
    ("settings", "namespaces"),
    [
        ((), {"any": True}),
        (("--set", "watchNamespaces={blue,green}"), {"matchNames": ["blue", "green"]}),
        (("--set", "rbac.scope=Namespaced"), {"matchNames": ["triton-operator"]}),
    ],
)
def test_servers_are_scraped_in_the_namespaces_of_the_release(settings: tuple[str, ...], namespaces: Body) -> None:
    on = ("--set", "servers.podMonitor.enabled=true,servers.podMonitor.labels.release=prometheus")
    spec = monitor("PodMonitor", "triton-operator-servers", *on, *settings)
    assert spec["namespaceSelector"] == namespaces
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == "metrics"
    server = passes.objects("ready")
    (template,) = [each["spec"]["template"] for each in server if each["kind"] == "Deployment"]
    labels = template["metadata"]["labels"]
    assert labels.items() >= spec["selector"]["matchLabels"].items()
    names = {"__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", label) for label in labels}
    assert [each["targetLabel"] for each in endpoint["relabelings"]] == ["object", "revision"]
    assert names >= {label for each in endpoint["relabelings"] for label in each["sourceLabels"]}
    ports = [port["name"] for each in template["spec"]["containers"] for port in each.get("ports", ())]
    assert "metrics" in ports


def test_what_a_server_says_is_bounded_and_its_model_is_a_name() -> None:
    on = ("--set", "servers.podMonitor.enabled=true,servers.podMonitor.labels.release=prometheus")
    spec = monitor("PodMonitor", "triton-operator-servers", *on)
    limits = ("sampleLimit", "labelLimit", "labelNameLengthLimit", "labelValueLengthLimit")
    assert [spec[each] > 0 for each in limits] == [True] * len(limits)
    (endpoint,) = spec["podMetricsEndpoints"]
    (kept,) = [each for each in endpoint["metricRelabelings"] if each["sourceLabels"] == ["model"]]
    assert kept["action"] == "keep"
    names = ["", "digits", "Model_1-a", "m" * 63]
    assert [name for name in names if not re.fullmatch(kept["regex"], name)] == []
    lies = ["a of prod/payments fail", "a\nb", "<https://evil.example|here>", "m" * 64]
    assert [name for name in lies if re.fullmatch(kept["regex"], name)] == []


CLUSTER_SCOPED = ("ClusterRole", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "Namespace")


def test_a_namespaced_release_has_no_object_of_the_cluster() -> None:
    settings = ("--set", "rbac.scope=Namespaced,crds.install=false")
    bodies = rendered(*settings)
    assert not [each["kind"] for each in bodies if each["kind"].startswith(CLUSTER_SCOPED)]
    assert {each["metadata"]["namespace"] for each in bodies} == {"triton-operator"}
    (container,) = operator_pod(*settings)["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment["WATCH_NAMESPACES"] == "triton-operator"
    elsewhere = rendered("--set", "rbac.scope=Namespaced,crds.install=false,watchNamespaces={blue,green}")
    roles = {each["metadata"]["namespace"] for each in elsewhere if each["metadata"]["name"] == "triton-operator"}
    assert roles == {"blue", "green", "triton-operator"}


def test_artifact_hub_shows_an_object_that_is_valid() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    notes = {name: yaml.safe_load(text) for name, text in chart["annotations"].items()}
    (crd,) = notes["artifacthub.io/crds"]
    assert (crd["kind"], crd["version"]) == (MINIMAL["kind"], MINIMAL["apiVersion"].partition("/")[2])
    assert crd["name"] == next((ROOT / "crds").glob("*.yaml")).stem
    for example in notes["artifacthub.io/crdsExamples"]:
        assert check(example) == []
