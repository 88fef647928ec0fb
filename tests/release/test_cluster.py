"""Two releases on a real cluster whose node pulls from the registry, by the commands of docs/install.md as printed.

An object is Ready before the upgrade; from then on nothing may be computed, and no server started, anew.
"""

import os
import secrets
import shutil
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hack.deploy.command import TargetCluster, executable
from hack.deploy.install import NAMESPACE, RELEASE, install
from hack.devcluster.binaries import program
from hack.devcluster.paths import cluster_paths
from tests.apiserver.operator_process import eventually
from tests.e2e import smallest
from tests.e2e.applied import Applied, stage_of
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.watching import Watch
from tests.page import Shell, blocks
from tests.release.conftest import Released
from tests.release.registry import Registry
from tests.release.tree import Tree

pytestmark = pytest.mark.release
PAGE = "docs/install.md"
FIRST, SECOND = "0.1.0", "0.2.0"
TOUCHED = "converters/triton_converters/__init__.py"
"""A file of the operator's image and of the converters': the second release's images have other digests."""
WITHOUT_TLS = """\
#!/bin/sh
# Helm speaks TLS to every registry unless it is told otherwise, and the one on this machine's loopback has none.
case "$*" in
  *oci://*) exec {program} "$@" --plain-http ;;
  *) exec {program} "$@" ;;
esac
"""
CRD = "tritondeployments.triton-operator.dev"
LEASE_SECONDS = 300.0
REST_SECONDS = 20.0
"""How long a new operator is watched after it took over."""


@dataclass(frozen=True)
class Seen:
    """What must not change: the restarts of the server pods, and the Jobs, by uid."""

    servers: dict[str, int]
    jobs: frozenset[str]
    revision: str


@dataclass(frozen=True)
class Installation:
    """The operator's releases on the cluster, and the shell of somebody who reads the page."""

    kubectl: Kubectl
    registry: str
    shell: Shell

    def follow(self, *commands: str, version: str = FIRST) -> None:
        """Run blocks of the page for a version."""
        for each in commands:
            self.shell.run(each, REGISTRY=self.registry, VERSION=version)

    @property
    def pods(self) -> list[Object]:
        """The operator's pods that are not being deleted."""
        found = self.kubectl.within(NAMESPACE).items("pods", f"--selector=app.kubernetes.io/instance={RELEASE}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def wait_until_at_work(self, digest: str) -> None:
        """Wait until a pod of the image with this digest holds the Lease, and has done so for some time."""
        deadline = time.monotonic() + LEASE_SECONDS
        while True:
            holder = self.kubectl.within(NAMESPACE).get("lease", RELEASE)["spec"].get("holderIdentity", "")
            found = {pod["metadata"]["name"]: digests(pod) for pod in self.pods}
            if found.get(holder) == {digest}:
                break
            assert time.monotonic() < deadline, f"the Lease is {holder}'s, the pods are {found}"
            time.sleep(1)
        time.sleep(REST_SECONDS)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory, registry: Registry, key: Path) -> dict[str, Released]:
    """Both versions, with all images whole."""
    tree = Tree.cloned(tmp_path_factory.mktemp("whole") / "tree")
    found = {}
    for version in (FIRST, SECOND):
        if version != FIRST:
            tree.number(FIRST, version)
            with (tree.folder / TOUCHED).open("a") as file:
                file.write(f'VERSION = "{version}"\n')
            tree.commit()
        done = tree.release(f"{registry.host}/whole", version, key)
        assert done.returncode == 0, done.stderr
        found[version] = Released(tree, tree.output(version), done.stdout.splitlines())
    return found


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, registry: Registry, releases: dict[str, Released]
) -> Iterator[Installation]:
    """The first version, verified and installed; what was installed before is put back at the end."""
    kubeconfig = cluster_paths().kubeconfig
    if os.environ.get("KUBECONFIG") not in (None, "", str(kubeconfig)):
        pytest.skip("the nodes of the cluster in KUBECONFIG cannot reach a registry on this machine's loopback")
    cluster = TargetCluster(kubeconfig)
    cluster.run("python3", "-m", "hack.devcluster", "up", timeout=1800, show=True)
    before = cluster.run("helm", "list", "--namespace", NAMESPACE, "--short").split()
    remove(cluster)
    shell = readers_shell(tmp_path_factory.mktemp("reader"), kubeconfig)
    shutil.copytree(releases[FIRST].files, shell.folder, dirs_exist_ok=True)
    kubectl = Kubectl(str(program("kubectl")), kubeconfig)
    found = Installation(kubectl, f"{registry.host}/whole", shell)
    try:
        install_chart, look_at_pods, _ = blocks(PAGE, "Install")
        without_gpus = blocks(PAGE, "Values")
        found.follow(*blocks(PAGE, "Verify"), install_chart, look_at_pods, *without_gpus)
        yield found
    finally:
        remove(cluster)
        if RELEASE in before:
            install(kubeconfig)


@pytest.fixture(scope="module")
def applied(installation: Installation) -> Iterator[Applied]:
    """The object that `kubectl triton run` wrote for a file, Ready under the first version."""
    kubectl = installation.kubectl.within(f"release-{secrets.token_hex(3)}")
    watch = Watch(kubectl)
    folder = installation.shell.folder
    (folder / "model.onnx").write_bytes(smallest.detector())
    try:
        kubectl.run("create", "namespace", kubectl.namespace)
        installation.shell.run(f"kubectl config set-context --current --namespace {kubectl.namespace}\n")
        installation.follow(blocks(PAGE, "Install")[-1])
        found = Applied(kubectl, watch, yaml.safe_load((folder / "model.yaml").read_text()), "model")
        found.wait_ready(1)
        yield found
    finally:
        watch.stop()
        kubectl.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", timeout=300)


def readers_shell(folder: Path, kubeconfig: Path) -> Shell:
    """A shell with the programs that the page asks for, and an empty virtual environment for `pip`."""
    shell = Shell.opened(folder, kubeconfig)
    programs = folder / "bin"
    (programs / "cosign").symlink_to(executable("cosign"))
    (programs / "helm").write_text(WITHOUT_TLS.format(program=executable("helm")))
    (programs / "helm").chmod(0o755)
    venv.create(folder / "venv", with_pip=True)
    for name in ("pip", "kubectl-triton"):
        (programs / name).symlink_to(folder / "venv/bin" / name)
    return shell


def remove(cluster: TargetCluster) -> None:
    """Leave nothing of the operator on the cluster."""
    cluster.run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--ignore-not-found")
    cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found")
    cluster.run("kubectl", "delete", "crd", CRD, "--ignore-not-found")


def digests(pod: Object) -> set[str]:
    """The digests of the images that its containers run."""
    # By which repository an image is reported that was pulled from several is the runtime's choice.
    return {status["imageID"].rpartition("@")[2] for status in pod["status"].get("containerStatuses", [])}


def seen(applied: Applied) -> Seen:
    """What runs and what has run."""
    restarts = {
        pod["metadata"]["uid"]: sum(status["restartCount"] for status in pod["status"]["containerStatuses"])
        for pod in servers(applied)
    }
    return Seen(restarts, frozenset(applied.jobs()), applied.state.revision)


def servers(applied: Applied) -> list[Object]:
    """The pods of its servers."""
    return [pod for pod in applied.children("pods") if not stage_of(pod)]


def unready(applied: Applied, since: float) -> list[str]:
    """Summaries of the states since then that were not Ready."""
    history = applied.watch.history(applied.kubectl.namespace, applied.name)
    return [each.state.summary() for each in history if each.time >= since and not each.state.holds("Ready")]


def test_the_node_pulls_what_was_released(
    installation: Installation, releases: dict[str, Released], applied: Applied
) -> None:
    released = releases[FIRST].digests
    for name, pods in (("operator", installation.pods), ("tritonserver-cpu", servers(applied))):
        repository, digest = released[name]
        assert pods
        for pod in pods:
            assert digests(pod) == {digest}
            assert pod["spec"]["containers"][0]["image"] == f"{repository}:{FIRST}@{digest}"


def test_an_upgrade_and_a_rollback_compute_and_restart_nothing(
    installation: Installation, releases: dict[str, Released], applied: Applied
) -> None:
    first, second = (releases[version].digests["operator"][1] for version in (FIRST, SECOND))
    assert first != second
    before = seen(applied)
    assert before.servers
    for digest in (second, first):
        began = time.time()
        if digest == second:
            installation.follow(*blocks(PAGE, "Upgrade"), version=SECOND)
        else:
            installation.follow(*blocks(PAGE, "Roll back"))
        installation.wait_until_at_work(digest)
        assert seen(applied) == before
        assert unready(applied, began) == []


def test_an_edit_after_a_rollback_is_worked_on(applied: Applied) -> None:
    applied.wait_ready(applied.apply({"serving": {"replicas": 2}}))
    deadline = time.monotonic() + LEASE_SECONDS
    while len(servers(applied)) != 2:
        assert time.monotonic() < deadline, applied.report()
        time.sleep(1)


def test_uninstalling_leaves_nothing(installation: Installation, applied: Applied) -> None:
    installation.follow(*blocks(PAGE, "Uninstall"))
    assert not installation.kubectl.exists("crd", CRD)
    assert not installation.kubectl.exists("namespace", NAMESPACE)
    eventually(lambda: not servers(applied), within=LEASE_SECONDS)
