"""Many settled TritonDeployments in a store: one run of the simulation to its end, copied into namespaces."""

import json
import re
from typing import Any

from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment
from triton_operator.kube.kinds import kind_of
from triton_operator.runtime.store import Key, Store

Body = dict[str, Any]


def settled() -> tuple[Cluster, list[Body]]:
    """A simulation at rest, and all its objects."""
    cluster = a_deployment().serving().cluster()
    body = cluster.body()
    body["metadata"]["creationTimestamp"] = "2026-11-21T00:00:00Z"
    return cluster, [body, *cluster.objects.values()]


def filled(store: Store, bodies: list[Body], count: int) -> list[Key]:
    """Put so many copies of the objects into a store, each in a namespace of its own; the keys."""
    texts = [json.dumps(body) for body in bodies]
    for number in range(count):
        for version, first in enumerate(texts, start=2):
            # Not the TritonDeployment's own uid, which is part of results' keys.
            text = re.sub(r"\buid-([1-9]\d*)\b", rf"{number:08x}-0000-4000-8000-0000000\g<1>", first)
            body = json.loads(re.sub(r"\bvision\b", f"n{number}", text))
            body["metadata"]["resourceVersion"] = str(version)
            body["metadata"].setdefault("namespace", f"n{number}")
            store.put(kind_of(body), body)
    return [Key(f"n{number}", bodies[0]["metadata"]["name"]) for number in range(count)]
