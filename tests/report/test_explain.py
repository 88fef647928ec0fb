import copy
import re
from dataclasses import replace
from typing import Any

import pytest

from hack.docs import advice as generate_advice
from tests.report.subjects import expected, golden, ready, saturated
from tests.simulation.answers import FINAL, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import candidate
from tests.states.deployment import a_deployment
from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, of_kinds
from triton_operator.api.measured_status import SaturationStatus
from triton_operator.api.status import CandidateStatus
from triton_operator.planning.conditions import UNDECIDED
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.explain import DOCS, explain
from triton_plugin.telling.progress import picture
from triton_plugin.telling.report.as_html import as_html
from triton_plugin.telling.report.as_markdown import as_markdown, text
from triton_plugin.telling.report.document import report
from triton_plugin.telling.saturation import sentence


def explained(case: str) -> str:
    return explain(parse(*golden(case)))


@pytest.mark.parametrize("case", ["ready", "converting-in-parallel", "undone"])
def test_an_object_over_which_passes_fail_says_so_whatever_serves(case: str) -> None:
    body, results = copy.deepcopy(golden(case))
    body["status"] = expected(case)
    before = explain(parse(body, results))
    for each in body["status"]["conditions"]:
        if each["type"] == "Reconciling":
            each |= {"reason": "RequestFailed", "message": "a request to the API server failed: nodes is forbidden"}
    text = explain(parse(body, results))
    assert (
        "The operator cannot get on with it, and tries again:\n  what:  Reconciling: RequestFailed: a request" in text
    )
    assert "\n  to do: Nothing at first" in text
    assert text.count("nodes is forbidden") == 1
    assert "The operator cannot" not in before


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("autoscaled", "Autoscaling: Scaling: ScaledObject digits asks for 1 to 6 replicas"),
        ("autoscaling-paused", "Autoscaling: ScalingPaused: the measurement's own load counts"),
        ("soaking", "Soak: Soaking: Deployment "),
        ("canary", "digits is in progress: Soaked: Canary: step 2 of 3: Deployment "),
        ("canary", "Route: RouteAccepted: requests for digits.example come to Service digits"),
    ],
)
def test_an_object_says_by_what_it_is_scaled_and_how_its_soak_goes(case: str, words: str) -> None:
    assert words in explained(case)


def test_an_object_that_was_undone_says_why_and_what_to_do() -> None:
    body, results = copy.deepcopy(golden("undone"))
    body["status"] = expected("undone")
    text = explain(parse(body, results))
    assert (
        "digits is stalled: it cannot become ready until something is changed.\n  what:  Stalled: SoakFailed: " in text
    )
    assert "5 % of 5800 requests failed in pod" in text
    assert "\n  to do: Nothing at once: the previous revision is active." in text
    assert text.count("requests failed in pod") == 1
    assert "The target revision" not in text


def test_a_stall_that_passes_by_itself_is_not_said_to_last() -> None:
    missing = when("source", replace(FINAL, reason=Reason.SOURCE_NOT_FOUND, message="there is nothing"))
    cluster = a_deployment().faring(missing).cluster()
    for _ in cluster.passes(60):
        if cluster.has("SourceNotFound", "Stalled"):
            break
    text = explain(parse(cluster.body(), cluster.objects["ConfigMap", "digits-results"]))
    assert "digits is stalled: the operator tries again by itself.\n  what:  SourceResolved: SourceNotFound: " in text


def test_a_ready_object_says_why_this_one_and_why_not_the_others() -> None:
    text = explain(ready())
    assert "TritonDeployment vision/digits is ready: digits serves, verified and measured." in text
    assert (
        "The active revision is onnx-fp32 (onnx, fp32). What clients get, by the online sweep through its Service: 1800"
        in text
    )
    assert "accuracy 0.98 (0.98 in the framework)" in text
    assert "Candidates are ranked by the online sweep on their private servers.\nObjectives: throughput.\n" in text
    assert "Constraints: p99Latency at most 10ms.\n" in text
    assert "Why onnx-fp32: onnx-fp32 at batch 1, concurrency 8: 3600 inferences/s, p99Latency 5ms" in text
    assert "33.3 % better than onnx-fp16." in text
    assert "Its p99Latency is 50.0 % below its constraint, at most 10ms." in text
    assert "Pareto-optimal (no other candidate is better in both throughput and p99 latency): onnx-fp32." in text
    for name in ("onnx-fp16", "ts-trace-fp32", "ts-script-fp32"):
        assert f"  {name}: Passed: NotBest:" in text


def test_a_candidate_of_which_nothing_is_known_yet_is_told_by_its_state_alone() -> None:
    subject = ready()
    candidates = [*subject.status.candidates, CandidateStatus(name="waiting", state="Pending")]
    text = explain(replace(subject, status=subject.status.model_copy(update={"candidates": candidates})))
    assert "  waiting: Pending\n" in f"{text}\n"


@pytest.mark.parametrize(("scenario", "sweep"), [("Offline", "offline"), ("RequestRate", "open-loop")])
def test_figures_of_the_service_and_those_of_the_ranking_are_told_apart(scenario: str, sweep: str) -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["spec"]["selection"]["scenario"] = scenario
    served, ranked = explain(parse(body, results)).split("Candidates are ranked by ")
    assert "by the online sweep through its Service: 1800.0 inferences/s" in served
    assert f"the {sweep} sweep on their private servers" in ranked
    assert f"    best of the {sweep} sweep: " in ranked
    assert "Service: " not in ranked
    assert sweep not in served


def test_what_one_replica_does_is_told_in_a_sentence() -> None:
    assert (
        "\nSaturation in the online sweep on its private server: One replica does 3600.0 inferences/s at concurrency 8,"
        " with p99Latency 5ms: a higher concurrency brings less"
        " than 5 % more. It sustains 2000 requests/s.\n"
    ) in explain(saturated())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ended": "Constraint"}, "One replica meets the latency constraints at no concurrency that was measured."),
        (
            {"ended": "Constraint", "concurrency": 4},
            "at concurrency 4, with p99Latency 900us: a higher concurrency breaks a",
        ),
        ({"ended": "RangeEnd", "concurrency": 4, "lowerBound": True}, "at least 12.5 inferences/s"),
        (
            {"ended": "RangeEnd", "concurrency": 4, "lowerBound": True},
            "to find the limit, set performance.online.concurrency without an end",
        ),
        ({"ended": "Plateau", "concurrency": 4, "lowerBound": True}, "the client was the bottleneck"),
    ],
)
def test_what_limits_a_replica_is_told(fields: dict[str, Any], words: str) -> None:
    figures = {"throughput": "12.5", "p99Latency": "900us"}
    assert words in sentence(SaturationStatus.model_validate(figures | fields))


def test_what_the_operator_filled_in_is_told() -> None:
    body, results = copy.deepcopy(golden("ready"))
    models = [{"name": "digits", "format": "onnx", "maxBatchSize": 4, "candidates": [candidate("onnx-fp32")]}]
    body["status"]["resolved"] = {"models": models}
    words = "Filled in, because the spec leaves it out:\n  digits: format onnx; maxBatchSize 4; candidates onnx-fp32"
    assert f"\n\n{words}\n\n" in explain(parse(body, results))
    assert "Filled in" not in explain(ready())


def test_what_was_taken_of_a_config_of_the_users_is_told() -> None:
    folder = "repository/ocr.onnx"
    cluster = Cluster({"source": {"uri": "pvc://models"}, "models": [{"name": "digits", "path": folder}]})
    cluster.settle()
    body = cluster.body()
    repository = body["status"]["resolved"]["models"][0]["repository"]
    repository["leftOut"] = ["output.label_filename: no file with labels is served"]
    repository["outputs"][0] |= {"dims": [1, 10], "requestDims": [10]}
    text = explain(parse(body, None))
    assert "; without output.label_filename: no file with labels is served" in text
    assert f"; output {repository['outputs'][0]['name']} FP32[10];" in text
    assert f"  digits: format onnx; maxBatchSize 8; file {folder}/1/model.onnx; input INPUT__0 FP32[1, 8, 8];" in text
    assert 'instances 2; dynamicBatching {"preferredBatchSizes": [4], "maxQueueDelay": "100us"};' in text
    assert "overrides dynamic_batching { default_queue_policy { max_queue_size: 16 } }" in text


def test_after_a_rollback_the_files_of_the_active_revision_are_named() -> None:
    """The status tells of the spec, and so of the revision that the rollback left."""
    folder = "repository/ocr.onnx"
    cluster = Cluster({"source": {"uri": "pvc://models"}, "models": [{"name": "digits", "path": folder}]})
    cluster.settle()
    cluster.edit(rollout={"revision": cluster.status["serving"]["revision"]})
    cluster.settle()
    body = cluster.body()
    body["status"]["resolved"]["models"][0]["repository"]["file"] = f"{folder}/2/model.onnx"
    text = explain(parse(body, cluster.objects["ConfigMap", "digits-results"]))
    assert "Filled in, when the active revision was made:\n  digits: format onnx" in text
    assert f"file {folder}/1/model.onnx" in text
    assert f"file {folder}/2/model.onnx" not in text
    assert "Filled in" not in explain(parse(body, None)), "no record tells"


def test_generated_inputs_are_said_to_judge_no_accuracy() -> None:
    body, results = copy.deepcopy(golden("ready"))
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    words = (
        "1 of 1 candidates passed every gate: onnx-fp32; compared with the file itself; inputs were generated: ids"
        " INT64[16] of 0 to 1; accuracy was not judged: for that, set spec.dataloader, spec.metrics and"
        " accuracy.thresholds"
    )
    verified |= {"reason": "GeneratedInputs", "message": words}
    subject = parse(body, results)
    assert f"\n\nVerified: {words}.\n\n" in explain(subject)
    made = report(subject)
    assert f"## Accuracy\n\n{text(words)}." in as_markdown(made, with_plots=False)
    assert f"<p>{words}.</p>" in as_html(made)


def test_what_the_reference_warns_of_is_told_with_a_dataloader_too() -> None:
    body, results = copy.deepcopy(golden("ready"))
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    assert verified["reason"] != "GeneratedInputs"
    verified["message"] = words = "1 of 1 candidates passed every gate: onnx-fp32; output y of boxes is served with -1"
    subject = parse(body, results)
    assert explain(subject).count(f"\n\nVerified: {words}.\n\n") == 1
    assert subject.status.accuracy, "the table stays"
    assert f"## Accuracy\n\n{words}.\n\n| Metric |" in as_markdown(report(subject), with_plots=False)
    page = as_html(report(subject))
    assert f"<p>{words}.</p>" in page
    assert "Your metric, computed on" in page
    verified["status"] = "False"
    subject = parse(body, results)
    assert "\n\nVerified: " not in explain(subject)
    assert words not in as_markdown(report(subject), with_plots=False)


def test_the_report_says_what_passed_whatever_the_words() -> None:
    body, results = copy.deepcopy(golden("ready"))
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    for words in ("all passed", "all passed; one more thing"):
        verified["message"] = words
        made = report(parse(body, results))
        assert f"## Accuracy\n\n{words}." in as_markdown(made, with_plots=False)
        assert f"<p>{words}.</p>" in as_html(made)


def test_a_rehearsal_is_said_wherever_figures_are_shown() -> None:
    body, results = copy.deepcopy(golden("ready"))
    words = "the user's code asked for a GPU and ran on the CPU (the reference)"
    conditions = body["status"]["conditions"]
    conditions.append(conditions[0] | {"type": "Rehearsed", "status": "True", "reason": "Rehearsed", "message": words})
    subject = parse(body, results)
    assert f"Note: Rehearsed: {words}." in explain(subject)
    assert "To serve on a GPU, set spec.gpu" in explain(subject)
    assert f"**Rehearsed**: {words}." in as_markdown(report(subject), with_plots=False)
    assert "<strong>Rehearsed</strong> the user" in as_html(report(subject))
    assert "Rehearsed" not in as_html(report(ready()))


def test_several_objectives_are_what_pareto_optimal_is_said_to_be_about() -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["spec"]["selection"]["objectives"] = [{"metric": "throughput"}, {"metric": "averageLatency"}]
    text = explain(parse(body, results))
    assert "Pareto-optimal (no other candidate is better in all objectives at once): onnx-fp32." in text


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-candidate-meets-the-constraint", ["is stalled", "ConstraintsNotMet", "to do: Relax selection"]),
        ("candidate-failed", ["Failed", "to do:"]),
        ("unschedulable", ["Unschedulable", "to do: Free what is missing"]),
        (
            "new-object",
            ["The operator has not seen TritonDeployment", "Check that the operator runs: kubectl get pods"],
        ),
        ("converting-in-parallel", ["is in progress: Converted", "No revision is active."]),
        ("rolling-out", ["is in progress: Available: RollingOut: "]),
        ("suspended", ["is waiting for you", "Suspended"]),
        (
            "awaiting-approval",
            ["is waiting for you: Selected: AwaitingApproval", "to do: Read the ranking", "    revision: "],
        ),
        ("approval-invalid", ["is stalled", "ApprovalInvalid", "to do: Take the key"]),
        ("performance-regression-blocks", ["is stalled", "PerformanceRegressed", "to do:", "stays active"]),
        (
            "performance-regressed",
            ["Regression check: PerformanceRegressed", "to do: Find out why the new source"],
        ),
        (
            "kept",
            [
                "Why ts-trace-fp32",
                "the active candidate is kept",
                "onnx-fp16: Passed: Passed: it has the best measurement",
            ],
        ),
        (
            "closest-selected",
            [
                "spec.selection.fallback selects the closest",
                "Its p99Latency is 25.0 % above its constraint, at most 4ms, and misses it.",
            ],
        ),
        (
            "second-part-of-a-search",
            ["is in progress: Selected: Running", "running, 24 measurements in a space of 30 points"],
        ),
        (
            "newer-files-are-worse",
            [
                "WorseThanBefore",
                " is worse than ",
                "kubectl triton approve digits ",
                "to do: What served before goes on.",
            ],
        ),
        ("search-failed", ["ts-trace-fp32: Failed, 0 measurements", "best: max batch 8, 3 instances"]),
    ],
)
def test_what_is_in_the_way_and_what_to_do(case: str, words: list[str]) -> None:
    text = explained(case)
    assert [word for word in words if word not in text] == [], text


@pytest.mark.parametrize("stage", ["source", "reference", "convert", "profile", "metrics", "measure"])
def test_what_failed_is_named_by_its_stage_and_not_by_one_that_waits_for_it(stage: str) -> None:
    cluster = a_deployment().faring(when(stage, FINAL)).settled().cluster()
    text = explain(parse(cluster.body(), None))
    line = next(each for each in text.splitlines() if each.startswith("  what:  "))
    assert f": {cluster.condition('Ready')['reason']}: " in line
    assert "model.py, line 3" in line
    assert picture(parse(cluster.body(), None).status).reason == cluster.condition("Ready")["reason"]


def test_a_measure_job_that_waits_for_a_node_is_what_is_in_the_way() -> None:
    cluster = a_deployment().cluster().until_active("measure")
    conditions = {each["type"]: each for each in cluster.status["conditions"]}
    for kind, status in (("PerformanceMeasured", "False"), ("Ready", "False"), ("UpToDate", "False")):
        conditions[kind] |= {"status": status, "reason": "Unschedulable", "message": "no node has 2 CPUs"}
    assert (
        picture(parse(cluster.body(), None).status)
        .line()
        .startswith("PerformanceMeasured: Unschedulable: no node has 2 CPUs")
    )
    text = explain(parse(cluster.body(), None))
    assert "something is in the way:\n  what:  PerformanceMeasured: Unschedulable: no node has 2 CPUs" in text
    assert "to do: Free what is missing" in text


def test_the_stage_that_is_named_says_what_the_object_says_at_every_moment() -> None:
    cluster = a_deployment().cluster()
    seen = set()
    for _ in cluster.passes(until=lambda each: each.has("Ready")):
        found = picture(parse(cluster.body(), None).status)
        if found.stage != "Ready" and cluster.status.get("conditions"):
            assert found.reason == cluster.condition("Ready")["reason"]
            seen.add(found.stage)
    assert {"SourceResolved", "Converted", "Verified", "Available", "PerformanceMeasured"} <= seen


def with_trouble(reason: str, message: str) -> dict[str, Any]:
    """An object whose candidate onnx-fp32 is in the way, as its condition says too."""
    body = copy.deepcopy(golden("profiling")[0])
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    verified |= {"status": "False", "reason": reason, "message": message}
    found = next(each for each in body["status"]["candidates"] if each["name"] == "onnx-fp32")
    found |= {"reason": reason, "message": message}
    return body


def test_a_message_is_told_once() -> None:
    message = "pod digits-profile-1, container server ended with exit code 1: no more words."
    text = explain(parse(with_trouble("ServerCrashed", message), None))
    assert text.count(message) == 1
    assert "TritonDeployment vision/digits is in progress, but something is in the way:" in text
    assert f"  what:  Verified: ServerCrashed: {message}\n" in text
    assert "  onnx-fp32: Profiling: ServerCrashed: the message is above\n" in text


def test_a_message_that_another_one_contains_is_told() -> None:
    body = with_trouble("ServerCrashed", "out of memory, exit code 1")
    for each in body["status"]["candidates"]:
        if each["name"] == "onnx-fp32":
            each["message"] = "exit code 1"
    assert "  onnx-fp32: Profiling: ServerCrashed: exit code 1\n" in explain(parse(body, None))


def test_a_soak_with_words_of_another_condition_is_told() -> None:
    body, results = copy.deepcopy(golden("soaking"))
    conditions = {each["type"]: each for each in body["status"]["conditions"]}
    conditions["Soaked"]["message"] = conditions["Ready"]["message"]
    assert f"Soak: Soaking: {conditions['Ready']['message']}" in explain(parse(body, results))


def test_advice_is_told_once_even_if_several_candidates_failed_alike() -> None:
    body = copy.deepcopy(golden("profiling")[0])
    for each in body["status"]["candidates"]:
        each |= {"state": "Failed", "reason": "MeasurementFailed", "message": f"{each['name']} gave no row"}
    text = explain(parse(body, None))
    assert text.count("gave no row") == 4
    assert text.count("to do:") == 1


def test_a_sentence_ends_with_one_period() -> None:
    assert ".." not in explained("unschedulable")


@pytest.mark.parametrize("reason", generate_advice.advice())
def test_advice_is_something_to_do_and_not_only_a_word_about_the_message(reason: str) -> None:
    sentences = re.split(r"(?<=[.?])\s+", generate_advice.advice()[reason])
    assert [each for each in sentences if not re.match(r"The message |.*; the message ", each)], sentences
    assert generate_advice.advice()[reason] != DOCS.get(reason)


def test_an_old_status_is_said_to_be_old() -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["metadata"]["generation"] = 2
    text = explain(parse(body, results))
    assert "has not processed generation 2 of the spec yet; what follows describes generation 1." in text
    assert "is ready" not in text


def test_a_source_that_could_not_be_compared_with_the_last_is_said_to_be_one() -> None:
    body, results = copy.deepcopy(golden("ready"))
    measured = next(each for each in body["status"]["conditions"] if each["type"] == "PerformanceMeasured")
    measured |= {"reason": "NotCompared", "message": "not compared with source sha256:12: processor differs"}
    text = explain(parse(body, results))
    assert "Regression check: NotCompared: not compared with source sha256:12: processor differs." in text
    assert "to do: Nothing is wrong" in text


def test_every_reason_that_stops_somebody_has_advice() -> None:
    assert set(Reason) - UNDECIDED - of_kinds(Kind.DONE) - generate_advice.advice().keys() == set()


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("newer-files", "Something newer is worked on: Running: "),
        ("newer-files-fail", "Something newer does not serve, until something is changed.\n  what:  Converted: "),
        ("newer-version-fails", "Something newer does not serve, until something is changed.\n  what:  Converted: "),
        ("newer-version-staged", "Something newer waits for you: AwaitingApproval: version second, found at "),
        ("newer-version-only-told-of", "Something newer waits for you: NewerVersion: version second, found at "),
        ("newer-version-only-told-of", "version first serves; the look at 2026-11-21T01:13:00Z found version second, "),
        ("look-fails", "It is not known whether something newer is there: SourceUnreachable: looks have failed since "),
        ("look-fails", "version first serves; the look at 2026-11-21T00:00:06Z found nothing newer."),
        ("newer-images", "Note: NewImages: the installation has other images than this object keeps (server; "),
    ],
)
def test_an_object_that_stays_ready_says_what_is_newer(case: str, words: str) -> None:
    body, results = copy.deepcopy(golden(case))
    body["status"] = expected(case)
    text = explain(parse(body, results))
    assert text.startswith("TritonDeployment vision/digits is ready: ")
    assert words in text


def conditioned(case: str, **reasons: str) -> Subject:
    """An object with the status that the pass of a golden case writes, and with other reasons of False conditions."""
    body, results = copy.deepcopy(golden(case))
    body["status"] = expected(case)
    conditions = {each["type"]: each for each in body["status"]["conditions"]}
    for kind, reason in reasons.items():
        conditions[kind] |= {"status": "Unknown" if kind == "Soaked" else "False", "reason": reason}
    conditions["UpToDate"]["message"] = conditions.get("Soaked", conditions["UpToDate"])["message"]
    return parse(body, results)


def test_a_rollback_is_what_is_said_first() -> None:
    text = explain(conditioned("rolled-back", UpToDate="RolledBack"))
    first, second, *_ = text.splitlines()
    assert first.startswith("TritonDeployment vision/digits is rolled back: spec.rollout.revision holds revision ")
    assert second.startswith("  to do: Nothing is wrong, but nothing newer is served while")
    assert "kubectl triton rollback digits --namespace vision --to-latest" in second
    assert "Something newer" not in text
    assert "Candidates are ranked" not in text, "nothing is chosen meanwhile"


@pytest.mark.parametrize(("case", "reason"), [("soaking", "Soaking"), ("soaking", "RolloutHeld"), ("canary", "Canary")])
def test_a_soak_or_a_canary_is_told_once(case: str, reason: str) -> None:
    subject = conditioned(case, Soaked=reason, UpToDate=reason)
    text = explain(subject)
    soaked = subject.condition("Soaked")
    assert soaked is not None
    assert text.count(soaked.message) == 1
    assert "Something newer" not in text


def test_a_held_canary_says_once_that_it_waits_and_what_to_do() -> None:
    text = explain(conditioned("canary", Soaked="RolloutHeld", Ready="RolloutHeld", UpToDate="RolloutHeld"))
    assert text.startswith("TritonDeployment vision/digits is waiting for you: Soaked: RolloutHeld: ")
    assert text.count("RolloutHeld") == 1
    assert text.splitlines()[1].startswith("  to do: The message says what is missing.")


def test_what_failed_for_good_is_not_worked_on_while_passes_fail() -> None:
    text = explain(conditioned("newer-files-fail", Reconciling="RequestFailed"))
    assert "Something newer does not serve yet: AllCandidatesFailed: " in text
    assert "is worked on" not in text


def test_nothing_that_is_said_leads_to_itself_or_to_a_page_of_the_repository() -> None:
    subject = conditioned("newer-files-fail")
    assert "  to do: Read the reason of each candidate below." in explain(subject)
    for case in ("awaiting-approval", "newer-images", "undone", "revision-unknown"):
        text = explain(conditioned(case))
        assert "triton explain" not in text
        assert "docs/" not in text
