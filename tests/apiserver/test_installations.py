"""Other ways to run the operator: in some namespaces, before its CRD is there, misconfigured."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import program
from tests.apiserver.conftest import CRD
from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import (
    CHART,
    IMAGE_VALUES,
    Operator,
    account,
    eventually,
    install_account,
    rendered,
)
from tests.apiserver.test_operator import created
from triton_operator.installed import NotInstalledError, api_is_served, object_is_accepted, operator_answers
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import Connection, configuration


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


def test_with_rights_in_its_namespaces_alone(apiserver: ApiServer, cluster_kubectl: Kubectl, tmp_path: Path) -> None:
    """Who installs may do everything in two namespaces and nothing on the cluster; so may the operator."""
    for name in ("operators", "vision"):
        cluster_kubectl("create", "namespace", name)
        binding = ("create", "rolebinding", "installer", "--clusterrole=cluster-admin", "--user=installer")
        cluster_kubectl.within(name)(*binding)
    helm = (
        str(program("helm")), "install", "triton-operator", str(CHART), "--namespace=operators",
        "--values", str(IMAGE_VALUES),
        "--kubeconfig", str(apiserver.kubeconfig), "--kube-as-user=installer",
    )  # fmt: skip
    refused = subprocess.run([*helm, "--skip-crds"], capture_output=True, text=True, check=False)
    assert "at the cluster scope" in refused.stderr
    namespaced = ("--set", "rbac.scope=Namespaced,crds.install=false,watchNamespaces={vision}")
    notes = subprocess.run([*helm, *namespaced], capture_output=True, text=True, check=True).stdout
    assert "triton-operator works in vision." in notes
    assert "this release does not install it" in notes
    deployment = cluster_kubectl.within("operators").get("deployment", "triton-operator")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    kept = {name: given[name] for name in ("WATCH_NAMESPACES", "LEASE", "ARCHITECTURE")}
    credentials = account(cluster_kubectl, tmp_path, "operators", "triton-operator")
    with Operator(credentials, tmp_path / "log", **kept) as operator:
        operator.wait_ready()
        created(cluster_kubectl.within("vision"))
        (job,) = cluster_kubectl.within("vision").items("jobs")
        assert job["spec"]["template"]["spec"]["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
        assert cluster_kubectl.within("operators").items("leases")
    assert "forbidden" not in operator.log.read_text()
    for right in (("list", "nodes"), ("list", "td"), ("get", "secrets"), ("list", "customresourcedefinitions")):
        with pytest.raises(KubectlError):
            Kubectl(credentials)("auth", "can-i", *right, "--all-namespaces")
    cluster_kubectl.within("vision")("delete", "td", "--all")


def test_the_operator_waits_for_its_crd(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        admin = Kubectl(server.kubeconfig, "default")
        with Operator(server.kubeconfig, tmp_path / "log") as operator:
            eventually(lambda: "install the CRD first" in operator.log.read_text())
            assert operator.answer("/readyz") == (503, "the API server's objects are not listed yet\n")
            assert operator.answer("/healthz")[0] == 200
            with pytest.raises(NotInstalledError, match="install the CustomResourceDefinition"):
                api_is_served(connected(server.kubeconfig))
            admin("create", "-f", str(CRD))
            operator.wait_ready()
            created(admin)


def connected(kubeconfig: Path) -> Cluster:
    return Cluster(Connection(configuration(str(kubeconfig)), "test", 5))


@pytest.fixture(scope="module")
def tester(cluster_kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ServiceAccount of `helm test`."""
    cluster_kubectl("create", "namespace", "tested")
    hooks = [each for each in rendered(namespace="tested") if each["metadata"]["name"] == "triton-operator-test"]
    cluster_kubectl("create", "-f", "-", body=[each for each in hooks if each["kind"] != "Pod"])
    return account(cluster_kubectl, tmp_path_factory.mktemp("tester"), "tested", "triton-operator-test")


def test_helm_test_asks_the_operator_and_the_api_server(operator: Operator, tester: Path) -> None:
    argv = [sys.executable, "-m", "triton_operator.installed", f"http://127.0.0.1:{operator.port}", "tested"]
    environment = os.environ | {"KUBECONFIG": str(tester)}
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=30)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        f"the operator at http://127.0.0.1:{operator.port} is ready",
        "the API server serves triton-operator.dev/v1alpha1",
        "the API server accepts a TritonDeployment in namespace tested (dry run)",
    ]


def test_helm_test_says_what_is_wrong(tester: Path, cluster_kubectl: Kubectl) -> None:
    with pytest.raises(NotInstalledError, match=r"is not ready: .*refused.*; look at its pods and their log"):
        operator_answers("http://127.0.0.1:9", within=0)
    assert api_is_served(connected(tester))
    with pytest.raises(
        NotInstalledError, match=r"refuses the smallest TritonDeployment in namespace default: .*forbid"
    ):
        object_is_accepted(connected(tester), "default")
    assert cluster_kubectl.within("tested").items("td") == []


IMAGES = {"CONVERTER_IMAGE": "c", "CONVERTER_TENSORFLOW_IMAGE": "t", "SERVER_IMAGE": "s"}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "CONVERTER_IMAGE is not set"),
        ({**IMAGES, "INSTANCE_GROUP_KIND": "Cpu"}, "INSTANCE_GROUP_KIND is 'Cpu'"),
        ({**IMAGES, "METRICS_PORT": "http"}, "METRICS_PORT is 'http'"),
        ({**IMAGES, "MEASUREMENTS_PER_NODE": "-1"}, "MEASUREMENTS_PER_NODE is '-1'; it takes a number, 0 to 100"),
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
