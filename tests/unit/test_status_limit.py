"""A status stays under 32 KiB, with every message as long and every list as full as may be."""

from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import shortened
from triton_operator.api.measured_status import EnvironmentStatus, PerformanceStatus, RowStatus
from triton_operator.api.search_status import BatchingStatus, ConfigStatus, SearchStatus
from triton_operator.api.status import (
    NOTICES,
    CandidateStatus,
    ConditionType,
    MetricValue,
    SignatureStatus,
    TensorStatus,
    TritonDeploymentStatus,
    timestamp,
)
from triton_operator.effects import Statement, conditions_of
from triton_operator.planning.status_limit import LIMIT_BYTES, size, within_limit

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def full(letter: str) -> TritonDeploymentStatus:
    """18 candidates with 16 metrics each, 24 rows, two searches, and messages of nothing but that letter."""
    row = RowStatus(
        precision="fp16",
        accelerator="none",
        input_shape="INPUT__0:3x224x224",
        throughput="123456.7",
        stable=False,
        spread_percent="123.4",
        client_bound=True,
        memory="117738Mi",
        **{
            name: "12.3ms" if name.endswith(("_time", "_latency")) else 12_345_678
            for name, field in RowStatus.model_fields.items()
            if name.endswith(("_time", "_latency")) or field.annotation is int
        },
    )
    found = ConfigStatus(
        max_batch_size=65536,
        instances=64,
        dynamic_batching=BatchingStatus(preferred_batch_sizes=[65536] * 8, max_queue_delay="59999.999ms"),
        cuda_graphs=True,
    )
    candidates = [
        CandidateStatus(
            name=f"candidate-{number:020}",
            members=["ts-script-fp16-none"],
            state="Failed",
            reason=str(Reason.REFERENCE_NOT_REPRODUCIBLE),
            message=letter * 480,
            revision="0" * 16,
            metrics=[MetricValue(metric="m" * 63, value="0.123456") for _ in range(16)],
            throughput="123456.7",
            p99_latency="12.3ms",
            load="batch 65536, concurrency 4096",
            satisfies_constraints=False,
            binding_constraint="averageLatency at most 12345678us",
            margin_percent="-12345.6",
            rank=number,
            pareto=False,
            stable=False,
            spread_percent="123.4",
            client_bound=True,
            config=found if number >= 16 else None,
        )
        for number in range(18)
    ]
    search = SearchStatus(
        candidate="candidate-" + "0" * 20,
        measurements=480,
        size=123_456,
        ended="MeasurementsSpent",
        message=letter * 480,
        config=found,
        throughput="123456.7",
        p99_latency="12.3ms",
        load="batch 65536, concurrency 4096",
        records=["0" * 16] * 21,
    )
    environment = EnvironmentStatus(
        device="gpu", server_version="2.51.0", image="i" * 512, cpu="c" * 100, perf_analyzer=["p" * 500] * 2
    )
    # A notice holds names of images and objects, which need no escapes.
    verdicts = [
        Statement(each, False, Reason.REFERENCE_NOT_REPRODUCIBLE, ("n" if each in NOTICES else letter) * 1024)
        for each in get_args(ConditionType)
    ]
    return TritonDeploymentStatus(
        observed_generation=9,
        conditions=conditions_of(verdicts, [], 9, NOW),
        signature=SignatureStatus(
            inputs=[TensorStatus(name="t" * 128, data_type="FP32", dims=[-1, 224, 224])] * 64,
            outputs=[TensorStatus(name="t" * 128, data_type="FP32", dims=[-1, 224, 224])] * 64,
            max_batch_size=8,
        ),
        candidates=candidates,
        search=[search, search],
        performance=PerformanceStatus(
            offline=[row] * 8, online=[row] * 16, environment=environment, measured_at=timestamp(NOW)
        ),
    )


@pytest.mark.parametrize("letter", ["a", '"', "\\", "ß", "€", "🙂"])
def test_the_fullest_status_is_cut_to_the_limit(letter: str) -> None:
    whole = full(letter)
    assert size(whole) > LIMIT_BYTES
    cut = within_limit(whole)
    assert size(cut) <= LIMIT_BYTES
    assert cut.performance == whole.performance
    assert [each.reason for each in cut.candidates] == [each.reason for each in whole.candidates]
    assert all(len(each.metrics) + (each.omitted_metrics or 0) == 16 for each in cut.candidates)
    assert cut.signature is not None
    assert len(cut.signature.inputs) + len(cut.signature.outputs) + (cut.signature.omitted or 0) == 128
    assert all(each.message for each in cut.candidates)
    assert all(each.message for each in cut.conditions)


def test_what_fits_is_left_alone() -> None:
    status = full("a").model_copy(update={"candidates": [], "signature": None})
    assert within_limit(status) is status


def test_cutting_twice_is_cutting_once() -> None:
    once = within_limit(full("a"))
    assert within_limit(once) == once


@given(st.text(), st.integers(min_value=40, max_value=300))
def test_a_shortened_message_keeps_to_its_length_and_its_ends(message: str, length: int) -> None:
    short = shortened(message, length)
    assert len(short.encode()) <= length
    if short != message:
        head, _, tail = short.partition(" ... ")
        assert message.startswith(head)
        assert message.endswith(tail)


@given(st.text(max_size=60), st.text(min_size=100), st.integers(min_value=80, max_value=200))
def test_what_happened_is_whole_in_a_shortened_message_where_it_fits(first: str, rest: str, length: int) -> None:
    happened = first.partition("; ")[0].encode(errors="replace").decode()
    assume(len(happened.encode()) <= length - 5)
    assert shortened(f"{happened}; {rest}", length).startswith(happened)
