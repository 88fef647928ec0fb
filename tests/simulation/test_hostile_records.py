"""Whoever may edit the results ConfigMap chooses what was served before, and nothing that the operator may not make."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.hostile_records import RESULTS, forge_active, forge_revision
from tests.simulation.answers import Script, when
from tests.simulation.api_server import KEY
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, a_spec
from tests.simulation.test_failures import named_claim
from tests.simulation.test_kept_on_the_claim import REFUSED
from tests.simulation.test_rollback import keys, made, reasons, roll_back, three_served, version
from tests.simulation.walk.world import World
from triton_operator import names
from triton_operator.api.triton_deployment import parse
from triton_operator.observed.history import History, State
from triton_operator.planning.pins import pinned_images

Body = dict[str, Any]
LABELS = {"app.kubernetes.io/managed-by": "triton-operator", "triton-operator.dev/deployment": "digits"}
OWNER = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": "digits", "uid": "any", "controller": True}
POD = {
    "containers": [{"name": "a", "image": "evil.example/x"}],
    "volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "payroll"}}],
}
EVIL = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "digits-evil", "namespace": "victim", "labels": LABELS, "ownerReferences": [OWNER]},
    "spec": {"selector": {}, "template": {"spec": POD}},
}
CONVERTING = when("convert", Script(hangs=True))


@pytest.fixture
def cluster() -> Cluster:
    return three_served()


def made_before(cluster: Cluster) -> None:
    """Somebody makes the ConfigMap and the Service of a new object: the right to create them suffices."""
    record = {"server": "digits-0", "uid": "u", "revision": "0", "model": "digits", "deployment": EVIL}
    selector = {names.SERVER_LABEL: "digits-0"}
    parts: tuple[Body, ...] = (
        {"kind": "ConfigMap", "metadata": {"name": RESULTS[1]}, "data": {"soak.active": json.dumps(record)}},
        {"kind": "Service", "metadata": {"name": "digits"}, "spec": {"selector": selector}},
    )
    for part in parts:
        name = part["metadata"]["name"]
        metadata = {"namespace": "vision", "labels": LABELS, "uid": f"u-{name}", "generation": 1}
        metadata |= {"name": name, "creationTimestamp": "2026-11-21T00:00:00Z"}
        cluster.objects[part["kind"], name] = {"apiVersion": "v1", **part, "metadata": metadata, "status": {}}


def edited_since(cluster: Cluster) -> None:
    """Somebody edits the record of what is active, and deletes the Deployment."""
    cluster.settle()
    was = forge_active(cluster, deployment=EVIL)
    cluster.scripts = CONVERTING
    cluster.edit(source={"uri": "pvc://models/v2"})
    cluster.delete("Deployment", was["server"])


@pytest.mark.parametrize("happens", [made_before, edited_since])
def test_nothing_is_made_of_a_forged_record_of_what_is_active(happens: Callable[[Cluster], None]) -> None:
    cluster = Cluster(a_spec())
    happens(cluster)
    world, wrote = World(cluster), list[Body]()
    world.api.writes = lambda verb, body: wrote.append(body)
    for _ in range(12):
        for each in cluster.objects.values():
            each["metadata"].setdefault("resourceVersion", "1")
        world.operator.reconcile(KEY)
    assert wrote, "the passes go on"
    assert [each for each in wrote if each["metadata"]["namespace"] != "vision"] == []
    assert "evil" not in json.dumps([each for each in wrote if each["kind"] == "Deployment"])


def test_what_is_active_comes_back_as_it_was_made() -> None:
    cluster = Cluster(a_spec())
    cluster.settle()
    server, template = cluster.serving() or "", deepcopy(made(cluster))
    cluster.scripts = CONVERTING
    cluster.edit(source={"uri": "pvc://models/v2"})
    cluster.delete("Deployment", server)
    cluster.run(5)
    assert made(cluster) == template


def test_what_is_active_does_not_come_back_with_an_image_that_is_no_longer_allowed() -> None:
    cluster = Cluster(a_spec(serving={"image": "old.example/server:1"}))
    cluster.settle()
    cluster.settings = replace(cluster.settings, allowed_images=("registry.corp/",))
    cluster.settle()
    assert made(cluster)["spec"]["containers"][0]["image"].startswith("old.example/"), "what serves goes on"
    assert reasons(cluster, "UpToDate") == [("False", "NotAllowed")]
    cluster.edit(serving={"image": "old.example/server:1", "replicas": 2})
    cluster.settle()
    (server,) = cluster.of_kind("Deployment")
    assert server["spec"]["replicas"] == 2, "and is scaled"
    cluster.delete("Deployment", server["metadata"]["name"])
    cluster.run(5)
    assert cluster.of_kind("Deployment") == []
    assert reasons(cluster, "Stalled") == [("True", "NotAllowed")]


@pytest.mark.parametrize("refused", [{}, REFUSED], ids=["NotAllowed", "InvalidSpec"])
def test_what_is_active_does_not_come_back_on_the_claim_that_was_made_for_another_object(
    cluster: Cluster, refused: Body
) -> None:
    named_claim(cluster, "letters-repository", "letters")
    was = forge_active(cluster)
    (volume, *_) = was["deployment"]["spec"]["template"]["spec"]["volumes"]
    volume["persistentVolumeClaim"]["claimName"] = "letters-repository"
    forge_active(cluster, deployment=was["deployment"])
    claim = cluster.objects["PersistentVolumeClaim", "letters-repository"]["metadata"]
    cluster.objects[RESULTS]["data"]["claim"] = f"letters-repository/{claim['uid']}"
    cluster.edit(repository={"claimName": "letters-repository"}, **refused)
    cluster.delete("Deployment", was["server"])
    cluster.run(8)
    assert cluster.of_kind("Deployment") == []
    del claim["labels"]
    cluster.run(2)
    assert cluster.of_kind("Deployment") != [], "it is the user's now"


def on_the_host(template: Body) -> None:
    template["spec"]["hostPID"] = True


def as_an_account(template: Body) -> None:
    template["spec"]["serviceAccountName"] = "admin"


def with_a_token(template: Body) -> None:
    template["spec"]["automountServiceAccountToken"] = True


def as_root(template: Body) -> None:
    template["spec"]["securityContext"]["runAsUser"] = 0


def without_the_check(template: Body) -> None:
    template["spec"]["initContainers"] = []


def with_the_check_of_another(template: Body) -> None:
    template["spec"]["initContainers"][0]["args"] = ['{"key":"x","revision":"y","stage":"serve"}']


def with_a_command(template: Body) -> None:
    template["spec"]["containers"][0]["command"] = ["sh"]


def with_another_repository(template: Body) -> None:
    template["spec"]["containers"][0]["args"].append("--model-repository=s3://elsewhere")


def that_clients_may_change(template: Body) -> None:
    template["spec"]["containers"][0]["args"].remove("--model-control-mode=none")


def privileged(template: Body) -> None:
    template["spec"]["containers"][0]["securityContext"]["privileged"] = True


def with_capabilities(template: Body) -> None:
    template["spec"]["containers"][0]["securityContext"]["capabilities"] = {"add": ["SYS_ADMIN"]}


def with_a_sidecar(template: Body) -> None:
    template["spec"]["containers"].append(template["spec"]["containers"][0] | {"name": "other"})


def with_a_path_of_the_host(template: Body) -> None:
    template["spec"]["volumes"].append({"name": "h", "hostPath": {"path": "/"}})


def with_a_secret(template: Body) -> None:
    template["spec"]["volumes"][2] = {"name": "tmp", "secret": {"secretName": "s"}}


def with_a_variable_of_a_secret(template: Body) -> None:
    reference = {"secretKeyRef": {"name": "s", "key": "k"}}
    template["spec"]["containers"][0]["env"].append({"name": "A", "valueFrom": reference})


def that_loads_code(template: Body) -> None:
    template["spec"]["containers"][0]["env"].append({"name": "LD_PRELOAD", "value": "/x.so"})


def with_the_whole_claim(template: Body) -> None:
    del template["spec"]["containers"][0]["volumeMounts"][0]["subPath"]


def with_what_others_serve(template: Body) -> None:
    mount = {"name": "repository", "subPath": ".triton-operator/caches/../revisions"}
    template["spec"]["containers"][0]["volumeMounts"].append(
        mount | {"mountPath": "/repository/.triton-operator/caches/../revisions"}
    )


def with_a_port_of_the_host(template: Body) -> None:
    template["spec"]["containers"][0]["ports"][0]["hostPort"] = 80


def that_runs_before_it_stops(template: Body) -> None:
    template["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["sh"]}}}


def that_runs_as_it_starts(template: Body) -> None:
    command = template["spec"]["containers"][0]["startupProbe"]["exec"]["command"]
    command[3] = "import os"


def with_the_labels_of_another(template: Body) -> None:
    template["metadata"]["labels"][names.TRITON_DEPLOYMENT_LABEL] = "other"


def with_other_metadata(template: Body) -> None:
    template["metadata"]["finalizers"] = ["a/b"]


def of_another_claim(template: Body) -> None:
    template["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = "payroll"


def of_numbers(template: Body) -> None:
    template["spec"] = dict.fromkeys(template["spec"], 1)


def of_nothing(template: Body) -> None:
    template.clear()
    template["a"] = 1


FORGERIES: tuple[Callable[[Body], None], ...] = (
    on_the_host,
    as_an_account,
    with_a_token,
    as_root,
    without_the_check,
    with_the_check_of_another,
    with_a_command,
    with_another_repository,
    that_clients_may_change,
    privileged,
    with_capabilities,
    with_a_sidecar,
    with_a_path_of_the_host,
    with_a_secret,
    with_a_variable_of_a_secret,
    that_loads_code,
    with_the_whole_claim,
    with_what_others_serve,
    with_a_port_of_the_host,
    that_runs_as_it_starts,
    that_runs_before_it_stops,
    with_the_labels_of_another,
    with_other_metadata,
    of_another_claim,
    of_numbers,
    of_nothing,
)


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_a_forged_template_is_not_served(cluster: Cluster, change: Callable[[Body], None]) -> None:
    def forged(template: Body) -> Body:
        change(template)
        return template

    before = made(cluster)
    roll_back(cluster, forge_revision(cluster, forged))
    cluster.run(5)
    assert made(cluster) == before
    assert reasons(cluster, "UpToDate", "Stalled") == [("False", "NotAllowed"), ("True", "NotAllowed")]


@pytest.mark.parametrize("text", ["[" * 20000, "[]", "1", "{}", "x"], ids=lambda text: text[:2])
def test_an_annotation_that_is_no_template_does_not_fail_a_pass(text: str) -> None:
    cluster = Cluster(a_spec())
    cluster.settle()
    (server,) = cluster.of_kind("Deployment")
    was = deepcopy(server["spec"]["template"])
    server["metadata"]["annotations"][names.TEMPLATE_ANNOTATION] = text
    cluster.settle()
    assert made(cluster) == was


def test_an_image_that_is_no_longer_allowed_is_not_started_again(cluster: Cluster) -> None:
    cluster.edit(serving={"image": "old.example/server:1"}, **version(4))
    cluster.settle()
    bad = keys(cluster)[0]
    cluster.edit(serving={}, **version(5))
    cluster.settle()
    before = made(cluster)
    cluster.settings = replace(cluster.settings, allowed_images=("registry.corp/",))
    roll_back(cluster, bad)
    cluster.settle()
    assert made(cluster) == before
    assert reasons(cluster, "UpToDate", "Stalled") == [("False", "NotAllowed"), ("True", "NotAllowed")]
    assert "allowed.images" in cluster.condition("Stalled")["message"]


def test_an_annotation_that_is_not_allowed_is_not_started_again(cluster: Cluster) -> None:
    def annotated(template: Body) -> Body:
        template["metadata"]["annotations"] = {"dev.gvisor.flag.network": "host"}
        return template

    before = made(cluster)
    cluster.settings = replace(cluster.settings, allowed_annotations=("prometheus.io/",))
    roll_back(cluster, forge_revision(cluster, annotated))
    cluster.settle()
    assert made(cluster) == before
    assert reasons(cluster, "UpToDate", "Stalled") == [("False", "NotAllowed"), ("True", "NotAllowed")]
    assert "annotation dev.gvisor.flag.network" in cluster.condition("Stalled")["message"]
    assert "allowed.annotations" in cluster.condition("Stalled")["message"]


def test_the_installations_own_image_by_its_digest_is_started_again(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    cluster.settings = replace(cluster.settings, allowed_images=("registry.corp/",))
    roll_back(cluster, before)
    cluster.settle()
    assert keys(cluster)[0] == before != newest
    assert cluster.condition("Ready")["reason"] == "Ready"


OLD = "old.example/x:1"
IMAGES = ("converter", "converter_tensorflow", "converter_gpu", "server")


@pytest.mark.parametrize("field", IMAGES)
@pytest.mark.parametrize("place", ["status", "history"])
def test_an_image_that_was_recorded_runs_only_while_it_is_allowed(place: str, field: str) -> None:
    cluster = Cluster(a_spec())
    cluster.settle()
    deployment = parse(cluster.body())
    assert deployment.status.images is not None
    images = deployment.status.images.model_copy(update={field: OLD})
    in_status = {"images": images if place == "status" else None}
    recorded = State((), images=images.model_dump(by_alias=True) if place == "history" else {})
    deployment = replace(deployment, status=deployment.status.model_copy(update=in_status))

    def pinned(*allowed: str) -> str:
        settings = replace(cluster.settings, allowed_images=allowed)
        return str(getattr(pinned_images(deployment, History((recorded,)), settings), field))

    assert (pinned(), pinned("old.example/")) == (OLD, OLD)
    installed = "None" if field == "converter_gpu" else getattr(cluster.settings, f"{field}_image")
    assert pinned("registry.corp/") == installed


def test_a_claim_that_is_no_longer_allowed_is_not_read_again(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    cluster.settings = replace(cluster.settings, allowed_claims=("other-*",))
    roll_back(cluster, before)
    cluster.settle()
    assert (keys(cluster)[0], cluster.condition("UpToDate")["reason"]) == (newest, "NotAllowed")


SCALED = {"autoscaling": {"minReplicas": 1, "maxReplicas": 3}}
QUESTION = 'x"}[1s])) or count(kube_secret_info{namespace="other"}) #'


def scaled() -> Cluster:
    cluster = Cluster(a_spec(serving=SCALED), has_keda=True)
    cluster.settle()
    return cluster


def test_the_scalers_query_asks_for_the_object_alone() -> None:
    cluster = scaled()
    cluster.scripts = CONVERTING
    cluster.edit(models=[a_model(name="renamed")])
    forge_active(cluster, model=QUESTION)
    cluster.run(5)
    assert cluster.of_kind("ScaledObject")
    assert "kube_secret_info" not in json.dumps(cluster.of_kind("ScaledObject"))


def test_no_value_of_a_label_ends_the_query() -> None:
    cluster = scaled()
    cluster.status["serving"]["revision"] = QUESTION
    (body,) = (each for each in cluster.intent().objects if each["kind"] == "ScaledObject")
    for trigger in body["spec"]["triggers"]:
        assert f"revision={json.dumps(QUESTION)}}}[120s]" in trigger["metadata"]["query"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("measuredAt",), "no time"),
        (("measuredAt",), "2026-11-21T00:00:00"),
        (("measuredAt",), "9999-12-31T23:59:59Z"),
        (("saturation", "throughput"), "no figure"),
        (("saturation", "throughput"), "1) or vector(1"),
        (("saturation", "throughput"), "nan"),
        (("saturation",), "no figures"),
    ],
    ids=str,
)
def test_what_a_record_tells_is_typed_and_the_object_recovers(place: tuple[str, ...], value: str) -> None:
    cluster = scaled()
    cluster.edit(**version(2))
    cluster.settle()

    def forged(told: Body) -> Body:
        holder = told["performance"]
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
        return told

    cluster.edit(rollout={"revision": forge_revision(cluster, told=forged)})
    cluster.settle()
    assert json.dumps(value) not in json.dumps(cluster.status)
    assert "vector" not in json.dumps(cluster.of_kind("ScaledObject"))
    cluster.edit(rollout={})
    cluster.delete(*RESULTS)
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "Ready"


@pytest.mark.parametrize("field", ["at", "since", "held_since", "again_at"])
def test_a_soak_since_no_time_does_not_fail_a_pass(field: str) -> None:
    cluster = Cluster(a_spec(serving={"soak": {"duration": "10m"}}))
    cluster.settle()
    cluster.edit(**version(2))
    while "Soaking" not in str(cluster.status):
        cluster.run(1)
    data = cluster.objects[RESULTS]["data"]
    (name,) = (name for name, text in data.items() if name.startswith("soak.") and json.loads(text).get("before"))
    data[name] = json.dumps(json.loads(data[name]) | {field: "9999-12-31T23:59:59+00:00"})
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "Ready"
