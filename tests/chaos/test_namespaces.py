"""One of `watchNamespaces` is gone, and the operator's rights in it: the others are worked on, by any replica."""

import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import NAMESPACE, Operator, eventually, install_account, rendered
from tests.chaos.test_crd_deleted import install
from tests.chaos.test_replicas import HANDED_OVER_SECONDS, leads, seconds_until_the_job_of
from tests.conftest import Fault
from triton_operator.runtime.lease import LEASE_SECONDS

WATCHED = ("--set", "watchNamespaces={team-a,team-b}")


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        yield server


def replica(kubeconfig: Path, log: Path) -> Operator:
    lease = f"{NAMESPACE}/triton-operator"
    return Operator(kubeconfig, log, LEASE=lease, POD_NAME=log.name, WATCH_NAMESPACES="team-a,team-b")


@pytest.mark.chaos
def test_a_namespace_that_is_gone_stops_no_other(server: ApiServer, tmp_path: Path, fault: Fault) -> None:
    fault("one of the watched namespaces is gone, the leader too")
    admin = Kubectl(server.kubeconfig)
    install(admin)
    for name in ("team-a", "team-b"):
        admin("create", "namespace", name)
    kubeconfig = install_account(admin, tmp_path, *WATCHED)
    with replica(kubeconfig, tmp_path / "one") as one:
        eventually(lambda: leads(one), HANDED_OVER_SECONDS)
        with replica(kubeconfig, tmp_path / "two") as two:
            two.wait_ready()
            # No namespace controller runs here; a Role goes with its namespace.
            admin.within("team-b")("delete", "rolebinding,role", "--all")
            # So that the other one has to list everything before it leads.
            time.sleep(LEASE_SECONDS + 1)
            one.signal(signal.SIGTERM)
            eventually(lambda: one.ended() is not None)
            taken_over = seconds_until_the_job_of("after", admin.within("team-a"))
            assert leads(two)
            assert "namespace team-b is left out: " in two.answer("/readyz")[1]
            admin("apply", "-f", "-", body=[each for each in rendered(*WATCHED) if each["kind"].startswith("Role")])
            seconds_until_the_job_of("back", admin.within("team-b"))
            eventually(lambda: two.answer("/readyz") == (200, "ok\n"))
    admin.within("team-b")("delete", "rolebinding,role", "--all")
    with replica(kubeconfig, tmp_path / "three") as three:
        three.wait_ready()
        assert "namespace team-b is left out: " in three.answer("/readyz")[1]
        seconds_until_the_job_of("started", admin.within("team-a"))
        assert three.metric("triton_operator_reconcile_errors_total") > 0
        admin.within("team-b")("create", "-f", "-", body=named("waits"))
        admin("apply", "-f", "-", body=[each for each in rendered(*WATCHED) if each["kind"].startswith("Role")])
        look = admin.within("team-b")
        eventually(lambda: look.items("jobs", "-l", "triton-operator.dev/deployment=waits"), HANDED_OVER_SECONDS)
    fault("one of the watched namespaces is gone, the leader too", 1, f"the others go on after {taken_over:.0f} s")
