"""Whether a pod's node kept it from doing its work, as the kubelet and the cluster's controllers say. Pure.

A pod that a drain, a preemption, a taint or the shutdown of its node ended is no failure of its Job, and says so in its
conditions. What is read here does fail a Job, although another node would do.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator.observed.events import events_about
from triton_operator.observed.pod import Container, PodView
from triton_operator.observed.trouble import Trouble, kubelet_failure

Events = Iterable[Mapping[str, Any]]
OF_SICK_NODES = {
    Reason.CRASHED,
    Reason.DEADLINE_EXCEEDED,
    Reason.MEASUREMENT_FAILED,
    Reason.RESULT_MISSING,
    Reason.SERVER_CRASHED,
}
"""Reasons that a sick node causes too. All others say what somebody has to change."""
REFUSED = ("UnexpectedAdmissionError", "NodeAffinity", "TopologyAffinityError", "OutOf", "Shutdown", "NodeShutdown")
"""How a pod's reason begins if its kubelet did not let it run although the scheduler chose the node: a device plugin
that is not there yet after a reboot, a resource that another pod took first, a node that shuts down."""
NOT_READY = "NodeNotReady"
"""Reason of the Event with which the node controller says that a pod's node does not answer."""
LOST = ("ContainerStatusUnknown", "Unknown")
"""Reasons with which a kubelet, or its runtime after a reboot, ends a container of which it lost track."""


def of_node(failure: Trouble, pod: PodView | None, events: Events) -> Trouble:
    """Return the failure of a Job, as one of the node of its newest pod if that caused it."""
    if pod is None or failure.reason not in OF_SICK_NODES:
        return failure
    words = next((words for sign, words in SIGNS if sign(pod, events)), None)
    if words is None:
        return failure
    message = f"node {pod.node} of pod {pod.name} {words}; the Job is tried again later. Last seen: {failure.message}"
    return Trouble(Reason.NODE_NOT_READY, message)


def _is_refused(pod: PodView, events: Events) -> bool:
    return pod.has_ended and pod.reason.startswith(REFUSED)


def _did_not_answer(pod: PodView, events: Events) -> bool:
    return any(each.get("reason") == NOT_READY for each in events_about(pod.uid, pod.created_at, events))


def _lost_a_container(pod: PodView, events: Events) -> bool:
    """Whether a container is lost that ran. One that a deadline kept from starting is told as lost too."""
    return not pod.is_overdue and any(_is_lost(each) for each in pod.all_containers)


def _started_nothing(pod: PodView, events: Events) -> bool:
    """Whether the pod's deadline passed while its kubelet failed to mount a volume or to make the pod's network."""
    has_begun = any(each.has_begun and not _is_lost(each) for each in pod.all_containers)
    return pod.is_overdue and not has_begun and kubelet_failure(pod, events) is not None


def _is_lost(container: Container) -> bool:
    return container.end is not None and container.end.reason in LOST


SIGNS: tuple[tuple[Callable[[PodView, Events], bool], str], ...] = (
    (_is_refused, "did not let it run"),
    (_did_not_answer, "did not answer for a while"),
    (_lost_a_container, "lost track of a container"),
    (_started_nothing, "could start no container before the deadline"),
)
"""What shows that the node was the cause, and the words for it; the first that applies is told."""
