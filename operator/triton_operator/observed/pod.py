"""A pod as one pass sees it, parsed once. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from triton_converters.contract.envelope import MESSAGE_CUT_BYTES, POD_MESSAGES_BYTES
from triton_operator.names import SERVER_LABEL, STAGE_LABEL

SERVER = "tritonserver"
"""Name of the server's container, in its own pod and in that of a profile Job."""
RUN = "run"
"""Name of the container that runs the user's code, in the image of the model's framework."""
CHECK = "revision"
"""Name of the container of ours that looks at the revision before a server starts on it."""
SERVE = "serve"
"""What the container of ours that looks at a revision names as its stage in the pod of a revision's Deployment."""
OWN_FIRST = frozenset({"prepare", "tensorrt", CHECK, SERVER, RUN})
"""Names of the operator's own init containers."""
LONGEST_CHARACTER = 4
"""Most bytes of one character in UTF-8."""
EVICTED = "Evicted"
"""A pod's reason if its kubelet ended it: with the condition DisruptionTarget, because its node was short of a
resource; without the condition, because it used more disk than its limit or a volume's. A drain, a preemption, a taint
and the shutdown of a node leave other reasons."""


@dataclass(frozen=True)
class End:
    """How a container ended."""

    exit_code: int | None
    reason: str
    message: str
    """The container's last words, which the kubelet may have cut; empty: it left none."""
    finished_at: str


@dataclass(frozen=True)
class Waiting:
    """Why the kubelet does not run a container."""

    reason: str
    message: str


@dataclass(frozen=True)
class Container:
    """A container, as the kubelet reports it."""

    name: str
    image_id: str
    restarts: int
    waiting: Waiting | None
    end: End | None
    """How the container ended; None: it has not."""
    last_end: End | None
    """How the container ended before it was started again."""
    has_begun: bool
    """Whether the container runs or has ended; the pod's volumes are mounted then."""
    is_started: bool = True
    """False: the container is a sidecar whose startup probe has not succeeded yet, so those after it wait."""


@dataclass(frozen=True)
class PodView:
    """A pod and what its kubelet, the scheduler and the cluster's controllers report of it."""

    name: str
    uid: str
    owners: frozenset[str]
    """The uids of the objects that own it."""
    stage: str | None
    """The stage of the pod's Job; None: the pod is no Job's."""
    server: str
    """Name of the Deployment of the pod's revision; empty: the pod is no server's."""
    created_at: str
    is_deleted: bool
    """Whether somebody asked the node to end the pod."""
    node: str | None
    deadline_seconds: int | None
    names: tuple[str, ...]
    """The names of the pod's containers, without ephemeral ones."""
    messages: int
    """How many containers share what the kubelet keeps of their last messages."""
    memory_limits: Mapping[str, str]
    """The memory limits of the containers that have one, by their names."""
    sidecars: frozenset[str]
    phase: str
    reason: str
    message: str
    ip: str
    conditions: Mapping[str, Mapping[str, Any]]
    """The pod's conditions by their types."""
    initial: tuple[Container, ...]
    """The pod's init containers, in their order; sidecars are among them."""
    containers: tuple[Container, ...]

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """All containers of the pod, those that start first at the beginning."""
        return (*self.initial, *self.containers)

    @property
    def servers(self) -> list[Container]:
        """The pod's containers named tritonserver: one, once its kubelet has told of it, and else none."""
        return [each for each in self.all_containers if each.name == SERVER]

    @property
    def has_ended(self) -> bool:
        """Whether the pod has ended; the messages of its containers are complete then."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_disrupted(self) -> bool:
        """Whether the cluster ended the pod (a drained node, a preemption). Its Job tries again; it is no failure."""
        return bool(self.conditions.get("DisruptionTarget", {}).get("status") == "True")

    @property
    def is_evicted(self) -> bool:
        """Whether the kubelet ended the pod for what it, or its node's pods together, used."""
        return self.has_ended and self.reason == EVICTED

    @property
    def is_overdue(self) -> bool:
        """Whether the kubelet ended the pod at its deadline, which counts from when a node took the pod."""
        return self.reason == "DeadlineExceeded"

    @property
    def unschedulable_since(self) -> datetime | None:
        """When the scheduler first found no node for the pod; None if the pod has one."""
        scheduled = self.conditions.get("PodScheduled", {})
        if scheduled.get("status") != "False":
            return None
        return datetime.fromisoformat(scheduled.get("lastTransitionTime") or self.created_at)

    @property
    def address(self) -> str:
        """The IP address of a pod that runs and is to go on; empty if it does not."""
        return self.ip if self.phase == "Running" and not self.is_deleted else ""

    @property
    def restarts(self) -> int:
        """How often the kubelet started the pod's tritonserver again."""
        return max((each.restarts for each in self.servers), default=0)

    @property
    def restarted_at(self) -> datetime | None:
        """When the pod's tritonserver last ended, if the kubelet started it again; None if it did not."""
        ends = (each.last_end for each in self.servers if each.restarts)
        return max(
            (datetime.fromisoformat(end.finished_at) for end in ends if end and end.finished_at),
            default=None,
        )

    @property
    def server_image_id(self) -> str:
        """ID of the image of the pod's server, as the kubelet reports it; empty: not reported, or no server."""
        return next((each.image_id for each in self.servers), "")

    @property
    def framework_image_id(self) -> str:
        """The ID of the image in which the user's code ran, as the kubelet reports it; empty: not reported, or none."""
        return next((each.image_id for each in self.all_containers if each.name == RUN), "")

    @property
    def holding(self) -> Container | None:
        """The container that something in the cluster added, and that the operator's own wait for; None: there is none.

        A native sidecar has to start, any other init container to end, before the next one is started.
        """
        for number, each in enumerate(self.initial):
            is_over = each.is_started if each.name in self.sidecars else each.end is not None
            if each.name not in OWN_FIRST and not is_over and (each.has_begun or each.restarts > 0):
                return None if any(map(_has_run, self.initial[number + 1 :])) else each
        return None

    def main(self, name: str) -> Container | None:
        """Return the Job's own container, once there is one. It has the stage's name; webhooks may add others."""
        return next((each for each in self.containers if each.name == name), None)

    def containers_in_turn(self, main: str) -> list[Container]:
        """Return the containers that run in turn: the init containers but for sidecars, then the main one.

        What a webhook adds as another container, or as a sidecar, runs beside them and says nothing about the work.
        """
        first = [each for each in self.initial if each.name not in self.sidecars]
        return [*first, *(each for each in self.containers if each.name == main)]

    def running_beside(self, main: str) -> list[str]:
        """Return the names of the containers beside the main one that have not ended."""
        return [each.name for each in self.containers if each.name != main and each.end is None]

    def may_have_cut(self, end: End) -> bool:
        """Whether the kubelet may have cut a last message: it is as long as a message in this pod can be."""
        length = len(end.message.encode(errors="replace"))
        # The API replaces what is left of a character that the cut went through.
        return length > min(POD_MESSAGES_BYTES // max(1, self.messages), MESSAGE_CUT_BYTES) - LONGEST_CHARACTER


def pod_view(pod: Mapping[str, Any]) -> PodView:
    """Parse a pod; only its name must be there."""
    metadata, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    labels, initial, main = metadata.get("labels", {}), spec.get("initContainers", []), spec.get("containers", [])
    specs: list[Mapping[str, Any]] = [*initial, *main]
    return PodView(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        owners=frozenset(filter(None, (each.get("uid") for each in metadata.get("ownerReferences", [])))),
        stage=labels.get(STAGE_LABEL),
        server=labels.get(SERVER_LABEL, ""),
        created_at=metadata.get("creationTimestamp", ""),
        is_deleted="deletionTimestamp" in metadata,
        node=spec.get("nodeName"),
        deadline_seconds=spec.get("activeDeadlineSeconds"),
        names=tuple(each["name"] for each in specs),
        messages=len(specs) + len(spec.get("ephemeralContainers", [])),
        memory_limits=_memory_limits(specs),
        sidecars=frozenset(each["name"] for each in initial if each.get("restartPolicy") == "Always"),
        phase=status.get("phase", ""),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        ip=status.get("podIP", ""),
        conditions={condition["type"]: condition for condition in status.get("conditions", [])},
        initial=tuple(map(_container, status.get("initContainerStatuses", []))),
        containers=tuple(map(_container, status.get("containerStatuses", []))),
    )


def _has_run(container: Container) -> bool:
    """Whether a container was started; of a pod that ended the kubelet also writes an end of those that never were."""
    return container.has_begun and (container.end is None or container.end.reason != "ContainerStatusUnknown")


def _container(status: Mapping[str, Any]) -> Container:
    state = status.get("state", {})
    waiting = state.get("waiting")
    return Container(
        name=status["name"],
        image_id=status.get("imageID", ""),
        restarts=status.get("restartCount", 0),
        waiting=Waiting(waiting.get("reason", ""), waiting.get("message", "")) if waiting else None,
        end=_end(state),
        last_end=_end(status.get("lastState", {})),
        has_begun=bool({"running", "terminated"} & state.keys()),
        is_started=status.get("started") is not False,
    )


def _end(state: Mapping[str, Any]) -> End | None:
    end = state.get("terminated")
    if not end:
        return None
    return End(end.get("exitCode"), end.get("reason", ""), end.get("message", ""), end.get("finishedAt", ""))


def _memory_limits(specs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    limits = ((each["name"], each.get("resources", {}).get("limits", {}).get("memory")) for each in specs)
    return {name: limit for name, limit in limits if limit}
