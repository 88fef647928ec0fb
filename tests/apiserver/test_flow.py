"""From a new object to Ready against a real API server, with the Jobs' answers given by hand, and then silence.

Every object of the plan passes the API server's validation, comes back with its defaults, and is at rest there.
"""

import json
import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import FULL, MINIMAL, STARTED, changed
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.node import Node
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import children, condition, kinds, settled, writes

JSON = dict[str, Any]
MODEL = "spec.models.0"
# Nobody is here to approve, and the simulation's rows hold no memory.
LARGE = changed(STARTED, {"spec.selection": {"constraints": {"p99Latency": "10ms"}}})
VARIANTS: dict[str, JSON] = {
    "minimal": MINIMAL,
    "full": LARGE,
    "retained": changed(LARGE, {"spec.repository.retentionPolicy.whenDeleted": "Retain"}),
    "existing claim, ConfigMap as source": changed(
        MINIMAL, {"spec.repository": {"claimName": "models"}, "spec.source.uri": "configmap://digits"}
    ),
    "shared by nodes, no GPU, own images": changed(
        LARGE,
        {
            "spec.gpu": ...,
            f"{MODEL}.candidates": [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}],
            f"{MODEL}.config.parameters": {"intra_op_thread_count": "2"},
            "spec.repository.volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1024Mi"}}}
            },
            "spec.conversion.pod.resources": {"requests": {"cpu": "1500m"}, "limits": {"memory": "0.5Gi"}},
            "spec.serving.pod": FULL["spec"]["conversion"]["pod"],
            "spec.serving.replicas": 3,
        },
    ),
    "empty options": changed(
        MINIMAL,
        {
            "spec.source.version": "",
            "spec.serving": {
                "image": "",
                "arguments": [],
                "pod": {"labels": {}, "tolerations": [{"operator": "Exists", "effect": ""}], "affinity": {}},
            },
            "spec.conversion": {"pod": {"resources": {}, "nodeSelector": {}, "imagePullSecrets": []}},
            "spec.gpu": {"count": 0},
        },
    ),
}


def test_ready_and_then_silent(
    operator_kubeconfig: Path, apiserver: ApiServer, cluster_kubectl: Kubectl, tmp_path: Path
) -> None:
    """All variants at once, each in a namespace of its own; then a restart, which writes nothing either."""
    places = {}
    for number, (variant, body) in enumerate(VARIANTS.items()):
        cluster_kubectl("create", "namespace", f"flow-{number}")
        places[variant] = cluster_kubectl.within(f"flow-{number}")
        places[variant]("create", "-f", "-", body=body)
    with ExitStack() as stack:
        first = stack.enter_context(Operator(operator_kubeconfig, tmp_path / "first"))
        nodes = {variant: stack.enter_context(Node(place)) for variant, place in places.items()}
        for variant, place in places.items():
            is_ready(variant, place)
            ended_as_planned(variant, nodes[variant])
        before = settled(apiserver)
        comes_to_rest(first)
        assert writes(apiserver)[len(before) :] == []
    log = first.log.read_text()
    assert "Traceback" not in log
    assert "forbidden" not in log
    drifts = [line for line in log.splitlines() if ": apply " in line and "(missing)" not in line]
    # What the plan changes in objects that are there: records, the Services' selectors, what a server's start noted.
    planned = re.compile(r"apply (ConfigMap|Service) |apply Deployment \S+ \(metadata\.annotations\.\S+\)$")
    assert [line for line in drifts if not planned.search(line)] == []
    with Operator(operator_kubeconfig, tmp_path / "second") as second:
        second.wait_ready()
        time.sleep(5)
        assert writes(apiserver)[len(before) :] == []
        assert second.metric("triton_operator_reconcile_seconds_count") >= len(VARIANTS)
    for place in places.values():
        place("delete", "td", "--all")


def comes_to_rest(operator: Operator) -> None:
    """Nothing is waited for: no pass for seven seconds, once the echo of the last write has been read."""

    def at_rest() -> bool:
        passes = operator.metric("triton_operator_reconcile_seconds_count")
        time.sleep(7)
        assert operator.metric("triton_operator_reconcile_seconds_count") == passes
        return True

    eventually(at_rest, within=60)


def is_ready(variant: str, kubectl: Kubectl) -> None:
    def ready() -> bool:
        found = condition(kubectl, "Ready")
        assert found.get("status") == "True", f"{variant}: {found}"
        return True

    eventually(ready, within=90)


def ended_as_planned(variant: str, node: Node) -> None:
    # Engines are built on a node of their GPU, and no node is here: such a candidate is skipped.
    given = VARIANTS[variant]["spec"]["models"][0]["candidates"]
    candidates = [each["name"] for each in given if each["format"] != "trt"]
    # Those of the framework alone, as a threshold has a `min`, and those of all candidates.
    metrics = ["metrics"] if "metrics" in VARIANTS[variant]["spec"] else []
    middle = sorted([*(f"{stage} {name}" for stage in ("convert", "profile") for name in candidates), *metrics])
    assert node.ended[: 2 + len(metrics)] == ["source", "reference", *metrics], variant
    assert sorted(node.ended[2 + len(metrics) : -1]) == middle, variant
    assert node.ended[-1].startswith("measure"), variant


def test_what_a_search_found_serves_once_it_is_approved(operator: Operator, kubectl: Kubectl) -> None:
    """The status of a search passes the API server's schema, with every field; nothing of it is pruned."""
    selection = {"search": {"mode": "Quick", "measurements": 30}, "approval": "Manual"}
    with Node(kubectl) as node:
        kubectl("create", "-f", "-", body=changed(MINIMAL, {"spec.selection": selection}))
        eventually(lambda: condition(kubectl, "Ready").get("reason") == "AwaitingApproval", within=60)
        status = kubectl.get("td", "digits")["status"]
        (search,), (plain, tuned) = status["search"], status["candidates"]
        assert (search["measurements"], search["ended"], len(search["records"])) == (30, "MeasurementsSpent", 2)
        assert tuned["config"] == search["config"]
        assert tuned["config"]["instances"] > 1
        assert (tuned["name"], tuned["rank"], plain["rank"]) == ("onnx-fp32.tuned", 1, 2)
        before = list(node.ended)
        approved = json.dumps({"spec": {"selection": {"approvedRevision": tuned["revision"]}}})
        kubectl("patch", "td", "digits", "--type=merge", "-p", approved)
        eventually(lambda: condition(kubectl, "Ready").get("status") == "True", within=60)
        assert node.ended == [*before, "measure onnx-fp32.tuned"], "an approval measures nothing again"
        assert kubectl.get("td", "digits")["status"]["serving"]["candidate"] == "onnx-fp32.tuned"


def test_a_server_edited_by_hand_is_put_right(operator: Operator, apiserver: ApiServer, kubectl: Kubectl) -> None:
    with Node(kubectl):
        kubectl("create", "-f", "-", body=MINIMAL)
        eventually(lambda: condition(kubectl, "Ready").get("status") == "True", within=60)
        settled(apiserver)
        before = {body["metadata"]["name"]: body["spec"] for body in children(kubectl) if body["kind"] == "Service"}
        (server,) = kubectl.items("deployments")
        name = server["metadata"]["name"]
        kubectl("scale", "deployment", name, "--replicas=0")
        eventually(lambda: kubectl.get("deployment", name)["spec"]["replicas"] == 1)
        kubectl("set", "env", f"deployment/{name}", "-c", "tritonserver", "MINE=1")
        args = '[{"op": "replace", "path": "/spec/template/spec/containers/0/args/2", "value": "--edited"}]'
        kubectl("patch", "deployment", name, "--type=json", "-p", args)
        wanted = server["spec"]["template"]["spec"]["containers"][0]["args"]

        def found() -> JSON:
            container: JSON = kubectl.get("deployment", name)["spec"]["template"]["spec"]["containers"][0]
            return container

        eventually(lambda: found()["args"] == wanted)
        assert {"name": "MINE", "value": "1"} in found()["env"], "what is not ours stays"
        for service in before:
            # One key more would let it select nothing.
            kubectl("patch", "service", service, "--type=merge", "-p", '{"spec": {"selector": {"mine": "1"}}}')
        eventually(
            lambda: (
                before
                == {body["metadata"]["name"]: body["spec"] for body in children(kubectl) if body["kind"] == "Service"}
            )
        )
        eventually(lambda: condition(kubectl, "Ready").get("status") == "True")


def test_kubectl_scale_makes_another_server_pod_and_nothing_else(operator: Operator, kubectl: Kubectl) -> None:
    with Node(kubectl) as node:
        kubectl("apply", "-f", "-", body=MINIMAL)
        eventually(lambda: condition(kubectl, "Ready").get("status") == "True", within=60)
        ended, ready = list(node.ended), condition(kubectl, "Ready")
        images = kubectl.get("td", "digits")["status"]["images"]
        name = kubectl.items("deployments")[0]["metadata"]["name"]
        # Times have whole seconds: what happens from now on has another one.
        time.sleep(1.1)
        for count in (2, 3, 1):
            assert scaled_to(kubectl, count).endswith(f",triton-operator.dev/server={name}")
            (server,) = kubectl.items("deployments")
            assert (server["metadata"]["name"], server["spec"]["replicas"]) == (name, count)
        eventually(lambda: condition(kubectl, "Ready")["observedGeneration"] == 4)
        after = condition(kubectl, "Ready")
        assert (after["status"], after["lastTransitionTime"]) == ("True", ready["lastTransitionTime"]), "all along"
        assert kubectl.get("td", "digits")["status"]["images"] == images
        assert node.ended == ended


def test_the_selector_of_scale_is_there_from_the_first_pass(operator: Operator, kubectl: Kubectl) -> None:
    """An autoscaler refuses an object whose selector is empty."""
    kubectl("create", "-f", "-", body=MINIMAL)
    found = eventually(lambda: scale(kubectl).get("selector"))
    assert found == "triton-operator.dev/deployment=digits,triton-operator.dev/server=none"


def scaled_to(kubectl: Kubectl, count: int) -> str:
    """The selector of /scale once the object has so many pods."""
    kubectl("scale", "td", "digits", f"--replicas={count}")
    eventually(lambda: scale(kubectl).get("replicas") == count)
    return str(scale(kubectl)["selector"])


def scale(kubectl: Kubectl) -> JSON:
    """The status that autoscalers read."""
    status: JSON = kubectl.get("td", "digits", "--subresource=scale")["status"]
    return status


def test_an_edited_spec_is_followed_and_the_old_server_goes(operator: Operator, kubectl: Kubectl) -> None:
    with Node(kubectl) as node:
        kubectl("create", "-f", "-", body=MINIMAL)
        eventually(lambda: condition(kubectl, "Ready").get("status") == "True", within=60)
        (old,) = kubectl.items("deployments")
        measured = len(node.ended)
        patch = '{"spec": {"serving": {"arguments": ["--pinned-memory-pool-byte-size=1048576"]}}}'
        kubectl("patch", "td", "digits", "--type=merge", "-p", patch)

        def replaced() -> bool:
            ready = condition(kubectl, "Ready")
            return (ready["status"], ready["observedGeneration"]) == ("True", 2) and len(
                kubectl.items("deployments")
            ) == 1

        eventually(replaced, within=60)
        (new,) = kubectl.items("deployments")
        assert new["metadata"]["name"] != old["metadata"]["name"]
        assert {stage.partition(" ")[0] for stage in node.ended[measured:]} == {"profile", "measure"}, "nothing else"
        events = {event["reason"] for event in kubectl.items("events", "--field-selector=involvedObject.name=digits")}
        assert {"Resolved", "Converted", "Ready"} <= events
        assert kinds(children(kubectl)).count("Service") == 2
