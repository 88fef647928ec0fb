"""`kubectl triton run` applies its file with the real kubectl, and tells what the API server refuses."""

import os
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import program
from tests.apiserver.kubectl import Kubectl
from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.run import apply, complete_yaml
from triton_plugin.errors import SubjectError
from triton_plugin.reading.cluster import Cluster


@pytest.fixture
def cluster(apiserver: ApiServer, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The namespace, with kubectl on the PATH."""
    place = str(apiserver.kubeconfig)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", place)
    monkeypatch.setenv("KUBECONFIG", place)
    monkeypatch.setenv("PATH", str(program("kubectl").parent), prepend=os.pathsep)
    return Cluster(None, kubectl.namespace)


def test_the_object_is_applied_and_again(cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("graph")
    file = tmp_path / "net.yaml"
    file.write_text(
        complete_yaml(
            read(tmp_path / "net.onnx"), ObjectOptions(name="net", source="pvc://models/net", sha256="a" * 64)
        )
    )
    assert apply(cluster.kubectl, file) == "tritondeployment.triton-operator.dev/net created"
    assert kubectl.get("td", "net")["spec"]["source"] == {"uri": "pvc://models/net", "sha256": "a" * 64}
    assert apply(cluster.kubectl, file) == "tritondeployment.triton-operator.dev/net unchanged"


def test_a_refusal_is_told_with_the_files_name(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(
        "apiVersion: triton-operator.dev/v1alpha1\nkind: TritonDeployment\nmetadata: {name: net}\nspec: {}\n"
    )
    with pytest.raises(SubjectError, match=r"net\.yaml was not applied: (.*\n)*.*spec\.models: Required"):
        apply(cluster.kubectl, file)
