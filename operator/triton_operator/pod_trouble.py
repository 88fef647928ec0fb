"""What keeps a pod from running, in the cluster's own words. Pure.

A pod that is Pending says why in its conditions and containers; what the kubelet tried in vain (a missing ConfigMap, a
volume that cannot be mounted) it says only in Events.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.reasons import Reason

SIDECAR = "tritonserver"
"""Name of the server's container, in its own pod and in a profile Job's."""

_WAITING = {
    "ErrImagePull": Reason.IMAGE_PULL_FAILED,
    "ImagePullBackOff": Reason.IMAGE_PULL_FAILED,
    "InvalidImageName": Reason.IMAGE_PULL_FAILED,
    "ErrImageNeverPull": Reason.IMAGE_PULL_FAILED,
    "CreateContainerConfigError": Reason.CONTAINER_CONFIG_INVALID,
    "CreateContainerError": Reason.CONTAINER_CONFIG_INVALID,
    "RunContainerError": Reason.CONTAINER_CONFIG_INVALID,
}
_ADVICE = {
    Reason.IMAGE_PULL_FAILED: "check the image's name, the registry and imagePullSecrets",
    Reason.CONTAINER_CONFIG_INVALID: "the message names what is missing",
}


@dataclass(frozen=True)
class Trouble:
    """Why a pod does not do its work, and what to do about it."""

    reason: Reason
    message: str


def pod_trouble(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    """The trouble of a pod that has not ended; None where it runs or is only slow."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Trouble(Reason.UNSCHEDULABLE, f"pod {name}: {condition.get('message', '')}{_hint(condition)}")
    for container in _statuses(status):
        waiting = container.get("state", {}).get("waiting", {})
        if reason := _WAITING.get(waiting.get("reason", "")):
            words = waiting.get("message") or waiting["reason"]
            return Trouble(reason, f"pod {name}, container {container['name']}: {words}; {_ADVICE[reason]}")
    if status.get("phase") == "Pending":
        return _mount_trouble(name, pod["metadata"].get("uid"), events)
    return None


def crash(pod: Mapping[str, Any], container: str) -> Trouble | None:
    """How a container ended that the kubelet starts again (a server, a sidecar); None where it did not crash."""
    for status in _statuses(pod.get("status", {})):
        if status["name"] == container:
            ended = status.get("lastState", {}).get("terminated") or status.get("state", {}).get("terminated")
            if ended and (ended.get("exitCode") != 0 or status.get("restartCount", 0) > 0):
                return ending(pod["metadata"]["name"], container, ended, Reason.SERVER_CRASHED)
    return None


def ending(pod: str, container: str, terminated: Mapping[str, Any], crashed: Reason) -> Trouble:
    """Why a container ended, with its last words; ``crashed`` where nothing better is known."""
    where = f"pod {pod}, container {container}"
    if terminated.get("reason") == "OOMKilled":
        return Trouble(Reason.OUT_OF_MEMORY, f"{where} was killed at its memory limit: raise resources.limits.memory")
    words = _last_lines(terminated.get("message", ""))
    said = f": {words}" if words else " without a word; see its log"
    return Trouble(crashed, f"{where} ended with exit code {terminated.get('exitCode')}{said}")


def _hint(condition: Mapping[str, Any]) -> str:
    message = condition.get("message", "")
    if "Insufficient" in message:
        return " Ask for less, or add a node that has it."
    if "persistentvolumeclaim" in message:
        return " Create the claim, or mend its name; the pod starts by itself then."
    if "node selector" in message or "affinity" in message:
        return " Check spec.gpu.product and the pod's nodeSelector and affinity against the nodes' labels."
    return ""


def _mount_trouble(name: str, uid: Any, events: Iterable[Mapping[str, Any]]) -> Trouble | None:
    for event in events:
        if event.get("involvedObject", {}).get("uid") == uid and event.get("reason") in (
            "FailedMount",
            "FailedAttachVolume",
        ):
            return Trouble(Reason.MOUNT_FAILED, f"pod {name}: {event.get('message', '')}; create what is missing")
    return None


def _statuses(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _last_lines(text: str) -> str:
    """The end of a log, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-8:])[-700:]
