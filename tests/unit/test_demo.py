import io
from datetime import UTC, datetime

import pytest
import yaml
from rich.console import Console

from demo import inference
from demo.__main__ import next_steps
from examples import verdict
from examples.asking import Answer
from examples.example import FOLDER, Example, variant
from triton_operator.api.measured_status import AccuracyStatus, PerformanceStatus, RowStatus
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import CandidateStatus, Condition, ConditionType, TritonDeploymentStatus
from triton_plugin.command_line import parser
from triton_plugin.telling import progress, tables

SPEC = TritonDeploymentSpec.model_validate(
    yaml.safe_load((FOLDER / "digits/tritondeployment.yaml").read_text(encoding="utf-8"))["spec"]
)


def condition(kind: ConditionType, status: str, reason: str, message: str = "", generation: int = 1) -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time="2026-11-21T08:00:00Z",
    )


def row(batch_size: int, concurrency: int) -> RowStatus:
    components = (
        "client_send_time",
        "network_time",
        "queue_time",
        "compute_input_time",
        "compute_infer_time",
        "compute_output_time",
        "client_receive_time",
    )
    percentiles = ("p50_latency", "p90_latency", "p95_latency", "p99_latency", "average_latency")
    figures = {name: f"{100 + number}us" for number, name in enumerate(components + percentiles)}
    return RowStatus(
        precision="fp32",
        accelerator="none",
        batch_size=batch_size,
        concurrency=concurrency,
        throughput="1234.5",
        stable=True,
        **figures,
    )


def finished() -> TritonDeploymentStatus:
    names = ("trace-fp32", "script-fp32", "onnx-fp32", "onnx-fp16")
    return TritonDeploymentStatus(
        observed_generation=1,
        conditions=[
            *(condition(kind, "True", "Fine") for kind in progress.STAGES),  # type: ignore[arg-type]  # of the Literal
            condition("Ready", "True", "Ready"),
        ],
        candidates=[
            CandidateStatus(name=name, state="Passed", reason="NotBest", rank=rank + 1)
            for rank, name in enumerate(names)
        ],
        accuracy=[
            AccuracyStatus(
                metric="accuracy", framework="0.99", served="0.99", samples=360, threshold="min 0.95", passed=True
            )
        ],
        performance=PerformanceStatus(
            offline=[row(batch, 1) for batch in (1, 8, 32)], online=[row(1, load) for load in (1, 2, 3, 4)]
        ),
    )


def text_of(renderable: object) -> str:
    console = Console(width=170, file=io.StringIO())
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_stage_is_the_first_condition_that_is_not_true() -> None:
    status = TritonDeploymentStatus(
        conditions=[
            condition("SourceResolved", "True", "Resolved"),
            condition("Converted", "Unknown", "Running", "2 of 4 candidates"),
        ],
        candidates=[CandidateStatus(name="onnx-fp32", state="Converting")],
    )
    line = progress.picture(status).line()
    assert line == "Converted: Running: 2 of 4 candidates [onnx-fp32 Converting]"


def test_an_object_that_nobody_has_seen_is_at_its_first_stage() -> None:
    assert progress.picture(TritonDeploymentStatus()).line() == "SourceResolved: not observed yet"


def test_without_a_terminal_a_line_is_printed_once_a_change() -> None:
    console = Console(width=200, file=io.StringIO())
    waiting = TritonDeploymentStatus(conditions=[condition("SourceResolved", "Unknown", "Running")])
    with progress.Display(console) as display:
        for second, status in enumerate([waiting, waiting, finished(), finished()]):
            display.show(status, float(second))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line.split()[:3] for line in lines] == [["0", "s", "SourceResolved:"], ["2", "s", "Ready:"]]


def test_ready_counts_for_the_present_generation_only() -> None:
    status = TritonDeploymentStatus(conditions=[condition("Ready", "True", "Ready", generation=1)])
    assert progress.is_ready(status, generation=1)
    assert not progress.is_ready(status, generation=2)


def test_stalled_seconds_count_from_the_transition() -> None:
    now = datetime(2026, 11, 21, 8, 1, 30, tzinfo=UTC)
    stalled = TritonDeploymentStatus(conditions=[condition("Stalled", "True", "SourceNotFound")])
    moving = TritonDeploymentStatus(conditions=[condition("Stalled", "False", "NoStall")])
    assert progress.stalled_seconds(stalled, now) == 90
    assert progress.stalled_seconds(moving, now) == 0


def test_nothing_is_wrong_with_a_complete_status() -> None:
    assert verdict.faults(SPEC, finished()) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"candidates": [CandidateStatus(name="onnx-fp16", state="Profiling", reason="Running")]},
            "onnx-fp16 is Profiling",
        ),
        ({"candidates": []}, "candidate trace-fp32 is not in the status"),
        ({"accuracy": []}, "metric accuracy was not measured"),
        ({"performance": None}, "no offline measurement at batch size 8"),
        ({"performance": PerformanceStatus(offline=[], online=[row(1, 1)])}, "no online measurement at concurrency 4"),
    ],
)
def test_what_is_missing_is_a_fault(change: dict[str, object], fault: str) -> None:
    assert any(fault in found for found in verdict.faults(SPEC, finished().model_copy(update=change)))


def test_a_failed_candidate_is_told_apart_from_what_is_missing() -> None:
    failed = CandidateStatus(name="onnx-fp16", state="Failed", reason="OutputsDiffer", message="by much")
    status = finished().model_copy(update={"candidates": [*finished().candidates[:3], failed]})
    assert verdict.failures(status) == ["candidate onnx-fp16 failed: OutputsDiffer: by much"]
    assert verdict.faults(SPEC, status) == []


def test_a_broken_threshold_is_a_fault() -> None:
    broken = finished().accuracy[0].model_copy(update={"served": "0.5", "passed": False})
    status = finished().model_copy(update={"accuracy": [broken]})
    assert verdict.faults(SPEC, status) == ["metric accuracy is 0.5; the threshold is min 0.95"]


def test_a_performance_table_holds_every_figure_of_every_row() -> None:
    text = text_of(tables.performance("Online", finished().performance.online))  # type: ignore[union-attr]  # it was measured
    assert text.count("1234.5") == 4
    assert all(text.split().count(f"{figure / 1000:g}") == 4 for figure in range(100, 112))


def test_candidates_are_listed_by_rank_and_those_without_one_last() -> None:
    rows = [
        CandidateStatus(name="failed", state="Failed", reason="OutputsDiffer"),
        CandidateStatus(name="second", state="Passed", rank=2),
        CandidateStatus(name="first", state="Selected", rank=1),
    ]
    text = text_of(tables.candidates(rows, None))
    assert text.index("first") < text.index("second") < text.index("failed")


def test_the_commands_to_go_on_with_are_ones_that_exist() -> None:
    digits = Example(FOLDER / "digits", {"metadata": {"name": "digits", "namespace": "digits"}}, (), ())
    lines = [line.strip() for line in next_steps(digits, foreign=False).splitlines()]
    assert 'eval "$(python3 -m hack.devcluster env)"   # KUBECONFIG and PATH of this shell' in lines
    for line in lines:
        if line.startswith("kubectl triton "):
            words = line.split()[2:]
            parser().parse_args(words)
    assert lines[-1] == "make cluster-down"
    assert "cluster-down:" in (FOLDER.parents[1] / "Makefile").read_text(encoding="utf-8")
    assert next_steps(digits, foreign=True).endswith("kubectl delete namespace digits"), (
        "the cluster is not ours to end"
    )


def test_the_picture_is_drawn_dark_where_there_is_ink() -> None:
    drawing = inference.drawing((FOLDER / "digits-png/7.png").read_bytes()).splitlines()
    assert len(drawing) == 8
    assert drawing[0][8:10] == "@@"
    assert drawing[0][:4] == "    "
    assert "?" not in "".join(drawing)


@pytest.mark.parametrize(
    ("label", "probability", "fault"),
    [
        ("7", 0.99, ""),
        ("1", 0.99, "7.png is 1, with probability 0.990, and 7 is right"),
        ("7", 0.2, "7.png is 7, with probability 0.200, which is no probability of a sure label"),
        ("7", 1.2, "7.png is 7, with probability 1.200, which is no probability of a sure label"),
        ("7", float("nan"), "7.png is 7, with probability nan, which is no probability of a sure label"),
    ],
)
def test_an_answer_is_wrong_by_its_label_or_by_its_probability(label: str, probability: float, fault: str) -> None:
    assert Answer("7.png", "7", label, probability).fault == fault


def test_the_demo_serves_a_pipeline_with_the_candidates_of_the_digits() -> None:
    digits = variant("digits-png")
    spec = TritonDeploymentSpec.model_validate(digits.deployment["spec"])
    assert (digits.name, digits.namespace, digits.jobs) == ("digits", "digits", ("digits-train",))
    assert [each.name for each in spec.models] == ["decode", "network", "name"]
    network = spec.models[1]
    assert network.model_copy(update={"name": "digits"}) == SPEC.models[0], "the same network in the same formats"
    assert (spec.served_name, spec.max_batch_size) == ("digits", 32)
    assert not any(each.requirements for each in spec.models), "a demo needs no package index"
    assert (spec.performance, spec.accuracy) == (SPEC.performance, SPEC.accuracy)
