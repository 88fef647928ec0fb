"""What fails ends, is named, and disturbs nothing that serves."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import FINAL, GOOD, Script, when
from tests.simulation.cluster import ORDER, STEP, Cluster
from tests.simulation.deployments import CANDIDATES, DEGRADATION
from tests.simulation.edits import a_wider_batch, another_source
from tests.simulation.walk.walking import why
from tests.states.deployment import a_deployment
from tests.states.pods import without_a_node
from triton_converters.contract.measurement_requests import OUTSIDE_SECONDS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.stages import STAGES as JOB_STAGES
from triton_operator import names

NAMES = [each["name"] for each in CANDIDATES]
STAGES = ["source", "reference", "convert", "profile", "metrics", "measure"]
RESULTS = ("ConfigMap", "digits-results")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_fails_for_good_stalls_and_says_why(stage: str) -> None:
    cluster = a_deployment().faring(when(stage, FINAL)).settled().cluster()
    for kind, status in (("Ready", "False"), ("Reconciling", "False"), ("Stalled", "True")):
        assert cluster.condition(kind)["status"] == status
    assert "model.py, line 3" in cluster.condition("Ready")["message"]
    assert cluster.serving() is None
    assert [each.type for each in cluster.events if each.message.startswith("Stalled")] == ["Warning"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_new_generation_that_fails_leaves_the_old_one_serving(serving: Cluster, stage: str) -> None:
    before = {key: serving.status[key] for key in ("serving", "endpoint", "performance", "accuracy")}
    first = serving.serving()
    serving.scripts = when(stage, FINAL)
    serving.edit(a_wider_batch(), another_source())
    serving.settle()
    assert serving.serving() == first
    assert ("Deployment", first) in serving.objects
    assert serving.condition("Available")["status"] == "True"
    assert serving.condition("Stalled")["status"] == "True"
    assert {key: serving.status[key] for key in before} == before


@pytest.mark.parametrize("again", [GOOD, Script(pending=without_a_node())])
def test_a_job_whose_result_is_recorded_never_runs_again(again: Script) -> None:
    """A drain takes its pod after its own container has answered, and before the Job is complete."""
    cluster = a_deployment().candidates("ts-trace-fp32", "onnx-fp32").cluster()

    def profiles() -> list[dict[str, Any]]:
        return [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "profile"]

    cluster.until(lambda _: any(each["status"].get("shown") for each in profiles())).act()
    job = profiles()[0]
    (pod,) = [each for each in cluster.of_kind("Pod") if each["metadata"]["name"].startswith(job["metadata"]["name"])]
    cluster.delete("Pod", pod["metadata"]["name"])
    job["status"] = {}
    cluster.scripts = when("profile", again, job["metadata"]["labels"][names.CANDIDATE_LABEL])
    for _ in cluster.passes(until=lambda _: cluster.has("Ready")):
        assert len([each for each in profiles() if not each["status"].get("shown")]) <= 1, "two profiles at once"
    assert cluster.started("profile") == 2


@pytest.mark.parametrize("stage", ["convert", "profile"])
def test_a_candidate_that_fails_stops_no_other(stage: str) -> None:
    cluster = a_deployment().faring(when(stage, FINAL, "onnx-fp32")).settled().cluster()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"], failed["message"]) == (
        "Failed",
        "UserCodeFailed",
        "model.py, line 3: no",
    )
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"
    assert [each.reason for each in cluster.events].count("UserCodeFailed") == 1


@pytest.mark.parametrize("stage", STAGES)
def test_asking_for_another_try_repeats_what_failed_and_nothing_else(stage: str) -> None:
    cluster = a_deployment().asking(accuracy=DEGRADATION).faring(when(stage, FINAL)).settled().cluster()
    story = len(cluster.story)
    cluster.scripts = when(stage, GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    again = [each.split()[0] for each in cluster.story[story:]]
    assert not set(again) & set(STAGES[: STAGES.index(stage)]), "what did not fail stays done"


def test_an_old_failure_is_not_told_of_the_job_that_tries_again() -> None:
    cluster = a_deployment().faring(when("reference", FINAL)).settled().cluster()
    cluster.scripts = when("reference", Script(exit_code=42, reason=Reason.DATALOADER_INVALID, message="no batch"))
    cluster.retry()
    cluster.act()
    cluster.act()
    assert (cluster.condition("Stalled")["status"], cluster.condition("Ready")["reason"]) == ("False", "Running")
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "DataloaderInvalid"
    assert cluster.started("reference") == 2


def test_a_policy_that_deletes_failed_jobs_repeats_no_failure() -> None:
    """ttlSecondsAfterFinished, set by an admission webhook, deletes a Job with its failure."""
    cluster = a_deployment().faring(when("profile", FINAL, "onnx-fp32")).settled().cluster()
    ready = dict(cluster.condition("Ready"))
    for _ in range(3):
        for job in [each["metadata"]["name"] for each in cluster.of_kind("Job")]:
            cluster.delete("Job", job)
        cluster.settle()
    assert cluster.started("profile") == len(NAMES)
    assert (cluster.candidate("onnx-fp32")["state"], cluster.candidate("onnx-fp32")["reason"]) == (
        "Failed",
        "UserCodeFailed",
    )
    assert cluster.condition("Ready") == ready


def test_candidates_that_are_tried_again_are_measured_one_at_a_time() -> None:
    cluster = a_deployment().faring(when("profile", FINAL)).settled().cluster()
    cluster.scripts = when("profile", GOOD)
    cluster.retry()
    for _ in cluster.passes(60):
        assert len(cluster.active("profile")) <= 1
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_failed_job_that_goes_after_its_pod_has_not_crashed() -> None:
    """Jobs and pods are deleted over different watches: the pod of a failed Job may be gone first."""
    missing = Script(exit_code=42, reason=Reason.SOURCE_NOT_FOUND, message="nothing at digits")
    cluster = a_deployment().faring(when("source", missing)).cluster()
    cluster.until(
        lambda cluster: any(name.startswith("failure.") for name in cluster.objects.get(RESULTS, {}).get("data", {}))
    )
    for pod in cluster.of_kind("Pod"):
        del cluster.objects["Pod", pod["metadata"]["name"]]
    cluster.now += 15 * STEP
    intent = cluster.intent()
    assert [each.name for each in intent.deletions] == [each["metadata"]["name"] for each in cluster.of_kind("Job")]
    (resolved,) = (each for each in intent.status.conditions if each.type == "SourceResolved")
    assert resolved.reason == "SourceNotFound"


def test_killed_for_memory_names_the_limit_and_more_memory_is_another_try() -> None:
    limits = {"pod": {"resources": {"limits": {"memory": "64Mi"}}}}
    killed = Script(exit_code=137, killed="OOMKilled")
    cluster = a_deployment().asking(conversion=limits).faring(when("convert", killed, "onnx-fp32")).settled().cluster()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "OutOfMemory")
    assert "limit of 64Mi" in failed["message"]
    assert "spec.conversion.pod.resources" in failed["message"]
    story = len(cluster.story)
    cluster.scripts = when("convert", GOOD)
    cluster.edit(conversion={"pod": {"resources": {"limits": {"memory": "1Gi"}}}})
    cluster.settle()
    assert cluster.story[story : story + 2] == ["convert onnx-fp32", "profile onnx-fp32"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"


PRESSURE = Script(evicted="The node was low on resource: ephemeral-storage. ")


def test_a_job_whose_pods_the_kubelet_ends_three_times_fails_and_stops_no_other() -> None:
    cluster = a_deployment().faring(when("convert", PRESSURE, "onnx-fp32")).settled().cluster()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "Evicted")
    assert "The node was low on resource: ephemeral-storage" in failed["message"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"
    assert cluster.active("convert") == [], "the Job controller would go on"
    assert cluster.started("convert") == len(NAMES)
    cluster.scripts = when("convert", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"


def test_a_job_whose_pods_the_kubelet_ends_twice_goes_on_and_says_why() -> None:
    cluster = a_deployment().faring(when("reference", PRESSURE)).cluster()
    reasons = set()
    while sum(each["status"].get("reason") == "Evicted" for each in cluster.of_kind("Pod")) < 2:
        cluster.run(1)
        reasons.add(cluster.condition("Converted")["reason"])
    cluster.act()
    assert "Evicted" in reasons
    assert "(now 2)" in cluster.condition("Converted")["message"]
    cluster.scripts = when("reference", GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("reference") == 1


def test_a_container_that_dies_without_a_result_is_quoted() -> None:
    died = Script(exit_code=139, message="loading\nSegmentation fault")
    cluster = a_deployment().faring(when("reference", died)).settled().cluster()
    ready = cluster.condition("Ready")
    assert ready["reason"] == "Crashed"
    assert "exit code 139 (SIGSEGV): loading | Segmentation fault" in ready["message"]


@pytest.mark.parametrize("answer", ["", "not a result", '{"stage":"reference","key":"0","result":{}}'])
def test_success_without_a_valid_result_is_a_failure(answer: str) -> None:
    cluster = a_deployment().faring(when("reference", Script(answer=answer))).settled().cluster()
    assert cluster.condition("Ready")["reason"] == "ResultMissing"
    assert cluster.started("reference") == 1


HOSTILE = ["[" * 2000, '{"stage":"profile","key":NaN}', '{"stage":["profile"],"key":"k"}', "9" * 4096, '"\\ud800"']
"""What users' code may leave for an answer."""


@pytest.mark.parametrize("answer", HOSTILE)
@pytest.mark.parametrize(("exit_code", "reason"), [(0, "ResultMissing"), (FINAL.exit_code, "Crashed")])
def test_a_hostile_answer_fails_its_candidate_and_stops_no_other(answer: str, exit_code: int, reason: str) -> None:
    cluster = (
        a_deployment()
        .faring(when("profile", Script(exit_code=exit_code, answer=answer), "onnx-fp32"))
        .settled()
        .cluster()
    )
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", reason)
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    "order", [("containers", "pod", "job"), ("containers", "job", "pod"), ("job", "containers", "pod")]
)
@pytest.mark.parametrize("script", [GOOD, FINAL, Script(exit_code=137, killed="OOMKilled")])
def test_watches_that_lag_tell_the_same_story(order: tuple[str, ...], script: Script) -> None:
    clusters = [
        a_deployment().faring(when("profile", script, "onnx-fp32")).where(order=each).cluster()
        for each in (order, ORDER)
    ]
    for cluster in clusters:
        cluster.settle()
    lagging, prompt = clusters
    assert lagging.story == prompt.story
    told = [[each for each in cluster.events if each.message.startswith("candidate")] for cluster in clusters]
    assert told[0] == told[1]
    assert [lagging.candidate(each)["reason"] for each in NAMES] == [prompt.candidate(each)["reason"] for each in NAMES]


@pytest.mark.parametrize("exit_code", [1, 137, 143])
def test_how_a_sidecar_ends_with_its_pod_is_no_crash(exit_code: int) -> None:
    cluster = a_deployment().faring(when("profile", Script(sidecar_exit=exit_code))).serving().cluster()
    assert [cluster.candidate(each)["reason"] for each in NAMES if each != "onnx-fp32"] == ["NotBest"] * 3


def test_a_client_that_fails_is_not_mistaken_for_a_server_that_crashed() -> None:
    script = Script(exit_code=42, reason=Reason.METRIC_FAILED, message="metrics.py, line 2", sidecar_exit=143)
    cluster = a_deployment().faring(when("profile", script)).settled().cluster()
    assert {cluster.candidate(each)["reason"] for each in NAMES} == {"MetricFailed"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("error: creating server: Internal - failed to load all models", "ModelLoadFailed"),
        ("Signal (11) received.", "ServerCrashed"),
    ],
)
def test_a_sidecar_that_crash_loops_fails_its_candidate_in_its_own_words(words: str, reason: str) -> None:
    cluster = a_deployment().faring(when("profile", Script(sidecar_crashes=words), "onnx-fp32")).settled().cluster()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", reason)
    assert words in failed["message"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"
    assert cluster.active("profile") == []


def test_a_server_that_hangs_is_tried_again_and_then_fails_its_candidate_by_name() -> None:
    """As the kubelet reports of a sidecar whose startup probe failed."""
    words = "the server hung: for 180 s nothing in its container computed or read: tritonserver 7 S (sleeping) futex"
    cluster = a_deployment().faring(when("profile", Script(sidecar_crashes=words), "onnx-fp32")).settled().cluster()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "ServerCrashed")
    assert words in failed["message"]
    assert "look for a lock" in failed["message"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"


def test_the_servers_own_sentence_about_a_model_is_whole_wherever_it_is_told() -> None:
    sentence = (
        "failed to load 'digits' version 1: Invalid argument: model 'digits', tensor 'output0': the model expects 3"
        " dimensions (shape [-1,22,-1]) but the model configuration specifies 2 dimensions (shape [22,2100])"
    )
    frames = "  <frozen importlib._bootstrap>(241): _call_with_frames_removed\n" * 20
    end = "error: creating server: Internal - failed to load all models"
    words = f"E1122 16:02:42.1 1 model_lifecycle.cc:654] {sentence}\n\nAt:\n{frames}{end}\n"
    cluster = a_deployment().faring(when("profile", Script(sidecar_crashes=words))).settled().cluster()
    assert [cluster.candidate(each)["message"].partition("; ")[0] for each in NAMES] == [sentence] * len(NAMES)
    assert cluster.condition("Ready")["reason"] == "AllCandidatesFailed"
    for kind in ("Ready", "Stalled", "Verified"):
        assert sentence in cluster.condition(kind)["message"]


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "1 Insufficient nvidia.com/gpu."}]},
            "Unschedulable",
            "1 Insufficient nvidia.com/gpu.",
        ),
        (
            {"containerStatuses": [{"name": "x", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullFailed",
            "ImagePullBackOff",
        ),
        (
            {"containerStatuses": [{"name": "x", "state": {"waiting": {"reason": "CreateContainerConfigError"}}}]},
            "ContainerConfigInvalid",
            "CreateContainerConfigError",
        ),
    ],
)
@pytest.mark.parametrize("stage", ["source", "reference", "convert", "profile"])
def test_a_pod_that_cannot_start_is_shown_and_does_not_stall(
    stage: str, status: dict[str, object], reason: str, words: str
) -> None:
    cluster = a_deployment().faring(when(stage, Script(pending={"phase": "Pending"} | status))).cluster()
    cluster.run(25)
    ready = cluster.condition("Ready")
    assert ready["reason"] == reason
    assert words in ready["message"]
    assert cluster.condition("Stalled")["status"] == "False"
    assert cluster.intent().requeue_after is None, "the pod's own change wakes the next pass"
    cluster.scripts = when(stage, GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("stage", STAGES)
def test_the_wait_for_a_node_does_not_count_towards_the_deadline(stage: str) -> None:
    """The default is an hour; the only GPU is free after two."""
    cluster = a_deployment().faring(when(stage, Script(pending=without_a_node()))).cluster()
    cluster.run(50)
    for _ in range(2):
        cluster.now += timedelta(hours=1)
        cluster.run(2)
        assert (cluster.condition("Ready")["reason"], cluster.condition("Stalled")["status"]) == (
            "Unschedulable",
            "False",
        )
    cluster.scripts = when(stage, GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("stage", STAGES)
def test_a_pod_that_runs_past_its_deadline_is_not_tried_again(stage: str) -> None:
    deadline = {"activeDeadlineSeconds": 30}
    cluster = (
        a_deployment()
        .asking(conversion=deadline, performance=deadline)
        .faring(when(stage, Script(hangs=True)))
        .cluster()
    )
    cluster.run(400)
    told = " ".join(each.get("message", "") for each in [cluster.condition("Ready"), *cluster.status["candidates"]])
    seconds = 30 + (OUTSIDE_SECONDS if stage == "metrics" else 0)
    assert f"ran for more than {seconds} s; raise {JOB_STAGES[stage].deadline};" in told
    assert "batch 7 of 64" in told
    assert cluster.condition("Stalled")["status"] == "True"
    assert not [each for each in cluster.of_kind("Pod") if each["status"].get("reason") == "DeadlineExceeded"]
    story = list(cluster.story)
    cluster.run(20)
    assert cluster.story == story
    cluster.scripts = when(stage, GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_pod_that_ran_past_its_deadline_while_no_operator_ran_is_not_tried_again() -> None:
    """The Job controller makes another pod, as for any that failed."""
    cluster = (
        a_deployment()
        .asking(conversion={"activeDeadlineSeconds": 30})
        .faring(when("reference", Script(hangs=True)))
        .cluster()
    )
    cluster.run(5)
    for _ in range(20):
        cluster.step()
    assert len(cluster.of_kind("Pod")) == 3, "one is done, one was late, one is new"
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "DeadlineExceeded"
    assert cluster.started("reference") == 1
    assert not [each for each in cluster.of_kind("Pod") if each["status"]["phase"] == "Running"]


def test_a_server_that_never_gets_ready_stalls_at_its_deadline() -> None:
    cluster = a_deployment().asking(serving={"progressDeadlineSeconds": 20}).where(starts=lambda name: False).cluster()
    cluster.run(70)
    for kind in ("Available", "Ready", "Stalled"):
        assert cluster.condition(kind)["reason"] == "ProgressDeadlineExceeded"
    assert cluster.condition("Stalled")["status"] == "True"
    assert cluster.serving() is None


def test_a_target_that_never_gets_ready_is_named_and_the_old_revision_serves(serving: Cluster) -> None:
    first = serving.serving()
    serving.starts = lambda name: name == first
    serving.edit(a_wider_batch(), serving={"progressDeadlineSeconds": 20})
    serving.run(80)
    assert serving.serving() == first
    assert (serving.condition("Stalled")["status"], serving.condition("Available")["status"]) == ("True", "True")
    assert serving.condition("Ready")["reason"] == "ProgressDeadlineExceeded"
    serving.starts = lambda name: True
    serving.settle()
    assert serving.condition("Ready")["status"] == "True"


def test_a_source_that_comes_later_is_found() -> None:
    missing = Script(exit_code=42, reason=Reason.SOURCE_NOT_FOUND, message="nothing at digits")
    cluster = a_deployment().faring(when("source", missing)).cluster()
    cluster.run(12)
    resolved = cluster.condition("SourceResolved")
    assert (resolved["status"], resolved["reason"]) == ("False", "SourceNotFound")
    assert cluster.condition("Stalled")["status"] == "False"
    # The fifth Job has ended by then.
    cluster.run(44)
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.scripts = when("source", GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("steps", range(0, 50, 7))
def test_a_service_deleted_by_hand_is_back_in_the_next_pass(serving: Cluster, steps: int) -> None:
    serving.edit(a_wider_batch())
    serving.run(steps)
    # In some passes it would point to the new revision anyway.
    undisturbed = deepcopy(serving)
    undisturbed.act()
    serving.delete("Service", "digits")
    serving.act()
    assert serving.serving() == undisturbed.serving()
    assert ("Deployment", serving.serving()) in serving.objects


@pytest.mark.parametrize("steps", range(0, 50, 7))
def test_results_deleted_by_hand_come_back(steps: int) -> None:
    cluster = a_deployment().cluster()
    cluster.run(steps)
    cluster.delete("ConfigMap", "digits-results") if ("ConfigMap", "digits-results") in cluster.objects else None
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert len(cluster.story) == 15, "a finished Job says its result again"


def test_everything_deleted_by_hand_ends_at_the_same_status(serving: Cluster) -> None:
    before = serving.status
    serving.objects.clear()
    serving.settle()
    assert {each: serving.status[each] for each in ("candidates", "serving", "accuracy")} == {
        each: before[each] for each in ("candidates", "serving", "accuracy")
    }
    assert serving.condition("Ready")["status"] == "True"


def test_results_on_a_claim_that_is_gone_are_made_anew(serving: Cluster) -> None:
    revision = serving.status["serving"]["revision"]
    serving.step()
    serving.delete("PersistentVolumeClaim", "digits-repository")
    story = list(serving.story)
    serving.settle()
    assert serving.story == story + story[:12] + ["measure onnx-fp32"]
    assert serving.status["serving"]["revision"] == revision
    assert serving.condition("Ready")["status"] == "True"


def named_claim(cluster: Cluster, name: str, owner: str = "") -> None:
    """The user makes a claim; or the operator does, for another object."""
    cluster.serial += 1
    made = cluster.now.isoformat()
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{cluster.serial}", "creationTimestamp": made}
    metadata |= {"labels": names.labels(owner, "repository")} if owner else {}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}
    cluster.objects["PersistentVolumeClaim", name] = claim


@pytest.mark.parametrize("exists", [True, False])
def test_another_claim_has_none_of_the_results(serving: Cluster, exists: bool) -> None:
    first, story = serving.serving(), list(serving.story)
    if exists:
        named_claim(serving, "shared")
    serving.edit(repository={"claimName": "shared"})
    serving.act()
    serving.act()
    assert serving.story[len(story) :] == ["source"], "nothing of the other claim is believed"
    assert serving.serving() == first, "the active revision is on the other claim and goes on"
    named_claim(serving, "shared")
    serving.settle()
    assert serving.story[len(story) :].count("profile onnx-fp32") == 1
    assert serving.condition("Ready")["status"] == "True"
    assert serving.serving() != first


def test_a_named_claim_that_was_made_anew_has_none_of_the_results() -> None:
    cluster = a_deployment().asking(repository={"claimName": "shared"}).cluster()
    named_claim(cluster, "shared")
    cluster.settle()
    story = list(cluster.story)
    cluster.step()
    named_claim(cluster, "shared")
    cluster.settle()
    assert cluster.story == story + story[:12] + ["measure onnx-fp32"]
    assert cluster.condition("Ready")["status"] == "True"


def test_a_claim_of_one_pod_at_a_time_is_refused_before_any_job() -> None:
    """The Job that measures a server would wait for ever for the claim that the server has."""
    cluster = a_deployment().asking(repository={"claimName": "shared"}).cluster()
    named_claim(cluster, "shared")
    cluster.objects["PersistentVolumeClaim", "shared"]["spec"]["accessModes"] = ["ReadWriteOncePod"]
    cluster.run(3)
    assert not cluster.of_kind("Job")
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "ClaimUnusable")
    assert "ReadWriteOncePod" in stalled["message"]
    cluster.objects["PersistentVolumeClaim", "shared"]["spec"]["accessModes"] = ["ReadWriteOnce"]
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_claim_that_lost_its_volume_is_named(serving: Cluster) -> None:
    serving.objects["PersistentVolumeClaim", "digits-repository"]["status"] = {"phase": "Lost"}
    serving.run(2)
    newest = serving.condition("UpToDate")
    assert (newest["reason"], newest["status"]) == ("ClaimLost", "False")
    assert serving.serving() is not None


def test_a_lost_status_is_written_again(serving: Cluster) -> None:
    before = serving.status
    serving.status = {"observedGeneration": -1}
    serving.settle()
    keep = {key for key in before if key != "conditions"}
    assert {key: serving.status[key] for key in keep} == {key: before[key] for key in keep}


@pytest.mark.parametrize("script", [GOOD, Script(exit_code=139, message="Segmentation fault")])
def test_a_job_seen_to_end_before_its_pod_is_neither_run_again_nor_judged(script: Script) -> None:
    """Its pod, and with it the answer, comes over another watch, seconds later."""
    cluster = a_deployment().faring(when("source", script)).where(order=("job", "containers", "pod")).cluster()
    cluster.until(lambda cluster: any(job["status"].get("conditions") for job in cluster.of_kind("Job")))
    pods = {key: cluster.objects.pop(key) for key in list(cluster.objects) if key[0] == "Pod"}
    for _ in range(3):
        assert cluster.intent().deletions == ()
        cluster.act()
        assert cluster.condition("Stalled")["status"] == "False"
        cluster.now += STEP
    cluster.objects |= pods
    cluster.settle()
    assert cluster.started("source") == 1
    assert cluster.condition("Ready")["status"] == ("True" if script is GOOD else "False")
    if script is not GOOD:
        assert "Segmentation fault" in cluster.condition("Ready")["message"]


def test_a_job_whose_pod_is_never_seen_is_looked_at_again_without_being_woken() -> None:
    cluster = a_deployment().where(order=("job", "containers", "pod")).cluster()
    cluster.act()
    while not any(job["status"].get("conditions") for job in cluster.of_kind("Job")):
        cluster.step()
    for pod in cluster.of_kind("Pod"):
        del cluster.objects["Pod", pod["metadata"]["name"]]
    assert cluster.intent().requeue_after is not None, "no watch tells that the pod stays unseen"
    assert cluster.story == ["source"]
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_retry_that_is_typed_before_the_failure_could_be_recorded_is_one() -> None:
    """Replayed from the random walk: the status tells of a failure while the results may not be written."""
    lost = [("refusals", [("apply", "ConfigMap")]), ("a sidecar in Jobs", "istio-proxy"), ("an hour passes", 3600)]
    assert not why(None, [*lost, ("time passes", 10)])
