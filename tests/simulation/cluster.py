"""A cluster in memory: takes what plan() wants, runs Jobs and servers in small steps, and lets tests inject failures.

It stands for the API server (apply, delete, immutable templates), the Job and Deployment controllers and the kubelet,
as far as plan() sees them. Time passes only in `step`. Jobs and pods arrive over different watches: `order` says in
which order the end of a Job's containers, of its pod and of the Job itself become visible.
"""

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.simulation.answers import GOOD, Fate, Fates, all_good, counted, message, mismatch
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.results import Counters
from triton_converters.contract.stages import STAGES
from triton_operator import names
from triton_operator.api.deployment import parse
from triton_operator.kube.drift import drift
from triton_operator.kube.kinds import kind_of
from triton_operator.observed.snapshot import observe
from triton_operator.planning.plan import Deletion, Event, Plan, plan
from triton_operator.runtime.carrying_out import STARTS_WORK
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
STEP = timedelta(seconds=2)
ORDER = ("containers", "pod", "job")
RUNNING: Body = {"running": {}}
QUOTA: list[Body] = [
    {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": 'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used:'
        " requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1",
    }
]


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
class Cluster:
    """One TritonDeployment and its children."""

    spec: Body
    fates: Fates = all_good
    order: tuple[str, ...] = ORDER
    starts: Callable[[str], bool] = lambda deployment: True
    """Whether the server of a Deployment of that name gets ready."""
    damaged: Callable[[str], str] = lambda revision: ""
    """What the container before a server says about the revision of that key, by its termination message; empty: it
    lets the server start."""
    gpus: int | None = None
    """GPUs of each resource that servers share; None: there are enough. Jobs find one in any case."""
    announces: bool = False
    """Whether an autoscaler of nodes says that it makes one for a pod without a node."""
    gpu_quota: bool = False
    """Whether a quota, and not the scheduler, keeps servers from more GPUs than there are: they then get no pod."""
    unschedulable: str = ""
    """Why the scheduler finds no node for another server, besides GPUs; empty: it finds one."""
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
    has_keda: bool = False
    """Whether the API server knows KEDA's kinds."""
    has_gateway_api: bool = False
    """Whether the API server knows the Gateway API's kinds."""
    gateway: Callable[[Body], list[Body]] = accepted
    """What the Gateways write into the status of a route, as its parents."""
    neighbours: tuple[str, ...] = ()
    """Names of the other TritonDeployments on the claim."""
    now: datetime = datetime(2026, 11, 21, tzinfo=UTC)
    uid: str = "uid-0"
    generation: int = 1
    retries: int = 0
    """How often the user asked for another try."""
    updates: int = 0
    """How often the user asked for the installation's images."""
    status: Body = field(default_factory=lambda: {"observedGeneration": -1}, repr=False)
    objects: dict[tuple[str, str], Body] = field(default_factory=dict, repr=False)
    story: list[str] = field(default_factory=list)
    """Jobs as they start, servers as they are made, the Service as it flips."""
    events: list[Event] = field(default_factory=list, repr=False)
    served: set[str] = field(default_factory=set)
    """Names of the Deployments that ever served."""
    serial: int = 0

    # The operator's side ---------------------------------------------------------------------------------------

    def body(self) -> Body:
        """The TritonDeployment."""
        metadata: Body = {"name": "digits", "namespace": "vision", "uid": self.uid, "generation": self.generation}
        asked = {names.RETRY_ANNOTATION: self.retries, names.UPDATE_IMAGES_ANNOTATION: self.updates}
        metadata["annotations"] = {name: str(number) for name, number in asked.items() if number}
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": metadata,
            "spec": self.spec,
            "status": self.status,
        }

    def edit(self, **fields: Any) -> None:
        """The user changes fields of the spec."""
        self.spec = self.spec | fields
        self.generation += 1

    def retry(self) -> None:
        """The user asks for another try of what failed."""
        self.retries += 1

    def intent(self) -> Plan:
        """What plan() wants now."""
        deployment = parse(self.body())
        seen = [each for each in self.objects.values() if not each.get("hidden")]
        observed = observe(
            "digits",
            seen,
            self.gpu_product_exists,
            self.neighbours,
            deployment.claim_name,
            self.has_keda,
            self.has_gateway_api,
        )
        return plan(deployment, observed, self.settings, self.now)

    def act(self) -> int:
        """The operator's passes until one of them reports; how many writes they made.

        As in the Reconciler, a pass that makes room, or starts a Job, does nothing else, and the next one plans anew.
        """
        writes = 0
        while started := self._make_room_or_start(wanted := self.intent()):
            writes += started
        writes += sum(map(self._apply, wanted.objects))
        status = wanted.status.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
        if status == self.status:
            assert not wanted.events, "events without a change of the status"
            return writes
        self.status = status
        self.events += wanted.events
        return writes + 1

    def _make_room_or_start(self, wanted: Plan) -> int:
        if any((each.kind, each.name) in self.objects for each in wanted.deletions):
            records = [each for each in wanted.objects if each["kind"] == "ConfigMap"]
            return sum(map(self._apply, records)) + sum(map(self._delete, wanted.deletions))
        return sum(self._apply(each) for each in wanted.objects if kind_of(each) in STARTS_WORK)

    def run(self, steps: int) -> None:
        """Passes and steps in turn."""
        for _ in range(steps):
            self.act()
            self.step()

    def settle(self, steps: int = 300) -> None:
        """Passes and steps until nothing changes and no pass is due; fails where that does not come about."""
        quiet = 0
        for _ in range(steps):
            quiet = quiet + 1 if self.act() + self.step() == 0 else 0
            if quiet == 2 and self.intent().requeue_after is None:
                return
        raise AssertionError(f"no end after {steps} steps: {self.story[-8:]}")

    # What tests look at ------------------------------------------------------------------------------------------

    def of_kind(self, kind: str) -> list[Body]:
        """All objects of a kind."""
        return [each for (found, _), each in self.objects.items() if found == kind]

    def active(self, stage: str) -> list[str]:
        """Candidates (empty: none) of a stage's Jobs whose own container still runs, or is to."""
        return [
            each["metadata"]["labels"].get(names.CANDIDATE_LABEL, "")
            for each in self.of_kind("Job")
            if each["metadata"]["labels"][names.STAGE_LABEL] == stage and not each["status"].get("shown")
        ]

    def serving(self) -> str | None:
        """Name of the Deployment that the Service points to."""
        service = self.objects.get(("Service", "digits"))
        return None if service is None else service["spec"]["selector"][names.REVISION_LABEL]

    def condition(self, kind: str) -> Body:
        """A condition of the status."""
        return next(each for each in self.status["conditions"] if each["type"] == kind)

    def candidate(self, name: str) -> Body:
        """A candidate of the status."""
        return next(each for each in self.status["candidates"] if each["name"] == name)

    def started(self, stage: str) -> int:
        """How many Jobs of a stage were made so far."""
        return sum(each.split()[0] == stage for each in self.story)

    # The API server's side ---------------------------------------------------------------------------------------

    def _apply(self, desired: Body) -> int:
        key = (desired["kind"], desired["metadata"]["name"])
        old = self.objects.get(key)
        # What we set before and no longer do, drift() finds in managedFields; there are none here.
        if old is not None and drift(desired, old) is None and _kept(desired) == _kept(old):
            return 0
        new = deepcopy(desired)
        if old is None:
            new["metadata"] |= self._identity()
            new["status"] = {}
            if self.quota is not None and names.QUEUE_LABEL in new["metadata"]["labels"]:
                new["spec"]["suspend"] = True
            self._tell(new)
        else:
            new["metadata"] |= {name: old["metadata"][name] for name in ("uid", "creationTimestamp")}
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
            new["status"] = old["status"]
            template = old.get("spec", {}).get("template")
            assert new.get("spec", {}).get("template") == template, f"the template of {key} was patched"
            if key == ("Service", "digits"):
                self.story.append("flip")
        self.objects[key] = new
        return 1

    def _identity(self) -> Body:
        self.serial += 1
        return {"uid": f"uid-{self.serial}", "generation": 1, "creationTimestamp": self._time()}

    def _time(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _tell(self, body: Body) -> None:
        labels, kind, name = body["metadata"]["labels"], body["kind"], body["metadata"]["name"]
        if kind == "Job":
            self.story.append(f"{labels[names.STAGE_LABEL]} {labels.get(names.CANDIDATE_LABEL, '')}".strip())
        elif kind == "Deployment":
            self.story.append("server")
        elif (kind, name) == ("Service", "digits"):
            self.story.append("service")

    def _delete(self, reference: Deletion) -> int:
        if (reference.kind, reference.name) not in self.objects:
            return 0
        self.delete(reference.kind, reference.name)
        return 1

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and the pods it made."""
        body = self.objects.pop((kind, name))
        for pod in self._pods(body):
            del self.objects["Pod", pod["metadata"]["name"]]

    def _pods(self, owner: Body) -> list[Body]:
        uid = owner["metadata"]["uid"]
        return [each for each in self.of_kind("Pod") if each["metadata"]["ownerReferences"][0]["uid"] == uid]

    # The controllers' and the kubelet's side -----------------------------------------------------------------------

    def step(self) -> int:
        """Two seconds pass: every Job and every Deployment gets on by one change. How many changes there were."""
        self.now += STEP
        changes = self._admit()
        changes += sum(self._step_route(each) for each in self.of_kind("HTTPRoute"))
        changes += sum(self._step_job(each) for each in self.of_kind("Job"))
        return changes + sum(self._step_server(each) for each in self.of_kind("Deployment"))

    def _admit(self) -> int:
        """Kueue lets Jobs of its queues go on, as far as its quota allows; how many."""
        if self.quota is None:
            return 0
        jobs = [each for each in self.of_kind("Job") if not self._is_over(each)]
        waiting = [each for each in jobs if each["spec"].get("suspend")]
        admitted = waiting[: max(0, self.quota - len(jobs) + len(waiting))]
        for job in admitted:
            job["spec"]["suspend"] = False
        return len(admitted)

    def _step_route(self, route: Body) -> int:
        before, route["status"] = route["status"], {"parents": self.gateway(route)}
        return int(route["status"] != before)

    def _is_over(self, job: Body) -> bool:
        return bool(job["status"].get("shown", 0) == len(self.order))

    def _suspend(self, job: Body) -> int:
        """The Job controller deletes the pods of a suspended Job, and counts each as one that failed."""
        pods = self._pods(job)
        for pod in pods:
            del self.objects["Pod", pod["metadata"]["name"]]
        job["status"]["failed"] = job["status"].get("failed", 0) + len(pods)
        if pods and job["status"]["failed"] > job["spec"]["backoffLimit"]:
            self._fail(job, "BackoffLimitExceeded")
        return len(pods)

    def _step_job(self, job: Body) -> int:
        pods = self._pods(job)
        if self._is_over(job):
            return 0
        if job["spec"].get("suspend"):
            return self._suspend(job)
        if self._is_late(job["spec"], job["metadata"]["creationTimestamp"]):
            self._give_up(job)
            return 1
        if not pods or pods[-1]["status"].get("reason") in ("DeadlineExceeded", "Evicted"):
            # To the Job controller, a pod that ran past its deadline is a failed pod like any other. One that its
            # kubelet ended, because its node was short of a resource, does not count.
            self._create_pod(job, {"phase": "Pending"})
            return 1
        pod = pods[-1]
        if self._is_late(pod["spec"], pod["status"].get("startTime")):
            self._stop(pod)
            return 1
        *_, stage, text = job["spec"]["template"]["spec"]["containers"][0]["args"]
        request: Any = STAGES[stage].request.from_json(text)
        candidate = job["metadata"]["labels"].get(names.CANDIDATE_LABEL, "")
        fate = self.fates(stage, candidate, request)
        if stage == "snapshot" and fate == GOOD:
            fate = counted(request, self.counters)
        before = deepcopy(pod["status"])
        if fate.pending is not None:
            pod["status"] = deepcopy(fate.pending)
        elif fate.sidecar_crashes and stage in ("profile", "search"):
            self._crash_sidecar(pod, fate)
        elif not _has_started(pod):
            pod["status"] = self._started(pod)
        elif fate.evicted:
            self._evict(pod, fate.evicted)
            return 1
        elif fate.hangs:
            return 0
        elif fate.server_tensorrt and _checks_tensorrt(pod):
            self._end_check(job, pod, mismatch(request, fate))
            return 1
        elif self.injects and job["status"].get("shown"):
            return 0
        else:
            self._end_job(job, pod, fate, message(stage, candidate, request, fate))
            return 1
        if _has_node(pod):
            pod["status"]["startTime"] = before.get("startTime", self._time())
        return int(pod["status"] != before)

    def _is_late(self, spec: Body, since: str | None) -> bool:
        """Whether a Job or a pod with that spec has been active for longer than its deadline allows."""
        seconds = spec.get("activeDeadlineSeconds")
        if seconds is None or since is None:
            return False
        return bool((self.now - datetime.fromisoformat(since)).total_seconds() > seconds)

    def _give_up(self, job: Body) -> None:
        """The Job controller ends a Job at the Job's own deadline, and deletes its pods."""
        for pod in self._pods(job):
            del self.objects["Pod", pod["metadata"]["name"]]
        self._fail(job, "DeadlineExceeded")

    def _fail(self, job: Body, reason: str) -> None:
        failed = {"type": "Failed", "status": "True", "reason": reason, "lastTransitionTime": self._time()}
        job["status"] |= {"conditions": [failed], "shown": len(self.order)}

    def _stop(self, pod: Body) -> None:
        """The kubelet ends a pod at the pod's deadline."""
        ended = {"terminated": {"exitCode": 143, "message": "batch 7 of 64", "finishedAt": self._time()}}
        words = "Pod was active on the node longer than the specified deadline"
        end = {"phase": "Failed", "reason": "DeadlineExceeded", "message": words}
        pod["status"] |= end | (
            self._in_turn(pod, "run", ended, {"state": ended})
            if _has_a_box(pod)
            else self._statuses(pod, ended, {"state": ended}, ended)
        )

    def _evict(self, pod: Body, words: str) -> None:
        """The kubelet ends a pod because its node is short of a resource."""
        short = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": words}
        pod["status"] |= {"phase": "Failed", "reason": "Evicted", "message": words, "conditions": [short]}

    def _started(self, pod: Body) -> Body:
        """The status of a pod that a node took. It is Pending to Kubernetes until the main container starts."""
        if _has_a_box(pod):
            return {"phase": "Pending"} | self._in_turn(pod, "run", RUNNING)
        return {"phase": "Running"} | self._statuses(pod, RUNNING, {"state": RUNNING}, RUNNING)

    def _crash_sidecar(self, pod: Body, fate: Fate) -> None:
        restarts = _sidecar(pod).get("restartCount", -1) + 1
        ended = {"terminated": {"exitCode": 1, "message": fate.sidecar_crashes, "finishedAt": self._time()}}
        sidecar = {
            "state": {"waiting": {"reason": "CrashLoopBackOff"}} if restarts else ended,
            "lastState": ended if restarts else {},
            "restartCount": min(restarts, 5),
        }
        if _has_a_box(pod):
            pod["status"] = {"phase": "Pending"} | self._in_turn(pod, "run", RUNNING, sidecar)
        else:
            pod["status"] = {"phase": "Running"} | self._statuses(pod, RUNNING, sidecar, RUNNING)

    def _end_job(self, job: Body, pod: Body, fate: Fate, words: str) -> None:
        """Show one more part of the end."""
        shown = job["status"].get("shown", 0)
        job["status"]["shown"] = shown + 1
        if self.order[shown] == "containers":
            ended = {
                "exitCode": fate.exit_code,
                "message": _as_kept(pod, words),
                "reason": fate.killed,
                "finishedAt": self._time(),
            }
            # The kubelet ends a native sidecar once every ordinary container has ended.
            over = {"terminated": {"exitCode": fate.sidecar_exit, "finishedAt": self._time()}}
            sidecar = {"state": RUNNING if self.injects else over}
            pod["status"] |= {"phase": "Running"} | self._statuses(pod, {"terminated": ended}, sidecar, RUNNING)
            if _has_a_box(pod):
                last = fate.container or pod["spec"]["containers"][-1]["name"]
                pod["status"] |= self._in_turn(pod, last, {"terminated": ended}, sidecar)
        elif self.order[shown] == "pod":
            pod["status"]["phase"] = "Failed" if fate.exit_code else "Succeeded"
        else:
            why = "PodFailurePolicy" if fate.exit_code == EXIT_FINAL else "BackoffLimitExceeded"
            kind = "Failed" if fate.exit_code else "Complete"
            said = {"status": "True", "reason": why, "message": why, "lastTransitionTime": self._time()}
            job["status"]["conditions"] = [{"type": kind, **said}]

    def _end_check(self, job: Body, pod: Body, words: str) -> None:
        """The container before the server ends the Job; neither the server nor the client ever starts."""
        ended = {"exitCode": EXIT_FINAL, "message": words, "finishedAt": self._time()}
        self._end_job(job, pod, Fate(exit_code=EXIT_FINAL), "")
        waiting = {"waiting": {"reason": "PodInitializing"}}
        if _has_a_box(pod):
            pod["status"] |= self._in_turn(pod, "tensorrt", {"terminated": ended}, {"state": waiting})
            return
        pod["status"] |= self._statuses(pod, waiting, {"state": waiting}, waiting)
        pod["status"]["initContainerStatuses"].insert(0, {"name": "tensorrt", "state": {"terminated": ended}})

    def _statuses(self, pod: Body, state: Body, sidecar: Body, others: Body) -> Body:
        """Statuses of a Job's own container, of its sidecar if it has one, and of the containers added before it."""
        *added, own = pod["spec"]["containers"]
        main = {"name": own["name"], "state": state, "restartCount": 0}
        statuses: Body = {"containerStatuses": [*({"name": each["name"], "state": others} for each in added), main]}
        for each in pod["spec"].get("initContainers", []):
            if each["name"] == "tritonserver":
                statuses["initContainerStatuses"] = [self._server(pod, each) | sidecar]
        return statuses

    def _server(self, pod: Body, container: Body) -> Body:
        """The status of a sidecar that never restarted."""
        image = _sidecar(pod).get("imageID", self.image_id(container["image"]))
        return {"name": container["name"], "imageID": image, "lastState": {}, "restartCount": 0}

    def _in_turn(self, pod: Body, current: str, state: Body, sidecar: Body = {"state": RUNNING}) -> Body:  # noqa: B006
        """Statuses of containers that run one after the other: those before the current one have done their work.

        ``sidecar``: the status of the server that runs beside them.
        """
        servers = [each for each in pod["spec"]["initContainers"] if each["name"] == "tritonserver"]
        first = [each for each in pod["spec"]["initContainers"] if each not in servers]
        init = {each["name"]: self.image_id(each["image"]) for each in first}
        added, main = ([each["name"] for each in pod["spec"]["containers"]][part] for part in (slice(-1), -1))
        order = [*init, main]
        waiting, done = {"waiting": {"reason": "PodInitializing"}}, {"terminated": {"exitCode": 0}}
        states = {name: done if order.index(name) < order.index(current) else waiting for name in order} | {
            current: state
        }
        others = RUNNING if current == main else waiting
        return {
            "initContainerStatuses": [
                *({"name": name, "state": states[name], "imageID": image} for name, image in init.items()),
                *(self._server(pod, each) | sidecar for each in servers),
            ],
            "containerStatuses": [
                *({"name": name, "state": others} for name in added),
                {"name": main, "state": states[main], "restartCount": 0},
            ],
        }

    def _create_pod(self, owner: Body, status: Body) -> Body:
        identity = self._identity()
        name = f"{owner['metadata']['name']}-{identity['uid']}"
        reference = {"kind": owner["kind"], "uid": owner["metadata"]["uid"], "controller": True}
        template = owner["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": identity | {"name": name, "ownerReferences": [reference], **deepcopy(template["metadata"])},
            "spec": deepcopy(template["spec"]),
            "status": status,
        }
        if self.injects and owner["kind"] == "Job":
            pod["spec"]["containers"].insert(0, {"name": self.injects})
        self.objects["Pod", name] = pod
        return pod

    def _step_server(self, deployment: Body) -> int:
        wanted = deployment["spec"]["replicas"]
        pods = self._pods(deployment)
        for pod in pods[wanted:]:
            del self.objects["Pod", pod["metadata"]["name"]]
        refused = self.gpu_quota and len(pods) < wanted and self._is_full(deployment["spec"]["template"]["spec"])
        for _ in range(0 if refused else wanted - len(pods)):
            self._create_pod(deployment, {"phase": "Pending"})
        for pod in self._pods(deployment):
            if pod["status"]["phase"] == "Pending":
                self._schedule(pod)
        running = sum(pod["status"]["phase"] == "Running" for pod in self._pods(deployment))
        ready = running if self.starts(deployment["metadata"]["name"]) else 0
        before = deployment["status"]
        # Once all pods were ready, the controller keeps saying so.
        done = [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]
        deployment["status"] = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": len(self._pods(deployment)),
            "updatedReplicas": wanted,
            "readyReplicas": ready,
            "conditions": (done if ready == wanted else _but_for(before.get("conditions", []))) + QUOTA * refused,
        }
        return int(deployment["status"] != before)

    def pods_of(self, deployment: str) -> list[Body]:
        """The pods of a server's Deployment."""
        return self._pods(self.objects["Deployment", deployment])

    def _is_full(self, spec: Body) -> bool:
        """Whether no GPU is left for a server's pod with that spec."""
        asked = gpu_of(spec)
        servers = [
            each
            for each in self.of_kind("Pod")
            if each["metadata"]["ownerReferences"][0]["kind"] == "Deployment" and gpu_of(each["spec"]) == asked
        ]
        running = sum(each["status"]["phase"] == "Running" for each in servers)
        return bool(asked) and self.gpus is not None and running >= self.gpus

    def _schedule(self, pod: Body) -> None:
        """Let a server's pod run, where a GPU is left for it and its revision is sound."""
        if message := self.damaged(pod["metadata"]["labels"][names.KEY_LABEL]):
            ended = {"terminated": {"exitCode": EXIT_FINAL, "message": message}}
            pod["status"] = {"phase": "Pending", "initContainerStatuses": [{"name": "revision", "state": ended}]}
            return
        full = self._is_full(pod["spec"])
        if full or self.unschedulable:
            lacking = f"1 Insufficient {gpu_of(pod['spec'])}" if full else self.unschedulable
            words = f"0/1 nodes are available: {lacking}."
            if self.announces:
                self._announce(pod)
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
            pod["status"] = {"phase": "Pending", "conditions": [refused]}
        else:
            (container,) = pod["spec"]["containers"]
            server = {"name": container["name"], "state": RUNNING, "imageID": self.image_id(container["image"])}
            address = f"10.0.0.{pod['metadata']['uid'].removeprefix('uid-')}"
            pod["status"] = {"phase": "Running", "podIP": address, "containerStatuses": [server]}

    def _announce(self, pod: Body) -> None:
        about = {"kind": "Pod", "uid": pod["metadata"]["uid"], "name": pod["metadata"]["name"]}
        name = f"{about['name']}.scale-up"
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "labels": {}}}
        said = {"reason": "TriggeredScaleUp", "involvedObject": about, "lastTimestamp": self._time()}
        self.objects["Event", name] = event | said

    def restart(self, pod: str) -> None:
        """tritonserver in a pod ends, and the kubelet starts it again."""
        (server,) = self.objects["Pod", pod]["status"]["containerStatuses"]
        ended = {"exitCode": 139, "finishedAt": self._time(), "message": "Signal (11) received."}
        server |= {"lastState": {"terminated": ended}, "restartCount": server.get("restartCount", 0) + 1}


def _but_for(conditions: list[Body]) -> list[Body]:
    return [each for each in conditions if each["type"] != "ReplicaFailure"]


def framework(pod: Body) -> Body:
    """The container of a Job's pod that runs the model's framework; without one, the main container."""
    own: Body = next((each for each in pod.get("initContainers", []) if each["name"] == "run"), pod["containers"][0])
    return own


def _kept(body: Body) -> tuple[Any, Any]:
    """The maps of which an apply removes what it no longer names."""
    return body.get("data"), body["metadata"].get("annotations")


def gpu_of(spec: Body) -> str:
    """The resource by which a server's pod asks for GPUs; empty: it asks for none."""
    limits = spec["containers"][0].get("resources", {}).get("limits", {})
    return next((name for name in limits if name.startswith("nvidia.com/")), "")


def _has_node(pod: Body) -> bool:
    return not any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", []))


def _has_started(pod: Body) -> bool:
    statuses = [*pod["status"].get("initContainerStatuses", []), *pod["status"].get("containerStatuses", [])]
    return any({"running", "terminated"} & each.get("state", {}).keys() for each in statuses)


def _has_a_box(pod: Body) -> bool:
    return any(each["name"] == "run" for each in pod["spec"].get("initContainers", []))


def _sidecar(pod: Body) -> Body:
    statuses = pod["status"].get("initContainerStatuses", [])
    return next((each for each in statuses if each["name"] == "tritonserver"), {})


def _as_kept(pod: Body, words: str) -> str:
    """What the kubelet keeps of a message: all containers share 12,288 bytes."""
    count = len(pod["spec"].get("initContainers", [])) + len(pod["spec"]["containers"])
    return words.encode()[: min(4096, 12288 // count)].decode(errors="replace")


def _checks_tensorrt(pod: Body) -> bool:
    return any(each["name"] == "tensorrt" for each in pod["spec"].get("initContainers", []))
