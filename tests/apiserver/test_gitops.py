"""The commands of docs/gitops.md, as the page prints them."""

from pathlib import Path

from hack.deploy.command import ROOT
from hack.devcluster.apiserver import ApiServer
from tests.apiserver.kubectl import Kubectl
from tests.page import Shell, blocks

PAGE = "docs/gitops.md"
KEY = "resource.customizations.health.triton-operator.dev_TritonDeployment"


def test_the_health_check_joins_what_argo_cds_configmap_has(
    apiserver: ApiServer, cluster_kubectl: Kubectl, tmp_path: Path
) -> None:
    shell = Shell.opened(tmp_path, apiserver.kubeconfig)
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    cluster_kubectl("create", "namespace", "argocd")
    cluster_kubectl("create", "configmap", "argocd-cm", "--namespace=argocd", "--from-literal=url=https://argo.example")
    for _ in range(2):
        for block in blocks(PAGE, "Argo CD"):
            shell.run(block)
    found = cluster_kubectl.get("configmap", "argocd-cm", "--namespace=argocd")
    health = (ROOT / "manifests/gitops/argocd/health.lua").read_text()
    assert found["data"] == {"url": "https://argo.example", KEY: health}
