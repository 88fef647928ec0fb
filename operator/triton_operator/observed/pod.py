"""What keeps a pod from running, in the cluster's own words. Pure.

A Pending pod says why in its conditions and container statuses. What the kubelet tried in vain (a missing ConfigMap, a
volume that cannot be mounted) is told only by Events.
"""

import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import MESSAGE_CUT_BYTES, POD_MESSAGES_BYTES, read_again
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_operator.names import STAGE_LABEL
from triton_operator.observed.refusal import NOT_CREATED, is_warning, refusal

SERVER = "tritonserver"
"""Name of the server's container, in its own pod and in that of a profile Job."""
RUN = "run"
"""Name of the container that runs the user's code, in the image of the model's framework."""
CHECK = "revision"
"""Name of the container of ours that looks at the revision before a server starts on it."""
SERVE = "serve"
"""What it names as its stage in the pod of a revision's Deployment."""
LONGEST_CHARACTER = 4
"""Most bytes of one character in UTF-8."""
INCOMING = '"incoming"'
"""How the kubelet names the volume that user code writes to."""
UNMADE = "failed to create subPath directory"
"""What the kubelet says about a directory that is missing on a read-only volume. On another one it makes it."""
EVICTED = "Evicted"
BY_TAINT = "DeletionByTaintManager"
"""Reason of a pod's DisruptionTarget if its node was tainted, as it is when it does not answer."""
"""A pod's reason if its kubelet ended it: with the condition DisruptionTarget, because its node was short of a
resource; without the condition, because it used more disk than its limit or a volume's. A drain, a preemption, a taint
and the shutdown of a node leave other reasons."""

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
"""What the kubelet tried in vain: the Event's reason, and the condition's."""
PATIENCE = timedelta(seconds=3)
"""Earlier Events are ignored: a volume that is only late is reported within this time, and mounts after it."""
_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]*\w)")
_QUOTA = re.compile(r"requests\.([\w./-]+)=")
_COMING = ("TriggeredScaleUp", "Nominated")
"""Reasons of Events by which an autoscaler of nodes says that one comes: the Cluster Autoscaler's and Karpenter's."""
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


def lacking(message: str) -> frozenset[str]:
    """Return the resources that the scheduler, or the API server for a quota, says it has too few of."""
    asked = message.partition("exceeded quota:")[2].partition("requested:")[2].partition(", used:")[0]
    return frozenset(_INSUFFICIENT.findall(message)) | frozenset(_QUOTA.findall(asked))


def pod_trouble(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """The trouble of a pod that has not ended; None if it runs or is only slow."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if ended(pod):
        return None
    conditions = _conditions(pod)
    if _is_out_of_touch(conditions):
        return _lost(pod)
    if disrupted(pod):
        return eviction(pod)
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        words = scheduled.get("message", "")
        message = f"pod {name} cannot be scheduled: {words}{_hint(scheduled)}"
        return Trouble(Reason.UNSCHEDULABLE, message, lacking(words))
    if waiting := _waiting(pod, events):
        return waiting
    # A pod is Pending until its main container starts. What the kubelet tried in vain before an init container ran is
    # history.
    if status.get("phase") == "Pending" and not _has_begun(status):
        return _attempted_in_vain(pod, events)
    return None


def _lost(pod: Mapping[str, Any]) -> Trouble:
    """The trouble of a pod whose node does not answer, also once the cluster has asked that node to end it."""
    node = pod["spec"].get("nodeName")
    message = f"node {node} of pod {pod['metadata']['name']} does not answer; check the node and its kubelet"
    if STAGE_LABEL in pod["metadata"].get("labels", {}):
        message += f"; {_if_gone(node)}"
    return Trouble(Reason.NODE_NOT_READY, message)


def _if_gone(node: str) -> str:
    return f"if it is gone for good, delete it: kubectl delete node {node}. Until then its Job makes no other pod"


def eviction(pod: Mapping[str, Any]) -> Trouble:
    """The trouble of a pod that the cluster ended, or has asked its node to end.

    A pod that was being initialized does not show whether its node answers, so the message says what to do if not.
    """
    disruption = _conditions(pod)["DisruptionTarget"]
    message = f"the cluster ended pod {pod['metadata']['name']}: {disruption.get('message', '')}; "
    is_waiting = STAGE_LABEL in pod["metadata"].get("labels", {}) and not ended(pod)
    if is_waiting and disruption.get("reason") == BY_TAINT:
        node = pod["spec"].get("nodeName")
        message += f"another pod takes its place when node {node} has ended it; {_if_gone(node)}"
    else:
        message += "another pod takes its place"
    return Trouble(Reason.EVICTED, message)


def evicted(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet ended the pod for what it, or its node's pods together, used."""
    return bool(ended(pod) and pod["status"].get("reason") == EVICTED)


def eviction_words(pod: Mapping[str, Any]) -> str:
    """Why the kubelet ended an evicted pod, in its own words, and what bounds it."""
    words = printable(pod["status"].get("message", "")).strip().removesuffix(".")
    advice = " (spec.repository.claimTemplate.size bounds that volume)" if INCOMING in words else ""
    return f"the kubelet ended pod {pod['metadata']['name']}: {words}{advice}"


def unschedulable_since(pod: Mapping[str, Any]) -> datetime | None:
    """When the scheduler first found no node for the pod; None if the pod has one."""
    scheduled = _conditions(pod).get("PodScheduled", {})
    if scheduled.get("status") != "False":
        return None
    return datetime.fromisoformat(scheduled.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])


def node_is_coming(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an autoscaler has said that it makes a node for the pod."""
    uid = pod["metadata"].get("uid")
    return any(each.get("reason") in _COMING and each.get("involvedObject", {}).get("uid") == uid for each in events)


def no_pod(controller: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """Why a Job has no pod, such as a quota or an admission policy; None without such an Event."""
    name = f"{controller['kind']} {controller['metadata']['name']}"
    for event in _about(controller, events):
        if event.get("reason") == "FailedCreate":
            return Trouble(Reason.APPLY_REFUSED, f"{name} gets no pod: {event.get('message', '')}")
    return None


def server_crash(pod: Mapping[str, Any]) -> Trouble | None:
    """How tritonserver ended by itself, so that the kubelet had to start it again; None if it did not.

    Only the state before a restart counts, because a server also ends, with any exit code, when its pod ends.
    """
    for status in _servers(pod):
        ended = status.get("lastState", {}).get("terminated")
        if ended and status.get("restartCount", 0) > 0:
            found = refusal(ended.get("message", ""))
            if found is None or ended.get("reason") == "OOMKilled":
                return ending(pod, SERVER, ended, Reason.SERVER_CRASHED)
            trouble = ending(pod, SERVER, ended, found.reason, found.sentence)
            return replace(trouble, message=trouble.message + found.advice)
    return None


def ended_as_it_started(pod: Mapping[str, Any]) -> bool:
    """Whether tritonserver ended before it was ready, as its last words before a restart say."""
    last = (each.get("lastState", {}).get("terminated") or {} for each in _servers(pod))
    return any(NOT_CREATED in end.get("message", "") for end in last)


def revision_trouble(pod: Mapping[str, Any], revision: str) -> Trouble | None:
    """Why the container that looks at the revision does not let the server start; None if it does, or has not ended."""
    for status in _statuses(pod.get("status", {})):
        if status["name"] != CHECK:
            continue
        waiting = status.get("state", {}).get("waiting", {})
        if UNMADE in waiting.get("message", ""):
            words = f"pod {pod['metadata']['name']}: revision {revision} is no longer on the repository claim"
            return Trouble(Reason.RESULT_MISSING, f"{words} ({waiting['message']})")
        end = termination(status) or (status.get("lastState", {}).get("terminated", {}) if waiting else {})
        if end and end.get("exitCode") != 0:
            return _checked(end, revision) or ending(pod, CHECK, end, Reason.CRASHED)
    return None


def _checked(terminated: Mapping[str, Any], revision: str) -> Trouble | None:
    """What the container said about its own revision."""
    try:
        outcome = read_again(terminated.get("message", ""))
    except DocumentError:
        return None
    if (outcome.stage, outcome.key) != (SERVE, revision) or outcome.reason is None:
        return None
    return Trouble(outcome.reason, outcome.message)


def restarts(pod: Mapping[str, Any]) -> int:
    """How often the kubelet started the pod's tritonserver again."""
    return max((status.get("restartCount", 0) for status in _servers(pod)), default=0)


def restarted_at(pod: Mapping[str, Any]) -> datetime | None:
    """When the pod's tritonserver last ended, if the kubelet started it again; None if it did not."""
    ends = (each.get("lastState", {}).get("terminated") or {} for each in _servers(pod) if each.get("restartCount", 0))
    return max((datetime.fromisoformat(end["finishedAt"]) for end in ends if end.get("finishedAt")), default=None)


def address(pod: Mapping[str, Any]) -> str:
    """The IP address of a pod that runs and is to go on; empty if it does not."""
    status = pod.get("status", {})
    runs = status.get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    return str(status.get("podIP", "")) if runs else ""


def ending(
    pod: Mapping[str, Any], container: str, terminated: Mapping[str, Any], crashed: Reason, sentence: str = ""
) -> Trouble:
    """Why a container ended, with its last message; the reason is ``crashed`` unless a better one is known.

    ``sentence``: what decides in the last message; it comes first, so that no limit cuts it.
    """
    where = f"pod {pod['metadata']['name']}, container {container}"
    if terminated.get("reason") == "OOMKilled":
        field = "spec.serving.pod.resources" if container == SERVER else "spec.conversion.pod.resources"
        limit = _memory_limit(pod, container)
        return Trouble(Reason.OUT_OF_MEMORY, f"{where} was killed at its memory limit{limit}; raise it in {field}")
    if evicted(pod):
        return Trouble(Reason.EVICTED, eviction_words(pod))
    end = f"{where} ended with {_exit_code(terminated)}"
    said = (line.strip() for line in printable(terminated.get("message", "")).splitlines())
    # Whatever a server only warns of, such as a CPU without CUDA, it goes on; it is not why it ended.
    lines = [line for line in said if line and not (container == SERVER and is_warning(line))]
    if sentence:
        others = " | ".join(line for line in lines[-2:] if sentence not in line)[-300:]
        return Trouble(crashed, f"{sentence}; {end}{': ' if others else ''}{others}")
    words = " | ".join(lines[-8:])[-700:]
    return Trouble(crashed, f"{end}: {words}" if words else f"{end} and left no message; see its log")


def _exit_code(terminated: Mapping[str, Any]) -> str:
    """The exit code in words, with the signal that it stands for, if any."""
    code = terminated.get("exitCode")
    names = {128 + each: each.name for each in signal.Signals}
    return f"exit code {code} ({names[code]})" if code in names else f"exit code {code}"


def ended(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has ended; the messages of its containers are complete then."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def disrupted(pod: Mapping[str, Any]) -> bool:
    """Whether the cluster ended the pod (a drained node, a preemption). Its Job tries again; it is no failure."""
    return bool(_conditions(pod).get("DisruptionTarget", {}).get("status") == "True")


def overdue(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet ended the pod at its deadline, which counts from when a node took the pod."""
    return bool(pod.get("status", {}).get("reason") == "DeadlineExceeded")


def last_seen(pod: Mapping[str, Any], main: str, events: Iterable[Mapping[str, Any]]) -> str:
    """What a pod that has ended waited for, or else said last; empty if nothing is known. ``main``: see `in_turn`."""
    if trouble := server_crash(pod) or _waiting(pod, events):
        return trouble.message
    for container in reversed(in_turn(pod, main)):
        end = termination(container)
        # The kubelet also writes an end, with words of its own, for a container that never started.
        if end.get("message") and end.get("reason") != "ContainerStatusUnknown":
            return ending(pod, container["name"], end, Reason.CRASHED).message
    # What the scheduler said is history: a node took the pod.
    told = (event for event in _about(pod, events) if event.get("reason") != "FailedScheduling")
    return next((f"pod {pod['metadata']['name']}: {event.get('message', '')}" for event in told), "")


def containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Statuses of a pod's containers, without init containers."""
    statuses: list[Mapping[str, Any]] = pod.get("status", {}).get("containerStatuses", [])
    return statuses


def server_image_id(pod: Mapping[str, Any]) -> str:
    """The ID of its server's image, as the kubelet reports it; empty: not reported, or the pod has no server."""
    return next((each.get("imageID", "") for each in _servers(pod)), "")


def framework_image_id(pod: Mapping[str, Any]) -> str:
    """The ID of the image in which the user's code ran, as the kubelet reports it; empty: not reported, or none ran."""
    found = (each.get("imageID", "") for each in _statuses(pod.get("status", {})) if each["name"] == RUN)
    return next(found, "")


def in_turn(pod: Mapping[str, Any], main: str) -> list[Mapping[str, Any]]:
    """Statuses of the containers that run in turn: the init containers but for sidecars, then the main one.

    What a webhook adds as another container, or as a sidecar, runs beside them and says nothing about the work.
    """
    sidecars = {each["name"] for each in pod["spec"].get("initContainers", []) if each.get("restartPolicy") == "Always"}
    first = [each for each in pod.get("status", {}).get("initContainerStatuses", []) if each["name"] not in sidecars]
    return [*first, *(each for each in containers(pod) if each["name"] == main)]


def is_cut(pod: Mapping[str, Any], terminated: Mapping[str, Any]) -> bool:
    """Whether the kubelet may have cut a container's last message: it is as long as a message in that pod can be."""
    spec = pod["spec"]
    groups = ("initContainers", "containers", "ephemeralContainers")
    share = POD_MESSAGES_BYTES // max(1, sum(len(spec.get(group, [])) for group in groups))
    length = len(terminated.get("message", "").encode(errors="replace"))
    # The API replaces what is left of a character that the cut went through.
    return length > min(share, MESSAGE_CUT_BYTES) - LONGEST_CHARACTER


def kept_by(pod: Mapping[str, Any], main: str) -> list[str]:
    """Names of the containers beside the main one that have not ended."""
    return [each["name"] for each in containers(pod) if each["name"] != main and not termination(each)]


def termination(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a container ended; empty if it has not."""
    end: Mapping[str, Any] = container.get("state", {}).get("terminated") or {}
    return end


def _conditions(pod: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The pod's conditions by type."""
    return {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", [])}


def _is_out_of_touch(conditions: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the node controller, and not the kubelet, set the pod to not ready.

    A kubelet changes ContainersReady and Ready together, because these pods have no readiness gates.
    """
    return [conditions.get(kind, {}).get("status") for kind in ("ContainersReady", "Ready")] == ["True", "False"]


def _waiting(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """What keeps a container of the pod from starting, such as its image; None if the kubelet names nothing."""
    for container in _statuses(pod.get("status", {})):
        waiting = container.get("state", {}).get("waiting", {})
        if reason := _WAITING.get(waiting.get("reason", "")):
            words = waiting.get("message") or waiting["reason"]
            secret = _missing_secret(pod, events) if reason is Reason.IMAGE_PULL_FAILED else ""
            where = f"pod {pod['metadata']['name']}, container {container['name']}"
            return Trouble(reason, f"{where}: {words}; {secret}{_ADVICE[reason]}")
    return None


def _has_begun(status: Mapping[str, Any]) -> bool:
    """Whether a container runs or has ended; the pod's volumes are mounted then."""
    return any({"running", "terminated"} & each.get("state", {}).keys() for each in _statuses(status))


def _missing_secret(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> str:
    """The kubelet's message about missing imagePullSecrets; it then asks the registry without them."""
    told = (event for event in _about(pod, events) if event.get("reason") == "FailedToRetrieveImagePullSecret")
    return next((f"{event.get('message', '')}; " for event in told), "")


def _hint(condition: Mapping[str, Any]) -> str:
    message = condition.get("message", "")
    if "Insufficient" in message:
        return " Request less, or add a node that has it."
    if "persistentvolumeclaim" in message:
        return " Create the claim or correct its name; the pod then starts by itself."
    if "node selector" in message or "affinity" in message:
        return " Check spec.gpu.product and the pod's nodeSelector and affinity against the nodes' labels."
    return ""


def _attempted_in_vain(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    name = pod["metadata"]["name"]
    for event in _about(pod, events):
        if reason := _FAILED.get(event.get("reason", "")):
            return Trouble(reason, f"pod {name}: {event.get('message', '')}; create or correct what is missing")
    return None


def _about(body: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The Events about an object that came after PATIENCE, newest first."""
    uid = body["metadata"].get("uid")
    about = [event for event in events if event.get("involvedObject", {}).get("uid") == uid and _is_late(event, body)]
    return sorted(about, key=lambda event: event.get("lastTimestamp") or "", reverse=True)


def _is_late(event: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether the Event was last seen after PATIENCE. The kubelet repeats an Event with each try."""
    last, created = event.get("lastTimestamp"), body["metadata"].get("creationTimestamp")
    if not last or not created:
        return True
    return datetime.fromisoformat(last) - datetime.fromisoformat(created) >= PATIENCE


def _memory_limit(pod: Mapping[str, Any], container: str) -> str:
    spec = pod.get("spec", {})
    for each in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        if each["name"] == container and (limit := each.get("resources", {}).get("limits", {}).get("memory")):
            return f" of {limit}"
    return ""


def _servers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in _statuses(pod.get("status", {})) if each["name"] == SERVER]


def _statuses(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
