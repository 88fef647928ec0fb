"""The CRD is deleted, and every TritonDeployment with it; then it is there again."""

import tempfile
import time
from pathlib import Path

import pytest

from devcluster.apiserver import ApiServer
from tests.apiserver.conftest import CRD
from tests.apiserver.custom_resources import MINIMAL, named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import created
from tests.chaos.conftest import Fault


@pytest.mark.chaos
def test_the_operator_outlives_its_crd(tmp_path: Path, fault: Fault) -> None:
    fault("CRD deleted and made again while the operator runs")
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        admin = Kubectl(server.kubeconfig, "default")
        admin("create", "-f", str(CRD))
        eventually(lambda: admin("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s"))
        with Operator(server.kubeconfig, tmp_path / "log") as operator:
            operator.wait_ready()
            created(admin)
            admin("delete", "crd", CRD.stem, "--timeout=60s")
            time.sleep(10)
            assert operator.ended() is None
            assert operator.answer("/healthz")[0] == 200
            admin("create", "-f", str(CRD))
            eventually(lambda: admin("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s"))
            began = time.monotonic()
            admin("create", "-f", "-", body=named("again", MINIMAL))
            eventually(lambda: admin.items("jobs", "-l", "triton-operator.dev/deployment=again"), 120)
            seconds = time.monotonic() - began
        assert " a bug" not in operator.log.read_text()
    fault("CRD deleted and made again while the operator runs", 1, f"works again after {seconds:.0f} s")
