"""Files from everywhere, for two objects that share one conversion."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.converters import registry_server, s3_server
from tests.converters.hub_server import Hub
from tests.e2e.applied import Applied
from tests.e2e.configmap import DUMP
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.e2e.workbench import DATA, SOURCE

NEWER_COMMIT = "f" * 40
WEIGHTS = "classifier.safetensors"
CODE = ("classifier.py", "checkpoints.py", "loader.py", "metrics.py")
READING: dict[str, Any] = {
    "dataloader": {"arguments": {"kind": "classifier", "labels": "classes.npy", "data_dir": "$(DATASET)/data"}},
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
    servers: frozenset[str]
    """HOST:PORT of each."""
    followed: tuple[State, State]
    """Once both follow their sources, of which nothing newer is there."""
    newer: tuple[State, State]
    """Once something newer is there, of which they only tell."""
    newer_digest: str


def run(suite: Suite) -> Downloaded:
    """Code and weights of the one object come by oci and s3, of the other by hf and https; the data by oci."""
    outside = suite.outside
    assert outside is not None
    everything, data = _files(suite, SOURCE), _files(suite, DATA)
    code = {name: everything[name] for name in CODE}
    digest = outside.registry.push("code", code)
    outside.registry.push("data", {}, {"data": registry_server.archive({f"data/{n}": c for n, c in data.items()})})
    outside.bucket.put(f"v1/{WEIGHTS}", everything[WEIGHTS])
    outside.web.behaviour.content = everything[WEIGHTS]
    outside.hub.behaviour.hub = Hub(code)
    _secret(suite, "registry", **{".dockerconfigjson": registry_server.a_docker_config(outside.registry.host)})
    keys = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET}
    _secret(suite, "bucket", AWS_ENDPOINT_URL=outside.bucket.url, **keys)
    by_data = {"uri": outside.registry.uri(":data"), "secretRef": {"name": "registry"}}
    places: dict[str, dict[str, Any]] = {
        "from-registry": {
            "source": {"uri": outside.registry.uri(":code"), "secretRef": {"name": "registry"}},
            "weights": {"uri": f"s3://models/v1/{WEIGHTS}", "secretRef": {"name": "bucket"}},
        },
        "from-hub": {
            "source": {"uri": "hf://acme/ocr"},
            "weights": {"uri": outside.web.uri(f"models/{WEIGHTS}")},
        },
    }
    first, second = (suite.new(name) for name in places)
    specs = {name: {**READING, **place, "dataset": by_data} for name, place in places.items()}
    ready = [each.wait_ready(each.apply(specs[each.name])) for each in (first, second)]
    jobs = [tuple(each.jobs().values()) for each in (first, second)]
    followed = [_follow(each, specs[each.name]) for each in (first, second)]
    code["read.me"] = b"a newer version"
    newer_digest = outside.registry.push("code", code)
    outside.hub.behaviour.hub = Hub(code, commit=NEWER_COMMIT)
    newer = [_look(each) for each in (first, second)]
    return Downloaded(
        first=ready[0].state,
        second=ready[1].state,
        first_jobs=jobs[0],
        second_jobs=jobs[1],
        followed=(followed[0], followed[1]),
        newer=(newer[0], newer[1]),
        newer_digest=newer_digest,
        digest=digest,
        connected=frozenset(outside.connected),
        servers=frozenset(outside.hosts),
    )


def _follow(applied: Applied, spec: Mapping[str, Any]) -> State:
    """Follow the source without serving what is newer; the state after the first look."""
    source = {**spec["source"], "interval": "1h", "onChange": "Notify"}
    generation = applied.apply({**spec, "source": source})

    def looked(state: State) -> bool:
        return state.holds("UpToDate") and "lastCheckedAt" in state.status["source"]

    return applied.wait("a look", looked, generation=generation).state


def _look(applied: Applied) -> State:
    """Ask for a look; the state once it has told of a newer version."""
    request = "triton-operator.dev/requestedAt=once-more"
    applied.kubectl.run("annotate", "tritondeployment", applied.name, request)
    generation = applied.state.generation
    return applied.wait("news", lambda state: state.says("UpToDate", "NewerVersion"), generation=generation).state


def _files(suite: Suite, folder: str) -> dict[str, bytes]:
    """The files of a folder of the workbench."""
    found = json.loads(suite.workbench.run("python3", "-c", DUMP, folder))
    return {name: base64.b64decode(content) for name, content in found.items()}


def _secret(suite: Suite, name: str, **values: str) -> None:
    suite.busy.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values})
