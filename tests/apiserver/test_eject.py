"""What `kubectl triton eject` reads from a real API server, and what that server says of the files."""

from pathlib import Path

import pytest
import yaml

from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.planned import anywhere
from tests.apiserver.test_plugin import plugin
from tests.states.passes import objects
from triton_operator import names
from triton_plugin.drafting.eject import AUTOSCALER, own_labels

READ = {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget", "PersistentVolumeClaim"}


@pytest.fixture
def serving(kubectl: Kubectl) -> Kubectl:
    """A namespace with an object, all that serves it with two pods, and the user's own autoscaler."""
    kubectl("create", "-f", "-", body=MINIMAL)
    owner = kubectl.get("td", "digits")["metadata"]["uid"]
    for body in objects("several-servers"):
        if body["kind"] in READ:
            for each in body["metadata"].get("ownerReferences", ()):
                each["uid"] = owner
            kubectl("apply", "--server-side", "-f", "-", body=anywhere(body))
    target = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": "digits"}
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    scaler = {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": {"name": "mine"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [{"type": "Resource", "resource": resource}]},
    }
    kubectl("create", "-f", "-", body=scaler)
    return kubectl


def test_the_files_are_applied_as_they_are_and_say_it_all(serving: Kubectl, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    said = plugin(serving, "eject", "digits", "--output", str(folder))
    assert said.returncode == 0, said.stderr
    assert " patch td digits --type merge" in said.stdout, "the claim has an owner"
    serving("apply", "--validate=strict", "-f", str(folder))
    deployment = serving.get("deployment", "digits-ejected")
    assert serving.get("service", "digits-ejected")["spec"]["selector"] == own_labels("digits")
    assert serving.get("hpa", "digits-ejected")["spec"]["scaleTargetRef"]["name"] == "digits-ejected"
    assert serving.get("pdb", "digits-ejected")["spec"]["maxUnavailable"] == 1
    assert "ownerReferences" not in deployment["metadata"]
    # No default of the API server is left to chance: the file has them all.
    template = yaml.safe_load((folder / "deployment.yaml").read_text())["spec"]["template"]
    deployment["spec"]["template"]["metadata"].pop("creationTimestamp", None)
    assert template == deployment["spec"]["template"]


def test_the_old_name_is_free_once_the_object_is_gone(serving: Kubectl, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert plugin(serving, "eject", "digits", "--output", str(folder)).returncode == 0
    serving("delete", "service", "digits")
    serving("wait", "--for=delete", "service/digits", "--timeout=60s")
    serving("apply", "--validate=strict", "-f", str(folder / "afterwards"))
    assert serving.get("service", "digits")["spec"]["selector"] == own_labels("digits")


def test_what_serves_nothing_writes_nothing(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", body=MINIMAL)
    said = plugin(kubectl, "eject", "digits", "--output", str(tmp_path / "out"))
    assert said.returncode == 1
    assert "digits has no active revision" in said.stderr
    assert not (tmp_path / "out").exists()
