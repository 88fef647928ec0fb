"""The controllers of a simulated cluster: Jobs, Deployments, routes and Kueue, which get on by one change a step."""

from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.answers import counted, message, mismatch
from tests.simulation.kubelet import Kubelet, checks_tensorrt, has_node, has_started
from tests.simulation.objects import Body
from triton_converters.contract.stages import STAGES
from triton_operator import names

STEP = timedelta(seconds=2)
QUOTA = (
    'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used:'
    " requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1"
)


class Controllers(Kubelet):
    """Makes and ends pods for Jobs and Deployments as time passes."""

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

    def _step_job(self, job: Body) -> int:
        pods = self._pods(job)
        if self._is_over(job):
            return 0
        if job["spec"].get("suspend"):
            return self._suspend(job)
        job["status"].setdefault("startTime", self._time())
        if self._is_late(job["spec"], job["metadata"]["creationTimestamp"]):
            self._give_up(job)
            return 1
        if not pods and self.admission:
            self._note(job, "Job", "FailedCreate", self.admission)
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
        script = self.scripts(stage, candidate, request)
        if stage == "snapshot" and script.exit_code == 0 and script.answer is None:
            script = replace(script, answer=counted(request, self.counters).answer)
        before = deepcopy(pod["status"])
        if script.pending is not None:
            pod["status"] = deepcopy(script.pending)
        elif script.sidecar_crashes and stage in ("profile", "search"):
            self._crash_sidecar(pod, script)
        elif not has_started(pod):
            pod["status"] = self._started(pod)
        elif script.evicted:
            self._evict(pod, script.evicted)
            return 1
        elif script.hangs:
            return 0
        elif script.server_tensorrt and checks_tensorrt(pod):
            self._end_check(job, pod, mismatch(request, script))
            return 1
        elif self.injects and job["status"].get("shown"):
            return 0
        else:
            self._end_job(job, pod, script, message(stage, candidate, request, script))
            return 1
        if has_node(pod):
            pod["status"]["startTime"] = before.get("startTime", self._time())
        return int(pod["status"] != before)

    def _step_server(self, deployment: Body) -> int:
        wanted = deployment["spec"]["replicas"]
        pods = self._pods(deployment)
        before = [each["status"] for each in (deployment, *pods)]
        # The controller ends first what does not answer.
        for pod in sorted(pods, key=lambda pod: not self._is_ready(pod))[wanted:]:
            del self.objects["Pod", pod["metadata"]["name"]]
        is_full = self.gpu_quota and self._is_full(deployment["spec"]["template"]["spec"])
        refused = (self.admission or QUOTA * is_full) if len(pods) < wanted else ""
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused}
        for _ in range(0 if refused else wanted - len(pods)):
            self._create_pod(deployment, {"phase": "Pending"})
        for pod in self._pods(deployment):
            if pod["status"]["phase"] == "Pending":
                self._schedule(pod)
        starts = self.starts(deployment["metadata"]["name"])
        ready = sum(self._is_ready(pod) for pod in self._pods(deployment)) if starts else 0
        # Once all pods were ready, the controller keeps saying so.
        done = [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]
        kept = deployment["status"].get("conditions", [])
        deployment["status"] = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": len(self._pods(deployment)),
            "updatedReplicas": wanted,
            "readyReplicas": ready,
            "conditions": (done if ready == wanted else _but_for(kept)) + [failure] * bool(refused),
        }
        return int([each["status"] for each in (deployment, *self._pods(deployment))] != before)

    def _is_ready(self, pod: Body) -> bool:
        return pod["status"]["phase"] == "Running" and pod["metadata"]["name"] not in self.unready

    def _suspend(self, job: Body) -> int:
        """The Job controller deletes the pods of a suspended Job, and counts each as one that failed."""
        pods = self._pods(job)
        for pod in pods:
            del self.objects["Pod", pod["metadata"]["name"]]
        job["status"].pop("startTime", None)
        job["status"]["failed"] = job["status"].get("failed", 0) + len(pods)
        if pods and job["status"]["failed"] > job["spec"]["backoffLimit"]:
            self._fail(job, "BackoffLimitExceeded")
        return len(pods)

    def _give_up(self, job: Body) -> None:
        """The Job controller ends a Job at the Job's own deadline, and deletes its pods."""
        for pod in self._pods(job):
            del self.objects["Pod", pod["metadata"]["name"]]
        self._fail(job, "DeadlineExceeded")

    def _fail(self, job: Body, reason: str) -> None:
        failed = {"type": "Failed", "status": "True", "reason": reason, "lastTransitionTime": self._time()}
        job["status"] |= {"conditions": [failed], "shown": len(self.order)}

    def _is_over(self, job: Body) -> bool:
        return bool(job["status"].get("shown", 0) == len(self.order))

    def _is_late(self, spec: Body, since: str | None) -> bool:
        """Whether a Job or a pod with that spec has been active for longer than its deadline allows."""
        seconds = spec.get("activeDeadlineSeconds")
        if seconds is None or since is None:
            return False
        return bool((self.now - datetime.fromisoformat(since)).total_seconds() > seconds)


def _but_for(conditions: list[Body]) -> list[Body]:
    return [each for each in conditions if each["type"] != "ReplicaFailure"]
