"""The objects of a simulated cluster, and how the cluster is."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.simulation.answers import Scripts, all_good
from triton_converters.contract.results import Counters
from triton_operator.observed.turn import Measurement
from triton_operator.planning.plan import Event
from triton_operator.runtime.turns import Turns
from triton_operator.settings import Settings

Body = dict[str, Any]
PROMETHEUS = "http://prometheus.monitoring:9090"
SETTINGS = Settings(
    "example/converter:1",
    "example/server:1",
    "example/converter-tensorflow:1",
    prometheus_address=PROMETHEUS,
    gateway_api=True,
)
ORDER = ("containers", "pod", "job")


def pulled(image: str) -> str:
    """What the kubelet reports as the ID of an image that it pulled: its repository with a digest."""
    if "@" in image:
        return image
    return f"{image.rpartition(':')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def accepted(route: Body) -> list[Body]:
    """The answers of Gateways that accept a route as it is."""
    current = {"status": "True", "observedGeneration": route["metadata"]["generation"]}
    conditions = [{"type": kind, **current} for kind in ("Accepted", "ResolvedRefs")]
    return [{"parentRef": each, "conditions": conditions} for each in route["spec"]["parentRefs"]]


@dataclass
class Objects:
    """One TritonDeployment, its children, and what is true of the cluster."""

    spec: Body
    scripts: Scripts = all_good
    order: tuple[str, ...] = ORDER
    starts: Callable[[str], bool] = lambda deployment: True
    """Whether the server of a Deployment of that name gets ready."""
    unready: set[str] = field(default_factory=set)
    """Names of the servers' pods that run and are not ready."""
    damaged: Callable[[str], str] = lambda revision: ""
    """What the container before a server says about the revision of that key, by its termination message; empty: it
    lets the server start."""
    gpus: int | None = None
    """GPUs of each resource that servers share; None: there are enough. Jobs find one in any case."""
    announces: bool = False
    """Whether an autoscaler of nodes says that it makes one for a pod without a node."""
    gpu_quota: bool = False
    """Whether a quota, and not the scheduler, keeps servers from more GPUs than there are: they then get no pod."""
    admission: str = ""
    """What the API server says of every further pod; empty: it lets them in."""
    unschedulable: str = ""
    """Why the scheduler finds no node for another server, besides GPUs; empty: it finds one."""
    labels: Body = field(default_factory=dict)
    """The TritonDeployment's own labels."""
    annotations: Body = field(default_factory=dict)
    """The TritonDeployment's own annotations, besides those by which it asks for something."""
    injects: str = ""
    """Name of the container that a webhook adds to every Job's pod; it never ends by itself. Empty: none."""
    image_id: Callable[[str], str] = pulled
    """What the kubelet reports as the ID of an image of that name."""
    counters: Callable[[str], Counters] = lambda pod: Counters(pod, 0, 0, 0)
    """What the metrics of the server in a pod of that name say now."""
    settings: Settings = SETTINGS
    quota: int | None = None
    """How many Jobs with a queue's name Kueue lets run at once; None: there is no Kueue."""
    gpu_product_exists: bool | None = None
    """Whether a node has the GPU product that is asked for; None: the operator may not read nodes."""
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The labels of nodes by their names, each of which takes the pods with a server of the candidate of that name."""
    places: Callable[[Body], str] = lambda pod: ""
    """The node that takes a pod; empty: it is not told."""
    has_keda: bool = False
    """Whether the API server knows KEDA's kinds."""
    has_gateway_api: bool = False
    """Whether the API server knows the Gateway API's kinds."""
    gateway: Callable[[Body], list[Body]] = accepted
    """What the Gateways write into the status of a route, as its parents."""
    refuses: set[tuple[str, str]] = field(default_factory=set)
    """The verbs (`create`, `apply`, `delete`) and kinds that a policy forbids."""
    broken: str = ""
    """The words of a bug in the operator, by which every pass ends; empty: there is none."""
    neighbours: tuple[str, ...] = ()
    """Names of the other TritonDeployments on the claim."""
    looks_beside: int = 0
    """How many Jobs of other objects of the namespace look at their sources."""
    measured_beside: Callable[[], Sequence[Measurement]] = tuple
    """What Jobs of other objects measure now."""
    measuring_nodes: Sequence[str] | None = None
    """The nodes on which Jobs may measure; None: the operator may not read nodes."""
    turns: Turns | None = None
    """The operator's queue of those that wait to measure; None: the object is the only one."""
    host_holder: str = ""
    """Another object, NAMESPACE/NAME, that has the host name of the route; empty: none has."""
    now: datetime = datetime(2026, 11, 21, tzinfo=UTC)
    due: datetime | None = None
    """When the operator makes its next pass even if nothing changes; None: it makes none."""
    uid: str = "uid-0"
    born: str = "2026-11-20T00:00:00Z"
    """When the TritonDeployment was made."""
    generation: int = 1
    retries: int = 0
    """How often the user asked for another try."""
    updates: int = 0
    """How often the user asked for the installation's images."""
    status: Body = field(default_factory=lambda: {"observedGeneration": -1}, repr=False)
    objects: dict[tuple[str, str], Body] = field(default_factory=dict, repr=False)
    story: list[str] = field(default_factory=list)
    """Jobs as they start, servers as they are made, the Service as it moves."""
    events: list[Event] = field(default_factory=list, repr=False)
    served: set[str] = field(default_factory=set)
    """Names of the Deployments that ever served."""
    serial: int = 0
    version: int = 1
    """The resource version of what was written last."""

    def of_kind(self, kind: str) -> list[Body]:
        """All objects of a kind."""
        return [each for (found, _), each in self.objects.items() if found == kind]

    def pods_of(self, deployment: str) -> list[Body]:
        """The pods of a server's Deployment."""
        return self._pods(self.objects["Deployment", deployment])

    def _pods(self, owner: Body) -> list[Body]:
        uid = owner["metadata"]["uid"]
        return [each for each in self.of_kind("Pod") if each["metadata"]["ownerReferences"][0]["uid"] == uid]

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and the pods it made."""
        body = self.objects.pop((kind, name))
        for pod in self._pods(body):
            del self.objects["Pod", pod["metadata"]["name"]]

    def _identity(self) -> Body:
        self.serial += 1
        return {"uid": f"uid-{self.serial}", "generation": 1, "creationTimestamp": self._time()}

    def _time(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
