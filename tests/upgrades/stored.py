"""Objects and their children as version 0.1.0 left them; README.md tells what they are for."""

import json
import lzma
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.simulation.cluster import SETTINGS, Cluster
from triton_local.applied import as_stored
from triton_operator.settings import Settings

Body = dict[str, Any]
HERE = Path(__file__).parent
VERSION = "0.1.0"
CONTRACT = HERE / f"{VERSION}.zip"
"""The package triton_converters.contract of that version."""
FACTS = ("gpu_product_exists", "has_keda", "has_gateway_api")
"""What a cluster is like besides its objects."""
NEWER = replace(SETTINGS, converter_image="example/converter:2", server_image="example/server:2")
"""An installation that was upgraded, so that its images can be told from those that an object is pinned to."""


def read() -> Mapping[str, Body]:
    """What is stored, by the name of the state."""
    found: Mapping[str, Body] = json.loads(lzma.decompress((HERE / f"{VERSION}.json.xz").read_bytes()))
    return found


def recorded(cluster: Cluster) -> Body:
    """What is stored of a cluster."""
    settings = {each.name: getattr(cluster.settings, each.name) for each in fields(Settings)}
    return {
        "now": cluster.now.isoformat(),
        "settings": {name: value for name, value in settings.items() if value != getattr(SETTINGS, name)},
        "facts": {name: getattr(cluster, name) for name in FACTS},
        "body": cluster.body(),
        "children": list(cluster.objects.values()),
    }


def restored(state: Body) -> Cluster:
    """A cluster with these objects, run by the operator of this tree, whose installation has newer images."""
    state = deepcopy(state)
    body = state["body"]
    settings: Any = {name: tuple(each) if isinstance(each, list) else each for name, each in state["settings"].items()}
    return Cluster(
        body["spec"],
        settings=replace(NEWER, **settings),
        now=datetime.fromisoformat(state["now"]),
        generation=body["metadata"]["generation"],
        status=body["status"],
        objects={(each["kind"], each["metadata"]["name"]): as_stored(each, each, 1) for each in state["children"]},
        serial=1000,
        **state["facts"],
    )
