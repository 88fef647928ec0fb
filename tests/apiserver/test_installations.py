"""Other ways to run the operator: in some namespaces, before its CRD is there, misconfigured."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.conftest import CRD
from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually, install_account
from tests.apiserver.test_operator import created


def test_in_some_namespaces_with_rules_there_only(cluster_kubectl: Kubectl, tmp_path: Path) -> None:
    for name in ("blue", "green", "red"):
        cluster_kubectl("create", "namespace", name)
    blue, red = cluster_kubectl.within("blue"), cluster_kubectl.within("red")
    settings = ("--set", "watchNamespaces={blue,green}")
    account = install_account(cluster_kubectl, tmp_path, *settings, namespace="restricted")
    red("create", "-f", "-", body=MINIMAL)
    with Operator(account, tmp_path / "log", WATCH_NAMESPACES="blue,green", LOG_FORMAT="json") as operator:
        operator.wait_ready()
        created(blue)
        created(cluster_kubectl.within("green"))
        assert red.items("jobs") == []
        assert red.get("td", "digits")["status"] == {"observedGeneration": -1}
    for name in ("blue", "green", "red"):
        cluster_kubectl.within(name)("delete", "td", "--all")
    lines = [json.loads(line) for line in operator.log.read_text().splitlines()]
    assert any("blue/digits: apply Job" in line["message"] for line in lines)
    assert not any("forbidden" in line["message"] for line in lines)
    assert not any(line["severity"] in ("warn", "error") for line in lines), lines


def test_the_operator_waits_for_its_crd(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        admin = Kubectl(server.kubeconfig, "default")
        with Operator(server.kubeconfig, tmp_path / "log") as operator:
            eventually(lambda: "install the CRD first" in operator.log.read_text())
            assert operator.answer("/readyz") == (503, "the API server's objects are not listed yet\n")
            assert operator.answer("/healthz")[0] == 200
            admin("create", "-f", str(CRD))
            operator.wait_ready()
            created(admin)


IMAGES = {"CONVERTER_IMAGE": "c", "CONVERTER_TENSORFLOW_IMAGE": "t", "SERVER_IMAGE": "s"}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "CONVERTER_IMAGE is not set"),
        ({**IMAGES, "INSTANCE_GROUP_KIND": "Cpu"}, "INSTANCE_GROUP_KIND is 'Cpu'"),
        ({**IMAGES, "METRICS_PORT": "http"}, "METRICS_PORT is 'http'"),
        ({**IMAGES, "UNSCHEDULABLE_SECONDS": "0"}, "UNSCHEDULABLE_SECONDS is '0'; it takes a number, 1 to 86400"),
    ],
)
def test_a_missing_setting_is_named(environment: dict[str, str], message: str) -> None:
    path = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    argv = [sys.executable, "-m", "triton_operator"]
    ended = subprocess.run(argv, env=path | environment, capture_output=True, text=True, check=False, timeout=30)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"triton-operator: {message}")
    assert "Traceback" not in ended.stderr
