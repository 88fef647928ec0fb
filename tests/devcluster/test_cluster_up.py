"""The development cluster on the real machine: what its pods can do, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.addresses import API_SERVICE_ADDRESS
from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import program
from hack.devcluster.cluster import DevCluster
from hack.devcluster.commands import run
from hack.devcluster.images import ctr, read_archive
from hack.devcluster.paths import ClusterError, ClusterPaths
from hack.devcluster.process import recorded_processes
from hack.devcluster.teardown import leftovers
from tests.devcluster.archives import write_labelled_archive
from tests.devcluster.kubectl import Kubectl
from tests.devcluster.machine import cluster_processes, machine_state

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
NAMESPACE = "devcluster-test"
KEPT_IMAGE = "localhost/kept:1"


def eventually(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.2)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 MiB that every user may write to."""
    folder = tmp_path / "small"
    folder.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0777", "tmpfs", folder])
    yield folder
    run(["umount", folder])


@pytest.fixture
def namespace(kubectl: Kubectl, volume: Path) -> Iterator[Kubectl]:
    """kubectl in a namespace that holds workloads.yaml; both are gone afterwards."""
    inside = Kubectl(Path())
    inside.argv = [*kubectl.argv, f"--namespace={NAMESPACE}"]
    try:
        create_workloads(inside, volume)
        yield inside
    finally:
        inside("delete", "namespace", NAMESPACE, "--timeout=60s")
        inside("delete", "persistentvolume", "small", "--ignore-not-found", "--timeout=30s")


@pytest.fixture
def kept_image(cluster: DevCluster, tmp_path: Path) -> Iterator[Path]:
    """The archive of an image that is loaded, and that nobody but the test has."""
    archive = tmp_path / "kept.tar"
    write_labelled_archive(archive, KEPT_IMAGE, "first")
    cluster.load_images([archive])
    eventually(lambda: read_archive(archive).image_id in run([*ctr(cluster.paths), "images", "list"]), "the image ID")
    yield archive
    run([*ctr(cluster.paths), "images", "remove", KEPT_IMAGE, read_archive(archive).image_id])


def create_workloads(kubectl: Kubectl, volume: Path) -> None:
    manifest = (Path(__file__).parent / "workloads.yaml").read_text().replace("VOLUME", str(volume))
    kubectl("create", "namespace", NAMESPACE)
    eventually(lambda: "default" in kubectl("get", "serviceaccounts"), "the namespace's service account")
    kubectl("apply", "--filename=-", stdin=manifest)


def test_node_is_ready_and_advertises_gpus(kubectl: Kubectl) -> None:
    node = kubectl.get("node", "devcluster")
    conditions = {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "Development-CPU"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.4"


def test_workloads(namespace: Kubectl, paths: ClusterPaths) -> None:
    """One start for all, one check a thing: pods start in parallel, tests would not."""
    namespace.wait("pod/web", "condition=Ready")
    check_service(namespace)
    check_access(namespace)
    check_sidecar(namespace)
    check_memory_limit(namespace)
    check_gpu_limit(namespace)
    check_full_claim(namespace)
    check_claim_is_reclaimed(namespace, paths)


def check_service(kubectl: Kubectl) -> None:
    """The Service answers the host by address and pods by name."""
    address = kubectl.get("service", "web")["spec"]["clusterIP"]
    eventually(lambda: answer(f"http://{address}/") == "served from the claim\n", "the Service from the host")
    name = f"web.{NAMESPACE}.svc.cluster.local"
    fetch = ("wget", "-q", "-O", "-", "--no-check-certificate")
    looked_up = kubectl("exec", "web", "--", "nslookup", name)
    assert f"Address: {address}" in looked_up
    assert kubectl("exec", "web", "--", *fetch, f"http://{address}/") == "served from the claim\n"
    version = kubectl("exec", "web", "--", *fetch, f"https://{API_SERVICE_ADDRESS}/version")
    assert json.loads(version)["gitVersion"] == "v1.34.4"
    search = kubectl("exec", "web", "--", "cat", "/etc/resolv.conf")
    assert f"search {NAMESPACE}.svc.cluster.local svc.cluster.local cluster.local" in search


def answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return str(response.read().decode())
    except OSError:
        return ""


def check_access(kubectl: Kubectl) -> None:
    """Logs, exec and port-forward reach the pod, which runs as the user it asked for."""
    assert kubectl("exec", "web", "--", "id").strip() == "uid=1000 gid=1000 groups=1000"
    assert "response:200" in kubectl("logs", "web")
    with pytest.raises(ClusterError, match="Read-only file system"):
        kubectl("exec", "web", "--", "touch", "/here")
    forward = subprocess.Popen([*kubectl.argv, "port-forward", "service/web", ":80"], stdout=subprocess.PIPE, text=True)
    try:
        assert forward.stdout is not None
        port = forward.stdout.readline().split(" -> ")[0].rsplit(":", 1)[1]
        assert answer(f"http://127.0.0.1:{port}/") == "served from the claim\n"
    finally:
        forward.terminate()
        forward.wait()


def check_sidecar(kubectl: Kubectl) -> None:
    kubectl.wait("job/sidecar", "condition=Complete")
    pods = json.loads(kubectl("get", "pods", "--selector=job-name=sidecar", "--output=json"))["items"]
    ended = pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["message"] == "from the sidecar\n"


def check_memory_limit(kubectl: Kubectl) -> None:
    ended = termination(kubectl, "hungry")
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def check_gpu_limit(kubectl: Kubectl) -> None:
    greedy = kubectl.get("pod", "greedy")["status"]
    assert greedy["phase"] == "Pending"
    assert "Insufficient nvidia.com/gpu" in greedy["conditions"][0]["message"]


def check_full_claim(kubectl: Kubectl) -> None:
    ended = termination(kubectl, "full")
    assert ended["exitCode"] == 1
    assert "No space left on device" in ended["message"]


def check_claim_is_reclaimed(kubectl: Kubectl, paths: ClusterPaths) -> None:
    """Deleting a claim deletes its folder."""
    name = kubectl.get("persistentvolumeclaim", "data")["spec"]["volumeName"]
    (folder,) = paths.storage.glob(f"{name}_*")
    kubectl("delete", "pod/web", "persistentvolumeclaim/data", "--grace-period=1", "--timeout=30s")
    eventually(lambda: not folder.exists(), f"{folder} removed")


def termination(kubectl: Kubectl, pod: str) -> dict[str, Any]:
    kubectl.wait(f"pod/{pod}", "jsonpath={.status.phase}=Failed")
    ended: dict[str, Any] = kubectl.get("pod", pod)["status"]["containerStatuses"][0]["state"]["terminated"]
    return ended


def test_audit_log_has_every_write_and_no_read(kubectl: Kubectl, paths: ClusterPaths) -> None:
    name = f"audited-{time.monotonic_ns()}"
    kubectl("create", "configmap", name)
    kubectl.get("configmap", name)
    kubectl("delete", "configmap", name)
    events = [json.loads(line) for line in paths.audit_log.read_text().splitlines() if name in line]
    assert [event["verb"] for event in events if event["user"]["username"] == "admin"] == ["create", "delete"]
    assert all("requestObject" not in event for event in events)


def test_images_are_loaded_once_and_replaced_when_they_change(cluster: DevCluster, kept_image: Path) -> None:
    assert "is there already" in devcluster("load-image", str(kept_image)).stdout
    listing = [*ctr(cluster.paths), "images", "list", "--quiet"]
    before = run(listing).split()
    write_labelled_archive(kept_image, KEPT_IMAGE, "changed")
    assert "loaded in" in devcluster("load-image", str(kept_image)).stdout
    eventually(lambda: read_archive(kept_image).image_id in run(listing), "the image ID known to Kubernetes")
    assert len(run(listing).split()) == len(before), "the replaced image is gone"
    assert "is there already" in devcluster("load-image", str(kept_image)).stdout


def test_up_keeps_a_healthy_cluster(cluster: DevCluster) -> None:
    before = recorded_processes(cluster.paths.processes)
    assert "the cluster is up already" in devcluster("up").stdout
    assert recorded_processes(cluster.paths.processes) == before


def test_api_server_alone_runs_beside_the_cluster(cluster: DevCluster, tmp_path: Path) -> None:
    with ApiServer(tmp_path / "a") as server:
        kubectl = Kubectl(server.kubeconfig)
        kubectl("create", "namespace", "alone")
        kubectl("run", "pod", "--image=none", "--namespace=alone")
        assert "alone" in server.audit_log.read_text()
        with pytest.raises(ClusterError, match="Forbidden"):
            kubectl("get", "secrets", "--as=nobody")
        assert cluster.healthy()
        assert server.url.startswith("https://127.0.0.1:")
    assert not any("kube-apiserver" in line for line in processes_mentioning(tmp_path))
    assert list((tmp_path / "a").iterdir()) == []


def test_api_server_by_command_line(tmp_path: Path) -> None:
    kubeconfig = Path(devcluster("apiserver-up", str(tmp_path)).stdout.strip())
    assert Kubectl(kubeconfig)("get", "--raw=/readyz") == "ok"
    devcluster("apiserver-down", str(tmp_path))
    assert processes_mentioning(tmp_path) == []


def test_killed_cluster_is_replaced(cluster: DevCluster, namespace: Kubectl, volume: Path, kept_image: Path) -> None:
    """SIGKILL for every process of ours, at once and without `down`; pods keep running, mounts and all."""
    namespace.wait("pod/web", "condition=Ready")
    for recorded in recorded_processes(cluster.paths.processes):
        os.kill(recorded.pid, signal.SIGKILL)
    eventually(lambda: not cluster.healthy(), "the cluster dead")
    assert any(line.startswith("mount ") for line in leftovers(cluster.paths))
    assert any("httpd" in line for line in cluster_processes(cluster.paths))
    cluster.up()
    assert not any("httpd" in line for line in cluster_processes(cluster.paths))
    assert run([*ctr(cluster.paths), "containers", "list", "--quiet"]) == ""
    assert "is there already" in devcluster("load-image", str(kept_image)).stdout
    create_workloads(namespace, volume)
    namespace(
        "run",
        "kept",
        f"--image={KEPT_IMAGE}",
        "--image-pull-policy=Never",
        "--restart=Never",
        "--command",
        "--",
        "true",
    )
    namespace.wait("pod/kept", "jsonpath={.status.phase}=Succeeded")
    namespace.wait("pod/web", "condition=Ready")
    check_service(namespace)


def test_down_leaves_nothing(cluster: DevCluster, untouched_machine: dict[str, object]) -> None:
    devcluster("down")
    assert leftovers(cluster.paths) == []
    assert machine_state(cluster.paths) == untouched_machine
    assert cluster.paths.containerd.exists(), "the image store is kept"
    assert not cluster.paths.kubeconfig.exists()
    devcluster("down")


def test_interrupted_start_is_cleaned_up(no_cluster: DevCluster, untouched_machine: dict[str, object]) -> None:
    """SIGKILL for `up` itself, after its first processes: some of them even without a record."""
    cluster = no_cluster
    command = [sys.executable, "-m", "hack.devcluster", "up"]
    starting = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=own_environment())
    eventually(lambda: "kube-apiserver" in names_of_processes(cluster), "the API server's start")
    starting.kill()
    starting.wait()
    (cluster.paths.processes / "etcd.json").unlink()
    assert {"containerd", "etcd", "kube-apiserver"} <= names_of_processes(cluster)
    cluster.down()
    assert leftovers(cluster.paths) == []
    assert cluster_processes(cluster.paths) == []
    assert machine_state(cluster.paths) == untouched_machine


def names_of_processes(cluster: DevCluster) -> set[str]:
    return {Path(line.split()[0]).name for line in cluster_processes(cluster.paths)}


def test_two_ups_at_once_start_one_cluster(no_cluster: DevCluster) -> None:
    outputs: list[str] = []
    threads = [threading.Thread(target=lambda: outputs.append(devcluster("up").stdout)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("cluster ready in" in output for output in outputs) == 1
    assert sum("the cluster is up already" in output for output in outputs) == 1
    assert no_cluster.healthy()


def test_named_cluster_is_used_and_nothing_is_built(cluster: DevCluster, tmp_path: Path) -> None:
    """KUBECONFIG of another cluster: here an API server alone, which has no node."""
    with ApiServer(tmp_path / "a") as server:
        kubectl_folder = str(program("kubectl").parent)
        environment = {
            "KUBECONFIG": str(server.kubeconfig),
            "PATH": f"{kubectl_folder}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        said = devcluster("up", environment=environment).stdout
    assert f"using the cluster of KUBECONFIG={server.kubeconfig}, building none" in said
    assert not (tmp_path / "cache").exists()


def devcluster(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hack.devcluster", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**own_environment(), **(environment or {})},
    )


def own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}


def processes_mentioning(folder: Path) -> list[str]:
    lines = [path.read_bytes().decode(errors="replace") for path in readable_command_lines()]
    return [line for line in lines if str(folder) in line and "devcluster" not in line.split("\0")[1:3]]


def readable_command_lines() -> list[Path]:
    return [entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
