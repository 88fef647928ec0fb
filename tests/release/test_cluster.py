"""Two releases on a real cluster whose node pulls from the registry: installation, upgrade, rollback.

An object is Ready before the upgrade; from then on nothing may be computed, and no server started, anew.
"""

import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.deploy.command import TargetCluster
from hack.deploy.install import NAMESPACE, RELEASE, install
from hack.devcluster.binaries import program
from hack.devcluster.paths import cluster_paths
from tests.e2e import smallest
from tests.e2e.applied import Applied, stage_of
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.watching import Watch
from tests.release.conftest import Released
from tests.release.registry import Registry
from tests.release.tree import NAME, Tree

pytestmark = pytest.mark.release
FIRST, SECOND = "0.1.0", "0.2.0"
TOUCHED = "converters/triton_converters/__init__.py"
"""A file of the operator's image and of the converters': the second release's images have other digests."""
CRD = "crds/tritondeployments.triton-operator.dev.yaml"
HELM_SECONDS = 300
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
    """The operator's releases on the cluster."""

    cluster: TargetCluster
    kubectl: Kubectl
    registry: str

    def helm(self, *argv: str) -> None:
        """Change the release, and wait until the operator's pods are ready."""
        waiting = ("--namespace", NAMESPACE, "--wait", "--timeout", f"{HELM_SECONDS}s")
        self.cluster.run("helm", *argv, *waiting, timeout=HELM_SECONDS + 60)

    def put(self, version: str) -> None:
        """Install or upgrade from the registry, as docs/install.md says for a cluster without GPUs."""
        self.helm(
            "upgrade", RELEASE, f"oci://{self.registry}/charts/{NAME}", "--version", version, "--plain-http",
            "--install", "--create-namespace", "--take-ownership",
            "--set", "server.cpu=true,server.instanceGroupKind=Auto",
        )  # fmt: skip

    @property
    def pods(self) -> list[Object]:
        """The operator's pods that are not being deleted."""
        found = self.kubectl.within(NAMESPACE).items("pods", f"--selector=app.kubernetes.io/instance={RELEASE}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def wait_until_at_work(self, digest: str) -> None:
        """Wait until a pod of the image with this digest holds the Lease, and has done so for some time."""
        deadline = time.monotonic() + HELM_SECONDS
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
def installation(registry: Registry, releases: dict[str, Released]) -> Iterator[Installation]:
    """The first version, installed from the registry; what was installed before is put back at the end."""
    if os.environ.get("KUBECONFIG") not in (None, "", str(cluster_paths().kubeconfig)):
        pytest.skip("the nodes of the cluster in KUBECONFIG cannot reach a registry on this machine's loopback")
    kubeconfig = cluster_paths().kubeconfig
    cluster = TargetCluster(kubeconfig)
    cluster.run("python3", "-m", "hack.devcluster", "up", timeout=1800, show=True)
    before = cluster.run("helm", "list", "--namespace", NAMESPACE, "--short").split()
    found = Installation(cluster, Kubectl(str(program("kubectl")), kubeconfig), f"{registry.host}/whole")
    try:
        found.put(FIRST)
        yield found
    finally:
        if RELEASE in before:
            install(kubeconfig)
        else:
            cluster.run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--ignore-not-found")
            cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found")
            cluster.run("kubectl", "delete", "--ignore-not-found", "--filename", CRD)


@pytest.fixture(scope="module")
def applied(installation: Installation) -> Iterator[Applied]:
    """The smallest object, Ready under the first version."""
    kubectl = installation.kubectl.within(f"release-{secrets.token_hex(3)}")
    watch = Watch(kubectl)
    try:
        kubectl.run("create", "namespace", kubectl.namespace)
        kubectl.apply(smallest.files())
        found = Applied(kubectl, watch, smallest.smallest(), smallest.NAME)
        found.wait_ready(found.apply())
        yield found
    finally:
        watch.stop()
        kubectl.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", timeout=300)


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
            installation.put(SECOND)
        else:
            installation.helm("rollback", RELEASE)
        installation.wait_until_at_work(digest)
        assert seen(applied) == before
        assert unready(applied, began) == []


def test_an_edit_after_a_rollback_is_worked_on(applied: Applied) -> None:
    applied.wait_ready(applied.apply({"serving": {"replicas": 2}}))
    deadline = time.monotonic() + HELM_SECONDS
    while len(servers(applied)) != 2:
        assert time.monotonic() < deadline, applied.report()
        time.sleep(1)
