"""Files from everywhere, for two objects that share one conversion. Runs once no other object needs the network.

Servers on the node's address have a certificate of an authority that nobody else trusts. The Jobs may reach a proxy
alone, and nothing without it.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.deploy.command import TargetCluster
from hack.deploy.install import CHART, NAMESPACE, RELEASE, install
from hack.devcluster.paths import cluster_paths
from tests.converters import registry_server, s3_server
from tests.converters.https_server import Behaviour, make_authority, proxying, serving
from tests.converters.hub_server import COMMIT, Hub
from tests.e2e.applied import stage_of
from tests.e2e.configmap import DUMP
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.e2e.workbench import DATA, SOURCE

WEIGHTS = "classifier.safetensors"
CODE = ("classifier.py", "checkpoints.py", "loader.py", "metrics.py")
READING: dict[str, Any] = {
    "dataloader": {"arguments": {"kind": "classifier", "labels": "classes.npy", "data_dir": "$(DATA)/data"}},
    "model": {"arguments": {"checkpoint": f"$(WEIGHTS)/{WEIGHTS}"}},
}


@dataclass(frozen=True)
class Downloaded:
    """The objects once they are Ready, with their Jobs, and what the proxy connected to."""

    first: State
    second: State
    first_jobs: tuple[Object, ...]
    second_jobs: tuple[Object, ...]
    digest: str
    """The manifest's, of the code."""
    connected: frozenset[str]
    servers: dict[str, str]
    """HOST:PORT by scheme."""


def node_address(suite: Suite) -> str:
    """The address of the node, on which this machine serves."""
    addresses = suite.busy.items("nodes")[0]["status"]["addresses"]
    return next(str(each["address"]) for each in addresses if each["type"] == "InternalIP")


def files(suite: Suite, folder: str) -> dict[str, bytes]:
    """The files of a folder of the workbench."""
    found = json.loads(suite.workbench.run("python3", "-c", DUMP, folder))
    return {name: base64.b64decode(content) for name, content in found.items()}


def secret(suite: Suite, name: str, **values: str) -> None:
    suite.busy.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values})


@pytest.fixture(scope="module")
def downloaded(suite: Suite, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Downloaded]:
    """Two objects: code and weights of the one come by oci and s3, of the other by hf and https; the data by oci."""
    if kubeconfig != cluster_paths().kubeconfig:
        pytest.skip("the servers run on the node of the development cluster")
    folder, address = tmp_path_factory.mktemp("servers"), node_address(suite)
    authority, certificate = make_authority(folder, f"IP:{address}")
    everything, data = files(suite, SOURCE), files(suite, DATA)
    code = {name: everything[name] for name in CODE}
    with ExitStack() as stack:
        (folder / "registry").mkdir()
        registry = stack.enter_context(registry_server.serving(folder / "registry", certificate, authority, address))
        (folder / "s3").mkdir()
        bucket = stack.enter_context(s3_server.serving(folder / "s3", certificate, address))
        web = stack.enter_context(serving(certificate, Behaviour(everything[WEIGHTS]), address))
        hub = stack.enter_context(serving(certificate, Behaviour(hub=Hub(code)), address))
        proxy, connected = stack.enter_context(proxying((), address))
        digest = registry.push("code", code)
        registry.push("data", {}, {"data": registry_server.archive({f"data/{n}": c for n, c in data.items()})})
        bucket.put(f"v1/{WEIGHTS}", everything[WEIGHTS])
        account = {".dockerconfigjson": registry_server.a_docker_config(registry.host)}
        secret(suite, "registry", **account)
        keys = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET}
        secret(suite, "bucket", AWS_ENDPOINT_URL=bucket.url, **keys)
        port = int(proxy.rpartition(":")[2])
        egress = [{"to": [{"ipBlock": {"cidr": f"{address}/32"}}], "ports": [{"protocol": "TCP", "port": port}]}]
        chart = {
            "sources": {"proxy": proxy, "caBundle": authority.read_text(), "hub": f"https://{hub.host}"},
            "networkPolicy": {"sources": {"egress": egress}},
        }
        (folder / "values.json").write_text(json.dumps(chart))
        TargetCluster(kubeconfig).run(
            "helm", "upgrade", RELEASE, CHART, "--namespace", NAMESPACE, "--reuse-values",
            "--values", str(folder / "values.json"), "--wait", "--timeout", "180s", timeout=240,
        )  # fmt: skip
        stack.callback(install, kubeconfig)
        by_data = {"uri": registry.uri(":data"), "secretRef": {"name": "registry"}}
        places: dict[str, dict[str, Any]] = {
            "from-registry": {
                "source": {"uri": registry.uri(":code"), "secretRef": {"name": "registry"}},
                "weights": {"uri": f"s3://models/v1/{WEIGHTS}", "secretRef": {"name": "bucket"}},
            },
            "from-hub": {
                "source": {"uri": "hf://acme/ocr"},
                "weights": {"uri": web.uri(f"models/{WEIGHTS}")},
            },
        }
        first, second = (suite.new(name) for name in places)
        ready = [
            each.wait_ready(each.apply({**READING, **places[each.name], "data": by_data})) for each in (first, second)
        ]
        yield Downloaded(
            first=ready[0].state,
            second=ready[1].state,
            first_jobs=tuple(first.jobs().values()),
            second_jobs=tuple(second.jobs().values()),
            digest=digest,
            connected=frozenset(connected),
            servers={
                "oci": registry.host,
                "s3": bucket.url.removeprefix("https://"),
                "https": web.host,
                "hf": hub.host,
            },
        )


def test_what_came_serves(downloaded: Downloaded) -> None:
    for state in (downloaded.first, downloaded.second):
        assert state.status["serving"]["candidate"] == "onnx-fp32", state.summary()
        assert state.condition("Verified")["status"] == "True", state.summary()


def test_the_versions_are_recorded(downloaded: Downloaded) -> None:
    assert downloaded.first.status["source"]["resolved"] == downloaded.digest
    assert downloaded.second.status["source"]["resolved"] == COMMIT


def test_every_server_was_reached_through_the_proxy(downloaded: Downloaded) -> None:
    assert downloaded.connected == set(downloaded.servers.values())


def test_the_same_files_from_elsewhere_are_the_same_revision(downloaded: Downloaded) -> None:
    assert downloaded.first.status["source"]["digest"] == downloaded.second.status["source"]["digest"]
    assert downloaded.first.revision == downloaded.second.revision


def test_only_source_jobs_mount_a_secret_and_only_users_code_reads_the_data(downloaded: Downloaded) -> None:
    for job in (*downloaded.first_jobs, *downloaded.second_jobs):
        pod = job["spec"]["template"]["spec"]
        secrets = [each for each in pod["volumes"] if "secret" in each]
        assert not secrets or stage_of(job) == "source"
        containers = [*pod.get("initContainers", []), *pod["containers"]]
        reading = {each["name"] for each in containers if any(m["mountPath"] == "/data" for m in each["volumeMounts"])}
        assert reading <= {"run"}
