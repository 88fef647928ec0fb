"""What helm does with the CustomResourceDefinition, as the chart's README says, on an API server of its own."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import program
from tests.apiserver.conftest import CRD
from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import CHART, IMAGE_VALUES

DESCRIPTION = "A model to convert, verify, measure and serve with NVIDIA Triton Inference Server."
OLDER = "What an older chart said."


@dataclass(frozen=True)
class Helm:
    """helm, for one release."""

    kubeconfig: Path
    folder: Path

    def __call__(self, verb: str, *arguments: str) -> str:
        argv = [str(program("helm")), verb, "triton-operator", *arguments, "--namespace=default"]
        if verb in ("install", "upgrade"):
            argv += ["--values", str(IMAGE_VALUES)]
        kubeconfig = f"--kubeconfig={self.kubeconfig}"
        return subprocess.run([*argv, kubeconfig], capture_output=True, text=True, check=True).stdout

    def older(self) -> str:
        """The path of a chart with another CustomResourceDefinition."""
        chart = self.folder / "older"
        shutil.copytree(CHART, chart, dirs_exist_ok=True)
        crd = chart / "templates/crd.yaml"
        crd.write_text(crd.read_text().replace(DESCRIPTION, OLDER))
        return str(chart)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[tuple[Helm, Kubectl]]:
    """An API server without the kind."""
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        yield Helm(server.kubeconfig, tmp_path), Kubectl(server.kubeconfig, "default")


def description(kubectl: Kubectl) -> str:
    """What the installed CustomResourceDefinition says of itself."""
    version = kubectl.get("crd", CRD.stem)["spec"]["versions"][0]
    found: str = version["schema"]["openAPIV3Schema"]["description"]
    return found


def test_the_crd_is_upgraded_rolled_back_kept_and_taken_back(empty: tuple[Helm, Kubectl]) -> None:
    helm, kubectl = empty
    helm("install", helm.older())
    assert description(kubectl) == OLDER
    kubectl("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s")
    kubectl("create", "-f", "-", body=MINIMAL)
    helm("upgrade", str(CHART))
    assert description(kubectl) == DESCRIPTION
    helm("rollback", "1")
    assert description(kubectl) == OLDER
    helm("uninstall")
    assert description(kubectl) == OLDER
    assert [each["metadata"]["name"] for each in kubectl.items("td")] == ["digits"]
    helm("install", str(CHART))
    assert description(kubectl) == DESCRIPTION
    helm("upgrade", str(CHART), "--set", "crds.install=false")
    helm("upgrade", helm.older(), "--set", "crds.install=false")
    assert description(kubectl) == DESCRIPTION
    helm("upgrade", str(CHART), "--set", "crds.keep=false")
    helm("uninstall", "--wait")
    assert kubectl("get", "crd", CRD.stem, "--ignore-not-found") == ""
