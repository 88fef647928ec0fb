"""What keeps a pod from running, read from real pods' statuses and Events (Kubernetes 1.34)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.states.pods import a_job, a_pod
from triton_converters.contract.reasons import Reason
from triton_operator.names import STAGE_LABEL
from triton_operator.observed.ending import revision_trouble, server_crash
from triton_operator.observed.job import JobView, job_view
from triton_operator.observed.pod import pod_view
from triton_operator.observed.snapshot import observe
from triton_operator.observed.trouble import Trouble, pod_trouble

Body = dict[str, Any]


def job_of(job: Body, pods: list[Body], events: Sequence[Mapping[str, Any]]) -> JobView:
    return job_view(job, [pod_view(pod) for pod in pods], events)


def trouble_of(pod: Body, events: list[Body]) -> Trouble | None:
    return pod_trouble(pod_view(pod), events)


def crash_of(pod: Body) -> Trouble | None:
    return server_crash(pod_view(pod))


def check_of(pod: Body, revision: str) -> Trouble | None:
    return revision_trouble(pod_view(pod), revision)


def unschedulable(message: str) -> Body:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


def waiting(reason: str, message: str = "") -> list[Body]:
    return [{"name": "convert", "state": {"waiting": {"reason": reason, "message": message}}}]


def ended(code: int, message: str = "", reason: str = "Error") -> list[Body]:
    terminated = {"exitCode": code, "message": message, "reason": reason, "finishedAt": "2026-11-21T00:00:09Z"}
    return [{"name": "convert", "state": {"terminated": terminated}}]


def crashed(words: str) -> Body:
    """A pod whose tritonserver ended and was started again."""
    last = {"terminated": {"exitCode": 1, "message": words, "reason": "Error"}}
    sidecar = {"name": "tritonserver", "restartCount": 1, "state": {"running": {}}, "lastState": last}
    return a_pod(initContainerStatuses=[sidecar])


@pytest.mark.parametrize(
    ("words", "reason", "advice"),
    [
        (
            "E1121 logging.cc:40] The engine plan file is not compatible with this version of TensorRT, expecting"
            " library version 10.8.0.43 got 10.9.0.34, please rebuild.\nfailed to load all models",
            Reason.FORMAT_NOT_SERVED,
            "change spec.conversion.image, or spec.serving.image",
        ),
        (
            "failed to load 'm' version 1: Invalid argument: unable to find backend library for backend 'tensorflow',"
            " try specifying runtime on the model configuration.",
            Reason.FORMAT_NOT_SERVED,
            "use another format or spec.serving.image",
        ),
        ("error: creating server: Internal - failed to load all models", Reason.MODEL_LOAD_FAILED, "all models"),
        ("Signal (11) received.", Reason.SERVER_CRASHED, "Signal (11) received."),
    ],
)
def test_why_a_server_refuses_a_model_is_read_from_its_own_words(words: str, reason: Reason, advice: str) -> None:
    trouble = crash_of(crashed(words))
    assert trouble is not None
    assert trouble.reason is reason
    assert trouble.message.endswith(advice)


def test_what_decides_in_a_servers_log_comes_first() -> None:
    sentence = "failed to load 'm' version 1: Internal: ModuleNotFoundError: No module named 'torchvision'"
    frames = "".join(f"  <frozen importlib._bootstrap>({number}): _call_with_frames_removed\n" for number in range(20))
    end = "error: creating server: Internal - failed to load all models"
    crash = crash_of(crashed(f"E1122 16:02:42.1 1 model_lifecycle.cc:654] {sentence}\n\nAt:\n{frames}{end}\n"))
    assert crash is not None
    assert crash.reason is Reason.MODEL_LOAD_FAILED
    assert crash.message.startswith(f"{sentence}; pod p, container tritonserver ended with exit code 1: ")
    assert crash.message.endswith(end)


def test_a_servers_message_does_not_end_with_what_it_says_of_a_missing_gpu() -> None:
    line = "E1122 16:02:42.1 1 model_lifecycle.cc:654] failed to load 'm' version 1: Internal: no\n"
    crash = crash_of(crashed(f"{line}Failed to initialize NVML: Driver Not Loaded\n"))
    assert crash is not None
    assert "NVML" not in crash.message


def test_a_server_that_a_signal_ended_is_not_told_by_its_warnings() -> None:
    warning = 'W1124 15:36:37.432073 1 pinned_memory_manager.cc:273] "Unable to allocate pinned system memory: no CUDA"'
    pod = crashed(f"{warning}\nI1124 15:36:37.5 1 cuda_memory_manager.cc:117] CUDA memory pool disabled\n")
    pod["status"]["initContainerStatuses"][0]["lastState"]["terminated"]["exitCode"] = 139
    crash = crash_of(pod)
    assert crash is not None
    assert crash.message == (
        "pod p, container tritonserver ended with exit code 139 (SIGSEGV) and left no message; see its log"
    )


def test_a_log_without_the_sentence_is_quoted_without_what_a_terminal_would_obey() -> None:
    crash = crash_of(crashed("\x1b[2Jsomething\nSignal (11) received."))
    assert crash is not None
    assert crash.message == "pod p, container tritonserver ended with exit code 1: [2Jsomething | Signal (11) received."


def test_a_pod_that_wrote_more_than_it_may_says_so() -> None:
    """The kubelet sets no condition then, so the Job counts the pod as one that failed."""
    killed = {"name": "convert", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    pod = a_pod("Failed", containerStatuses=[killed])
    pod["status"] |= {"reason": "Evicted", "message": 'Usage of EmptyDir volume "tmp" exceeds the limit "10Gi". '}
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    view = job_of(a_job(failed), [pod], [])
    assert view.failure is not None
    words = 'the kubelet ended pod p: Usage of EmptyDir volume "tmp" exceeds the limit "10Gi"'
    assert (view.failure.reason, view.failure.message) == (Reason.EVICTED, words)


def test_user_code_that_wrote_more_than_fits_onto_the_claim_is_told_what_to_enlarge() -> None:
    pod = in_three({"terminated": {"exitCode": 137, "reason": "Error"}}, "Failed")
    pod["status"] |= {"reason": "Evicted", "message": 'Usage of EmptyDir volume "incoming" exceeds the limit "2Gi". '}
    view = job_of(a_job(FAILED_JOB), [pod], [])
    assert view.failure is not None
    assert view.failure.message == (
        'the kubelet ended pod p: Usage of EmptyDir volume "incoming" exceeds the limit "2Gi"'
        " (spec.repository.volumeClaimTemplate bounds that volume)"
    )


PRESSURE = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
"""The condition of a pod whose node was short of a resource; a pod beyond its own limit has none."""


def evicted(name: str, *conditions: Body) -> Body:
    """A pod as the kubelet's eviction manager leaves it."""
    pod = a_pod("Failed", containerStatuses=ended(137), conditions=list(conditions))
    pod["metadata"] |= {"name": name, "creationTimestamp": f"2026-11-21T00:00:0{name[-1]}Z"}
    pod["status"] |= {"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage. "}
    return pod


@pytest.mark.parametrize("conditions", [(), (PRESSURE,)], ids=["its own limit", "the node's pressure"])
def test_three_pods_in_a_row_that_the_kubelet_ended_are_a_failure(conditions: tuple[Body, ...]) -> None:
    pods = [evicted(f"p{number}", *conditions) for number in (1, 2, 3)]
    view = job_of(a_job(), pods, [])
    assert view.failure is not None
    assert view.failure.reason is Reason.EVICTED
    assert view.failure.message.startswith("the kubelet ended pod p3: The node was low on resource: ephemeral-storage;")
    assert "3 pods of Job digits-convert-1 in a row" in view.failure.message
    assert (view.active, view.ended) == (False, False), "the Job controller would go on"


def test_fewer_evictions_say_why_the_job_tries_again_also_while_it_runs() -> None:
    pods = [evicted("p1", PRESSURE), evicted("p2", PRESSURE)]
    waits = job_of(a_job(), pods, [])
    assert waits.failure is None
    assert waits.pending is not None
    assert waits.pending.reason is Reason.EVICTED
    assert "pod p2: The node was low" in waits.pending.message
    assert "(now 2)" in waits.pending.message
    running = a_pod("Running", containerStatuses=[{"name": "convert", "state": {"running": {}}}])
    running["metadata"] |= {"name": "p3", "creationTimestamp": "2026-11-21T00:00:03Z"}
    goes_on = job_of(a_job(), [*pods, running], [])
    assert goes_on.failure is None
    assert goes_on.pending is not None
    assert goes_on.pending.reason is Reason.RUNNING
    assert "pod p2: The node was low" in goes_on.pending.message


def test_only_evictions_in_a_row_count_and_a_drain_is_none() -> None:
    drained = evicted("p2", EVICTED)
    drained["status"] |= {"reason": "", "message": ""}
    pods = [evicted("p1", PRESSURE), drained, evicted("p3"), evicted("p4", PRESSURE)]
    assert job_of(a_job(), pods, []).failure is None
    later = [*pods, evicted("p5"), a_pod("Running", containerStatuses=[{"name": "convert", "state": {"running": {}}}])]
    later[-1]["metadata"] |= {"name": "p6", "creationTimestamp": "2026-11-21T00:00:06Z"}
    assert job_of(a_job(), later, []).failure is not None, "also if the next pod runs before it is seen"


def test_a_node_that_shuts_down_ends_its_pods_and_no_job() -> None:
    """The kubelet sets the same condition then, and another reason."""
    pods = [evicted(f"p{number}", PRESSURE) for number in (1, 2, 3)]
    for pod in pods:
        pod["status"] |= {
            "reason": "Terminated",
            "message": "Pod was terminated in response to imminent node shutdown.",
        }
    view = job_of(a_job(), pods, [])
    assert view.failure is None
    assert view.pending is not None
    assert view.pending.reason is Reason.EVICTED


def test_a_container_before_the_server_says_why_the_job_failed() -> None:
    outcome = '{"stage":"convert","key":"k","reason":"FormatNotServed","message":"10.9 is not 10.8"}'
    pod = a_pod("Failed", containerStatuses=waiting("PodInitializing"))
    pod["status"]["initContainerStatuses"] = [
        {"name": "converters", "state": {"terminated": {"exitCode": 0}}},
        {"name": "tensorrt", "state": {"terminated": {"exitCode": 42, "message": outcome}}},
        {"name": "tritonserver", "state": {"waiting": {"reason": "PodInitializing"}}},
    ]
    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy"}
    view = job_of(a_job(failed), [pod], [])
    assert view.failure is not None
    assert (view.failure.reason, view.failure.message) == (Reason.FORMAT_NOT_SERVED, "10.9 is not 10.8")


GONE = '{"key":"0a1b","message":"it is gone","reason":"ResultMissing","stage":"serve"}'
FAILED = {"terminated": {"exitCode": 1, "message": GONE}}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"state": FAILED}, "it is gone"),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": FAILED}, "it is gone"),
        ({"state": {"terminated": {"exitCode": 0}}, "lastState": FAILED}, ""),
        ({"state": {"running": {}}, "lastState": FAILED}, ""),
        ({"state": {"waiting": {"reason": "PodInitializing"}}}, ""),
    ],
)
def test_a_server_does_not_start_on_a_revision_that_is_gone(status: Body, said: str) -> None:
    pod = a_pod(initContainerStatuses=[{"name": "revision", **status}])
    assert check_of(pod, "0a1b") == (Trouble(Reason.RESULT_MISSING, said) if said else None)


def test_what_is_said_of_another_revision_is_only_quoted() -> None:
    pod = a_pod(initContainerStatuses=[{"name": "revision", "state": FAILED}])
    found = check_of(pod, "ffff")
    assert found is not None
    assert found.reason is Reason.CRASHED


def test_a_directory_that_the_kubelet_cannot_make_is_a_revision_that_is_gone() -> None:
    words = 'failed to create subPath directory for volumeMount "repository" of container "revision"'
    state = {"waiting": {"reason": "CreateContainerConfigError", "message": words}}
    found = check_of(a_pod(initContainerStatuses=[{"name": "revision", "state": state}]), "0a1b")
    assert found is not None
    assert found.reason is Reason.RESULT_MISSING
    assert words in found.message


def test_since_when_no_node_takes_a_pod() -> None:
    condition = unschedulable("0/1 nodes are available")
    for told, expected in (({}, "00:00:00"), ({"lastTransitionTime": "2026-11-21T00:00:05Z"}, "00:00:05")):
        view = job_of(a_job(), [a_pod(conditions=[condition | told])], [])
        assert view.unschedulable_since == datetime.fromisoformat(f"2026-11-21T{expected}+00:00")
    assert job_of(a_job(), [a_pod("Running")], []).unschedulable_since is None


def an_event(uid: str, reason: str, message: str) -> Body:
    return {"kind": "Event", "involvedObject": {"uid": uid}, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "add a node"),
        ('persistentvolumeclaim "models" not found', "Create the claim"),
        ("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", "nodeSelector"),
    ],
)
def test_the_scheduler_is_quoted_with_what_to_do_next(message: str, advice: str) -> None:
    trouble = trouble_of(a_pod(conditions=[unschedulable(message)]), [])
    assert trouble is not None
    assert trouble.reason is Reason.UNSCHEDULABLE
    assert message in trouble.message
    assert advice in trouble.message


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("ErrImagePull", Reason.IMAGE_PULL_FAILED),
        ("ImagePullBackOff", Reason.IMAGE_PULL_FAILED),
        ("InvalidImageName", Reason.IMAGE_PULL_FAILED),
        ("CreateContainerConfigError", Reason.CONTAINER_CONFIG_INVALID),
        ("RunContainerError", Reason.CONTAINER_CONFIG_INVALID),
    ],
)
def test_the_kubelet_is_quoted(reason: str, expected: Reason) -> None:
    trouble = trouble_of(a_pod(containerStatuses=waiting(reason, "the kubelet's words")), [])
    assert trouble is not None
    assert trouble.reason is expected
    assert "the kubelet's words" in trouble.message


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("FailedMount", Reason.MOUNT_FAILED),
        ("FailedAttachVolume", Reason.MOUNT_FAILED),
        ("FailedCreatePodSandBox", Reason.CONTAINER_CONFIG_INVALID),
    ],
)
def test_events_tell_what_a_pods_status_does_not(reason: str, expected: Reason) -> None:
    events = [an_event("other", reason, "of another pod"), an_event("pod-1", reason, 'configmap "model" not found')]
    trouble = trouble_of(a_pod(containerStatuses=waiting("ContainerCreating")), events)
    assert trouble is not None
    assert trouble.reason is expected
    assert 'configmap "model" not found' in trouble.message


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod(containerStatuses=waiting("ContainerCreating")),
        a_pod(containerStatuses=waiting("PodInitializing")),
        a_pod("Running", containerStatuses=[{"name": "convert", "state": {"running": {}}}]),
        a_pod("Succeeded", conditions=[unschedulable("long ago")]),
    ],
)
def test_a_pod_that_is_only_slow_is_in_no_trouble(pod: Body) -> None:
    assert trouble_of(pod, [an_event("pod-1", "Pulling", "Pulling image")]) is None


def test_what_was_tried_in_vain_at_once_may_yet_succeed() -> None:
    pod = a_pod(containerStatuses=waiting("ContainerCreating"))
    pod["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    event = an_event("pod-1", "FailedMount", "timed out waiting for the cache")
    assert trouble_of(pod, [event | {"lastTimestamp": "2026-11-21T10:00:02Z"}]) is None
    assert trouble_of(pod, [event | {"lastTimestamp": "2026-11-21T10:00:03Z"}]) is not None


def test_an_event_of_a_pod_that_runs_is_history() -> None:
    assert trouble_of(a_pod("Running"), [an_event("pod-1", "FailedMount", "timed out")]) is None


@pytest.mark.parametrize("state", [{"terminated": {"exitCode": 137}}, {"running": {}}])
def test_a_server_that_was_not_started_again_did_not_crash(state: Body) -> None:
    sidecar = {"name": "tritonserver", "state": state, "lastState": {}, "restartCount": 0}
    assert crash_of(a_pod("Running", initContainerStatuses=[sidecar])) is None


def test_a_server_killed_for_memory_names_its_limit_and_field() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    sidecar = {"name": "tritonserver", "state": {"running": {}}, "lastState": last, "restartCount": 1}
    crash = crash_of(a_pod(stage="profile", initContainerStatuses=[sidecar]))
    assert crash is not None
    assert crash.reason is Reason.OUT_OF_MEMORY
    assert "limit of 64Mi" in crash.message
    assert "spec.serving.pod.resources" in crash.message


def test_a_try_that_failed_is_shown_while_the_job_tries_again() -> None:
    view = job_of(a_job(), [a_pod("Failed", containerStatuses=ended(137, reason="OOMKilled"))], [])
    assert (view.state, view.failure) == ("Active", None)
    assert view.pending is not None
    assert view.pending.reason is Reason.OUT_OF_MEMORY
    assert view.pending.message.endswith("the Job tries again")


@pytest.mark.parametrize(
    ("restarts", "words", "failed"),
    [
        (1, "Signal (11) received.", False),
        (2, "Signal (11) received.", False),
        (3, "Signal (11) received.", True),
        (1, "error: failed to load all models", True),
    ],
)
def test_a_crash_of_the_sidecar_is_its_end_only_where_starting_again_does_not_help(
    restarts: int, words: str, failed: bool
) -> None:
    last = {"terminated": {"exitCode": 139, "message": words}}
    sidecar = {"name": "tritonserver", "state": {"running": {}}, "lastState": last, "restartCount": restarts}
    view = job_of(a_job(), [a_pod(initContainerStatuses=[sidecar])], [])
    assert (view.failure is not None, view.active, view.ended) == (failed, not failed, False)
    assert view.pending is not None
    assert words in view.pending.message


EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_an_eviction_is_told_and_no_failure_of_the_job(phase: str) -> None:
    view = job_of(a_job(), [a_pod(phase, containerStatuses=ended(137), conditions=[EVICTED])], [])
    assert (view.state, view.failure) == ("Active", None)
    assert view.pending is not None
    assert view.pending.reason is Reason.EVICTED
    assert view.pending.message == "the cluster ended pod p: Eviction API: evicting; another pod takes its place"


def test_what_keeps_the_successor_of_an_evicted_server_from_running_comes_first() -> None:
    labels = {"triton-operator.dev/server": "digits-1"}
    pods = [a_pod("Running", conditions=[EVICTED]), a_pod(conditions=[unschedulable("1 node(s) were unschedulable.")])]
    for pod in pods:
        pod["metadata"]["labels"] = labels
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "digits-1", "uid": "uid-1", "creationTimestamp": "2026-11-21T00:00:00Z"},
        "spec": {"replicas": 1},
    }
    for seen, reason in ((pods, Reason.UNSCHEDULABLE), (pods[:1], Reason.EVICTED)):
        trouble = observe("digits", [deployment, *seen]).servers["digits-1"].trouble
        assert trouble is not None
        assert trouble.reason is reason


def test_a_node_that_does_not_answer_is_named() -> None:
    """As the node controller leaves the pod: its containers were ready when the kubelet last said something."""
    ready = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]
    pod = a_pod("Running", containerStatuses=[{"name": "convert", "state": {"running": {}}}], conditions=ready)
    pod["spec"]["nodeName"] = "gpu-7"
    del pod["metadata"]["labels"][STAGE_LABEL]
    trouble = trouble_of(pod, [])
    assert trouble is not None
    assert trouble.reason is Reason.NODE_NOT_READY
    assert "gpu-7" in trouble.message
    assert "delete" not in trouble.message, "a server's Deployment makes another pod by itself"


def test_the_pod_of_a_job_on_a_lost_node_is_not_replaced_before_the_node_is_back_or_deleted() -> None:
    """After a while the cluster asks the node to end the pod, and nobody answers."""
    lost = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]
    told = EVICTED | {"reason": "DeletionByTaintManager"}
    pod = a_pod("Running", containerStatuses=[{"name": "convert", "state": {"running": {}}}], conditions=[*lost, told])
    pod["spec"]["nodeName"] = "gpu-7"
    pod["metadata"]["labels"] = {"triton-operator.dev/stage": "convert"}
    pending = job_of(a_job(), [pod], []).pending
    assert pending is not None
    assert pending.reason is Reason.NODE_NOT_READY
    assert "kubectl delete node gpu-7" in pending.message


def test_a_pod_of_a_job_that_was_being_initialized_on_a_lost_node_says_what_to_do() -> None:
    """It was not ready before, so the node controller changes nothing of it; user code runs in an init container."""
    told = EVICTED | {"reason": "DeletionByTaintManager"}
    pod = a_pod(conditions=[{"type": "Ready", "status": "False"}, told])
    pod["spec"]["nodeName"] = "gpu-7"
    for labels, says in (({}, False), ({"triton-operator.dev/stage": "convert"}, True)):
        pod["metadata"]["labels"] = labels
        trouble = trouble_of(pod, [])
        assert trouble is not None
        assert trouble.reason is Reason.EVICTED
        assert ("kubectl delete node gpu-7" in trouble.message) is says


def test_a_missing_secret_of_the_registry_is_named() -> None:
    words = "Unable to retrieve some image pull secrets (absent); attempting to pull the image may not succeed."
    events = [an_event("pod-1", "FailedToRetrieveImagePullSecret", words)]
    trouble = trouble_of(a_pod(containerStatuses=waiting("ErrImagePull", "not authorized")), events)
    assert trouble is not None
    assert trouble.reason is Reason.IMAGE_PULL_FAILED
    assert words in trouble.message


@pytest.mark.parametrize(
    ("restarts", "client", "failed"),
    [(6, {"running": {}}, False), (7, {"running": {}}, True), (1, {"waiting": {"reason": "PodInitializing"}}, True)],
)
def test_a_search_may_try_what_its_server_ends_under(restarts: int, client: dict[str, Any], failed: bool) -> None:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    sidecar = {"name": "tritonserver", "state": {"running": {}}, "lastState": killed, "restartCount": restarts}
    own = {"name": "search", "state": client}
    job = a_job()
    job["metadata"]["labels"]["triton-operator.dev/stage"] = "search"
    view = job_of(job, [a_pod(initContainerStatuses=[sidecar], containerStatuses=[own])], [])
    assert (view.failure is not None, view.pending is not None, view.active) == (failed, failed, not failed)


@pytest.mark.parametrize(
    ("words", "failed"),
    [
        ("failed to load 'm' version 1: no\nerror: creating server: Internal - failed to load all models", True),
        ("failed to load 'm' version 1: a configuration that the search tried\nSignal (11) received.", False),
    ],
)
def test_a_search_ends_if_its_server_does_not_even_start(words: str, failed: bool) -> None:
    """Its container runs from the beginning. What a server refuses as it starts is the spec's own configuration."""
    last = {"terminated": {"exitCode": 1, "message": words, "reason": "Error"}}
    sidecar = {"name": "tritonserver", "state": {"running": {}}, "lastState": last, "restartCount": 1}
    job = a_job()
    job["metadata"]["labels"]["triton-operator.dev/stage"] = "search"
    own = {"name": "search", "state": {"running": {}}}
    view = job_of(job, [a_pod("Running", initContainerStatuses=[sidecar], containerStatuses=[own])], [])
    assert (view.failure is not None) is failed


LATE = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}
NEVER_STARTED = ended(137, "The container could not be located when the pod was terminated", "ContainerStatusUnknown")


@pytest.mark.parametrize(
    ("statuses", "seen", "reason"),
    [
        (
            ended(143, "batch 7 of 64\nthe stage was stopped by a signal"),
            "exit code 143 (SIGTERM): batch 7 of 64 | the stage was",
            Reason.DEADLINE_EXCEEDED,
        ),
        (
            waiting("ImagePullBackOff", "Back-off pulling image"),
            "container convert: Back-off pulling image",
            Reason.IMAGE_PULL_FAILED,
        ),
        (
            NEVER_STARTED,
            "pod p: Startup probe failed: HTTP probe failed with statuscode: 400",
            Reason.DEADLINE_EXCEEDED,
        ),
    ],
)
def test_a_pod_past_its_deadline_tells_what_it_did_or_waited_for(
    statuses: list[Body], seen: str, reason: Reason
) -> None:
    events: list[Mapping[str, Any]] = [
        an_event("pod-1", "FailedScheduling", "0/1 nodes are available"),
        an_event("pod-1", "Unhealthy", "Startup probe failed: HTTP probe failed with statuscode: 400"),
    ]
    view = job_of(a_job(), [a_pod("Failed", **LATE, containerStatuses=statuses)], events)
    assert view.failure is not None
    assert view.failure.reason is reason
    start = "Job digits-convert-1 ran for more than 60 s; raise spec.conversion.activeDeadlineSeconds; last seen: "
    assert view.failure.message.startswith(start)
    assert seen in view.failure.message.removeprefix(start)
    assert (view.active, view.ended) == (False, False), "the Job controller would try it again"


CLEANED = '{"stage":"clean","key":"k","result":{"directories":1,"temporary":2}}'


def a_cleaning_job() -> Body:
    job = a_job()
    job["metadata"]["labels"]["triton-operator.dev/stage"] = "clean"
    return job


def test_a_result_that_came_before_the_deadline_counts() -> None:
    own = ended(0, CLEANED, "Completed")[0] | {"name": "clean"}
    view = job_of(a_cleaning_job(), [a_pod("Failed", **LATE, containerStatuses=[own])], [])
    assert view.record is not None
    assert (view.state, view.failure) == ("Succeeded", None)


PROXY = {"name": "istio-proxy", "state": {"running": {}}}


@pytest.mark.parametrize(
    ("code", "failure", "pending", "ends"),
    [(42, Reason.CRASHED, None, True), (1, None, Reason.CRASHED, False), (0, None, Reason.RESULT_MISSING, False)],
)
def test_a_container_that_a_webhook_added_does_not_hide_how_the_jobs_own_one_ended(
    code: int, failure: Reason | None, pending: Reason | None, ends: bool
) -> None:
    view = job_of(a_job(), [a_pod("Running", containerStatuses=[PROXY, *ended(code, "Killed.")])], [])
    assert (view.failure and view.failure.reason, view.pending and view.pending.reason) == (failure, pending)
    assert view.lingers_since == datetime.fromisoformat("2026-11-21T00:00:09+00:00")
    assert view.ended is ends


def held(started: bool, phase: str = "Pending", prepared: Body | None = None, **proxy: Any) -> Body:
    """A pod of a Job to which a mesh added a native sidecar, before all others."""
    first = {"name": "istio-proxy", "state": {"running": {}}, "started": started, **proxy}
    second = prepared or {"name": "prepare", "state": {"waiting": {"reason": "PodInitializing"}}}
    pod = a_pod(phase, initContainerStatuses=[first, second], containerStatuses=waiting("PodInitializing"))
    pod["spec"]["initContainers"] = [{"name": "istio-proxy", "restartPolicy": "Always"}, {"name": "prepare"}]
    return pod


CRASHES = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}
UNKNOWN = {"name": "prepare", "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}
LATE_PROXY = {"state": {"terminated": {"exitCode": 137}}}


@pytest.mark.parametrize("proxy", [{}, CRASHES])
def test_a_container_that_a_mesh_added_and_that_does_not_start_is_named_at_once(proxy: Body) -> None:
    view = job_of(a_job(), [held(False, **proxy)], [])
    assert view.failure is None
    assert view.pending is not None
    assert (view.pending.reason, view.pending.container) == (Reason.SIDECAR_NOT_STARTED, "istio-proxy")
    assert "networkPolicy.mesh" in view.pending.message


@pytest.mark.parametrize("prepared", [None, UNKNOWN])
def test_it_is_named_instead_of_the_deadline_that_it_used_up(prepared: Body | None) -> None:
    """To raise the deadline would help nobody."""
    pod = held(False, "Failed", prepared, **LATE_PROXY)
    pod["status"] |= {"reason": "DeadlineExceeded"}
    view = job_of(a_job(), [pod], [])
    assert view.failure is not None
    assert view.failure.reason is Reason.SIDECAR_NOT_STARTED
    assert "istio-proxy" in view.failure.message
    assert "activeDeadlineSeconds" not in view.failure.message


@pytest.mark.parametrize("pod", [held(True), held(False, prepared={"name": "prepare", "state": {"running": {}}})])
def test_one_that_nothing_waits_for_is_not(pod: Body) -> None:
    assert job_of(a_job(), [pod], []).pending is None


def test_an_init_container_of_a_mesh_that_does_not_end_is_named_too() -> None:
    pod = held(False)
    pod["spec"]["initContainers"][0] = {"name": "istio-proxy"}
    trouble = trouble_of(pod, [])
    assert trouble is not None
    assert trouble.reason is Reason.SIDECAR_NOT_STARTED
    pod["status"]["initContainerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}
    assert trouble_of(pod, []) is None


def test_a_result_counts_beside_a_container_that_goes_on() -> None:
    own = ended(0, CLEANED, "Completed")[0] | {"name": "clean"}
    view = job_of(a_cleaning_job(), [a_pod("Running", containerStatuses=[PROXY, own])], [])
    assert (view.state, view.record is not None, view.lingers_since is not None) == ("Succeeded", True, True)


@pytest.mark.parametrize(
    ("phase", "others"),
    [
        ("Running", []),
        ("Running", [{"name": "helper", "state": {"terminated": {"exitCode": 0}}}]),
        ("Failed", [PROXY]),
    ],
)
def test_a_pod_that_ends_by_itself_does_not_linger(phase: str, others: list[Body]) -> None:
    view = job_of(a_job(), [a_pod(phase, containerStatuses=[*others, *ended(1)])], [])
    assert view.lingers_since is None


def test_only_the_jobs_own_container_says_what_became_of_it() -> None:
    """Neither an answer nor an exit code of what a webhook added, as another container or as a sidecar, counts."""
    own = {"name": "clean", "state": {"running": {}}}
    answers = {"name": "proxy", "state": {"terminated": {"exitCode": 0, "message": CLEANED}}}
    fails = {"name": "proxy", "state": {"terminated": {"exitCode": 42}}}
    for other in (answers, fails):
        view = job_of(a_cleaning_job(), [a_pod("Running", containerStatuses=[other, own])], [])
        assert (view.active, view.ended, view.record) == (True, False, None)
    pod = a_pod("Failed", containerStatuses=ended(1, "Killed."), initContainerStatuses=[fails])
    pod["spec"]["initContainers"].append({"name": "proxy", "restartPolicy": "Always"})
    view = job_of(a_job(), [pod], [])
    assert view.pending is not None
    assert view.pending.message == "pod p, container convert ended with exit code 1: Killed.; the Job tries again"


def test_a_job_that_gets_no_pod_says_who_refuses_it() -> None:
    view = job_of(a_job(), [], [an_event("job-1", "FailedCreate", "exceeded quota: gpus")])
    assert view.pending is not None
    assert view.pending.reason is Reason.APPLY_REFUSED
    assert "exceeded quota: gpus" in view.pending.message


def test_a_job_that_succeeded_and_lost_its_pod_has_no_result_and_no_failure() -> None:
    view = job_of(a_job({"type": "Complete", "status": "True"}), [], [])
    assert (view.state, view.record, view.failure) == ("Succeeded", None, None)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', '{"stage":"convert"}', '{"stage":["a"],"key":"k","result":{}}', '{"stage":1}']
)
def test_a_broken_entry_of_the_results_counts_as_absent(text: str) -> None:
    config_map = {"kind": "ConfigMap", "metadata": {"name": "digits-results"}, "data": {"convert.k": text}}
    observed = observe("digits", [config_map])
    assert observed.records == {}
    assert observed.unreadable == {"convert.k": text}


def in_three(run: Body, phase: str = "Pending") -> Body:
    """A pod of a Job with user code in which `run` is in that state."""
    pod = a_pod(phase, containerStatuses=waiting("PodInitializing"))
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    pod["spec"]["initContainers"] = [{"name": each, **limits} for each in ("prepare", "run")]
    pod["status"]["initContainerStatuses"] = [
        {"name": "prepare", "state": {"terminated": {"exitCode": 0}}},
        {"name": "run", "state": run},
    ]
    return pod


FAILED_JOB = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}


def test_user_code_that_the_kernel_killed_with_its_container_is_out_of_memory() -> None:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    view = job_of(a_job(FAILED_JOB), [in_three(killed, "Failed")], [])
    assert view.failure is not None
    assert (view.failure.reason, view.failure.message) == (
        Reason.OUT_OF_MEMORY,
        "pod p, container run was killed at its memory limit of 64Mi; raise it in spec.conversion.pod.resources",
    )


def test_an_image_of_the_users_that_cannot_be_pulled_is_named() -> None:
    pull = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image example/torch:1"}}
    view = job_of(a_job(), [in_three(pull)], [])
    assert view.pending is not None
    assert view.pending.reason is Reason.IMAGE_PULL_FAILED
    assert view.pending.message.startswith("pod p, container run: Back-off pulling image example/torch:1; check")


def test_an_input_that_is_missing_is_what_the_stage_said() -> None:
    outcome = '{"stage":"convert","key":"k","reason":"ResultMissing","message":"references/r is gone"}'
    pod = in_three({"waiting": {"reason": "PodInitializing"}}, "Failed")
    pod["status"]["initContainerStatuses"][0]["state"] = {"terminated": {"exitCode": 42, "message": outcome}}
    view = job_of(a_job(FAILED_JOB), [pod], [])
    assert view.failure is not None
    assert (view.failure.reason, view.failure.message) == (Reason.RESULT_MISSING, "references/r is gone")


def test_user_code_that_ran_past_the_deadline_is_quoted() -> None:
    stopped = {"terminated": {"exitCode": 143, "message": "batch 7 of 64", "reason": "Error"}}
    pod = in_three(stopped, "Failed")
    pod["status"]["reason"] = "DeadlineExceeded"
    view = job_of(a_job(FAILED_JOB), [pod], [])
    assert view.failure is not None
    assert view.failure.reason is Reason.DEADLINE_EXCEEDED
    assert view.failure.message.endswith(
        "last seen: pod p, container run ended with exit code 143 (SIGTERM): batch 7 of 64"
    )


def test_a_result_of_the_users_own_is_no_record() -> None:
    """Only the container that publishes is asked, whatever the user's code writes as its container's last words."""
    forged = '{"stage":"convert","key":"k","result":{"file_sha256":"0"}}'
    pod = in_three({"terminated": {"exitCode": 0, "message": forged}}, "Running")
    pod["status"]["containerStatuses"] = [{"name": "convert", "state": {"running": {}}}]
    view = job_of(a_job(), [pod], [])
    assert (view.record, view.failure, view.pending, view.state) == (None, None, None, "Active")


def test_a_volume_that_was_late_is_no_trouble_once_user_code_runs() -> None:
    """The pod stays Pending for as long as its init containers run."""
    late = {
        "kind": "Event",
        "reason": "FailedMount",
        "message": "timed out waiting for the volume",
        "lastTimestamp": "2026-11-21T00:00:10Z",
        "involvedObject": {"uid": "pod-1"},
    }
    assert trouble_of(in_three({"running": {}}), [late]) is None
    waits = in_three({"waiting": {"reason": "PodInitializing"}})
    waits["status"]["initContainerStatuses"][0]["state"] = {"waiting": {"reason": "PodInitializing"}}
    trouble = trouble_of(waits, [late])
    assert trouble is not None
    assert trouble.reason is Reason.MOUNT_FAILED
