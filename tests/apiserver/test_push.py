"""What a push asks of the API server: an image, a claim, and a restricted pod that is gone in any case."""

import inspect
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import eventually
from tests.report.model_folders import write
from tests.report.subjects import golden
from triton_plugin.__main__ import main
from triton_plugin.drafting.push import receiver
from triton_plugin.drafting.push.cluster import OPERATOR_SELECTOR, Claims
from triton_plugin.drafting.push.files import collect, digest
from triton_plugin.drafting.push.objects import LABELS, Target, pod
from triton_plugin.drafting.push.outputs import places
from triton_plugin.drafting.run import replacement
from triton_plugin.errors import PushError
from triton_plugin.reading.cluster import Cluster
from triton_plugin.reading.subject import parse

TARGET = Target("models", "team/xor")
IMAGE = "registry.example/converter:1"
SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
RUNNING = {"phase": "Running"}
KUBECTL = """#!/bin/bash
# kubectl exec into a pod that is this machine, with the claim in a folder.
while [ "$1" != -- ]; do options+=("$1"); shift; done
shift
echo "${options[@]}" >>"$CLAIM/calls"
exec "${@/#\\/claim/$CLAIM}"
"""


def waiting(reason: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": f"Back-off pulling image {IMAGE}"}}
    status = {"name": "push", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0, "state": state}
    return {"phase": "Pending", "containerStatuses": [status]}


@pytest.fixture
def claims(apiserver: ApiServer, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> Claims:
    """The claims of a namespace that enforces the Pod Security Standard `restricted`."""
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(apiserver.kubeconfig))
    kubectl("label", "namespace", kubectl.namespace, RESTRICTED)
    return Claims(Cluster(None, kubectl.namespace))


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the claim in what `kubectl exec` runs; ``calls`` there has each call's options."""
    claim, programs = tmp_path / "claim", tmp_path / "programs"
    claim.mkdir()
    programs.mkdir()
    (programs / "kubectl").write_text(KUBECTL)
    (programs / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("CLAIM", str(claim))
    monkeypatch.setenv("RECEIVER", inspect.getsource(receiver))
    return claim


@contextmanager
def kubelet(kubectl: Kubectl, status: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Set the status of the pod as soon as there is one; gives the pods that were seen."""
    seen: list[dict[str, Any]] = []
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.1) and not seen:
            for each in kubectl.items("pods", "--selector", SELECTOR):
                patch = json.dumps({"status": status})
                with suppress(KubectlError):
                    kubectl("patch", "pod", each["metadata"]["name"], "--subresource=status", "-p", patch)
                    seen.append(each)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def no_pod_is_left(kubectl: Kubectl) -> None:
    eventually(lambda: kubectl.items("pods") == [] or None)


def test_the_pod_is_restricted_bounded_and_nobodys(claims: Claims, kubectl: Kubectl) -> None:
    kubectl("create", "--dry-run=server", "-f", "-", body=pod("push", TARGET.claim, IMAGE))
    body = pod("push", TARGET.claim, IMAGE)
    body["spec"]["securityContext"]["runAsNonRoot"] = False
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted'):
        kubectl("create", "--dry-run=server", "-f", "-", body=body)


def test_the_way_to_the_folder_leads_through_the_pod_which_is_deleted(claims: Claims, kubectl: Kubectl) -> None:
    with kubelet(kubectl, RUNNING) as seen, claims.opened(TARGET, IMAGE, print) as remote:
        name = seen[0]["metadata"]["name"]
        assert list(remote.prefix[-6:]) == ["exec", "--stdin", name, "--container", "push", "--"]
        assert remote.folder == "/claim/team/xor"
        assert kubectl.items("pods") != []
    no_pod_is_left(kubectl)
    (container,) = seen[0]["spec"]["containers"]
    assert container["image"] == IMAGE
    assert seen[0]["spec"]["automountServiceAccountToken"] is False
    assert "ownerReferences" not in seen[0]["metadata"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, PushError, OSError])
def test_the_pod_is_deleted_however_the_push_ends(claims: Claims, kubectl: Kubectl, error: type[BaseException]) -> None:
    with pytest.raises(error), kubelet(kubectl, RUNNING), claims.opened(TARGET, IMAGE, print):
        raise error
    no_pod_is_left(kubectl)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (waiting("ImagePullBackOff"), f"Back-off pulling image {IMAGE}"),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, "is Failed"),
    ],
    ids=["no image", "ended"],
)
def test_a_pod_that_cannot_run_ends_the_push(
    claims: Claims, kubectl: Kubectl, status: dict[str, Any], words: str
) -> None:
    with (
        kubelet(kubectl, status),
        pytest.raises(PushError, match=f"does not run: .*{words}"),
        claims.opened(TARGET, IMAGE, print),
    ):
        raise AssertionError("it does not run")
    no_pod_is_left(kubectl)


def test_what_a_pod_waits_for_is_said_once(claims: Claims, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_plugin.drafting.push.cluster.START_SECONDS", 4.0)
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    told: list[str] = []
    with (
        kubelet(kubectl, {"phase": "Pending", "conditions": [scheduled]}),
        pytest.raises(PushError, match=r"did not start in 4 s: .*no node"),
        claims.opened(TARGET, IMAGE, told.append),
    ):
        raise AssertionError("it does not run")
    assert len(told) == 2
    assert told[0].startswith("starting pod triton-push-")
    assert "cannot be scheduled: no node" in told[1]
    no_pod_is_left(kubectl)


def test_a_claim_is_made_only_if_there_is_none(claims: Claims, kubectl: Kubectl) -> None:
    assert claims.make("models", "3Gi", "fast")
    assert not claims.make("models", "5Gi", "")
    spec = kubectl.get("pvc", "models")["spec"]
    assert spec["resources"]["requests"] == {"storage": "3Gi"}
    assert spec["storageClassName"] == "fast"
    assert spec["accessModes"] == ["ReadWriteOnce"]


def test_the_image_is_that_of_the_installation(
    claims: Claims, kubectl: Kubectl, request: pytest.FixtureRequest
) -> None:
    # Another module's installation may be left on the same API server.
    kubectl.within("")("delete", "deployments", "--all-namespaces", f"--selector={OPERATOR_SELECTOR}")
    with pytest.raises(PushError, match=r"pass an image with Python 3\.11: --image IMAGE"):
        claims.converter_image()
    kubectl("create", "-f", "-", body=MINIMAL)
    images = {"converter": "of-the-status", "converterTensorflow": "x", "server": "x", "commandsVersion": 1}
    patch = json.dumps({"status": {"images": images}})
    kubectl("patch", "td", MINIMAL["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)
    assert claims.converter_image() == "of-the-status"
    labels = {"app.kubernetes.io/name": "triton-operator"}
    container = {"name": "operator", "image": "x", "env": [{"name": "CONVERTER_IMAGE", "value": IMAGE}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator", "labels": labels}}
    request.addfinalizer(lambda: kubectl("delete", "deployment", "operator"))
    kubectl("create", "-f", "-", body=deployment | {"spec": spec})
    assert claims.converter_image() == IMAGE


def test_the_command_sends_the_files_through_kubectl(
    claims: Claims, kubectl: Kubectl, stand_in: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "net", {"model.py": "def get_model(): ...\n"})
    with kubelet(kubectl, RUNNING) as seen:
        status = main(["push", str(tmp_path / "net"), "pvc://models/net", "-n", kubectl.namespace, "--image", IMAGE])
    said = capsys.readouterr()
    assert status == 0, said.err
    source = yaml.safe_load(said.out)["source"]
    assert source == {"uri": "pvc://models/net", "sha256": digest(collect(tmp_path / "net").files, lambda _: None)}
    assert (stand_in / "net/model.py").read_text() == "def get_model(): ...\n"
    name = seen[0]["metadata"]["name"]
    wanted = f"--context devcluster --namespace {kubectl.namespace} exec --stdin {name} --container push"
    assert set((stand_in / "calls").read_text().splitlines()) == {wanted}
    assert kubectl.get("pvc", "models")["spec"]["resources"]["requests"] == {"storage": "10Gi"}
    no_pod_is_left(kubectl)


def test_the_outputs_come_through_kubectl_from_a_claim_that_is_only_read(
    claims: Claims, kubectl: Kubectl, stand_in: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body, results = golden("ready")
    metadata = {"name": "digits", "namespace": kubectl.namespace}
    kubectl("create", "-f", "-", body={**body, "metadata": metadata})
    patch = json.dumps({"status": body["status"]})
    kubectl("patch", "td", "digits", "--subresource=status", "--type=merge", "-p", patch)
    entries = {"metadata": {"name": "digits-results"}, "data": results["data"]}
    kubectl("create", "-f", "-", body={"apiVersion": "v1", "kind": "ConfigMap", **entries})
    found = places(parse(body, results), stand_in / ".triton-operator")
    for place in found.values():
        write(place, {"000000.npz": place.parent.name})
    with kubelet(kubectl, RUNNING) as seen:
        status = main(["report", "digits", "-n", kubectl.namespace, "--file", str(tmp_path / "out"), "--outputs"])
    assert status == 0, capsys.readouterr().err
    assert {each: (tmp_path / "out/outputs" / each / "000000.npz").read_text() for each in found} == {
        name: place.parent.name for name, place in found.items()
    }
    (volume,) = [each for each in seen[0]["spec"]["volumes"] if "persistentVolumeClaim" in each]
    assert volume["persistentVolumeClaim"] == {"claimName": "digits-repository", "readOnly": True}
    assert seen[0]["spec"]["containers"][0]["image"] == "example/converter:1"
    no_pod_is_left(kubectl)


def test_a_refusal_is_told_in_the_api_servers_words(
    claims: Claims, kubectl: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.onnx").write_text("")
    arguments = ["push", str(tmp_path / "net.onnx"), "pvc://models/x", "-n", kubectl.namespace, "--image", IMAGE]
    assert main([*arguments, "--size", "much"]) == 1
    assert "PersistentVolumeClaim models cannot be made" in capsys.readouterr().err
    full = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    kubectl("create", "quota", "none", "--hard=pods=0")
    kubectl("patch", "quota", "none", "--subresource=status", "--type=merge", "-p", json.dumps(full))
    assert main(arguments) == 1
    assert "exceeded quota" in capsys.readouterr().err
    assert kubectl.items("pods") == []


def test_a_replacement_leaves_nothing_that_another_tool_has_set(claims: Claims, kubectl: Kubectl) -> None:
    old = changed(MINIMAL, {"spec.suspend": True, "spec.serving": {"replicas": 3}})
    kubectl("apply", "--server-side", "--field-manager=argocd", "-f", "-", body=old)
    there = kubectl.get("td", "digits")["spec"]
    Cluster(None, kubectl.namespace).patch("digits", {"spec": replacement(MINIMAL["spec"], there)})
    kubectl("apply", "-f", "-", body=MINIMAL)
    assert kubectl.get("td", "digits")["spec"] == changed(MINIMAL, {"spec.serving.replicas": 1})["spec"]
