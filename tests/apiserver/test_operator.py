"""The operator's process against a real API server: what it writes, repairs, leaves alone, and when it is silent.

There is no node here and no controller: Jobs never run, and the garbage collector's part is played by hand.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, STARTED, changed, named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import USER, Operator, eventually

JSON = dict[str, Any]
OWNED_KINDS = "jobs,deployments,services,configmaps,persistentvolumeclaims,networkpolicies"
AT_REST_SECONDS = 20


def children(kubectl: Kubectl, name: str = "digits") -> list[JSON]:
    return kubectl.items(OWNED_KINDS, "-l", f"triton-operator.dev/deployment={name}")


def identities(bodies: list[JSON]) -> set[tuple[str, str]]:
    return {(body["kind"], body["metadata"]["name"]) for body in bodies}


def kinds(bodies: list[JSON]) -> list[str]:
    return sorted(body["kind"] for body in bodies)


def delete_children(kubectl: Kubectl, name: str = "digits") -> None:
    """As the garbage collector does; the claim's protection is a controller's work, and there is none here."""
    selector = ("-l", f"triton-operator.dev/deployment={name}")
    for claim in kubectl.items("pvc", *selector):
        kubectl("patch", "pvc", claim["metadata"]["name"], "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    kubectl("delete", OWNED_KINDS, *selector)


def condition(kubectl: Kubectl, type: str, name: str = "digits") -> JSON:
    conditions = kubectl.get("td", name).get("status", {}).get("conditions", [])
    found: list[JSON] = [item for item in conditions if item["type"] == type]
    return found[0] if found else {}


def writes(apiserver: ApiServer) -> list[str]:
    """What the operator has written so far, according to the audit log."""
    lines = apiserver.audit_log.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return [f"{entry['verb']} {entry['requestURI']}" for entry in entries if entry["user"]["username"] == USER]


def settled(apiserver: ApiServer) -> list[str]:
    """The operator's writes, once it has written nothing for two seconds."""
    before = writes(apiserver)
    while True:
        time.sleep(2)
        after = writes(apiserver)
        if after == before:
            return after
        before = after


def created(kubectl: Kubectl, body: JSON = MINIMAL) -> list[JSON]:
    """Create a TritonDeployment; its children once its first Job is there."""
    kubectl("create", "-f", "-", body=body)

    def with_job() -> list[JSON]:
        found = children(kubectl, body["metadata"]["name"])
        return found if any(child["kind"] == "Job" for child in found) else []

    return eventually(with_job)


def test_the_first_job_comes_at_once(operator: Operator, kubectl: Kubectl) -> None:
    start = time.monotonic()
    found = created(kubectl)
    assert time.monotonic() - start < 20, "no retry and no whole list is what brought it"
    assert {kind for kind, _ in identities(found)} >= {"Job", "PersistentVolumeClaim"}
    ready = eventually(lambda: condition(kubectl, "Ready"))
    assert ready["status"] == "False"
    assert kubectl.get("td", "digits")["status"]["observedGeneration"] == 1
    uid = kubectl.get("td", "digits")["metadata"]["uid"]
    for child in found:
        references = child["metadata"]["ownerReferences"]
        assert [(reference["uid"], reference["controller"]) for reference in references] == [(uid, True)]


def test_nothing_is_put_on_the_object(operator: Operator, kubectl: Kubectl) -> None:
    created(kubectl, STARTED)
    eventually(lambda: condition(kubectl, "Ready"))
    found = kubectl.get("td", "digits")
    assert "finalizers" not in found["metadata"]
    assert "annotations" not in found["metadata"]
    assert found["spec"] == STARTED["spec"]
    assert found["metadata"]["generation"] == 1


def test_applying_the_manifest_again_says_unchanged(operator: Operator, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", body=STARTED)
    eventually(lambda: condition(kubectl, "Ready"))
    assert kubectl("apply", "-f", "-", body=STARTED).split()[-1] == "unchanged"


def test_at_rest_nothing_is_written(operator: Operator, apiserver: ApiServer, kubectl: Kubectl) -> None:
    created(kubectl, STARTED)
    before = settled(apiserver)
    assert len(before) > 3, "the audit log shows what the operator wrote"
    passes = operator.metric("triton_operator_reconcile_seconds_count")
    # Others' edits wake the operator; they are not its business.
    kubectl("annotate", "td", "digits", "example.com/note=blue")
    time.sleep(AT_REST_SECONDS)
    assert writes(apiserver)[len(before) :] == []
    assert operator.metric("triton_operator_reconcile_seconds_count") > passes
    assert operator.metric("triton_operator_reconcile_seconds_count") - passes < 5, "the edit's, and none for waiting"


def test_what_is_deleted_by_hand_is_made_again(operator: Operator, kubectl: Kubectl) -> None:
    before = identities(created(kubectl))
    delete_children(kubectl)
    eventually(lambda: identities(children(kubectl)) >= before)


def test_what_is_edited_by_hand_is_put_right(operator: Operator, apiserver: ApiServer, kubectl: Kubectl) -> None:
    created(kubectl)
    settled(apiserver)
    label = "app.kubernetes.io/part-of"
    for kind, name in identities(children(kubectl)):
        kubectl("label", kind, name, f"{label}-", "mine=kept")

    def put_right() -> bool:
        labels = [child["metadata"]["labels"] for child in children(kubectl) if child["kind"] != "Job"]
        assert all(item["mine"] == "kept" for item in labels)
        return all(label in item for item in labels)

    eventually(put_right)


@pytest.mark.parametrize("kind", ["Job", "ConfigMap"])
def test_a_child_that_lost_the_label_we_watch_by_has_it_again(operator: Operator, kubectl: Kubectl, kind: str) -> None:
    """A Job is never changed, so it is made again."""
    child = next(each for each in created(kubectl) if each["kind"] == kind)
    name = child["metadata"]["name"]
    kubectl("label", kind, name, "app.kubernetes.io/managed-by-")

    def found() -> Any:
        watched = [each for each in children(kubectl) if "app.kubernetes.io/managed-by" in each["metadata"]["labels"]]
        return next((each for each in watched if each["metadata"]["name"] == name), None)

    same = eventually(found)["metadata"]["uid"] == child["metadata"]["uid"]
    assert same == (kind != "Job")


def test_a_restart_writes_nothing(
    operator_kubeconfig: Path, apiserver: ApiServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Whatever the order in which the new process learns of the objects."""
    with Operator(operator_kubeconfig, tmp_path / "first") as first:
        first.wait_ready()
        for number in range(5):
            created(kubectl, named(f"digits-{number}"))
        before = settled(apiserver)
    with Operator(operator_kubeconfig, tmp_path / "second") as second:
        second.wait_ready()
        eventually(lambda: second.metric("triton_operator_reconcile_seconds_count") >= 5)
        time.sleep(5)
        assert writes(apiserver)[len(before) :] == []
        assert second.metric("triton_operator_reconcile_errors_total") == 0


def test_changes_while_the_operator_is_away_are_made_up_for(
    operator_kubeconfig: Path, kubectl: Kubectl, tmp_path: Path
) -> None:
    with Operator(operator_kubeconfig, tmp_path / "first") as first:
        first.wait_ready()
        before = identities(created(kubectl))
    kubectl("delete", "job", "--all")
    kubectl("create", "-f", "-", body=named("while-away"))
    with Operator(operator_kubeconfig, tmp_path / "second") as second:
        second.wait_ready()
        eventually(lambda: identities(children(kubectl)) == before)
        eventually(lambda: children(kubectl, "while-away"))


def test_a_deleted_object_is_gone_at_once_and_nothing_is_made_for_it(operator: Operator, kubectl: Kubectl) -> None:
    created(kubectl)
    kubectl("delete", "td", "digits", "--timeout=5s")
    delete_children(kubectl)
    time.sleep(3)
    assert children(kubectl) == []


def test_a_new_object_of_the_name_waits_for_the_old_ones_children(operator: Operator, kubectl: Kubectl) -> None:
    before = created(kubectl)
    kubectl("delete", "td", "digits", "--timeout=5s")
    kubectl("create", "-f", "-", body=MINIMAL)
    uid = kubectl.get("td", "digits")["metadata"]["uid"]
    time.sleep(2)
    assert identities(children(kubectl)) == identities(before)
    assert uid not in json.dumps(children(kubectl)), "what the garbage collector is about to delete is not taken over"
    delete_children(kubectl)

    def new_children() -> bool:
        found = children(kubectl)
        owners = {child["metadata"]["ownerReferences"][0]["uid"] for child in found}
        return owners == {uid} and kinds(found) == kinds(before)

    eventually(new_children, within=30)


def test_somebody_elses_object_is_not_taken_over(operator: Operator, kubectl: Kubectl) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "digits-repository"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kubectl("create", "-f", "-", body=theirs)
    version = kubectl.get("pvc", "digits-repository")["metadata"]["resourceVersion"]
    kubectl("create", "-f", "-", body=MINIMAL)
    stalled = eventually(lambda: condition(kubectl, "Stalled"))
    assert (stalled["status"], stalled["reason"]) == ("True", "ApplyRefused")
    assert "PersistentVolumeClaim digits-repository: it exists and is not this TritonDeployment's" in stalled["message"]
    assert condition(kubectl, "Ready")["reason"] == "ApplyRefused"
    assert kubectl.get("pvc", "digits-repository")["metadata"]["resourceVersion"] == version
    warned = kubectl.items("events", "--field-selector=reason=ApplyRefused")
    assert [event["type"] for event in warned] == ["Warning"]
    kubectl("patch", "pvc", "digits-repository", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    kubectl("delete", "pvc", "digits-repository")
    eventually(lambda: condition(kubectl, "Stalled")["status"] == "False", within=40)
    assert kubectl.get("pvc", "digits-repository")["metadata"]["labels"]


def test_what_the_api_server_refuses_is_in_the_status(operator: Operator, kubectl: Kubectl) -> None:
    given = {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}
    bad = changed(MINIMAL, {"spec.conversion.pod.resources": given})
    kubectl("create", "-f", "-", body=bad)
    stalled = eventually(lambda: condition(kubectl, "Stalled"))
    assert (stalled["status"], stalled["reason"]) == ("True", "ApplyRefused")
    assert "Job" in stalled["message"]
    assert "must be less than or equal to memory limit" in stalled["message"]
    since = stalled["lastTransitionTime"]
    time.sleep(4)
    assert condition(kubectl, "Stalled")["lastTransitionTime"] == since
    kubectl("patch", "td", "digits", "--type=merge", "-p", '{"spec": {"conversion": {"pod": {"resources": null}}}}')
    eventually(lambda: condition(kubectl, "Stalled")["status"] == "False", within=40)
    assert condition(kubectl, "Stalled")["observedGeneration"] == 2


def test_fifty_objects_at_once(operator: Operator, kubectl: Kubectl) -> None:
    bodies = [named(f"digits-{number}") for number in range(50)]
    kubectl("create", "-f", "-", body=bodies)
    eventually(lambda: len(kubectl.items("jobs")) == 50, within=30)
    eventually(
        lambda: all(body["status"].get("observedGeneration") == 1 for body in kubectl.items("td")),
        within=30,
    )


def test_probes_and_metrics(operator: Operator, kubectl: Kubectl) -> None:
    created(kubectl)
    assert operator.answer("/healthz") == (200, "ok\n")
    assert operator.answer("/readyz") == (200, "ok\n")
    assert operator.answer("/other")[0] == 404
    assert operator.metric("triton_operator_writes_total") > 0
    eventually(lambda: operator.metric("triton_operator_deployments") >= 1)
    assert operator.metric("triton_operator_queue_depth") == 0


@pytest.mark.usefixtures("kubectl")
def test_the_charts_rules_were_enough(operator: Operator) -> None:
    """Last in this module: the log of all that the tests above made the operator do."""
    log = operator.log.read_text()
    assert "forbidden" not in log.lower()
    assert "Traceback" not in log
    assert " a bug" not in log
