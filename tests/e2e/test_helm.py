"""`helm test` on a cluster, in a namespace that accepts restricted pods alone."""

from pathlib import Path

import pytest

from hack.deploy.command import CommandError, TargetCluster
from hack.deploy.install import NAMESPACE, RELEASE
from tests.e2e.kubectl import Kubectl

ENFORCED = "pod-security.kubernetes.io/enforce"
TEST = ("helm", "test", RELEASE, "--namespace", NAMESPACE, "--timeout", "240s")


@pytest.fixture
def restricted(installed: str, cluster: Kubectl) -> Kubectl:
    """The release's namespace, which enforces the Pod Security Standard."""
    cluster.run("label", "namespace", NAMESPACE, f"{ENFORCED}=restricted", "--overwrite")
    return cluster.within(NAMESPACE)


def test_it_passes_and_leaves_no_right_behind(restricted: Kubectl, kubeconfig: Path) -> None:
    TargetCluster(kubeconfig).run(*TEST)
    said = restricted.run("logs", f"pod/{RELEASE}-test")
    assert f"the operator at http://{RELEASE}-metrics.{NAMESPACE}:8080 is ready" in said
    assert "the API server serves triton-operator.dev/v1alpha1" in said
    assert f"the API server accepts a TritonDeployment in namespace {NAMESPACE} (dry run)" in said
    assert restricted.items("td") == []
    for kind in ("serviceaccount", "role", "rolebinding"):
        assert not restricted.exists(kind, f"{RELEASE}-test")
    assert restricted.get("pod", f"{RELEASE}-test")["status"]["phase"] == "Succeeded"
    TargetCluster(kubeconfig).run(*TEST)  # Again: the pod of the last time is in nobody's way.


def test_a_failure_says_what_to_do(restricted: Kubectl, kubeconfig: Path) -> None:
    """Nobody may create the object, because of a quota: the log has the API server's words."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-models"},
        "spec": {"hard": {"count/tritondeployments.triton-operator.dev": "0"}},
    }
    restricted.apply(quota)
    try:
        with pytest.raises(CommandError):
            TargetCluster(kubeconfig).run(*TEST)
        said = restricted.run("logs", f"pod/{RELEASE}-test")
        assert "quota" in said
        assert "may be of another version" in said
    finally:
        restricted.run("delete", "resourcequota", "no-models")
