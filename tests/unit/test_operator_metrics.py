"""What the operator tells Prometheus of stages and objects."""

from datetime import datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.simulation.answers import FINAL, Script, when
from tests.simulation.cluster import STEP, Cluster
from tests.simulation.deployments import an_ensemble
from tests.simulation.edits import another_source
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_operator.api.duration import seconds
from triton_operator.api.triton_deployment import parse, parse_status
from triton_operator.observed.snapshot import observe
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.object_metrics import FAMILIES, samples
from triton_operator.runtime.stage_metrics import StageMetrics
from triton_operator.runtime.store import Key

DIGITS = Key("vision", "digits")
LIMITED = {"selection": {"constraints": {"p99Latency": "20ms", "averageLatency": "800us"}}}


def told(cluster: Cluster) -> dict[str, list[tuple[tuple[str, ...], Any]]]:
    """Samples of the object by metric."""
    deployment = parse(cluster.body())
    found: dict[str, list[tuple[tuple[str, ...], Any]]] = {name: [] for name in FAMILIES}
    for name, labels, value in samples(DIGITS, deployment.spec, deployment.status):
        assert len(labels) == len(FAMILIES[name][1])
        found[name].append((labels, pytest.approx(value)))
    return found


def outcomes(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """How many Jobs ended, by stage and reason, without zeros."""
    return {
        (sample.labels["stage"], sample.labels["reason"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "triton_operator_stage_outcomes_total" and sample.value
    }


def watched(cluster: Cluster, stages: StageMetrics, steps: int = 80) -> list[tuple[str, str]]:
    """Stage and reason of each Job that ended while the cluster ran."""
    ended = []
    for _ in cluster.passes(steps):
        seen = observe("digits", cluster.objects.values())
        ended += [(each.job.stage, each.reason) for each in stages.seen(DIGITS, seen.jobs.values(), cluster.now)]
    return ended


def test_each_job_is_counted_once_with_its_stage_and_reason() -> None:
    registry = CollectorRegistry()
    cluster = (
        a_deployment()
        .faring(when("convert", Script(exit_code=FINAL.exit_code, reason=Reason.CONVERSION_FAILED), "onnx-fp16"))
        .cluster()
    )
    ended = watched(cluster, StageMetrics(registry))
    assert ended[:2] == [("source", "Succeeded"), ("reference", "Succeeded")]
    assert outcomes(registry) == {
        ("source", "Succeeded"): 1,
        ("reference", "Succeeded"): 1,
        ("convert", "Succeeded"): 3,
        ("convert", "ConversionFailed"): 1,
        ("profile", "Succeeded"): 3,
        ("metrics", "Succeeded"): 2,
        ("measure", "Succeeded"): 1,
    }
    assert registry.get_sample_value("triton_operator_stage_seconds_count", {"stage": "convert"}) == 4
    seconds = registry.get_sample_value("triton_operator_stage_seconds_sum", {"stage": "source"})
    assert seconds is not None
    assert 0 < seconds <= 10 * STEP.total_seconds()


def test_a_job_that_had_ended_before_is_not_counted_by_the_next_process() -> None:
    cluster = a_deployment().cluster()
    watched(cluster, StageMetrics(CollectorRegistry()))
    assert watched(cluster, StageMetrics(CollectorRegistry()), 3) == []


def test_a_label_that_names_no_stage_makes_no_series() -> None:
    cluster, registry = a_deployment().cluster(), CollectorRegistry()
    cluster.act()
    stages = StageMetrics(registry)
    for _ in range(20):
        for job in cluster.of_kind("Job"):
            job["metadata"]["labels"]["triton-operator.dev/stage"] = "mine"
        stages.seen(DIGITS, observe("digits", cluster.objects.values()).jobs.values(), cluster.now)
        cluster.step()
    assert outcomes(registry) == {}


def test_an_object_tells_its_limits_before_it_serves() -> None:
    found = told(a_deployment().asking(**LIMITED).cluster())
    assert found.pop("triton_operator_latency_limit_seconds") == [
        (("vision", "digits", "digits", "average"), 0.0008),
        (("vision", "digits", "digits", "p99"), 0.02),
    ]
    assert not any(found.values())


def test_an_ensemble_is_named_because_triton_counts_its_failures_twice() -> None:
    found = told(Cluster(an_ensemble()))
    assert found["triton_operator_ensemble"] == [(("vision", "digits", "dlrm"), 1.0)]


def test_the_active_revision_tells_what_was_measured() -> None:
    cluster = a_deployment().settled().cluster()
    found, status = told(cluster), cluster.status
    active = status["serving"]
    labels = ("vision", "digits", "digits", active["revision"])
    assert found["triton_operator_active_revision"] == [((*labels, "onnx-fp32", "onnx", "fp32"), 1)]
    assert found["triton_operator_measured_throughput"] == [(labels, float(active["throughput"]))]
    assert found["triton_operator_measured_p99_latency_seconds"] == [(labels, seconds(active["p99Latency"]))]
    (candidate,) = [each for each in status["candidates"] if each["state"] == "Selected"]
    assert found["triton_operator_replica_throughput"] == [(labels, float(candidate["throughput"]))]
    rows = status["performance"]["online"]
    assert [each[0][4:] for each in found["triton_operator_sweep_throughput"]] == [
        (str(row["batchSize"]), str(row["concurrency"])) for row in rows
    ]
    assert [each[1] for each in found["triton_operator_sweep_server_latency_seconds"]] == [
        sum(seconds(row[f"{part}Time"]) for part in ("queue", "computeInput", "computeInfer", "computeOutput"))
        for row in rows
    ]
    assert found["triton_operator_stalled"] == []


def test_a_stalled_object_tells_why() -> None:
    cluster = (
        a_deployment()
        .faring(when("reference", Script(exit_code=FINAL.exit_code, reason=Reason.USER_CODE_FAILED)))
        .settled()
        .cluster()
    )
    assert told(cluster)["triton_operator_stalled"] == [(("vision", "digits", "UserCodeFailed"), 1)]


def test_a_model_that_is_worse_than_before_is_told() -> None:
    worse = "triton_operator_worse_than_before"
    cluster = a_deployment().one_candidate().settled().cluster()
    assert told(cluster)[worse] == []
    cluster.scripts = when("comparison", Script(before=0.99))
    cluster.edit(another_source())
    cluster.settle()
    assert told(cluster)[worse] == [(("vision", "digits"), 1)]


def test_an_active_revision_without_a_ready_server_is_an_outage_and_nothing_else_is() -> None:
    outage = "triton_operator_no_server_ready"
    new = a_deployment().cluster()
    new.starts = lambda name: False
    new.run(60)
    assert new.condition("Available")["status"] == "False"
    assert told(new)[outage] == [], "it never served"
    cluster = a_deployment().settled().cluster()
    assert told(cluster)[outage] == []
    cluster.starts = lambda name: False
    cluster.run(2)
    reason = cluster.condition("Available")["reason"]
    assert told(cluster)[outage] == [(("vision", "digits", reason), 1)]
    cluster.starts = lambda name: True
    cluster.edit(serving={"replicas": 0})
    cluster.settle()
    assert cluster.condition("Available")["status"] == "False"
    assert told(cluster)[outage] == [], "nobody wants a server"


def test_an_object_over_which_passes_fail_tells_why() -> None:
    cluster = a_deployment().settled().where(broken="no such stage").cluster()
    cluster.act()
    assert told(cluster)["triton_operator_failing"] == [(("vision", "digits", "InternalError"), 1)]
    assert told(cluster)["triton_operator_stalled"] == []


def test_a_figure_that_is_no_number_is_left_out() -> None:
    cluster = a_deployment().settled().cluster()
    cluster.status["serving"]["throughput"] = "fast"
    found = told(cluster)
    assert found["triton_operator_measured_throughput"] == []
    assert found["triton_operator_active_revision"] != []


def test_an_object_that_is_gone_and_a_replica_that_stands_by_tell_nothing() -> None:
    cluster, metrics = a_deployment().cluster(), Metrics()
    cluster.settle()
    deployment = parse(cluster.body())

    def series() -> list[str]:
        lines: list[Any] = generate_latest(metrics.registry).decode().splitlines()
        return [line for line in lines if 'object="' in line]

    metrics.objects.seen(DIGITS, deployment.spec, deployment.status)
    metrics.objects.seen(Key("vision", "other"), deployment.spec, deployment.status)
    both = series()
    metrics.forget(DIGITS)
    assert 0 < len(series()) == len(both) / 2
    metrics.stand_by()
    assert series() == []


def test_a_roll_out_that_is_held_has_a_metric_of_its_own() -> None:
    conditions = [
        {
            "type": "Soaked",
            "status": "Unknown",
            "reason": "RolloutHeld",
            "message": "no requests",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-11-21T00:00:00Z",
        }
    ]
    status = parse_status({"status": {"conditions": conditions}})
    assert list(samples(DIGITS, None, status)) == [("triton_operator_rollout_held", ("vision", "digits"), 1.0)]


@pytest.mark.parametrize("since", ["2026-11-30T01:00:00Z", ""])
def test_since_when_the_newest_version_does_not_serve_is_told(since: str) -> None:
    found, looked = "2026-11-30T01:30:00Z", "2026-11-30T02:00:00Z"
    source: dict[str, Any] = {
        "latest": {"version": "7", "label": "version 7", "foundAt": found},
        "lastCheckedAt": looked,
        "outdatedSince": since,
    }
    told = {name: value for name, _, value in samples(DIGITS, None, parse_status({"status": {"source": source}}))}
    times = {"triton_operator_outdated_since_seconds": since, "triton_operator_last_look_seconds": looked}
    assert told == {name: datetime.fromisoformat(each).timestamp() for name, each in times.items() if each}


def test_a_time_that_somebody_wrote_into_the_status_is_no_sample() -> None:
    latest = {"version": "7", "label": "a version", "foundAt": "soon"}
    source = {"latest": latest, "lastCheckedAt": "later", "outdatedSince": "before"}
    assert list(samples(DIGITS, None, parse_status({"status": {"source": source}}))) == []


def test_looks_that_fail_have_a_metric_of_their_own() -> None:
    condition = {
        "type": "UpToDate",
        "status": "Unknown",
        "reason": "SourceUnreachable",
        "message": "no answer",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    status = parse_status({"status": {"conditions": [condition]}})
    told = ("triton_operator_look_failed", ("vision", "digits", "SourceUnreachable"), 1.0)
    assert list(samples(DIGITS, None, status)) == [told]
