"""Reads what keeps a pod from running, with the message of the cluster about it. Pure.

A Pending pod says why in its conditions and container statuses. What the kubelet tried in vain (a missing ConfigMap, a
volume that cannot be mounted) is told only by Events.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator.observed.events import events_about
from triton_operator.observed.pod import Container, PodView
from triton_operator.observed.sentences import hint, kubelet_advice, lacking_resources, refused_pod

BY_TAINT = "DeletionByTaintManager"
"""Reason of a pod's DisruptionTarget if its node was tainted, as it is when it does not answer."""
_WAITING = {
    "ErrImagePull": Reason.IMAGE_PULL_FAILED,
    "ImagePullBackOff": Reason.IMAGE_PULL_FAILED,
    "InvalidImageName": Reason.IMAGE_PULL_FAILED,
    "ErrImageNeverPull": Reason.IMAGE_PULL_FAILED,
    "CreateContainerConfigError": Reason.CONTAINER_CONFIG_INVALID,
    "CreateContainerError": Reason.CONTAINER_CONFIG_INVALID,
    "RunContainerError": Reason.CONTAINER_CONFIG_INVALID,
}
_FAILED = {
    "FailedMount": Reason.MOUNT_FAILED,
    "FailedAttachVolume": Reason.MOUNT_FAILED,
    "FailedCreatePodSandBox": Reason.CONTAINER_CONFIG_INVALID,
}
"""The condition's reason by the reason of an Event with which the kubelet reports a failed attempt."""
_ADVICE = {
    Reason.IMAGE_PULL_FAILED: "check the image's name, the registry and imagePullSecrets",
    Reason.CONTAINER_CONFIG_INVALID: "correct what the message names",
}


@dataclass(frozen=True)
class Trouble:
    """Why a pod does not do its work, and what to do about it."""

    reason: Reason
    message: str
    lacks: frozenset[str] = frozenset()
    """The resources of which no node, or no quota, has enough."""
    container: str = ""
    """Name of the container that does not start; empty: it is not about one."""


def pod_trouble(pod: PodView, events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """Return the trouble of a pod that has not ended; None if it runs or is only slow."""
    if pod.has_ended:
        return None
    if _has_lost_its_node(pod):
        return _lost_node_trouble(pod)
    if pod.is_disrupted:
        return eviction_trouble(pod)
    scheduled = pod.conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        verdict = scheduled.get("message", "")
        message = f"pod {pod.name} cannot be scheduled: {verdict}{hint(verdict)}"
        return Trouble(Reason.UNSCHEDULABLE, message, lacking_resources(verdict))
    if trouble := start_trouble(pod, events):
        return trouble
    if pod.holding is not None:
        message = holding_text(pod, pod.holding)
        return Trouble(Reason.SIDECAR_NOT_STARTED, message, container=pod.holding.name)
    # A pod is Pending until its main container starts. What the kubelet tried in vain before an init container ran is
    # history.
    if pod.phase == "Pending" and not any(each.has_begun for each in pod.all_containers):
        return kubelet_failure(pod, events)
    return None


def _has_lost_its_node(pod: PodView) -> bool:
    """Whether the node controller, and not the kubelet, set the pod to not ready.

    A kubelet changes ContainersReady and Ready together, because these pods have no readiness gates.
    """
    statuses = [pod.conditions.get(kind, {}).get("status") for kind in ("ContainersReady", "Ready")]
    return statuses == ["True", "False"]


def _lost_node_trouble(pod: PodView) -> Trouble:
    """Return the trouble of a pod whose node does not answer, also once the cluster has asked that node to end it."""
    message = f"node {pod.node} of pod {pod.name} does not answer; check the node and its kubelet"
    if pod.stage is not None:
        message += f"; {_lost_node_advice(pod)}"
    return Trouble(Reason.NODE_NOT_READY, message)


def _lost_node_advice(pod: PodView) -> str:
    return f"if it is gone for good, delete it: kubectl delete node {pod.node}. Until then its Job makes no other pod"


def eviction_trouble(pod: PodView) -> Trouble:
    """Return the trouble of a pod that the cluster ended, or has asked its node to end.

    A pod that was being initialized does not show whether its node answers, so the message says what to do if not.
    """
    disruption = pod.conditions["DisruptionTarget"]
    message = f"the cluster ended pod {pod.name}: {disruption.get('message', '')}; another pod takes its place"
    if pod.stage is not None and not pod.has_ended and disruption.get("reason") == BY_TAINT:
        message += f" when node {pod.node} has ended it; {_lost_node_advice(pod)}"
    return Trouble(Reason.EVICTED, message)


def start_trouble(pod: PodView, events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """Return what keeps a container from starting, such as its image; None if the kubelet names nothing."""
    for container in pod.all_containers:
        waiting = container.waiting
        if waiting is not None and (reason := _WAITING.get(waiting.reason)):
            secret = _missing_secret(pod, events) if reason is Reason.IMAGE_PULL_FAILED else ""
            message = f"pod {pod.name}, container {container.name}: {waiting.message or waiting.reason}"
            advice = kubelet_advice(waiting.message, _ADVICE[reason])
            return Trouble(reason, f"{message}; {secret}{advice}", container=container.name)
    return None


def holding_text(pod: PodView, container: Container) -> str:
    """Return words about a container that something in the cluster added, and that the operator's own wait for."""
    return (
        f"pod {pod.name}: something in the cluster added container {container.name}, which has not started, and the"
        " containers after it wait for it. If it is a mesh's proxy, these pods do not let it reach its control plane:"
        " keep it out of them by labels or annotations in spec.pod, or set the Helm value networkPolicy.mesh"
    )


def _missing_secret(pod: PodView, events: Iterable[Mapping[str, Any]]) -> str:
    """Return the kubelet's message about missing imagePullSecrets; it then asks the registry without them."""
    pod_events = events_about(pod.uid, pod.created_at, events)
    missing = (event for event in pod_events if event.get("reason") == "FailedToRetrieveImagePullSecret")
    return next((f"{event.get('message', '')}; " for event in missing), "")


def kubelet_failure(pod: PodView, events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """Return what the kubelet tried in vain before any container of the pod ran; None if no Event tells of it."""
    for event in events_about(pod.uid, pod.created_at, events):
        if reason := _FAILED.get(event.get("reason", "")):
            words = event.get("message", "")
            advice = kubelet_advice(words, "create or correct what is missing")
            return Trouble(reason, f"pod {pod.name}: {words}; {advice}")
    return None


def missing_pod_trouble(controller: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """Return why a Job has no pod, such as a quota or an admission policy; None without such an Event."""
    metadata = controller["metadata"]
    for event in events_about(metadata.get("uid", ""), metadata.get("creationTimestamp", ""), events):
        if event.get("reason") == "FailedCreate":
            return refusal_trouble(f"{controller['kind']} {metadata['name']}", event.get("message", ""))
    return None


def refusal_trouble(owner: str, words: str) -> Trouble:
    """Return the trouble of a Job or a Deployment whose pods are refused. ``words``: the API server's."""
    reason, advice = refused_pod(words)
    message = f"{owner} gets no pod: {words}"
    return Trouble(reason, "; ".join(filter(None, (message, advice))), lacking_resources(words))
