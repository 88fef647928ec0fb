"""What an older version of the operator left in a cluster."""

import json
from typing import Any

from tests.simulation.cluster import Cluster
from triton_operator import names


def label_as_before(cluster: Cluster) -> None:
    """Take away the label by which the pods of servers are selected now, wherever it is, and what selects by it."""
    cluster.objects.update({at: _as_before(body) for at, body in cluster.objects.items()})
    cluster.status = _as_before(cluster.status)


def _as_before(value: Any) -> Any:
    if isinstance(value, dict):
        before = {_as_before(key): _as_before(each) for key, each in value.items()}
        return before | ({names.OLD_SERVER_LABEL: value[names.SERVER_LABEL]} if names.SERVER_LABEL in value else {})
    if isinstance(value, list):
        return [_as_before(each) for each in value]
    if not isinstance(value, str) or names.SERVER_LABEL not in value:
        return value
    if value.startswith("{"):
        return json.dumps(_as_before(json.loads(value)), sort_keys=True, separators=(",", ":"))
    return value.replace(names.SERVER_LABEL, names.OLD_SERVER_LABEL)
