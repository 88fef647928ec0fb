"""No worse than before: what is compared with what, what is refused, and what that costs."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.simulation.answers import ACCURACY, FINAL, GOOD, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import only
from tests.simulation.made_jobs import jobs
from tests.simulation.moving import move
from tests.simulation.test_repair import restart, saying
from tests.states.deployment import a_deployment
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.measurement_requests import ComparisonRequest
from triton_converters.contract.results import CandidateMetrics, MetricsResult
from triton_operator.observed.snapshot import observe

RECORDED = ("ConfigMap", "digits-results")
METRICS = {"thresholds": [{"metric": "accuracy", "min": 0.5}, {"metric": "loss", "max": 9}]}
"""Of one more is better, of the other less is."""
Values = tuple[float, float]


def another(number: int) -> dict[str, Any]:
    return {"source": {"uri": f"pvc://models/night-{number}"}}


@dataclass
class Models:
    """Jobs that find what each night's model reaches: its metrics by the accuracy and the loss of its reference."""

    values: dict[str, Values] = field(default_factory=dict)
    """By the reference's key."""
    now: Values = (0.9, 0.1)
    """Of a reference that is new."""
    error: float = 0.005
    answers: Values | None = None
    """What each mark reaches on samples that are others now; None: they are the same."""
    asked: list[ComparisonRequest] = field(default_factory=list)
    """The requests of comparisons, each once."""

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        if stage == "metrics":
            values = self.values.setdefault(request.reference, self.now)
            table = tuple(CandidateMetrics(each.profile, values) for each in request.candidates)
            return answer(stage, request.key, MetricsResult(("accuracy", "loss"), values, table))
        if stage == "comparison":
            assert request.required == ("accuracy", "loss")
            if request not in self.asked:
                self.asked.append(request)
            errors = ((self.error, self.error),) * len(request.candidates)
            marks = tuple(
                MarkMetrics(each.revision, self.answers or self.values[each.reference], errors, (0.0, 0.0))
                for each in request.marks
            )
            profiles = tuple(each.profile for each in request.candidates)
            return answer(stage, request.key, ComparisonResult(256, request.required, profiles, marks))
        return GOOD


def answer(stage: str, key: str, result: Any) -> Script:
    return Script(answer=Outcome(stage, key, result).to_json())


def nightly(**fields: Any) -> tuple[Cluster, Models]:
    """A cluster whose object serves the first night's model, of one candidate."""
    asking = a_deployment().one_candidate().asking(accuracy=METRICS, **fields)
    return served(asking.faring(Models()).settled().cluster())


def served(cluster: Cluster) -> tuple[Cluster, Models]:
    """The cluster, and what it found of its models, which is its own."""
    assert isinstance(cluster.scripts, Models)
    return cluster, cluster.scripts


def night(cluster: Cluster, models: Models, number: int, values: Values, **fields: Any) -> str:
    """The next model comes; the reason of Verified."""
    models.now = values
    cluster.scripts = models
    cluster.edit(**another(number), **fields)
    cluster.settle()
    return str(cluster.condition("Verified")["reason"])


def active(cluster: Cluster) -> str:
    return str(cluster.status["serving"]["revision"])


def anchor(cluster: Cluster) -> str:
    found = observe("digits", cluster.objects.values()).history.anchor
    assert found is not None
    assert found.revision is not None
    return found.revision.key


def test_a_first_model_is_compared_with_nothing() -> None:
    cluster, _ = nightly()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("comparison") == 0
    assert anchor(cluster) == active(cluster)
    assert "compared" not in cluster.condition("Verified")["message"]


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ((0.9, 0.1), ""),
        ((0.885, 0.1), ""),
        ((0.88, 0.1), "accuracy"),
        ((0.7, 0.1), "accuracy"),
        ((0.9, 0.111), ""),
        ((0.99, 0.12), "loss"),
        ((0.7, 0.3), "accuracy"),
    ],
    ids=["equal", "slightly worse", "worse", "much worse", "loss by chance", "worse of one of two", "worse of both"],
)
def test_a_night_serves_or_is_refused(values: Values, refused: str) -> None:
    cluster, models = nightly()
    before = active(cluster)
    reason = night(cluster, models, 2, values)
    assert cluster.started("comparison") == 1
    verified = cluster.condition("Verified")
    if not refused:
        assert (reason, cluster.condition("Ready")["status"]) == ("Verified", "True")
        assert active(cluster) != before
        assert f"onnx-fp32 compared with the anchor, revision {before} of 2026-" in verified["message"]
        assert "is noticed 95 times in 100 on 256 samples; one of 2 %, on " in verified["message"]
        return
    assert (reason, verified["status"]) == ("WorseThanBefore", "False")
    assert active(cluster) == before, "what serves goes on"
    assert cluster.condition("Available")["status"] == "True"
    candidate = cluster.candidate("onnx-fp32")
    assert (candidate["state"], candidate["reason"]) == ("Failed", "WorseThanBefore")
    assert candidate["message"].startswith(f"{refused} {values[refused == 'loss']} is worse than ")
    assert f"revision {before} of 2026-" in candidate["message"]
    assert f"kubectl triton approve digits {candidate['revision']} --namespace vision" in candidate["message"]
    told = {each["metric"]: (float(each["value"]), each["previous"]) for each in candidate["metrics"]}
    assert told == {"accuracy": (values[0], "0.9"), "loss": (values[1], "0.1")}
    assert [each.type for each in cluster.events if each.reason == "WorseThanBefore"][:1] == ["Warning"]


def test_a_night_that_is_refused_says_so_where_a_newer_version_is_looked_for() -> None:
    """The same spec finds other files, so that it is met by what serves."""
    cluster, models = nightly()
    models.now = (0.5, 0.1)
    move(cluster, models)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    up_to_date = cluster.condition("UpToDate")
    assert (up_to_date["status"], up_to_date["reason"]) == ("False", "WorseThanBefore")
    assert "worse than before: onnx-fp32: accuracy 0.5 is worse than " in up_to_date["message"]


def test_after_a_promotion_and_on_the_way_back_nothing_is_compared_again() -> None:
    cluster, models = served(a_deployment().asking(accuracy=METRICS).faring(Models()).settled().cluster())
    first = active(cluster)
    assert night(cluster, models, 2, (0.95, 0.1)) == "Verified"
    assert len(models.asked[-1].candidates) == 4
    cluster.run(5)
    assert night(cluster, models, 3, (0.95, 0.1)) == "Verified"
    assert cluster.started("comparison") == 2
    story = len(cluster.story)
    cluster.edit(source={"uri": "pvc://models/digits"})
    cluster.settle()
    assert (active(cluster), cluster.condition("Ready")["status"]) == (first, "True"), "it is worse, and was asked for"
    assert cluster.story[story:] == ["server", "promotion"]
    cluster.edit(**another(2))
    cluster.settle()
    assert cluster.story[story:] == ["server", "promotion"] * 2


def test_a_candidate_that_was_refused_stays_so_after_another_one_serves() -> None:
    """It would be the faster one."""
    cluster, models = nightly()
    cluster.edit(only("onnx-fp32", "ts-trace-fp32"))
    cluster.settle()

    def worse(stage: str, candidate: str, request: Any) -> Script:
        if stage != "metrics" or not request.candidates:
            return models(stage, candidate, request)
        models.values[request.reference] = (0.9, 0.1)
        table = tuple(
            CandidateMetrics(each.profile, (0.7 if each.format == "onnx" else 0.9, 0.1)) for each in request.candidates
        )
        return answer(stage, request.key, MetricsResult(("accuracy", "loss"), (0.9, 0.1), table))

    cluster.scripts = worse
    cluster.edit(**another(2))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] == "ts-trace-fp32"
    story = len(cluster.story)
    for _ in range(3):
        cluster.run(3)
        assert cluster.candidate("onnx-fp32")["reason"] == "WorseThanBefore"
    assert cluster.story[story:] == []
    # Back to the first files, and to these again.
    cluster.edit(source={"uri": "pvc://models/digits"})
    cluster.settle()
    cluster.edit(**another(2))
    cluster.settle()
    assert cluster.candidate("onnx-fp32")["reason"] == "WorseThanBefore"
    assert cluster.started("comparison") == 1


def test_metrics_that_are_computed_in_another_way_are_not_held_against_those_of_before() -> None:
    """A model that was refused would be better than before by a figure in percent."""
    cluster, models = nightly()
    cluster.edit(only("onnx-fp32", "ts-trace-fp32"))
    cluster.settle()
    unit = 1.0

    def one_is_worse(stage: str, candidate: str, request: Any) -> Script:
        if stage == "comparison":
            models.answers = (0.9 * unit, 0.1)
        if stage != "metrics" or not request.candidates:
            return models(stage, candidate, request)
        table = tuple(
            CandidateMetrics(each.profile, ((0.8 if each.format == "onnx" else 0.9) * unit, 0.1))
            for each in request.candidates
        )
        return answer(stage, request.key, MetricsResult(("accuracy", "loss"), (0.9 * unit, 0.1), table))

    cluster.scripts = one_is_worse
    cluster.edit(**another(2))
    cluster.settle()
    served = active(cluster)
    assert cluster.candidate("onnx-fp32")["reason"] == "WorseThanBefore"
    unit = 100.0
    cluster.edit(metrics={"entrypoint": "metrics.py", "arguments": {"percent": "true"}})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert (active(cluster), cluster.started("comparison")) == (served, 2)
    refused = cluster.candidate("onnx-fp32")
    assert (refused["reason"], refused["metrics"][0]["previous"]) == ("WorseThanBefore", "90")


def test_a_revision_whose_results_were_lost_is_no_mark_and_is_told() -> None:
    cluster, models = nightly()
    before = active(cluster)
    del cluster.objects[RECORDED]
    models.now = (0.6, 0.1)
    cluster.edit(**another(2))
    cluster.until_has("Verified", "Verified", f"not comparable with revision {before}: its results were lost")
    cluster.settle()
    assert night(cluster, models, 3, (0.5, 0.1)) == "WorseThanBefore", "the next one has a mark"


def test_two_marks_of_one_reference_are_each_read_once() -> None:
    """The API server refuses a pod that mounts a directory twice, and the night would never serve."""
    cluster, models = nightly()
    cluster.edit(only("ts-trace-fp32"))
    cluster.settle()
    models.now = (0.9, 0.1)
    cluster.edit(**another(2))
    cluster.until_active("comparison")
    (pod,) = jobs(cluster, "comparison")
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        paths = [each["mountPath"] for each in container["volumeMounts"]]
        assert len(paths) == len(set(paths))
    cluster.settle()
    first, second = models.asked[-1].marks
    assert (first.reference, first.revision != second.revision) == (second.reference, True)


def test_two_servers_of_one_revision_are_one_mark() -> None:
    cluster, models = nightly()
    first = active(cluster)
    cluster.edit(serving={"arguments": ["--http-thread-count=4"]})
    cluster.settle()
    assert night(cluster, models, 2, (0.9, 0.1)) == "Verified"
    assert [each.revision for each in models.asked[-1].marks] == [first]


def test_a_slow_slide_ends_at_the_anchor() -> None:
    cluster, models = nightly()
    first = active(cluster)
    served, reasons = [], []
    for number in range(2, 11):
        accuracy = 0.9 - 0.003 * (number - 1)
        reasons.append(night(cluster, models, number, (accuracy, 0.1)))
        if reasons[-1] == "Verified":
            served.append(accuracy)
        assert anchor(cluster) == first
    refused = reasons.index("WorseThanBefore")
    assert reasons == ["Verified"] * refused + ["WorseThanBefore"] * (len(reasons) - refused)
    # 2.81 standard errors of 0.005, and 0.5 % of 0.9; against what served last alone, no night would be refused.
    assert min(served) >= 0.9 - 2.81 * 0.005 - 0.0045
    assert [each.revision for each in models.asked[-1].marks][1] == first


def test_the_anchor_moves_to_what_is_better_beyond_chance_and_not_to_what_is_not() -> None:
    cluster, models = nightly()
    first = active(cluster)
    assert night(cluster, models, 2, (0.91, 0.1)) == "Verified"
    assert anchor(cluster) == first, "better by chance"
    assert night(cluster, models, 3, (0.95, 0.101)) == "Verified"
    assert anchor(cluster) == first, "worse in the other metric"
    assert night(cluster, models, 4, (0.95, 0.1)) == "Verified"
    assert anchor(cluster) == active(cluster)
    assert night(cluster, models, 5, (0.92, 0.1)) == "WorseThanBefore"
    # On the way back, no earlier one becomes the anchor again.
    better = anchor(cluster)
    cluster.edit(source={"uri": "pvc://models/digits"})
    cluster.settle()
    assert (active(cluster), anchor(cluster)) == (first, better)


@pytest.mark.parametrize("approval", ["Automatic", "Manual"])
def test_an_approval_accepts_what_is_worse_and_moves_the_anchor(approval: str) -> None:
    cluster, models = nightly()
    assert night(cluster, models, 2, (0.8, 0.1)) == "WorseThanBefore"
    key = cluster.candidate("onnx-fp32")["revision"]
    cluster.edit(selection={"approval": approval, "approvedRevision": key})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert (active(cluster), anchor(cluster)) == (key, key)
    assert cluster.started("comparison") == 1
    cluster.edit(selection={})
    cluster.settle()
    assert active(cluster) == key
    assert night(cluster, models, 3, (0.8, 0.1)) == "Verified", "it is held against what was accepted"
    assert night(cluster, models, 4, (0.7, 0.1)) == "WorseThanBefore"


def test_the_approval_of_another_revision_accepts_nothing_and_is_no_error() -> None:
    cluster, models = nightly(selection={"approvedRevision": "0123456789abcdef"})
    assert cluster.condition("Ready")["status"] == "True"
    assert night(cluster, models, 2, (0.8, 0.1)) == "WorseThanBefore"


def test_a_new_dataset_is_answered_by_what_served_too() -> None:
    cluster, models = nightly()
    models.answers = (0.8, 0.2)
    assert night(cluster, models, 2, (0.8, 0.2)) == "Verified", "the samples are harder, for both"
    models.answers = (0.85, 0.2)
    assert night(cluster, models, 3, (0.8, 0.2)) == "WorseThanBefore"


def test_fewer_samples_notice_less_and_say_so() -> None:
    cluster, models = nightly()
    models.error = 0.03
    assert night(cluster, models, 2, (0.84, 0.1)) == "Verified"
    assert (
        "a loss of 0.13 is noticed 95 times in 100 on 256 samples; one of 2 %, on 22,"
        in cluster.condition("Verified")["message"]
    )


def test_a_metric_whose_best_is_small_has_a_small_tolerance() -> None:
    cluster, models = nightly()
    models.error = 0.000001
    assert night(cluster, models, 2, (0.9, 0.0001)) == "Verified"
    assert night(cluster, models, 3, (0.9, 0.00011)) == "WorseThanBefore"


def test_what_cannot_be_compared_serves_and_is_told() -> None:
    cluster, models = nightly()
    models.values.clear()
    why = when("comparison", Script(not_comparable="its file is gone"))
    cluster.scripts = lambda stage, candidate, request: (
        why(stage, candidate, request) if stage == "comparison" else models(stage, candidate, request)
    )
    before = active(cluster)
    cluster.edit(**another(2))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    message = cluster.condition("Verified")["message"]
    assert f"not comparable with the anchor, revision {before} of 2026-" in message
    assert ": its file is gone" in message


def test_metrics_whose_threshold_does_not_say_what_is_better_are_told() -> None:
    bounds = {"thresholds": [{"metric": "accuracy", "maxDegradation": 0.05}]}
    cluster = a_deployment().one_candidate().asking(accuracy=bounds).settled().cluster()
    assert "not compared" not in cluster.condition("Verified")["message"], "nothing served before"
    cluster.edit(**another(2))
    cluster.settle()
    assert cluster.started("comparison") == 0
    assert "accuracy is not compared with earlier revisions: set min alone" in cluster.condition("Verified")["message"]


def test_a_comparison_that_fails_lets_nothing_serve_until_it_is_tried_again() -> None:
    cluster = a_deployment().one_candidate().settled().cluster()
    before = active(cluster)
    cluster.scripts = when("comparison", FINAL)
    cluster.edit(**another(2))
    cluster.settle()
    assert active(cluster) == before
    candidate = cluster.candidate("onnx-fp32")
    assert (candidate["reason"], candidate["message"]) == (
        "UserCodeFailed",
        "comparison with earlier revisions: model.py, line 3: no",
    )
    cluster.scripts = when("comparison", GOOD)
    cluster.retry()
    cluster.settle()
    assert (active(cluster) != before, cluster.condition("Ready")["status"]) == (True, "True")


def test_nothing_is_compared_where_the_spec_says_so() -> None:
    cluster, models = nightly()
    ignored = METRICS | {"regression": {"policy": "Ignore"}}
    assert night(cluster, models, 2, (0.6, 0.1), accuracy=ignored) == "Verified"
    assert cluster.started("comparison") == 0
    assert "compared with" not in cluster.condition("Verified")["message"]


def test_a_tolerance_is_judged_without_another_job() -> None:
    cluster, models = nightly()
    assert night(cluster, models, 2, (0.87, 0.1)) == "WorseThanBefore"
    cluster.edit(accuracy=METRICS | {"regression": {"maxPercent": 5}})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("comparison") == 1


def test_the_anchor_outlives_the_history() -> None:
    cluster, models = nightly(revisionHistoryLimit=0)
    first = active(cluster)
    for number in range(2, 5):
        assert night(cluster, models, number, (0.9, 0.1)) == "Verified"
        observed = observe("digits", cluster.objects.values())
        assert len(observed.history.served) == 1
        assert anchor(cluster) == first
        assert {"reference", "profile", "convert"} <= {
            name.partition(".")[0] for state in observed.history.states[1:] for name in state.records
        }
        missing = observed.history.records - observed.records.keys()
        assert not missing
        cluster.run(3)
    assert cluster.started("comparison") == 3
    cluster.edit(rollout={"revision": first})
    cluster.settle()
    assert active(cluster) == first, "it is still there to go back to"


def test_a_soak_of_a_revision_compares_it_once() -> None:
    cluster, models = nightly(serving={"soak": {"duration": "1m"}}, rollout={"onInconclusive": "Continue"})
    assert night(cluster, models, 2, (0.95, 0.1)) == "Verified"
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("comparison") == 1
    assert anchor(cluster) == active(cluster)


def test_a_configuration_that_a_search_finds_is_compared_too() -> None:
    cluster, models = nightly(selection={"search": {"mode": "Quick"}})
    assert night(cluster, models, 2, (0.95, 0.1)) == "Verified"
    assert cluster.status["serving"]["candidate"] == "onnx-fp32.tuned"
    assert cluster.started("comparison") == 2


def test_an_object_of_an_earlier_version_compares_from_its_next_model_on() -> None:
    """That version kept no anchor, and compared nothing."""
    cluster, models = nightly()
    assert night(cluster, models, 2, (0.9, 0.1)) == "Verified"
    data = cluster.objects[RECORDED]["data"]
    comparison = next(name for name in data if name.startswith("comparison."))
    for name in (comparison, f"finished.{comparison}"):
        del data[name]
    data["history"] = data["history"].replace(f'"{comparison}",', "").replace(',"anchored":1', "")
    before = active(cluster)
    story = len(cluster.story)
    cluster.run(5)
    assert (active(cluster), cluster.story[story:]) == (before, [])
    assert anchor(cluster) == before
    assert night(cluster, models, 3, (0.7, 0.1)) == "WorseThanBefore"


def test_the_accuracy_of_the_simulation_is_that_of_its_marks() -> None:
    """So equal nights are equal in all other tests."""
    assert Script().before == Script().accuracy == ACCURACY


def test_a_revision_that_serves_and_is_published_anew_is_not_compared_again() -> None:
    cluster, models = nightly()
    assert night(cluster, models, 2, (0.8, 0.1)) == "WorseThanBefore"
    cluster.edit(selection={"approvedRevision": cluster.candidate("onnx-fp32")["revision"]})
    cluster.settle()
    cluster.edit(selection={})
    cluster.settle()
    damaged = active(cluster)
    cluster.damaged = saying([damaged])
    restart(cluster)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert active(cluster) != damaged
    assert cluster.started("comparison") == 1
