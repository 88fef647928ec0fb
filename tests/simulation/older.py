"""What an older version of the operator left in a cluster."""

import json
from typing import Any

from tests.simulation.cluster import Cluster
from triton_operator import names


def label_as_before(cluster: Cluster) -> None:
    """Take away the label of servers that an older version does not know, wherever it is."""
    cluster.objects.update({at: _as_before(body) for at, body in cluster.objects.items()})


def _as_before(value: Any) -> Any:
    if isinstance(value, dict):
        # Those with f: are of metadata.managedFields.
        new = (names.SERVER_LABEL, f"f:{names.SERVER_LABEL}")
        return {key: _as_before(each) for key, each in value.items() if key not in new}
    if isinstance(value, list):
        return [_as_before(each) for each in value]
    if isinstance(value, str) and value.startswith("{") and names.SERVER_LABEL in value:
        return json.dumps(_as_before(json.loads(value)), sort_keys=True, separators=(",", ":"))
    return value
