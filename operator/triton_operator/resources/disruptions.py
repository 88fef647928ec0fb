"""The PodDisruptionBudget of the active revision: a drain ends one of several servers at a time. Pure."""

from typing import Any

from triton_operator import names
from triton_operator.context import Context
from triton_operator.resources.claim import spans_nodes


def disruption_budget(context: Context) -> dict[str, Any] | None:
    """The budget; None if there should be none.

    A single server has none, so that a drain ends it at once. Nor have servers that their claim keeps on one node: the
    next pod would wait for the drained node, and the drain for the next pod.
    """
    serving = context.spec.serving
    least = serving.autoscaling.min_replicas if serving.autoscaling is not None else 0
    if context.active_server is None or max(serving.replicas, least) < 2 or not spans_nodes(context):
        return None
    return {
        "apiVersion": names.POLICY_API_VERSION,
        "kind": names.DISRUPTION_BUDGET,
        "metadata": context.metadata(names.disruption_budget(context.name), "server"),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": names.server_pods(context.name, context.active_server)},
            # A server that is not ready answers nobody, and may be what the drain is to mend.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
