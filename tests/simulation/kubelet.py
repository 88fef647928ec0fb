"""The kubelet and the scheduler of a simulated cluster: what becomes of its pods."""

from copy import deepcopy

from tests.simulation.answers import Script
from tests.simulation.objects import Body, Objects
from triton_converters.contract.envelope import EXIT_FINAL
from triton_operator import names
from triton_operator.observed.pod import SERVER

RUNNING: Body = {"running": {}}


class Kubelet(Objects):
    """Runs pods, and says in their statuses what became of them."""

    def restart(self, pod: str) -> None:
        """tritonserver in a pod ends, and the kubelet starts it again."""
        (server,) = self.objects["Pod", pod]["status"]["containerStatuses"]
        ended = {"exitCode": 139, "finishedAt": self._time(), "message": "Signal (11) received."}
        server |= {"lastState": {"terminated": ended}, "restartCount": server.get("restartCount", 0) + 1}

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
        candidate = template["metadata"]["labels"].get(names.CANDIDATE_LABEL)
        has_server = any(each["name"] == SERVER for each in template["spec"].get("initContainers", []))
        if has_server and candidate in self.nodes:
            pod["spec"]["nodeName"] = candidate
        elif node := self.places(pod):
            pod["spec"]["nodeName"] = node
        self.objects["Pod", name] = pod
        return pod

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
                self._note(pod, "Pod", "TriggeredScaleUp")
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
            pod["status"] = {"phase": "Pending", "conditions": [refused]}
        else:
            (container,) = pod["spec"]["containers"]
            server = {"name": container["name"], "state": RUNNING, "imageID": self.image_id(container["image"])}
            address = f"10.0.0.{pod['metadata']['uid'].removeprefix('uid-')}"
            pod["spec"].setdefault("nodeName", "a-node")
            pod["status"] = {"phase": "Running", "podIP": address, "containerStatuses": [server]}

    def _note(self, about: Body, kind: str, reason: str, message: str = "") -> None:
        """Someone in the cluster tells of an object by an Event, which counts from now on."""
        involved = {"kind": kind, "uid": about["metadata"]["uid"], "name": about["metadata"]["name"]}
        name = f"{involved['name']}.{reason.lower()}"
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "labels": {}}}
        said = {"reason": reason, "message": message, "involvedObject": involved, "lastTimestamp": self._time()}
        self.objects["Event", name] = event | said

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

    def _started(self, pod: Body) -> Body:
        """The status of a pod that a node took. It is Pending to Kubernetes until the main container starts."""
        if _has_a_box(pod):
            return {"phase": "Pending"} | self._in_turn(pod, "run", RUNNING)
        return {"phase": "Running"} | self._statuses(pod, RUNNING, {"state": RUNNING}, RUNNING)

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

    def _crash_sidecar(self, pod: Body, script: Script) -> None:
        restarts = _sidecar(pod).get("restartCount", -1) + 1
        ended = {"terminated": {"exitCode": 1, "message": script.sidecar_crashes, "finishedAt": self._time()}}
        sidecar = {
            "state": {"waiting": {"reason": "CrashLoopBackOff"}} if restarts else ended,
            "lastState": ended if restarts else {},
            "restartCount": min(restarts, 5),
        }
        if _has_a_box(pod):
            pod["status"] = {"phase": "Pending"} | self._in_turn(pod, "run", RUNNING, sidecar)
        else:
            pod["status"] = {"phase": "Running"} | self._statuses(pod, RUNNING, sidecar, RUNNING)

    def _end_job(self, job: Body, pod: Body, script: Script, words: str) -> None:
        """Show one more part of the end."""
        shown = job["status"].get("shown", 0)
        job["status"]["shown"] = shown + 1
        if self.order[shown] == "containers":
            ended = {
                "exitCode": script.exit_code,
                "message": _as_kept(pod, words),
                "reason": script.killed,
                "finishedAt": self._time(),
            }
            # The kubelet ends a native sidecar once every ordinary container has ended.
            over = {"terminated": {"exitCode": script.sidecar_exit, "finishedAt": self._time()}}
            sidecar = {"state": RUNNING if self.injects else over}
            pod["status"] |= {"phase": "Running"} | self._statuses(pod, {"terminated": ended}, sidecar, RUNNING)
            if _has_a_box(pod):
                last = script.container or pod["spec"]["containers"][-1]["name"]
                pod["status"] |= self._in_turn(pod, last, {"terminated": ended}, sidecar)
        elif self.order[shown] == "pod":
            pod["status"]["phase"] = "Failed" if script.exit_code else "Succeeded"
        else:
            why = "PodFailurePolicy" if script.exit_code == EXIT_FINAL else "BackoffLimitExceeded"
            kind = "Failed" if script.exit_code else "Complete"
            said = {"status": "True", "reason": why, "message": why, "lastTransitionTime": self._time()}
            job["status"]["conditions"] = [{"type": kind, **said}]

    def _end_check(self, job: Body, pod: Body, words: str) -> None:
        """The container before the server ends the Job; neither the server nor the client ever starts."""
        ended = {"exitCode": EXIT_FINAL, "message": words, "finishedAt": self._time()}
        self._end_job(job, pod, Script(exit_code=EXIT_FINAL), "")
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

    def _in_turn(self, pod: Body, current: str, state: Body, sidecar: Body = {"state": RUNNING}) -> Body:  # noqa: B006 - never changed
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


def gpu_of(spec: Body) -> str:
    """The resource by which a server's pod asks for GPUs; empty: it asks for none."""
    limits = spec["containers"][0].get("resources", {}).get("limits", {})
    return next((name for name in limits if name.startswith("nvidia.com/")), "")


def has_node(pod: Body) -> bool:
    return not any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", []))


def has_started(pod: Body) -> bool:
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


def checks_tensorrt(pod: Body) -> bool:
    return any(each["name"] == "tensorrt" for each in pod["spec"].get("initContainers", []))
