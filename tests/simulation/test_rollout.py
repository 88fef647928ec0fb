"""From a new object to Ready, and from one revision to the next."""

from copy import deepcopy
from dataclasses import replace

import pytest

from tests.simulation.answers import FINAL, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model
from tests.simulation.edits import a_wider_batch, another_source, another_version
from tests.states.deployment import a_deployment

MEASURED = {"profile", "metrics", "measure"}


def test_a_new_object_becomes_ready_through_every_stage_in_order(serving: Cluster) -> None:
    assert serving.story == [
        "source",
        "reference",
        "metrics",
        "convert ts-trace-fp32",
        "convert ts-script-fp32",
        "convert onnx-fp32",
        "convert onnx-fp16",
        "profile ts-trace-fp32",
        "profile ts-script-fp32",
        "profile onnx-fp32",
        "profile onnx-fp16",
        "metrics",
        "server",
        "measure onnx-fp32",
        "service",
    ]
    assert serving.condition("Ready")["status"] == "True"
    assert serving.status["serving"]["candidate"] == "onnx-fp32"


def test_at_rest_a_pass_writes_nothing_says_nothing_and_wakes_nobody(serving: Cluster) -> None:
    for _ in range(3):
        serving.step()
        wanted = serving.intent()
        assert (wanted.deletions, wanted.events, wanted.requeue_after) == ((), (), None)
        assert serving.act() == 0


def test_the_first_pass_shows_every_condition() -> None:
    cluster = a_deployment().cluster()
    cluster.act()
    shown = {each["type"]: (each["status"], each["observedGeneration"]) for each in cluster.status["conditions"]}
    assert len(shown) == 10
    assert {generation for _, generation in shown.values()} == {1}
    assert (shown["Ready"][0], shown["Reconciling"][0], shown["Stalled"][0]) == ("False", "True", "False")
    assert shown["Selected"][0] == "Unknown"


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_conversions_run_so_many_at_a_time_and_profiles_alone_after_them(parallelism: int) -> None:
    cluster = a_deployment().asking(conversion={"parallelism": parallelism}).cluster()
    most = 0
    for _ in cluster.passes(60):
        converting, profiling = cluster.active("convert"), cluster.active("profile")
        assert len(profiling) <= 1
        assert not (converting and profiling)
        most = max(most, len(converting))
    assert most == parallelism


def test_an_answer_counts_once_its_container_ended_while_the_sidecar_still_shuts_down() -> None:
    cluster = a_deployment().cluster()
    cluster.until(lambda cluster: any(job["status"].get("shown") for job in cluster.of_kind("Job")))
    assert cluster.story == ["source"]
    (job,) = cluster.of_kind("Job")
    assert not job["status"].get("conditions"), "the Job itself was not seen to end yet"
    cluster.act()
    assert cluster.story == ["source", "reference"]


def test_the_old_revision_serves_until_the_new_one_has_passed(serving: Cluster) -> None:
    first = serving.serving()
    serving.edit(a_wider_batch())
    for _ in serving.passes(until=lambda serving: "promotion" in serving.story):
        if "promotion" not in serving.story:
            assert serving.serving() == first
        assert ("Deployment", first) in serving.objects, "the old server goes before the Service was seen to point away"
        assert serving.condition("Available")["status"] == "True"
    assert serving.story[-2:] == ["measure onnx-fp32", "promotion"]
    serving.settle()
    assert serving.serving() != first
    assert [each["metadata"]["name"] for each in serving.of_kind("Deployment")] == [serving.serving()]


def test_target_is_shown_only_while_it_is_not_what_serves(serving: Cluster) -> None:
    assert "target" not in serving.status
    serving.edit(a_wider_batch())
    seen = set()
    for _ in serving.passes(60):
        seen.add(serving.status.get("target", {}).get("candidate"))
    assert seen == {None, "onnx-fp32"}
    assert "target" not in serving.status


def test_events_tell_a_second_rollout_in_order(serving: Cluster) -> None:
    before, told = serving.status["serving"]["revision"], len(serving.events)
    serving.edit(another_source())
    serving.settle()
    after = serving.status["serving"]["revision"]
    events = serving.events[told:]
    assert {event.type for event in events} == {"Normal"}
    assert [event.reason for event in events] == [
        *("Running", "Resolved", "Running", "Converted", "Running", "Verified", "Selected"),
        *("RollingOut", "Running", "Measured", "Available", "Ready"),
    ]
    (start,) = [event.message for event in events if event.reason == "RollingOut"]
    (promotion,) = [event.message for event in events if event.reason == "Available"]
    assert (
        start
        == f"Available: revision {after} (candidate onnx-fp32) starts; revision {before} serves until it was measured"
    )
    assert (
        promotion
        == f"Available: revision {after} (candidate onnx-fp32) replaces revision {before}, and is the active one"
    )


def test_going_back_runs_no_stage_again(serving: Cluster) -> None:
    first = serving.serving()
    serving.edit(a_wider_batch())
    serving.settle()
    story = len(serving.story)
    serving.edit(models=[a_model()])
    serving.settle()
    assert serving.serving() == first
    assert serving.story[story:] == ["server", "promotion"]


@pytest.mark.parametrize(
    "fields",
    [
        {"serving": {"replicas": 3}},
        {"serving": {"progressDeadlineSeconds": 900}},
        {"suspend": True},
        {"conversion": {"parallelism": 4, "activeDeadlineSeconds": 60}},
        {"performance": {"activeDeadlineSeconds": 60}},
        {"selection": {"constraints": {"p99Latency": "9999us"}}},
    ],
)
def test_an_edit_that_changes_no_result_runs_nothing(serving: Cluster, fields: dict[str, object]) -> None:
    before, story = serving.serving(), list(serving.story)
    serving.edit(**fields)
    serving.settle()
    assert (serving.serving(), serving.story) == (before, story)
    assert serving.condition("Ready")["status"] == "True"
    assert serving.status["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("fields", "stages"),
    [
        ({"accuracy": {"maxSamples": 100}}, {"reference", "convert", *MEASURED}),
        ({"accuracy": {"thresholds": []}}, {"reference", *MEASURED}),
        ({"accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.9}]}}, set()),
        ({"conversion": {"pod": {"resources": {"limits": {"cpu": "2"}}}}}, MEASURED),
        ({"metrics": {"entrypoint": "other.py"}}, {"metrics"}),
        ({"serving": {"pod": {"resources": {"limits": {"memory": "2Gi"}}}}}, MEASURED),
        ({"performance": {"online": {"concurrency": {"start": 8, "end": 8}}}}, MEASURED),
    ],
)
def test_an_edit_runs_no_more_stages_than_it_must(
    serving: Cluster, fields: dict[str, object], stages: set[str]
) -> None:
    story = len(serving.story)
    serving.edit(**fields)
    serving.settle()
    ran = {each.split()[0] for each in serving.story[story:]} - {"server", "promotion"}
    assert ran == stages
    assert serving.condition("Ready")["status"] == "True"


def test_more_replicas_are_the_same_deployment(serving: Cluster) -> None:
    serving.edit(serving={"replicas": 3})
    serving.settle()
    (deployment,) = serving.of_kind("Deployment")
    assert deployment["spec"]["replicas"] == 3


def test_an_operator_with_newer_images_writes_nothing_but_that_there_are_some(serving: Cluster) -> None:
    serving.settings = replace(serving.settings, converter_image="c:2", server_image="s:2", server_arguments=("--x=1",))
    objects = deepcopy(serving.objects)
    assert (serving.act(), serving.objects) == (1, objects)


def test_suspended_starts_no_job_and_keeps_what_serves(serving: Cluster) -> None:
    new = a_deployment().asking(suspend=True).settled().cluster()
    assert new.story == []
    assert [new.condition(each)["reason"] for each in ("Ready", "Reconciling")] == ["Suspended", "Suspended"]
    new.edit(suspend=False)
    new.settle()
    assert new.condition("Ready")["status"] == "True"
    first, story = serving.serving(), list(serving.story)
    serving.edit(another_version(), suspend=True)
    serving.settle()
    assert (serving.serving(), serving.story) == (first, story)


def test_jobs_of_an_older_generation_are_cancelled() -> None:
    cluster = a_deployment().cluster()
    cluster.until_active("convert")
    cluster.edit(another_version())
    cluster.act()
    assert cluster.active("convert") == []
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_finished_jobs_of_the_plan_stay_for_their_logs(serving: Cluster) -> None:
    assert len(serving.of_kind("Job")) == len(serving.story) - 2


def test_what_was_measured_when_does_not_change_as_time_passes(serving: Cluster) -> None:
    measured_at = serving.status["performance"]["measuredAt"]
    assert measured_at < serving.condition("Ready")["lastTransitionTime"]
    for job in [each["metadata"]["name"] for each in serving.of_kind("Job")]:
        serving.delete("Job", job)
    serving.run(3)
    assert serving.status["performance"]["measuredAt"] == measured_at


def test_nothing_meets_the_constraints_and_nothing_is_rolled_out() -> None:
    cluster = a_deployment().asking(selection={"constraints": {"p99Latency": "1ms"}}).settled().cluster()
    assert cluster.condition("Ready")["reason"] == "ConstraintsNotMet"
    assert cluster.condition("Stalled")["status"] == "True"
    assert "the closest is onnx-fp32" in cluster.condition("Selected")["message"]
    assert {each["satisfiesConstraints"] for each in cluster.status["candidates"]} == {False}
    assert cluster.of_kind("Deployment") == []


def test_a_constraint_broken_through_the_preview_moves_no_traffic(serving: Cluster) -> None:
    first = serving.serving()
    serving.scripts = when("measure", Script(p99=20_000))
    serving.edit(a_wider_batch())
    serving.settle()
    measured = serving.condition("PerformanceMeasured")
    assert (measured["status"], measured["reason"]) == ("False", "ConstraintsNotMet")
    assert "p99Latency 20ms, at most 10ms" in serving.condition("Ready")["message"]
    assert (serving.serving(), serving.condition("Available")["status"]) == (first, "True")


def test_a_first_revision_that_breaks_a_constraint_serves_and_the_status_says_so() -> None:
    cluster = a_deployment().faring(when("measure", Script(p99=20_000))).settled().cluster()
    assert cluster.serving() is not None
    assert cluster.condition("Available")["status"] == "True"
    assert (cluster.condition("Ready")["status"], cluster.condition("Ready")["reason"]) == (
        "False",
        "ConstraintsNotMet",
    )


ONE_GPU = {"resourceName": "nvidia.com/gpu", "count": 1}
OTHER_SERVER = {"arguments": ["--backend-config=default-max-batch-size=4"]}


@pytest.fixture
def one_gpu() -> Cluster:
    """Ready on the only GPU."""
    return a_deployment().asking(gpu=ONE_GPU).where(gpus=1).settled().cluster()


def replicas(cluster: Cluster) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in cluster.of_kind("Deployment")}


def test_where_no_gpu_is_free_the_old_server_makes_way_and_the_status_says_so(one_gpu: Cluster) -> None:
    old = one_gpu.serving()
    one_gpu.edit(serving=OTHER_SERVER)
    said = set()
    for _ in one_gpu.steps(60):
        said.add(one_gpu.condition("Available")["reason"])
        if replicas(one_gpu).get(old or "") == 0 and one_gpu.serving() == old:
            assert one_gpu.condition("Available")["reason"] == "NoSpareGpu"
    one_gpu.settle()
    assert "NoSpareGpu" in said
    assert one_gpu.condition("Ready")["status"] == "True"
    assert one_gpu.serving() != old
    assert list(replicas(one_gpu).values()) == [1]


@pytest.mark.parametrize("failure", ["it never gets ready", "it is too slow", "its measurement fails"])
def test_what_made_way_comes_back_where_the_new_one_fails(one_gpu: Cluster, failure: str) -> None:
    old = one_gpu.serving()
    if failure == "it never gets ready":
        one_gpu.starts = lambda name: name == old
    elif failure == "it is too slow":
        one_gpu.scripts = when("measure", Script(p99=20_000))
    else:
        one_gpu.scripts = when("measure", FINAL)
    one_gpu.edit(serving={**OTHER_SERVER, "progressDeadlineSeconds": 120})
    one_gpu.settle()
    assert one_gpu.serving() == old
    assert sorted(replicas(one_gpu).values()) == [0, 1]
    assert replicas(one_gpu)[old or ""] == 1
    assert one_gpu.condition("Stalled")["status"] == "True"
    assert one_gpu.condition("Available")["status"] == "True", "of what serves"
    for _ in range(30):
        assert one_gpu.act() + one_gpu.step() == 0, "it is not tried again and again"
    one_gpu.edit(serving={})
    one_gpu.settle()
    assert one_gpu.serving() == old
    assert replicas(one_gpu) == {old: 1}
    assert one_gpu.condition("Ready")["status"] == "True"


def test_why_the_new_one_failed_is_still_said_once_it_has_no_pod(one_gpu: Cluster) -> None:
    old = one_gpu.serving()
    one_gpu.edit(serving={**OTHER_SERVER, "progressDeadlineSeconds": 120})
    one_gpu.gpus = 0
    one_gpu.run(60)
    assert replicas(one_gpu)[old or ""] == 0, "it made way in vain"
    one_gpu.run(60)
    one_gpu.gpus = 1
    one_gpu.settle()
    assert sorted(replicas(one_gpu).values()) == [0, 1]
    assert one_gpu.condition("Available")["status"] == "True"
    assert one_gpu.condition("Stalled")["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in one_gpu.condition("Stalled")["message"]


def on_gpus(replicas: int, gpus: int) -> Cluster:
    """Ready with so many servers, on a cluster with so many GPUs."""
    return a_deployment().asking(gpu=ONE_GPU, serving={"replicas": replicas}).where(gpus=gpus).settled().cluster()


def answering(cluster: Cluster) -> int:
    """How many ready pods the Service points to."""
    ready = {each["metadata"]["name"]: each["status"].get("readyReplicas", 0) for each in cluster.of_kind("Deployment")}
    return int(ready.get(cluster.serving() or "", 0))


def seen_until_settled(cluster: Cluster) -> list[tuple[int, str]]:
    """After each step: how many pods answered, and what Available said."""
    seen = [(answering(cluster), cluster.condition("Available")["message"]) for _ in cluster.steps(120)]
    cluster.settle()
    return seen


@pytest.mark.parametrize(("replicas_wanted", "gpus"), [(2, 2), (3, 3), (4, 4), (5, 5), (4, 5), (3, 5)])
def test_of_several_servers_half_make_way_and_the_other_half_answers(replicas_wanted: int, gpus: int) -> None:
    cluster = on_gpus(replicas_wanted, gpus)
    old, half = cluster.serving(), replicas_wanted // 2
    cluster.edit(serving={**OTHER_SERVER, "replicas": replicas_wanted})
    seen = seen_until_settled(cluster)
    assert min(pods for pods, _ in seen) == half
    words = f"Deployment {old} was scaled to {half} of {replicas_wanted} replicas; the rest comes back"
    assert any(words in message for _, message in seen)
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.serving() != old
    assert list(replicas(cluster).values()) == [replicas_wanted]
    assert answering(cluster) == replicas_wanted


def test_half_of_the_servers_come_back_where_the_new_ones_fail() -> None:
    cluster = on_gpus(4, 4)
    old = cluster.serving()
    cluster.scripts = when("measure", Script(p99=20_000))
    cluster.edit(serving={**OTHER_SERVER, "replicas": 4})
    seen = seen_until_settled(cluster)
    assert min(pods for pods, _ in seen) == 2
    assert cluster.serving() == old
    assert replicas(cluster)[old or ""] == answering(cluster) == 4
    assert sorted(replicas(cluster).values()) == [0, 4]
    assert "makes-way" not in str([each["metadata"]["annotations"].keys() for each in cluster.of_kind("Deployment")])


def test_a_new_server_that_needs_more_gpus_than_one_old_server_has_takes_the_room_of_all() -> None:
    cluster = on_gpus(2, 2)
    old = cluster.serving()
    cluster.edit(gpu={**ONE_GPU, "count": 2}, serving={"replicas": 2})
    seen = seen_until_settled(cluster)
    words = f"Deployment {old} was scaled to 0 and answers no request; it comes back if the target revision fails"
    assert any(words in message for _, message in seen)
    assert cluster.serving() != old
    assert answering(cluster) == 2


def test_half_of_a_target_is_not_enough_where_the_others_fail_for_another_reason() -> None:
    cluster = on_gpus(2, 3)
    old = cluster.serving()
    cluster.edit(serving={**OTHER_SERVER, "replicas": 2, "progressDeadlineSeconds": 120})
    cluster.act()
    cluster.step()
    for _ in cluster.passes():
        if replicas(cluster)[old or ""] != 2:
            break
    cluster.unschedulable = "1 node(s) didn't match pod anti-affinity rules"
    cluster.run(75)
    cluster.unschedulable = ""
    cluster.settle()
    assert (cluster.serving(), answering(cluster)) == (old, 2)
    assert cluster.condition("Stalled")["status"] == "True"


def with_a_target_that_never_starts(replicas: int, gpus: int) -> Cluster:
    """Ready with so many servers, and edited since."""
    cluster = on_gpus(replicas, gpus)
    old = cluster.serving()
    cluster.starts = lambda name: name == old
    cluster.edit(serving={**OTHER_SERVER, "replicas": replicas})
    return cluster


def test_servers_that_are_added_while_a_target_starts_are_added() -> None:
    cluster = with_a_target_that_never_starts(1, 6)
    old = cluster.serving()
    cluster.run(20)
    cluster.edit(serving={**OTHER_SERVER, "replicas": 2})
    cluster.run(20)
    assert replicas(cluster)[old or ""] == answering(cluster) == 2


def test_an_edit_to_a_third_revision_ends_what_was_given_up_for_the_second() -> None:
    cluster = with_a_target_that_never_starts(4, 4)
    old = cluster.serving()
    cluster.run(60)
    assert replicas(cluster)[old or ""] == 2
    cluster.edit(serving={"replicas": 4})
    cluster.settle()
    assert (cluster.serving(), replicas(cluster)) == (old, {old: 4})


def test_no_replicas_free_the_gpu_of_what_serves_too(one_gpu: Cluster) -> None:
    old = one_gpu.serving()
    one_gpu.edit(another_version(), serving={"replicas": 0})
    one_gpu.run(40)
    assert replicas(one_gpu)[old or ""] == 0
    one_gpu.edit(serving={"replicas": 1}, source={"uri": "pvc://models/digits"})
    one_gpu.settle()
    assert replicas(one_gpu) == {old: 1}
