"""Every pod spec of the golden cases, the attacks and the shell by three kubelets; their statuses are alike."""

import json
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hack.deploy.command import TargetCluster
from hack.deploy.images import load
from hack.devcluster.binaries import program
from hack.devcluster.paths import cache_home, cluster_paths
from tests.conformance import collected, shell
from tests.conformance.cases import CONVERTER, SERVER, SYSTEM, SYSTEM_IMAGE, Case
from tests.conformance.kubelets import Here, InCluster, data_of, run
from tests.conformance.recorded import record
from tests.conformance.statuses import MEANT, Difference, Told, differences
from tests.e2e.kubectl import Kubectl
from triton_local import install
from triton_local.boxed import Box
from triton_local.images import Images
from triton_local.install import Installation
from triton_local.interpreter import python
from triton_local.plain import Plain
from triton_local.runtime import Image

pytestmark = pytest.mark.conformance
ROOT = Path(__file__).parents[2]
AT_A_TIME = 6
ARCHIVES = {CONVERTER: "converter", SERVER: "tritonserver-cpu"}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """All cases; those of the shell first."""
    found = [*shell.cases(), *collected.speakers(), *collected.views(), *collected.as_they_are()]
    assert len({each.name for each in found}) == len(found)
    return found


@pytest.fixture(scope="module")
def kubelet(cases: list[Case]) -> Mapping[str, Told]:
    """What the development cluster's kubelet says of each pod."""
    paths = cluster_paths()
    target = TargetCluster(paths.kubeconfig)
    target.run("python3", "-m", "hack.devcluster", "up", timeout=1800, show=True)
    references = load(target, *ARCHIVES.values())
    images = {role: references[name] for role, name in ARCHIVES.items()}
    namespace = f"conformance-{secrets.token_hex(3)}"
    kubectl = Kubectl(str(program("kubectl")), paths.kubeconfig, namespace)
    kubectl.run("create", "namespace", namespace)
    cluster = InCluster(kubectl, images | {SYSTEM: images[CONVERTER]}, data_of(cases), paths.storage / namespace)
    try:
        said = run(cluster, cases, AT_A_TIME)
    finally:
        cluster.close()
    record({name: said[name] for name in shell.SPECS})
    return said


def finished(here: Here, cases: Sequence[Case]) -> Mapping[str, Told]:
    """What is said of the cases, once all of their programs have ended: others need their addresses."""
    try:
        return run(here, cases, AT_A_TIME)
    finally:
        here.close()


@pytest.fixture(scope="module")
def box(cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    """What Box says of each, with the images of the cluster."""
    argv = [sys.executable, "-m", "hack.imagebuild", "build", "--json", *ARCHIVES.values()]
    built = json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    archives = {each["name"]: Path(each["archive"]) for each in built}
    images = Images(cache_home() / "unpacked")
    added = {role: images.add(f"an/{name}", archives[name]) for role, name in ARCHIVES.items()}

    def image(name: str) -> Image:
        return SYSTEM_IMAGE if name == SYSTEM else images.image(added[name])

    for each in added.values():
        # Unpacked before a pod waits for it.
        images.image(each)
    here = Here(tmp_path_factory.mktemp("box"), Box(), image, data_of(cases))
    return finished(here, cases)


@pytest.fixture(scope="module")
def plain(cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    """What Plain says of those that it may run, with what an installation has."""
    own = [each for each in cases if each.plain]
    installation = Installation(cache_home() / "local", python(sys.executable), print)
    repositories = {CONVERTER: install.CONVERTER, SERVER: install.SERVER}

    def image(name: str) -> Image:
        if name == SYSTEM:
            return SYSTEM_IMAGE
        found = installation.image(installation.name(repositories[name]))
        assert found is not None
        return found

    here = Here(tmp_path_factory.mktemp("plain"), Plain(), image, data_of(own))
    return finished(here, own)


@pytest.mark.parametrize("runtime", ["Box", "Plain"])
def test_statuses_are_those_of_the_kubelet(
    request: pytest.FixtureRequest, kubelet: Mapping[str, Told], rows: list[Difference], runtime: str
) -> None:
    said: Mapping[str, Told] = request.getfixturevalue(runtime.lower())
    found = [each for name in said for each in differences(name, runtime, kubelet[name], said[name])]
    rows += found
    not_meant = [str(each) for each in found if not any(meant.covers(each) for meant in MEANT)]
    assert not_meant == []


def test_each_difference_that_is_meant_is_there(rows: list[Difference]) -> None:
    """Else the table would excuse what no longer is."""
    assert [meant for meant in MEANT if not any(meant.covers(each) for each in rows)] == []
