"""A Job and its pod as the operator and the Job controller make them, and what pods say that do not run."""

from typing import Any

from tests.states.deployment import a_deployment
from triton_operator.names import KEY_LABEL

Body = dict[str, Any]
NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
"""What the scheduler says where all GPUs are taken."""
POD, JOB, KEY = {"name": "p", "uid": "pod-1"}, {"name": "digits-convert-1", "uid": "job-1"}, "k"
"""Short names of the two and of what is asked, in place of hashes and numbers."""
ASKED = {"activeDeadlineSeconds": 60, "pod": {"resources": {"limits": {"memory": "64Mi"}}}}
"""Of conversions and of servers that are profiled."""


def without_a_node(message: str = NO_GPU, since: str = "2026-11-21T00:00:12Z") -> Body:
    """The status of a pod that the scheduler found no node for. ``since``: when it said so."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [refused | {"lastTransitionTime": since}]}


def a_job(*conditions: Body, stage: str = "convert") -> Body:
    """A Job of that stage, named JOB, whose status has these conditions; the caller's own."""
    job, _ = _made(stage)
    labels = job["metadata"]["labels"] | {KEY_LABEL: KEY}
    return job | {"metadata": job["metadata"] | JOB | {"labels": labels}, "status": {"conditions": list(conditions)}}


def a_pod(phase: str = "Pending", stage: str = "convert", **status: Any) -> Body:
    """The pod of such a Job, named POD, in that phase and with these fields of the status; the caller's own."""
    _, pod = _made(stage)
    (owner,) = pod["metadata"]["ownerReferences"]
    metadata = pod["metadata"] | POD | {"creationTimestamp": "2026-11-21T00:00:00Z"}
    metadata["ownerReferences"] = [owner | {"uid": JOB["uid"]}]
    return pod | {"metadata": metadata, "status": {"phase": phase, **status}}


def _made(stage: str) -> tuple[Body, Body]:
    asking = a_deployment().one_candidate().asking(conversion=ASKED, serving={"pod": ASKED["pod"]})
    cluster = asking.until_active(stage).stepped().cluster()
    pod = cluster.of_kind("Pod")[-1]
    (owner,) = pod["metadata"]["ownerReferences"]
    return next(job for job in cluster.of_kind("Job") if job["metadata"]["uid"] == owner["uid"]), pod
