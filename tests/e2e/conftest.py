"""Starts everything at once: two cores are kept busy by several objects, and each test waits for its own.

A lane is a function that applies objects and waits for them in a thread. It starts with the first test of this folder,
if a collected test asks for the fixture of its name, and all ends with the last one: what follows may stop the node.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hack.deploy.command import TargetCluster
from hack.deploy.images import load
from hack.deploy.install import NAMESPACE, RELEASE, install
from hack.devcluster.binaries import program
from hack.devcluster.paths import cluster_paths
from tests.converters.https_server import make_authority
from tests.e2e import (
    attacks,
    cascading,
    configmap,
    conversion,
    deletion,
    downloading,
    ensemble,
    evolution,
    happy,
    last_words,
    pictures,
    possessing,
    prober,
    publishing,
    regressing,
    repair,
    requiring,
    running,
    served_already,
    smallest,
    soaking,
    texts,
    unlabelling,
    workbench,
)
from tests.e2e.bad_inputs import BadInput
from tests.e2e.full_claim import DEFAULT_KUBELET
from tests.e2e.hosts import Hosts
from tests.e2e.kubectl import Kubectl
from tests.e2e.outside import Outside, outside
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.e2e.watching import Watch

HOSTS = ("host-1", "host-2")
PROBED = (*HOSTS, evolution.NAME, attacks.NEIGHBOUR, soaking.NAME, configmap.NAME)
MODELS = dict.fromkeys(PROBED, "classifier")
LANES: dict[str, Callable[[Suite], Any]] = {
    "soaked": soaking.run,
    "attacked": attacks.run,
    "evolved": evolution.run,
    "formats": conversion.formats,
    "from_configmap": configmap.run,
    "smallest_object": smallest.run,
    "published": publishing.run,
    "regressed": regressing.run,
    "downloaded": downloading.run,
    "happy_object": happy.run,
    "more_memory": repair.memory,
    "shapes": conversion.shapes,
    "last_words_read": last_words.run,
    "damaged": repair.damage,
    "pictures": pictures.run,
    "scorer": ensemble.run,
    "unlabelled": unlabelling.run,
    "served_already": served_already.run,
    "ran": running.run,
    "texts": texts.run,
    "possessed": possessing.run,
    "required": requiring.run,
    "cascade": cascading.run,
    "deleted": deletion.run,
    "retried": repair.retry,
    "full_claim": repair.storage,
}
"""By the fixture that gives its outcome; those that take longest come first."""
LANES_AT_A_TIME = 4
BEGAN = time.time()
CRD = "crds/tritondeployments.triton-operator.dev.yaml"
"""Helm keeps it, as it should for a user."""
OF_THIS_MACHINE = {"downloaded", "unlabelled"}
"""Lanes that need the node of our own cluster."""
LAST = ("test_rest", "test_clients", "test_turns", "test_rights")
"""What comes to rest does so while the other tests run; then the installation's values change, for every object; and at
the end one looks at all that the operator has asked for."""
APART = {"test_examples": pytest.mark.examples, "test_monitoring": pytest.mark.observe}
"""Modules that another target runs: they take long, or need programs of other projects."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all of this folder, and put those that wait longest at the end."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(APART.get(item.path.stem, pytest.mark.e2e))
    items.sort(key=lambda item: LAST.index(item.path.stem) + 1 if item.path.stem in LAST else 0)


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    """A running cluster: KUBECONFIG's, or ours, started if need be."""
    paths = cluster_paths()
    named = Path(os.environ.get("KUBECONFIG") or paths.kubeconfig)
    TargetCluster(named).run("python3", "-m", "hack.devcluster", "up", timeout=1800, show=True)
    return named


@pytest.fixture(scope="session")
def began() -> float:
    """When the suite began, in seconds since the epoch."""
    return BEGAN


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The certificate of an authority, and that of a server named `index`, with its key."""
    return make_authority(tmp_path_factory.mktemp("authority"), "DNS:index")


@pytest.fixture(scope="session", name="outside")
def servers_outside(
    kubeconfig: Path, cluster: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outside | None]:
    """Servers on the node's address; None: the node of another cluster is not this machine."""
    if kubeconfig != cluster_paths().kubeconfig:
        yield None
        return
    addresses = cluster.items("nodes")[0]["status"]["addresses"]
    address = next(str(each["address"]) for each in addresses if each["type"] == "InternalIP")
    with outside(tmp_path_factory.mktemp("outside"), address) as found:
        yield found


@pytest.fixture(scope="session")
def values(authority: tuple[Path, Path], outside: Outside | None) -> Mapping[str, Any]:
    """The chart's values, besides those that this tree needs."""
    of_index = authority[0].read_text()
    more = outside.values(of_index) if outside else {"sources": {"caBundle": of_index}}
    # The tests are many and share a node; `test_turns` alone looks at who waits for whom.
    return {**more, "allowed": {"pythonSteps": True}, "measurements": {"perNode": 0}}


@pytest.fixture(scope="session")
def installed(kubeconfig: Path, values: Mapping[str, Any]) -> Iterator[str]:
    """The operator of this tree, installed as a user would; gives the converter's image."""
    cluster = TargetCluster(kubeconfig)
    before = cluster.run("helm", "list", "--namespace", NAMESPACE, "--short").split()
    install(kubeconfig, values)
    yield load(cluster, "converter")["converter"]
    if RELEASE in before:
        install(kubeconfig)
    else:
        cluster.run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
        cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found")
        cluster.run("kubectl", "delete", "--ignore-not-found", "--filename", CRD)


@pytest.fixture(scope="session")
def cluster(kubeconfig: Path) -> Kubectl:
    """kubectl for the cluster."""
    return Kubectl(str(program("kubectl")), kubeconfig)


@pytest.fixture(scope="package")
def suite(
    cluster: Kubectl, installed: str, authority: tuple[Path, Path], outside: Outside | None, cases: frozenset[str]
) -> Iterator[Suite]:
    """Two fresh namespaces, removed at the end with all that is in them; nobody waits for that."""
    run = f"e2e-{secrets.token_hex(3)}"
    busy, quiet = cluster.within(f"{run}-busy"), cluster.within(f"{run}-quiet")
    watch = Watch(cluster)
    ours = cluster.kubeconfig == cluster_paths().kubeconfig
    kubelet = cluster_paths().kubelet if ours else DEFAULT_KUBELET
    try:
        for kubectl in (busy, quiet):
            kubectl.run("create", "namespace", kubectl.namespace)
        bench = workbench.start(busy, installed)
        bench.fill()
        asking = prober.start(busy, installed, MODELS)
        yield Suite(busy, quiet, watch, bench, asking, kubelet, authority[1], outside, cases, installed)
    finally:
        watch.stop()
        cluster.run("delete", "namespace", busy.namespace, quiet.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="session")
def cases(request: pytest.FixtureRequest) -> frozenset[str]:
    """The texts among the parameters of the collected tests."""
    return frozenset(each for each in _parameters(request) if isinstance(each, str))


def _parameters(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The parameters of the collected tests."""
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    return (each for spec in specs if spec is not None for each in spec.params.values())


@pytest.fixture(scope="package")
def wanted(request: pytest.FixtureRequest) -> frozenset[str]:
    """Names of the fixtures that the collected tests ask for."""
    return frozenset(name for item in request.session.items for name in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="package")
def lanes(suite: Suite, wanted: frozenset[str]) -> Iterator[dict[str, "Future[Any]"]]:
    """The lanes that are wanted, as futures."""
    chosen = wanted if suite.outside else wanted - OF_THIS_MACHINE
    with ThreadPoolExecutor(LANES_AT_A_TIME) as executor:
        yield {name: executor.submit(run, suite) for name, run in LANES.items() if name in chosen}
        suite.watch.stop()
        executor.shutdown(cancel_futures=True)


@pytest.fixture(scope="package")
def bad_inputs(request: pytest.FixtureRequest, suite: Suite, lanes: object) -> Iterator[Hosts]:
    """The collected cases, on their hosts; ``lanes`` first: the longest of them takes longer."""
    cases = tuple(each for each in _parameters(request) if isinstance(each, BadInput))
    hosts = tuple(suite.new(name) for name in HOSTS)
    with ThreadPoolExecutor(len(HOSTS)) as executor:
        yield Hosts(hosts, cases, executor)
        suite.watch.stop()
        executor.shutdown(cancel_futures=True)


@pytest.fixture(scope="package", autouse=True)
def everything_started(request: pytest.FixtureRequest, wanted: frozenset[str]) -> None:
    """Start all that is wanted before the first test waits for anything."""
    for name in ("lanes", "bad_inputs"):
        if name in wanted:
            request.getfixturevalue(name)


@pytest.fixture(scope="package")
def happy_object(lanes: dict[str, "Future[Any]"]) -> happy.Happy:
    """The one object that uses everything, Ready."""
    return lanes["happy_object"].result()


@pytest.fixture(scope="package")
def formats(lanes: dict[str, "Future[Any]"]) -> conversion.Formats:
    """Outcome of the lane."""
    return lanes["formats"].result()


@pytest.fixture(scope="package")
def evolved(lanes: dict[str, "Future[Any]"]) -> evolution.Evolution:
    """Outcome of the lane."""
    return lanes["evolved"].result()


@pytest.fixture(scope="package")
def soaked(lanes: dict[str, "Future[Any]"]) -> soaking.Soaked:
    """Outcome of the lane."""
    return lanes["soaked"].result()


@pytest.fixture(scope="package")
def shapes(lanes: dict[str, "Future[Any]"]) -> conversion.Shapes:
    """Outcome of the lane."""
    return lanes["shapes"].result()


@pytest.fixture(scope="package")
def attacked(lanes: dict[str, "Future[Any]"]) -> attacks.Attacked:
    """Outcome of the lane."""
    return lanes["attacked"].result()


@pytest.fixture(scope="package")
def possessed(lanes: dict[str, "Future[Any]"]) -> Mapping[str, possessing.Told]:
    """Outcome of the lane."""
    return lanes["possessed"].result()


@pytest.fixture(scope="package")
def last_words_read(lanes: dict[str, "Future[Any]"]) -> Mapping[str, State]:
    """Outcome of the lane."""
    return lanes["last_words_read"].result()


@pytest.fixture(scope="package")
def more_memory(lanes: dict[str, "Future[Any]"]) -> repair.Mending:
    """Outcome of the lane."""
    return lanes["more_memory"].result()


@pytest.fixture(scope="package")
def retried(lanes: dict[str, "Future[Any]"]) -> repair.Mending:
    """Outcome of the lane."""
    return lanes["retried"].result()


@pytest.fixture(scope="package")
def damaged(lanes: dict[str, "Future[Any]"]) -> repair.Mending:
    """Outcome of the lane."""
    return lanes["damaged"].result()


@pytest.fixture(scope="package")
def full_claim(lanes: dict[str, "Future[Any]"]) -> repair.Mending:
    """Outcome of the lane."""
    return lanes["full_claim"].result()


@pytest.fixture(scope="package")
def deleted(lanes: dict[str, "Future[Any]"]) -> deletion.Deleted:
    """Outcome of the lane."""
    return lanes["deleted"].result()


@pytest.fixture(scope="package")
def from_configmap(lanes: dict[str, "Future[Any]"]) -> configmap.FromConfigMap:
    """Outcome of the lane."""
    return lanes["from_configmap"].result()


@pytest.fixture(scope="package")
def regressed(lanes: dict[str, "Future[Any]"]) -> regressing.Regressed:
    """Outcome of the lane."""
    return lanes["regressed"].result()


@pytest.fixture(scope="package")
def ran(lanes: dict[str, "Future[Any]"]) -> running.Ran:
    """Outcome of the lane."""
    return lanes["ran"].result()


@pytest.fixture(scope="package", name="served_already")
def served_already_object(lanes: dict[str, "Future[Any]"]) -> served_already.ServedAlready:
    """Outcome of the lane."""
    return lanes["served_already"].result()


@pytest.fixture(scope="package")
def smallest_object(lanes: dict[str, "Future[Any]"]) -> State:
    """Outcome of the lane."""
    return lanes["smallest_object"].result()


@pytest.fixture(scope="package")
def scorer(lanes: dict[str, "Future[Any]"]) -> ensemble.Scorer:
    """Outcome of the lane."""
    return lanes["scorer"].result()


@pytest.fixture(scope="package", name="pictures")
def pictures_object(lanes: dict[str, "Future[Any]"]) -> pictures.Pictures:
    """Outcome of the lane."""
    return lanes["pictures"].result()


@pytest.fixture(scope="package", name="cascade")
def cascade_object(lanes: dict[str, "Future[Any]"]) -> cascading.Cascade:
    """A Python step that asks two models by itself."""
    return lanes["cascade"].result()


@pytest.fixture(scope="package", name="texts")
def texts_object(lanes: dict[str, "Future[Any]"]) -> texts.Texts:
    """Outcome of the lane."""
    return lanes["texts"].result()


@pytest.fixture(scope="package")
def required(lanes: dict[str, "Future[Any]"]) -> requiring.Required:
    """Outcome of the lane."""
    return lanes["required"].result()


@pytest.fixture(scope="package")
def published(lanes: dict[str, "Future[Any]"], outside: Outside | None) -> publishing.Published:
    """Outcome of the lane."""
    if outside is None:
        pytest.skip("the registry runs on the node of the development cluster")
    return lanes["published"].result()


@pytest.fixture(scope="package")
def downloaded(lanes: dict[str, "Future[Any]"], outside: Outside | None) -> downloading.Downloaded:
    """Outcome of the lane."""
    if outside is None:
        pytest.skip("the servers run on the node of the development cluster")
    return lanes["downloaded"].result()


@pytest.fixture(scope="package")
def unlabelled(lanes: dict[str, "Future[Any]"], outside: Outside | None) -> None:
    """The end of the lane."""
    if outside is None:
        pytest.skip("the audit log of another cluster cannot be read from here")
    lanes["unlabelled"].result()
