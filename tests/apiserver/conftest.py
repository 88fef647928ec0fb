"""A real etcd and kube-apiserver for the whole session, with the CRD; a namespace of its own for every test."""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually, install_account

ROOT = Path(__file__).parents[2]
CRD = ROOT / "crds" / "tritondeployments.triton-operator.dev.yaml"
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.apiserver)


PROMETHEUS = "http://prometheus.monitoring:9090"
VALUES = (
    "--set",
    "allowed.serviceAccounts={default/models-reader},gatewayApi.enabled=true",
    "--set",
    f"autoscaling.prometheusAddress={PROMETHEUS}",
)
"""The chart's values, as far as they change what the operator may do."""


@pytest.fixture(scope="session")
def apiserver() -> Iterator[ApiServer]:
    """The server, with the CRD established."""
    # Not pytest's folder: etcd's socket below it would have too long a path.
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        admin = Kubectl(server.kubeconfig)
        admin("create", "-f", str(CRD))
        # kubectl fails where the CRD has no conditions yet.
        eventually(lambda: admin("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s"))
        yield server


@pytest.fixture(scope="session")
def cluster_kubectl(apiserver: ApiServer) -> Kubectl:
    """kubectl as the administrator, in no namespace."""
    return Kubectl(apiserver.kubeconfig)


@pytest.fixture
def kubectl(cluster_kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl as the administrator, in a new namespace."""
    namespace = f"test-{next(_numbers)}"
    cluster_kubectl("create", "namespace", namespace)
    within = cluster_kubectl.within(namespace)
    yield within
    # Or an operator that runs for several tests would still look at them.
    within("delete", "td", "--all")


@pytest.fixture(scope="session")
def kubectl_shared(cluster_kubectl: Kubectl) -> Kubectl:
    """kubectl in a namespace where nothing is written: for dry runs."""
    return cluster_kubectl.within("default")


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster_kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart's ServiceAccount. Its Jobs that download may have the one ServiceAccount default/models-reader."""
    return install_account(cluster_kubectl, tmp_path_factory.mktemp("account"), *VALUES)


@pytest.fixture(scope="session")
def as_operator(operator_kubeconfig: Path, kubectl_shared: Kubectl) -> Kubectl:
    """kubectl with the operator's token, in a namespace where nothing is written."""
    return Kubectl(operator_kubeconfig).within("default")


@pytest.fixture(scope="module")
def operator(operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The operator, working in all namespaces."""
    with Operator(operator_kubeconfig, tmp_path_factory.mktemp("operator") / "log") as process:
        process.wait_ready()
        yield process
