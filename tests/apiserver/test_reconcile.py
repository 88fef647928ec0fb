"""Single passes against a real API server: what becomes of errors of each kind."""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import eventually
from tests.apiserver.test_operator import children, condition
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import Connection
from triton_operator.kube.errors import UnavailableError
from triton_operator.kube.kinds import ALL, CLAIM, CONFIG_MAP, NETWORK_POLICY, TRITON_DEPLOYMENT, ApiKind
from triton_operator.kube.managed_fields import FIELD_MANAGER
from triton_operator.names import MANAGED_BY_LABEL, TRITON_DEPLOYMENT_LABEL, labels
from triton_operator.planning.plan import plan
from triton_operator.planning.setbacks import TOLD_AFTER
from triton_operator.runtime import reconcile as reconcile_module
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import CLAIM_AGAIN_SECONDS, LONGEST_FIGHT, Reconciler
from triton_operator.runtime.store import Key, Store
from triton_operator.settings import Settings

JSON = dict[str, Any]
PlanFunction = Callable[..., Any]


class Bench:
    """A reconciler whose store is filled on demand, as no watch fills it."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.cluster = Cluster.connect()
        self.store = Store()
        self.metrics = Metrics()
        self.now = datetime.now(UTC)
        self.key = Key(kubectl.namespace, "digits")
        settings = Settings("converter:test", "server:test", "converter-tensorflow:test")
        self.reconciler = Reconciler(self.cluster, self.store, settings, self.metrics, lambda: self.now)

    def look(self) -> None:
        """What watches would have told by now."""
        for kind in ALL:
            self.store.replace(kind, self.key.namespace, *self.cluster.list_all(kind, self.key.namespace))

    def reconcile(self) -> Result:
        return self.reconciler.reconcile(self.key)

    def errors(self, reason: str) -> float:
        return (
            self.metrics.registry.get_sample_value("triton_operator_reconcile_errors_total", {"reason": reason}) or 0.0
        )


@pytest.fixture
def bench(apiserver: ApiServer, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """With a TritonDeployment `digits` in the store."""
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    kubectl("create", "-f", "-", body=MINIMAL)
    this = Bench(kubectl)
    this.look()
    return this


def planned(monkeypatch: pytest.MonkeyPatch, function: Callable[[Any], Any]) -> None:
    """Let `function` change or replace every plan."""
    monkeypatch.setattr(reconcile_module, "plan", lambda *arguments: function(plan(*arguments)))


def test_passes_until_one_writes_nothing(bench: Bench, kubectl: Kubectl) -> None:
    results = [bench.reconcile() for _ in range(4)]
    assert results[0] == Result(again_after=0.0)
    assert results[-1] == results[-2] == Result(), "while it waits for its Job, the Job's own changes wake it"
    assert kubectl.get("td", "digits")["status"]["observedGeneration"] == 1


def test_the_deletion_of_a_claim_that_the_spec_names_is_told(bench: Bench, kubectl: Kubectl) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    metadata = {"name": "team", "finalizers": ["kubernetes.io/pvc-protection"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    kubectl("create", "-f", "-", body=claim | {"spec": {"accessModes": ["ReadWriteMany"], "resources": resources}})
    kubectl("patch", "td", "digits", "--type=merge", "-p", '{"spec": {"repository": {"claimName": "team"}}}')
    bench.look()
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    assert bench.reconcile() == Result(again_after=CLAIM_AGAIN_SECONDS), "no watch tells of the user's claim"
    kubectl("delete", "pvc", "team", "--wait=false")
    bench.reconcile()
    kubectl("patch", "pvc", "team", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]')
    assert "ClaimTerminating" in {each["type"] for each in kubectl.get("td", "digits")["status"]["conditions"]}


def test_an_engine_is_skipped_while_no_node_has_its_gpu(bench: Bench, kubectl: Kubectl) -> None:
    product = "NVIDIA-A100-SXM4-80GB"
    engine = {"name": "trt-fp16", "format": "trt", "precision": "fp16"}
    models = [MINIMAL["spec"]["models"][0] | {"candidates": [engine]}]
    spec = {"gpu": {"product": product}, "models": models}
    kubectl("patch", "td", "digits", "--type=merge", "-p", json.dumps({"spec": spec}))

    def state() -> tuple[str, str]:
        bench.look()
        while bench.reconcile() == Result(again_after=0.0):
            bench.look()
        (found,) = kubectl.get("td", "digits")["status"]["candidates"]
        return found["state"], found.get("reason", "")

    assert state() == ("Skipped", "GpuProductMissing")
    assert bench.reconcile() == Result(again_after=60.0), "no watch tells of nodes"
    node = f"node-{kubectl.namespace}"
    metadata = {"name": node, "labels": {"nvidia.com/gpu.product": product}}
    kubectl("create", "-f", "-", body={"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    assert state() == ("Pending", "")
    assert bench.reconcile() == Result()
    kubectl("delete", "node", node)


def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the API server from now on: method and resource."""
    sent: list[str] = []
    send = Connection.request

    def noting(self: Connection, method: str, path: str, *rest: Any) -> JSON:
        sent.append(f"{method} {path.split('/namespaces/')[1].split('/')[1]}")
        return send(self, method, path, *rest)

    monkeypatch.setattr(Connection, "request", noting)
    return sent


def test_a_new_object_takes_three_requests_to_its_job_and_six_in_all(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = requests(monkeypatch)
    assert bench.reconcile() == Result(again_after=0.0)
    assert sent == ["PATCH persistentvolumeclaims", "PATCH networkpolicies", "POST jobs"]
    assert bench.reconcile() == Result(again_after=0.0)
    assert sent[3:] == ["PATCH configmaps", "PATCH tritondeployments", "POST events"]


def test_the_retention_of_a_claim_can_be_changed(bench: Bench, kubectl: Kubectl) -> None:
    claim, uid = "digits-repository", kubectl.get("td", "digits")["metadata"]["uid"]

    def retain(policy: str) -> bool:
        """Ask for the policy, settle, and return whether the claim outlives the object."""
        spec = {"repository": {"retentionPolicy": {"whenDeleted": policy}}}
        kubectl("patch", "td", "digits", "--type=merge", "-p", json.dumps({"spec": spec}))
        bench.look()
        while bench.reconcile().again_after == 0.0:
            pass
        return "ownerReferences" not in kubectl.get("pvc", claim)["metadata"]

    assert not retain("Delete")
    kubectl("label", "pvc", claim, "team=vision")
    assert retain("Retain")
    assert retain("Delete"), "until it is released"
    kubectl("annotate", "pvc", claim, f"triton-operator.dev/release={uid}")
    assert not retain("Delete")
    assert retain("Retain")
    assert not retain("Delete")
    assert kubectl.get("pvc", claim)["metadata"]["labels"]["team"] == "vision"


def test_a_retained_claim_of_which_no_watch_has_told_yet_stays(bench: Bench, kubectl: Kubectl) -> None:
    """As one that is restored together with its object."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    metadata = {"name": "digits-repository", "labels": labels("digits", "repository")}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    kubectl("create", "-f", "-", body=claim)
    for _ in range(4):
        bench.reconcile()
    assert kubectl.get("td", "digits")["status"]["observedGeneration"] == 1
    assert "ownerReferences" not in kubectl.get("pvc", "digits-repository")["metadata"]


@pytest.mark.parametrize("kind", [CONFIG_MAP, CLAIM, NETWORK_POLICY], ids=str)
@pytest.mark.parametrize("label", [MANAGED_BY_LABEL, TRITON_DEPLOYMENT_LABEL])
def test_a_label_that_somebody_took_off_comes_back_and_nothing_else_changes(
    bench: Bench, kubectl: Kubectl, kind: ApiKind, label: str
) -> None:
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    name = {CONFIG_MAP: "digits-results", CLAIM: "digits-repository", NETWORK_POLICY: "digits-jobs"}[kind]
    if kind is CONFIG_MAP:
        # An operator that plans without it would not write it.
        kubectl("patch", "cm", name, "--type=merge", "-p", '{"data": {"convert.0123456789abcdef": "newer than this"}}')
        bench.look()
        while bench.reconcile() == Result(again_after=0.0):
            bench.look()
    before = kubectl.get(kind.plural, name)
    kubectl("label", kind.plural, name, f"{label}-")
    bench.look()
    assert name not in {each["metadata"]["name"] for each in bench.store.children(bench.key)}
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    after = kubectl.get(kind.plural, name)
    assert (after["metadata"]["labels"], after.get("data")) == (before["metadata"]["labels"], before.get("data"))
    assert bench.reconcile() == Result()


@pytest.mark.parametrize("managed", ["created", "unknown"])
def test_a_claim_outlives_its_object_by_a_patch_of_its_owners_alone(
    bench: Bench, kubectl: Kubectl, managed: str
) -> None:
    """An apply removes nothing that a create has set, as of a claim that was restored.

    If somebody emptied the managed fields, no patch of them by the operator would tell that the owner is its own.
    """
    claim = "digits-repository"
    while bench.reconcile().again_after == 0.0:
        pass
    entries = kubectl.get("pvc", claim, "--show-managed-fields")["metadata"]["managedFields"]
    entries = [{}] if managed == "unknown" else [each | {"operation": "Update"} for each in entries]
    kubectl("patch", "pvc", claim, "--type=merge", "-p", json.dumps({"metadata": {"managedFields": entries}}))
    without = {"name": claim, "namespace": kubectl.namespace, "ownerReferences": []}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": without}
    manager = f"--field-manager={FIELD_MANAGER}"
    kubectl("apply", "--server-side", "--force-conflicts", manager, "-f", "-", body=body)
    assert "ownerReferences" in kubectl.get("pvc", claim)["metadata"], "an apply would do as well"
    spec = {"repository": {"retentionPolicy": {"whenDeleted": "Retain"}}}
    kubectl("patch", "td", "digits", "--type=merge", "-p", json.dumps({"spec": spec}))
    bench.look()
    while bench.reconcile().again_after == 0.0:
        pass
    kubectl("delete", "td", "digits")
    assert "ownerReferences" not in kubectl.get("pvc", claim)["metadata"], "the garbage collector would delete it"


def test_an_owner_that_others_gave_a_claim_stays(bench: Bench, kubectl: Kubectl) -> None:
    claim, label = "digits-repository", "app.kubernetes.io/component"
    while bench.reconcile().again_after == 0.0:
        pass
    kubectl("create", "configmap", "backup")
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "backup"}
    theirs["uid"] = kubectl.get("configmap", "backup")["metadata"]["uid"]
    owners = [*kubectl.get("pvc", claim)["metadata"]["ownerReferences"], theirs]
    kubectl("patch", "pvc", claim, "--type=merge", "-p", json.dumps({"metadata": {"ownerReferences": owners}}))
    kubectl("label", "pvc", claim, f"{label}-")
    bench.look()
    while bench.reconcile().again_after == 0.0:
        pass
    found = kubectl.get("pvc", claim)["metadata"]
    assert found["labels"][label] == "repository"
    assert {each["kind"] for each in found["ownerReferences"]} == {"TritonDeployment", "ConfigMap"}


def test_an_operator_that_starts_anew_asks_nothing_about_what_is_settled(
    bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = 0
    while bench.reconcile() != Result():
        passes += 1
    assert passes <= 3, "two write, and perhaps one more that records the claim"
    new = Bench(kubectl)
    new.look()
    sent = requests(monkeypatch)
    assert new.reconcile() == Result()
    assert sent == []


def test_a_bug_is_counted_and_told_of_and_leads_to_a_pause(
    bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    planned(monkeypatch, lambda wanted: 1 // 0)
    assert bench.reconcile() == Result(failed=True)
    assert bench.errors("Bug") == 1
    assert kubectl.items("events") == [], "it may pass"
    assert "ZeroDivisionError" in caplog.text
    bench.now += TOLD_AFTER
    assert bench.reconcile() == Result(failed=True)
    reconciling = condition(kubectl, "Reconciling")
    assert (reconciling["status"], reconciling["reason"]) == ("True", "InternalError")
    assert "ZeroDivisionError" in reconciling["message"]
    assert [event["reason"] for event in kubectl.items("events")] == ["InternalError"]


def test_no_answer_leads_to_a_pause_without_a_traceback(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_answer(kind: ApiKind, body: JSON) -> JSON:
        raise UnavailableError("no answer")

    monkeypatch.setattr(bench.cluster, "create", no_answer)
    assert bench.reconcile() == Result(failed=True)
    assert bench.errors("Unavailable") == 1
    assert "Traceback" not in caplog.text


def test_an_old_view_writes_no_status(bench: Bench, kubectl: Kubectl) -> None:
    kubectl("patch", "td", "digits", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    assert bench.reconcile() == Result(again_after=0.0), "work is begun first"
    assert bench.reconcile() == Result(failed=True)
    assert bench.errors("Conflict") == 1
    assert kubectl.get("td", "digits")["status"] == {"observedGeneration": -1}
    bench.look()
    bench.reconcile()
    assert kubectl.get("td", "digits")["status"]["observedGeneration"] == 2


def test_an_object_that_is_gone_needs_nothing(bench: Bench, kubectl: Kubectl) -> None:
    kubectl("delete", "td", "digits")
    bench.look()
    assert bench.reconcile() == Result()
    assert children(kubectl) == []


def test_an_object_deleted_meanwhile_is_no_error(bench: Bench, kubectl: Kubectl) -> None:
    kubectl("delete", "td", "digits")
    assert not bench.reconcile().failed
    assert kubectl.items("td") == []


def test_a_spec_of_another_version_is_named(bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the CRD refuses now may have been stored before."""
    body = bench.store.owner(bench.key)
    assert body is not None
    newer = str(int(body["metadata"]["resourceVersion"]) + 1)
    stored = changed(body, {"spec.models.0.format": "keras", "metadata.resourceVersion": newer})
    bench.store.put(TRITON_DEPLOYMENT, stored)
    assert bench.reconcile() == Result(failed=True), "the version is not the API server's: nothing is written"
    unversioned = changed(stored, {"metadata.resourceVersion": body["metadata"]["resourceVersion"]})
    monkeypatch.setattr(bench.store, "owner", lambda key: unversioned)
    assert bench.reconcile() == Result()
    stalled = condition(kubectl, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "InvalidSpec")
    assert "spec.models.0.format" in stalled["message"]
    assert [event["reason"] for event in kubectl.items("events")] == ["InvalidSpec"]


def a_quota(kubectl: Kubectl, jobs: int) -> None:
    """A quota on Jobs; no controller runs here, so the test says what is used."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    count = {"count/jobs.batch": "1"}
    kubectl("apply", "-f", "-", body=quota | {"spec": {"hard": count}})
    status = {"status": {"hard": count, "used": {"count/jobs.batch": str(jobs)}}}
    kubectl("patch", "resourcequota", "few", "--subresource=status", "--type=merge", "-p", json.dumps(status))


def test_an_edit_frees_the_quota_that_its_own_job_needs(bench: Bench, kubectl: Kubectl) -> None:
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    (first,) = kubectl.items("jobs")
    a_quota(kubectl, jobs=1)
    kubectl("patch", "td", "digits", "--type=merge", "-p", json.dumps({"spec": {"source": {"uri": "pvc://models/b"}}}))
    bench.look()
    bench.reconcile()
    assert first["metadata"]["name"] not in [each["metadata"]["name"] for each in kubectl.items("jobs")]
    a_quota(kubectl, jobs=0)
    bench.look()
    bench.reconcile()
    (second,) = kubectl.items("jobs")
    assert second["metadata"]["name"] != first["metadata"]["name"]


def test_a_refused_job_stops_nothing_else(bench: Bench, kubectl: Kubectl) -> None:
    a_quota(kubectl, jobs=1)
    for _ in range(3):
        bench.reconcile()
        bench.look()
    stalled = condition(kubectl, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "ApplyRefused")
    assert "exceeded quota: few" in stalled["message"]
    assert kubectl.items("jobs") == []
    assert [
        each["metadata"]["name"]
        for each in kubectl.items("configmaps", "-l", "app.kubernetes.io/managed-by=triton-operator")
    ] == ["digits-results"]


def test_no_server_is_made_before_its_policy(bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    def a_server(wanted: Any) -> Any:
        labels = {"app.kubernetes.io/managed-by": "triton-operator", "triton-operator.dev/deployment": "digits"}
        (job,) = (each for each in wanted.objects if each["kind"] == "Job")
        (policy,) = (each for each in wanted.objects if each["kind"] == "NetworkPolicy")
        metadata = job["metadata"] | {"name": "digits-server", "labels": labels}
        template = changed(job["spec"]["template"], {"metadata.labels": labels, "spec.restartPolicy": "Always"})
        del template["spec"]["activeDeadlineSeconds"]
        spec = {"selector": {"matchLabels": labels}, "template": template}
        server = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        another = changed(policy, {"metadata.name": "digits-servers", "spec.policyTypes": [refusing or "Ingress"]})
        return replace(wanted, objects=(*wanted.objects, another, server))

    refusing = "Sideways"
    planned(monkeypatch, a_server)
    for _ in range(3):
        bench.reconcile()
        bench.look()
    assert "Sideways" in condition(kubectl, "Stalled")["message"]
    assert kubectl.items("deployments") == []
    refusing = ""
    bench.reconcile()
    assert [each["metadata"]["name"] for each in kubectl.items("networkpolicies")] == ["digits-jobs", "digits-servers"]
    assert kubectl.items("deployments") == []
    bench.look()
    bench.reconcile()
    assert [each["metadata"]["name"] for each in kubectl.items("deployments")] == ["digits-server"]


def test_what_others_change_in_a_job_is_theirs(bench: Bench, kubectl: Kubectl) -> None:
    """Kueue suspends a Job and then chooses its nodes; the API server would refuse to have that undone."""
    nodes = {"spec": {"conversion": {"pod": {"nodeSelector": {"disk": "ssd"}}}}}
    kubectl("patch", "td", "digits", "--type=merge", "-p", json.dumps(nodes))
    bench.look()
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    (job,) = (each["metadata"]["name"] for each in kubectl.items("jobs"))
    kubectl("patch", "job", job, "--type=merge", "-p", '{"spec": {"suspend": true}}')
    placed = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}, "metadata": {"labels": {"added": "x"}}}}}
    kubectl("patch", "job", job, "--type=merge", "-p", json.dumps(placed))
    bench.look()
    # The object says that its Job is suspended, and nothing more is done.
    assert bench.reconcile() == Result(again_after=0.0)
    bench.look()
    assert bench.reconcile() == Result()
    (after,) = kubectl.items("jobs")
    assert (after["spec"]["suspend"], after["spec"]["template"]["spec"]["nodeSelector"]) == (
        True,
        {"disk": "ssd", "pool": "gpu"},
    )


def other_label_each_time(kind: str) -> Callable[[Any], Any]:
    """What makes each plan want another label of the objects of a kind, as if somebody undid the last one."""
    turns = count(1)

    def turned(wanted: Any) -> Any:
        turn = {"metadata.labels.turn": str(next(turns))}
        return replace(
            wanted, objects=tuple(changed(each, turn) if each["kind"] == kind else each for each in wanted.objects)
        )

    return turned


def test_somebody_who_undoes_everything_is_not_fought_at_full_speed(
    bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(monkeypatch, other_label_each_time("ConfigMap"))
    outcomes = [bench.reconcile() for _ in range(LONGEST_FIGHT + 2)]
    assert outcomes == [Result(again_after=0.0)] * LONGEST_FIGHT + [Result(failed=True)] * 2
    assert bench.errors("Fight") == 2
    monkeypatch.undo()


def test_a_policy_that_somebody_keeps_changing_stops_nothing_else(
    bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(monkeypatch, other_label_each_time("NetworkPolicy"))
    for _ in range(LONGEST_FIGHT):
        bench.reconcile()
    assert "conditions" not in kubectl.get("tritondeployment", "digits").get("status", {})
    bench.reconcile()
    conditions = {
        each["type"]: each["reason"] for each in kubectl.get("tritondeployment", "digits")["status"]["conditions"]
    }
    assert conditions["SourceResolved"] == "Running"
    (event,) = [each for each in kubectl.items("events") if each["reason"] == "Contested"]
    assert "another client keeps undoing what the operator applies to NetworkPolicy digits-jobs" in event["message"]
    monkeypatch.undo()


def test_a_policy_that_was_created_comes_under_the_apply(
    bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was created with a label that nobody wants any more, and it is there all the time."""
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    policy = kubectl.get("networkpolicy", "digits-jobs")
    kept = {name: policy["metadata"][name] for name in ("name", "labels", "ownerReferences")}
    created = changed({**policy, "metadata": kept}, {"metadata.labels.former": "x"})
    kubectl("delete", "networkpolicy", "digits-jobs")
    bench.cluster.create(NETWORK_POLICY, created | {"metadata": created["metadata"] | {"namespace": kubectl.namespace}})
    kubectl("label", "networkpolicy", "digits-jobs", "theirs=y")
    uid = kubectl.get("networkpolicy", "digits-jobs")["metadata"]["uid"]
    bench.look()
    sent = requests(monkeypatch)
    assert bench.reconcile() == Result(again_after=0.0)
    assert sent == ["PATCH networkpolicies"] * 2, "it is applied, and what was created counts as applied"
    assert bench.reconcile() == Result(again_after=0.0)
    assert sent == ["PATCH networkpolicies"] * 3, "what is no longer wanted goes"
    after = kubectl.get("networkpolicy", "digits-jobs", "--show-managed-fields")["metadata"]
    assert after["uid"] == uid
    assert (after["labels"].get("former"), after["labels"]["theirs"]) == (None, "y")
    managers = [(each["manager"], each["operation"]) for each in after["managedFields"]]
    assert (FIELD_MANAGER, "Apply") in managers
    assert (FIELD_MANAGER, "Update") not in managers
    assert any(manager.startswith("kubectl") for manager, _ in managers), "what others own stays theirs"
    bench.look()
    sent.clear()
    assert bench.reconcile() == Result()
    assert sent == [], "nobody fights"


def test_a_policy_that_was_created_as_wanted_is_left_alone(
    bench: Bench, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    policy = kubectl.get("networkpolicy", "digits-jobs")
    kept = {name: policy["metadata"][name] for name in ("name", "namespace", "labels", "ownerReferences")}
    kubectl("delete", "networkpolicy", "digits-jobs")
    bench.cluster.create(NETWORK_POLICY, {**policy, "metadata": kept})
    bench.look()
    sent = requests(monkeypatch)
    assert bench.reconcile() == Result()
    assert sent == []


def test_a_webhook_that_hangs_is_named_and_holds_up_nothing_else(bench: Bench, kubectl: Kubectl, silent: str) -> None:
    """The API server gives the write up before the operator does, so that its answer tells what hangs."""
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}
    webhook = {
        "name": "hangs.example.com",
        "clientConfig": {"url": silent},
        "rules": [
            {
                "apiGroups": ["networking.k8s.io"],
                "apiVersions": ["v1"],
                "resources": ["networkpolicies"],
                "operations": ["CREATE", "UPDATE"],
            }
        ],
        "namespaceSelector": namespace,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    name = f"hangs-{kubectl.namespace}"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    kubectl("create", "-f", "-", body=kind | {"metadata": {"name": name}, "webhooks": [webhook]})
    try:
        eventually(lambda: refuses(kubectl, "label", "networkpolicy", "digits-jobs", "a=b", "--dry-run=server"))
        kubectl("delete", "networkpolicy", "digits-jobs")
        kubectl("delete", "configmap", "digits-results")
        bench.look()
        # On a busy machine the operator may give up first, a second later.
        eventually(lambda: bench.reconcile() == Result(failed=True) and bench.errors("Server"))
        assert kubectl.get("configmap", "digits-results")
        bench.now += TOLD_AFTER
        bench.look()
        eventually(lambda: bench.reconcile() == Result(failed=True) and held_up(kubectl))
        reconciling = condition(kubectl, "Reconciling")
        assert reconciling["status"] == "True"
        assert "NetworkPolicy digits-jobs: " in reconciling["message"]
    finally:
        kubectl("delete", kind["kind"], name)
    bench.look()
    while bench.reconcile() == Result(again_after=0.0):
        bench.look()
    assert kubectl.get("networkpolicy", "digits-jobs")
    assert condition(kubectl, "Reconciling")["reason"] != "ApplyFailed"


def held_up(kubectl: Kubectl) -> bool:
    return bool(condition(kubectl, "Reconciling")["reason"] == "ApplyFailed")


def refuses(kubectl: Kubectl, *arguments: str) -> bool:
    try:
        kubectl(*arguments)
    except KubectlError:
        return True
    return False


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of what accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}/"


def test_what_keeps_a_pod_waiting_is_read_from_its_events(bench: Bench, kubectl: Kubectl) -> None:
    while bench.reconcile() == Result(again_after=0.0):
        continue
    (job,) = kubectl.items("jobs")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    owner |= {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    template = job["spec"]["template"]
    metadata = {"name": "source-pod", "labels": template["metadata"]["labels"], "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    kubectl("create", "-f", "-", body=pod)
    pod = kubectl.get("pod", "source-pod")
    uid, created = pod["metadata"]["uid"], pod["metadata"]["creationTimestamp"]
    words = 'MountVolume.SetUp failed for volume "source": configmap "digits" not found'
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "mount", "namespace": kubectl.namespace},
        "involvedObject": {"kind": "Pod", "namespace": kubectl.namespace, "name": "source-pod", "uid": uid},
        "reason": "FailedMount",
        "message": words,
        "type": "Warning",
        "lastTimestamp": created,
    }
    kubectl("create", "-f", "-", body=event)
    bench.look()
    bench.reconcile()
    assert condition(kubectl, "SourceResolved")["reason"] != "MountFailed", "it may only be slow"
    # The kubelet tries on, and counts.
    later = (datetime.fromisoformat(created) + timedelta(seconds=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
    kubectl("patch", "event", "mount", "--type=merge", "-p", json.dumps({"count": 4, "lastTimestamp": later}))
    bench.look()
    bench.reconcile()
    resolved = condition(kubectl, "SourceResolved")
    assert resolved["reason"] == "MountFailed"
    assert words in resolved["message"]
    while bench.reconcile() == Result(again_after=0.0):
        continue
    assert bench.reconcile() == Result(), "the next attempt's Event wakes it"


def demanding_labels(namespace: str) -> list[JSON]:
    """A policy as Gatekeeper's or Kyverno's users have it: what is made there says whose it is."""
    name = f"labels-of-{namespace}"
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["persistentvolumeclaims"]},
        {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]},
    ]
    demand = {"expression": "'team' in object.metadata.?labels.orValue({})", "message": "the label team is missing"}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    spec = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}, "validations": [demand]}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selector},
    }
    return [
        kind | {"metadata": {"name": name}, "spec": spec},
        kind | {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]


def test_children_have_the_labels_that_a_policy_of_the_cluster_demands(bench: Bench, kubectl: Kubectl) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "probe"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kubectl("create", "-f", "-", body=demanding_labels(kubectl.namespace))

    def refused() -> bool:
        try:
            kubectl("create", "--dry-run=server", "-f", "-", body=claim)
        except KubectlError as error:
            return "the label team is missing" in str(error)
        return False

    eventually(refused)
    kubectl("label", "td", "digits", "team=vision")
    for _ in range(4):
        bench.look()
        bench.reconcile()
    found = {each["kind"]: each["metadata"]["labels"]["team"] for each in children(kubectl)}
    assert {"PersistentVolumeClaim", "Job"} <= found.keys()
    assert set(found.values()) == {"vision"}
