"""Two releases on a real cluster whose node pulls from the registry, by the commands of docs/install.md as printed.

The sample model answers before the upgrade; from then on nothing may be computed, and no server started, anew. The
tests run in their order, and the last ones remove everything.
"""

import json
import os
import secrets
import shutil
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from hack.deploy.command import TargetCluster, executable
from hack.deploy.install import NAMESPACE, RELEASE, install
from hack.devcluster.addresses import NODE_ADDRESS
from hack.devcluster.binaries import program
from hack.devcluster.paths import cluster_paths
from hack.release import sample
from tests.apiserver.operator_process import eventually
from tests.converters.https_server import make_authority
from tests.e2e.applied import Applied, stage_of
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.watching import Watch
from tests.page import Shell
from tests.release import commands
from tests.release.conftest import Released
from tests.release.registry import Registry, secured
from tests.release.tree import Tree

pytestmark = pytest.mark.release
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
TRUST = """\
helm upgrade triton-operator "oci://$REGISTRY/charts/triton-operator" --version "$VERSION" \\
  --namespace triton-operator --reset-then-reuse-values --wait \\
  --set-file sources.caBundle=ca.pem --set-json "networkPolicy.sources.egress=$EGRESS"
"""
"""What the page says in words of a registry inside: its port, and its certificate."""
ASK = "To send a request"
"""How the words begin with which the plugin prints a request."""
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
    by_https: str
    """The same registry for a source Job."""
    shell: Shell
    ran: set[str] = field(default_factory=set)
    """The commands of the page that were run."""

    def follow(self, *typed: str, version: str = FIRST) -> list[str]:
        """Run commands of the page for a version; return what each printed."""
        self.ran.update(typed)
        registries = {commands.SERVE: self.by_https}
        return [self.shell.run(each, REGISTRY=registries.get(each, self.registry), VERSION=version) for each in typed]

    def take(self, released: Released) -> None:
        """Put a release's files into the reader's folder."""
        shutil.copytree(released.files, self.shell.folder, dirs_exist_ok=True)

    def remains(self) -> str:
        """What the cluster still has of the objects of the release's manifest."""
        return self.shell.run("kubectl get --filename install.yaml --ignore-not-found --output name")

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
    authority, certificate = make_authority(tmp_path_factory.mktemp("authority"), f"IP:{NODE_ADDRESS}")
    shutil.copyfile(authority, shell.folder / "ca.pem")
    kubectl = Kubectl(str(program("kubectl")), kubeconfig)
    try:
        with secured(registry, tmp_path_factory.mktemp("secured"), NODE_ADDRESS, certificate) as by_https:
            found = Installation(kubectl, f"{registry.host}/whole", f"{by_https.host}/whole", shell)
            found.take(releases[FIRST])
            found.follow(*commands.VERIFY, commands.SHOW_VALUES, commands.INSTALL, commands.LOOK, commands.CPU)
            shell.run(TRUST, REGISTRY=found.registry, VERSION=FIRST, EGRESS=egress(by_https.host))
            yield found
    finally:
        remove(cluster)
        if RELEASE in before:
            install(kubeconfig)


@dataclass(frozen=True)
class Served:
    """The object that serves the sample, and what `kubectl triton run` printed."""

    applied: Applied
    printed: str


@pytest.fixture(scope="module")
def served(installation: Installation) -> Iterator[Served]:
    """The sample, Ready under the first version."""
    kubectl = installation.kubectl.within(f"release-{secrets.token_hex(3)}")
    watch = Watch(kubectl)
    try:
        kubectl.run("create", "namespace", kubectl.namespace)
        installation.shell.run(f"kubectl config set-context --current --namespace {kubectl.namespace}\n")
        printed = installation.follow(commands.PLUGIN, commands.SERVE)[-1]
        file = installation.shell.folder / f"{sample.NAME}.yaml"
        found = Applied(kubectl, watch, yaml.safe_load(file.read_text()), sample.NAME)
        found.wait_ready(1)
        yield Served(found, printed)
    finally:
        watch.stop()
        kubectl.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", timeout=300)


@pytest.fixture
def applied(served: Served) -> Applied:
    """The object that serves the sample."""
    return served.applied


def egress(host: str) -> str:
    """The chart's value for a registry at ADDRESS:PORT, as JSON."""
    address, _, port = host.rpartition(":")
    peer = {"to": [{"ipBlock": {"cidr": f"{address}/32"}}], "ports": [{"protocol": "TCP", "port": int(port)}]}
    return json.dumps([peer])


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


def test_the_sample_of_the_registry_answers(served: Served, installation: Installation) -> None:
    request = served.printed.partition(ASK)[2].partition("\n")[2]
    answer = installation.shell.run(f"trap 'kill $(jobs -p)' EXIT\n{request}")
    body, _ = json.JSONDecoder().raw_decode(answer, answer.index('{"'))
    assert {each["name"]: each["shape"] for each in body["outputs"]}["probabilities"] == [1, 10]


def test_an_upgrade_and_a_rollback_compute_and_restart_nothing(
    installation: Installation, releases: dict[str, Released], applied: Applied
) -> None:
    first, second = (releases[version].digests["operator"][1] for version in (FIRST, SECOND))
    assert first != second
    before = seen(applied)
    assert before.servers
    installation.take(releases[SECOND])
    installation.follow(*commands.VERIFY, commands.PLUGIN, commands.VALIDATE, version=SECOND)
    for digest in (second, first):
        began = time.time()
        if digest == second:
            installation.follow(commands.UPGRADE, version=SECOND)
        else:
            installation.follow(commands.HISTORY, commands.ROLL_BACK)
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
    installation.follow(commands.REMOVE)
    assert installation.remains() == ""
    assert not installation.kubectl.exists("crd", CRD)
    kinds = ("pods", "services", "persistentvolumeclaims", "jobs", "deployments", "networkpolicies", "configmaps")
    eventually(lambda: not [each for kind in kinds for each in applied.children(kind)], within=LEASE_SECONDS)


def test_without_helm_it_is_installed_and_removed_too(installation: Installation) -> None:
    installation.follow(commands.INSTALL_WITHOUT_HELM, commands.DEFINITION, version=SECOND)
    within = installation.kubectl.within(NAMESPACE)
    within.run("rollout", "status", f"deployment/{RELEASE}", timeout=LEASE_SECONDS)
    installation.follow(commands.REMOVE_WITHOUT_HELM)
    assert installation.remains() == ""
    assert not installation.kubectl.exists("namespace", NAMESPACE)


def test_every_command_of_the_page_was_run(installation: Installation) -> None:
    assert installation.ran == commands.RUN
