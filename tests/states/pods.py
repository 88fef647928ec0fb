"""What the status of a pod says where it does not run."""

from typing import Any

Body = dict[str, Any]
NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
"""What the scheduler says where all GPUs are taken."""


def without_a_node(message: str = NO_GPU, since: str = "2026-11-21T00:00:12Z") -> Body:
    """The status of a pod that the scheduler found no node for. ``since``: when it said so."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [refused | {"lastTransitionTime": since}]}
