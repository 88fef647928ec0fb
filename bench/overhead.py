"""Measures what the operator adds to one run of the example: time to Ready less the critical path of the work."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench.critical_path import Span, critical_path, gaps
from bench.recorder import Recorder, Resource
from examples.example import Example, apply, build, remove, status_of
from examples.waiting import Watcher
from hack.deploy.command import TargetCluster
from triton_plugin.telling.progress import is_ready

READY_SECONDS = 900
KINDS = {
    "Job": "batch/v1",
    "Pod": "v1",
    "Deployment": "apps/v1",
    "TritonDeployment": "triton-operator.dev/v1alpha1",
}


@dataclass(frozen=True)
class Overhead:
    """One run; times in seconds, 0 is when the TritonDeployment was sent."""

    ready: float
    path: tuple[Span, ...]
    """Jobs, from their creation to their container's end, and the server, from its creation to its readiness."""
    gaps: tuple[float, ...]
    """The operator's own time: the gaps before each span and after the last."""
    containers: dict[str, float]
    """How long the containers of each Job's pod ran, by the kubelet's clock, in whole seconds."""

    @property
    def operator(self) -> float:
        """The time to Ready less the critical path."""
        return sum(self.gaps)


def measure(cluster: TargetCluster, example: Example, watcher: Watcher) -> Overhead:
    """Train once, then create the TritonDeployment alone and follow it until it is ready.

    Raises CommandError, ExampleError or TimeoutError.
    """
    images = build(cluster, example)
    remove(cluster, example)
    apply(cluster, example, images)
    watcher.trained()
    # Its claim goes with it, so nothing is replayed.
    cluster.run("kubectl", "delete", "td", example.name, "--namespace", example.namespace, "--cascade=foreground")
    recorder = Recorder(str(cluster.kubeconfig), example.namespace, KINDS)
    time.sleep(2)  # the watches deliver what is there; none of it is ours
    start = time.monotonic()
    apply(cluster, example, images)
    recorder.wait(lambda: bool(_ready(recorder, start)), "Ready", READY_SECONDS)
    return timeline(recorder, start)


def timeline(recorder: Recorder, start: float) -> Overhead:
    """Return the run since ``start``, from what was recorded of it."""
    end = min(_ready(recorder, start))
    jobs = {name: at for name, at in recorder.first("Job", _is_owned).items() if at >= start}
    ended = recorder.first("Job", _is_complete)
    for pod, moment in recorder.first("Pod", lambda resource: _main_end(resource) is not None).items():
        job = pod.rsplit("-", 1)[0]
        ended[job] = min(moment, ended.get(job, moment))
    servers = {name: at for name, at in recorder.first("Deployment", _is_owned).items() if at >= start}
    available = recorder.first("Deployment", _is_available)
    spans = [Span(name, at, ended[name]) for name, at in jobs.items() if name in ended]
    spans += [Span(f"server {name}", at, available[name]) for name, at in servers.items() if name in available]
    path = critical_path(spans, end)
    return Overhead(
        ready=end - start,
        path=tuple(Span(span.name, span.start - start, span.end - start) for span in path),
        gaps=tuple(gaps(path, start, end)),
        containers={pod["metadata"]["name"].rsplit("-", 1)[0]: _ran(pod) for pod in recorder.last("Pod") if _ran(pod)},
    )


def _ready(recorder: Recorder, start: float) -> list[float]:
    return [
        moment
        for moment, resource in recorder.versions("TritonDeployment")
        if moment >= start and is_ready(status_of(resource), resource["metadata"]["generation"])
    ]


def _is_owned(resource: Resource) -> bool:
    return any(owner["kind"] == "TritonDeployment" for owner in resource["metadata"].get("ownerReferences", []))


def _holds(resource: Resource, kind: str) -> bool:
    conditions = resource.get("status", {}).get("conditions", [])
    return any(found["type"] == kind and found["status"] == "True" for found in conditions)


def _is_complete(resource: Resource) -> bool:
    return _holds(resource, "Complete")


def _is_available(resource: Resource) -> bool:
    return _is_owned(resource) and _holds(resource, "Available") and bool(resource["status"].get("readyReplicas"))


def _containers(pod: Resource) -> list[dict[str, Any]]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _main_end(pod: Resource) -> str | None:
    """Return when the last of the pod's main containers ended; None while one runs."""
    states = [found["state"].get("terminated") for found in pod.get("status", {}).get("containerStatuses", [])]
    return max(state["finishedAt"] for state in states) if states and all(states) else None


def _ran(pod: Resource) -> float:
    """Return the seconds from the start of the pod's first container to the end of its main one; 0: not ended."""
    end = _main_end(pod)
    starts = [
        state["startedAt"] for found in _containers(pod) for state in found["state"].values() if "startedAt" in state
    ]
    if end is None or not starts:
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(min(starts))).total_seconds()
