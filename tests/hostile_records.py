"""What a tenant who may edit the results ConfigMap writes into it."""

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from tests.simulation.cluster import Cluster

RESULTS = ("ConfigMap", "digits-results")


def packed(value: Any) -> str:
    """A value as a revision keeps it; a string is taken for JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> Any:
    """The value that a revision keeps."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def forge_revision(
    cluster: Cluster,
    template: Callable[[Any], Any] = lambda each: each,
    told: Callable[[Any], Any] = lambda each: each,
    number: int = 1,
    **fields: str,
) -> str:
    """Change a revision of the history; return its key. ``number``: its place, newest first."""
    data = cluster.objects[RESULTS]["data"]
    recorded = json.loads(data["history"])
    revision = recorded["revisions"][number]
    parts = unpacked(revision["parts"])
    recorded["revisions"][number] = revision | {"parts": packed([template(parts[0]), told(parts[1])])} | fields
    data["history"] = json.dumps(recorded)
    return str(recorded["revisions"][number]["key"])


def forge_active(cluster: Cluster, **fields: Any) -> dict[str, Any]:
    """Change the record of what is active; return it as it was."""
    data = cluster.objects[RESULTS]["data"]
    was: dict[str, Any] = json.loads(data["soak.active"])
    data["soak.active"] = json.dumps(was | fields)
    return was
