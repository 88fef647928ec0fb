"""What the operator asks the API server for, from the server's own audit log, against what its role grants."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.conftest import CRD
from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import USER, Operator, eventually, install_account, rendered
from tests.apiserver.test_operator import OWNED_KINDS, condition, created
from tests.e2e.audit import Right, granted, requests

OPERATOR = "triton-operator"
UNLABELLED = "app.kubernetes.io/managed-by-"
LATER = {
    Right("apps", "deployments", "create"),
    Right("apps", "deployments", "get"),
    Right("apps", "deployments", "patch"),
    Right("apps", "deployments", "delete"),
    Right("", "services", "create"),
    Right("", "services", "get"),
    Right("", "services", "patch"),
    Right("", "nodes", "list"),
    *(Right("policy", "poddisruptionbudgets", verb) for verb in ("create", "get", "patch", "delete")),
    Right("networking.k8s.io", "networkpolicies", "delete"),
}
"""What is used only where a model serves or was soaked, or a spec names a GPU; tests/e2e/test_rights.py sees it."""


@pytest.fixture(scope="module")
def audited() -> Iterator[ApiServer]:
    with tempfile.TemporaryDirectory(prefix="audited-") as folder, ApiServer(Path(folder), USER) as server:
        admin = Kubectl(server.kubeconfig)
        admin("create", "-f", str(CRD))
        eventually(lambda: admin("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s"))
        yield server


def test_every_right_is_used_and_no_request_refused(audited: ApiServer, tmp_path: Path) -> None:
    kubectl = Kubectl(audited.kubeconfig).within("default")
    account = install_account(Kubectl(audited.kubeconfig), tmp_path)
    names = [each for each in rendered() if (each["kind"], each["metadata"]["name"]) == ("ClusterRole", OPERATOR)]
    (rights,) = (granted(each["rules"]) for each in names)
    with Operator(account, tmp_path / "log") as operator:
        operator.wait_ready()
        created(kubectl, MINIMAL)
        eventually(lambda: condition(kubectl, "Ready"))
        # The operator no longer watches what has not its label: it is in the way of one that is missing.
        kubectl("label", OWNED_KINDS, "--selector=triton-operator.dev/deployment=digits", UNLABELLED)
        eventually(lambda: rights - LATER <= requests(audited.audit_log, USER).used, 30)
    found = requests(audited.audit_log, USER)
    assert found.refused == set()
    assert found.used <= rights
    with pytest.raises(KubectlError, match="forbidden"):
        Kubectl(account).within("default")("get", "secrets")
    assert requests(audited.audit_log, USER).refused == {Right("", "secrets", "list")}
