"""The CRD is deleted, and every TritonDeployment with it; then it is there again."""

import tempfile
import time
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.conftest import CRD
from tests.apiserver.custom_resources import MINIMAL, named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import created
from tests.conftest import Fault


def install(admin: Kubectl) -> None:
    admin("create", "-f", str(CRD))
    eventually(lambda: admin("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s"))


@pytest.mark.chaos
def test_the_operator_waits_for_its_crd(tmp_path: Path, fault: Fault) -> None:
    """A process that runs goes on when the CRD is there again, and one that starts is ready only then."""
    fault("CRD deleted and made again while the operator runs")
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        admin = Kubectl(server.kubeconfig, "default")
        install(admin)
        with Operator(server.kubeconfig, tmp_path / "first") as first:
            first.wait_ready()
            created(admin)
            admin("delete", "crd", CRD.stem, "--timeout=60s")
            with Operator(server.kubeconfig, tmp_path / "second") as second:
                eventually(lambda: second.answer("/healthz")[0] == 200, 30)
                time.sleep(10)
                assert (second.ended(), second.answer("/readyz")[0]) == (None, 503)
            install(admin)
            began = time.monotonic()
            admin("create", "-f", "-", body=named("again", MINIMAL))
            eventually(lambda: admin.items("jobs", "-l", "triton-operator.dev/deployment=again"), 60)
            seconds = time.monotonic() - began
        for operator in (first, second):
            assert " a bug" not in operator.log.read_text()
    fault("CRD deleted and made again while the operator runs", 1, f"waits, and works after {seconds:.0f} s")
