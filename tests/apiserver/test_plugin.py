"""`kubectl triton` on a real API server, with the user's own kubeconfig."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.devcluster.binaries import program
from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl
from tests.report.subjects import golden


def plugin(kubectl: Kubectl, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """As kubectl starts it."""
    argv = [sys.executable, "-m", "triton_plugin", *arguments, "--namespace", kubectl.namespace]
    environment = {**os.environ, "KUBECONFIG": str(kubectl.kubeconfig)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def ready(kubectl: Kubectl) -> Kubectl:
    """A namespace with an object that serves, and its results."""
    body, results = golden("ready")
    metadata = {"name": body["metadata"]["name"]}
    kubectl("create", "-f", "-", body={**body, "metadata": metadata})
    found = {**kubectl.get("td", "digits"), "status": body["status"]}
    kubectl("replace", "--subresource", "status", "-f", "-", body=found)
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "data": results["data"]}
    kubectl("create", "-f", "-", body={**recorded, "metadata": {"name": "digits-results"}})
    return kubectl


def test_objects_and_results_are_read_from_the_cluster(ready: Kubectl) -> None:
    said = plugin(ready, "report", "digits", "-o", "csv")
    assert said.returncode == 0, said.stderr
    assert said.stdout.count(",profile,") == 4 * 8, "the results' rows of all candidates"
    watched = plugin(ready, "watch", "digits")
    assert watched.returncode == 0, watched.stderr
    assert "digits is ready" in watched.stdout


def test_all_objects_of_all_namespaces_are_read_with_their_results(ready: Kubectl, tmp_path: Path) -> None:
    said = plugin(ready, "report", "-A", "--file", str(tmp_path / "reports"))
    assert said.returncode == 0, said.stderr
    name = f"{ready.namespace}.digits.html"
    assert f'<a href="{name}">digits</a>' in (tmp_path / "reports/index.html").read_text()
    assert "Figures of every candidate" in (tmp_path / "reports" / name).read_text()


def test_without_results_the_status_is_enough(ready: Kubectl) -> None:
    ready("delete", "configmap", "digits-results")
    said = plugin(ready, "explain", "digits")
    assert said.returncode == 0, said.stderr
    assert "Why onnx-fp32" in said.stdout


def test_an_object_that_is_not_there_is_named(kubectl: Kubectl) -> None:
    said = plugin(kubectl, "explain", "nothing")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == f"kubectl triton: no TritonDeployment nothing in namespace {kubectl.namespace}\n"


def test_an_object_that_nobody_has_seen_yet_says_so(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", body=MINIMAL)
    said = plugin(kubectl, "explain", "digits")
    assert "The operator has not seen TritonDeployment" in said.stdout


def test_kubectl_completes_the_name_of_an_object(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", body=MINIMAL)
    (tmp_path / "kubectl").symlink_to(program("kubectl"))
    for name, module in (("kubectl-triton", "triton_plugin"), ("kubectl_complete-triton", "triton_plugin.completion")):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (tmp_path / name).chmod(0o755)
    said = subprocess.run(
        [tmp_path / "kubectl", "__complete", "triton", "explain", "--namespace", kubectl.namespace, "di"],
        env={**os.environ, "KUBECONFIG": str(kubectl.kubeconfig), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    # Of the argument, which may also be a file: `:0` has the shell offer files where no object fits.
    assert said.stdout == "digits\n:0\n"
