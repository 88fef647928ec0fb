"""Who owns an observed object. A label says which TritonDeployment it is for, an owner reference whose it is.

Pure. A name alone proves nothing: the object may be a user's, or left from an earlier TritonDeployment of that name.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from triton_operator.names import MANAGED_BY, MANAGED_BY_LABEL, TRITON_DEPLOYMENT_LABEL, Body


class Control(Enum):
    """Who controls an object, seen from a TritonDeployment."""

    OURS = auto()
    PREDECESSOR = auto()
    """An earlier TritonDeployment of the same name: the garbage collector is about to delete the object."""
    FOREIGN = auto()


def control(owner: Body, body: Body) -> Control:
    """Who controls `body`, seen from the TritonDeployment `owner`.

    An object with our labels and no controller is ours: a retained claim has none, and an orphaned object is adopted.
    """
    controller = _controller(body)
    if controller is None:
        return Control.OURS if has_labels(owner, body) else Control.FOREIGN
    if controller["uid"] == owner["metadata"]["uid"]:
        return Control.OURS
    same_name = (controller["kind"], controller["name"]) == (owner["kind"], owner["metadata"]["name"])
    return Control.PREDECESSOR if same_name else Control.FOREIGN


def has_labels(owner: Body, body: Body) -> bool:
    """Whether an object has the labels by which it is watched, and known as this TritonDeployment's."""
    labels = body["metadata"].get("labels") or {}
    named = labels.get(TRITON_DEPLOYMENT_LABEL) == owner["metadata"]["name"]
    return named and labels.get(MANAGED_BY_LABEL) == MANAGED_BY


def ours(owner: Body, children: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The children that are the TritonDeployment's, and the pods that its Jobs and Deployments made."""
    bodies = list(children)
    own = [body for body in bodies if body["kind"] != "Pod" and control(owner, body) is Control.OURS]
    jobs = {body["metadata"]["uid"] for body in own if body["kind"] == "Job"}
    return own + [body for body in bodies if body["kind"] == "Pod" and _is_our_pod(owner, jobs, body)]


def _is_our_pod(owner: Body, jobs: set[str], pod: Body) -> bool:
    controller = _controller(pod)
    if controller is None:
        return False
    if controller["kind"] == "Job":
        return controller["uid"] in jobs
    # ReplicaSets are not watched: a pod older than the TritonDeployment is its predecessor's.
    return bool(pod["metadata"]["creationTimestamp"] >= owner["metadata"]["creationTimestamp"])


def _controller(body: Body) -> Body | None:
    references: list[Body] = body["metadata"].get("ownerReferences", [])
    return next((reference for reference in references if reference.get("controller")), None)
