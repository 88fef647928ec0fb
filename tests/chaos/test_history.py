"""etcd is put back to an older copy under two replicas: both end, and what starts then works on what is there."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import program
from hack.devcluster.control_plane import etcd, kube_apiserver
from hack.devcluster.process import end, start
from hack.devcluster.readiness import answers_ready, wait_until
from tests.apiserver.custom_resources import named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually, install_account
from tests.chaos.test_crd_deleted import install
from tests.chaos.test_replicas import HANDED_OVER_SECONDS, leads, replica, seconds_until_the_job_of
from tests.conftest import Fault

SINCE = 20
"""How many objects are made after the copy."""


class Restorable(ApiServer):
    """An API server whose etcd can be put back."""

    @contextmanager
    def stopped(self) -> Iterator[Path]:
        """Both processes are away in the block, which gets etcd's folder."""
        end(self._processes(), grace=5)
        yield self.place.home / "etcd-data"
        server = kube_apiserver(program("kube-apiserver"), self.place, nodes=False, readers=())
        for each in (etcd(program("etcd"), self.place), server):
            start(each, records=self._records, logs=self._logs, die_with_parent=True)
        wait_until(lambda: answers_ready(self.place), "ready again", seconds=60, processes=[], logs=self._logs)


@pytest.mark.chaos
def test_etcd_is_put_back_to_a_copy(tmp_path: Path, fault: Fault) -> None:
    fault("etcd put back to an older copy")
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, Restorable(Path(folder) / "server") as server:
        admin = Kubectl(server.kubeconfig, "default")
        install(admin)
        kubeconfig = install_account(Kubectl(server.kubeconfig), tmp_path)
        with replica("one", kubeconfig, tmp_path) as one, replica("two", kubeconfig, tmp_path) as two:
            eventually(lambda: leads(one) or leads(two), HANDED_OVER_SECONDS)
            seconds_until_the_job_of("old", admin)
            with server.stopped() as data:
                shutil.copytree(data, tmp_path / "copy")
            for number in range(SINCE):
                admin("create", "-f", "-", body=named(f"later-{number}"))
            eventually(lambda: len(admin.items("jobs")) > SINCE, HANDED_OVER_SECONDS)
            for each in (one, two):
                eventually(partial(_knows_all, each), HANDED_OVER_SECONDS)
            with server.stopped() as data:
                shutil.rmtree(data)
                shutil.copytree(tmp_path / "copy", data)
            for each in (one, two):
                eventually(partial(_has_ended, each), HANDED_OVER_SECONDS)
                assert "etcd was put back to an older copy" in each.log.read_text()
        assert [each["metadata"]["name"] for each in admin.items("td")] == ["old"]
        with Operator(kubeconfig, tmp_path / "next", LEASE="triton-operator/triton-operator", POD_NAME="next") as after:
            after.wait_ready()
            seconds_until_the_job_of("fresh", admin)
            assert after.metric("triton_operator_deployments") == 2
            owners = {each["metadata"]["labels"]["triton-operator.dev/deployment"] for each in admin.items("jobs")}
            assert owners == {"old", "fresh"}
    fault("etcd put back to an older copy", 1, "both end, and start with what is there")


def _knows_all(replica: Operator) -> bool:
    return replica.metric("triton_operator_deployments") > SINCE


def _has_ended(replica: Operator) -> bool:
    return replica.ended() == 1
