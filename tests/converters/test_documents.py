"""Requests and results survive the way between controller and Jobs; nothing else does."""

import dataclasses
import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_converters.contract import results
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    EnsembleCode,
    Entrypoint,
    ModelCode,
    ReferenceRequest,
    SourceRequest,
)
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.envelope import MESSAGE_LIMIT_BYTES, MessageTooLongError, Outcome
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import FAILURES, Reason
from triton_converters.contract.results import ReferenceResult, RepositoryModel, Row, Signature, SourceResult, Tensor
from triton_converters.contract.search_parts import PART_POINTS, REPEATS
from triton_converters.contract.stages import STAGES

REQUESTS = tuple(stage.request for stage in STAGES.values())
RESULTS = tuple((name, stage.result) for name, stage in STAGES.items())

finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(max_size=12)
st.register_type_strategy(float, finite)
st.register_type_strategy(int, st.integers(-(2**62), 2**63 - 1))
st.register_type_strategy(str, words)
st.register_type_strategy(Mapping, lambda _: st.dictionaries(words, words, max_size=3))
# An ensemble's models are no ensembles.
st.register_type_strategy(EnsembleCode, st.builds(EnsembleCode, st.just(()), st.just(()), st.just(())))
st.register_type_strategy(
    SourceResult,
    st.builds(
        SourceResult,
        digest=st.text("0123456789abcdef", min_size=64, max_size=64),
        files=st.integers(0, 2**31),
        total_bytes=st.integers(0, 2**62),
    ),
)
# The times of an ensemble's models are as many as the rows.
st.register_type_strategy(results.MeasureResult, st.builds(results.MeasureResult, steps=st.just(())))
printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
st.register_type_strategy(LookResult, st.builds(LookResult, version=printable, label=printable))
# The tables of a mark are those of the comparison.
one = st.tuples(st.none() | st.floats(0, 1e9))
mark = st.builds(MarkMetrics, words, one, st.tuples(one), one, words) | st.builds(MarkMetrics, words)
st.register_type_strategy(
    ComparisonResult,
    st.builds(
        ComparisonResult,
        metrics=st.tuples(words),
        profiles=st.tuples(words),
        marks=st.lists(mark, max_size=2).map(tuple),
    ),
)
st.register_type_strategy(ConvertRequest, st.builds(ConvertRequest, members=st.just(())))


@settings(max_examples=30, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", [*REQUESTS, *(kind for _, kind in RESULTS)])
def test_documents_round_trip(kind: type[Document], data: st.DataObject) -> None:
    document = data.draw(st.from_type(kind))
    assert kind.from_json(document.to_json()) == document
    assert kind.from_json(document.to_json()).to_json() == document.to_json()


@settings(max_examples=30, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_missing_an_unknown_and_a_wrong_field_are_refused(kind: type[Document], data: st.DataObject) -> None:
    value = json.loads(data.draw(st.from_type(kind)).to_json())
    needed = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
    name = data.draw(st.sampled_from(sorted(needed)))
    without = {key: item for key, item in value.items() if key != name}
    for wrong in (without, value | {"unknown": 1}, value | {name: object_of_another_type(value[name])}):
        with pytest.raises(DocumentError, match=kind.__name__):
            kind.from_value(wrong)


def test_a_field_that_was_added_later_is_left_out_at_its_default() -> None:
    """Else a newer operator's Jobs have other names, and the older converter image of a pinned object refuses them."""
    asked = ReferenceRequest(
        key="k",
        source="s",
        model=ModelCode("pyt", Entrypoint("model.py", {}), max_batch_size=8),
        dataloader=Entrypoint("dataloader.py", {}),
        max_samples=256,
        needs_labels=True,
    )
    value = json.loads(asked.to_json())
    assert "batch_sizes" not in value
    assert "ensemble" not in value["model"]
    assert ReferenceRequest.from_value(value) == asked


def object_of_another_type(value: Any) -> Any:
    return 3 if isinstance(value, str | list | dict) or value is None else "three"


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    for parse in (SourceRequest.from_json, Outcome.from_json):
        with pytest.raises(DocumentError):
            parse(text)


@settings(max_examples=30, deadline=None)
@given(st.data())
@pytest.mark.parametrize(("stage", "kind"), RESULTS)
def test_outcomes_round_trip_or_say_that_they_are_too_long(
    stage: str, kind: type[Document], data: st.DataObject
) -> None:
    result = data.draw(st.from_type(kind))
    if isinstance(result, results.SearchResult):
        # More points are no part of a search, and are not read at all.
        result = dataclasses.replace(result, points=result.points[:PART_POINTS], repeats=result.repeats[:REPEATS])
    outcome = Outcome(stage, "0123456789abcdef", result)
    try:
        text = outcome.to_json()
    except MessageTooLongError:
        assert len(outcome.result.to_json()) > MESSAGE_LIMIT_BYTES / 2 if outcome.result else False
        return
    assert len(text.encode()) <= MESSAGE_LIMIT_BYTES
    assert rounded(Outcome.from_json(text)) == rounded(outcome)


def figure(value: float) -> float:
    return round(value, 1) if abs(value) >= 1 else float(f"{value:.2g}")


def rounded_row(row: Row) -> Row:
    """A tenth of an inference a second and of a per cent, and whole MiB, are kept."""
    memory = row.memory_bytes // 2**20 * 2**20
    return dataclasses.replace(row, throughput=figure(row.throughput), spread=figure(row.spread), memory_bytes=memory)


def rounded(outcome: Outcome) -> Outcome:
    """Rows lose what is beyond their columns' precision."""
    changes: dict[str, Any] = {
        scenario: tuple(rounded_row(row) for row in rows)
        for scenario in ("offline", "online", "request_rate")
        if (rows := getattr(outcome.result, scenario, None)) is not None
    }
    assert outcome.result is not None
    if isinstance(outcome.result, results.SearchResult):
        for name in ("points", "repeats"):
            changes[name] = tuple(
                dataclasses.replace(each, row=rounded_row(each.row) if each.row else None)
                for each in getattr(outcome.result, name)
            )
    return dataclasses.replace(outcome, result=dataclasses.replace(outcome.result, **changes))


@given(st.sampled_from(sorted(FAILURES)), st.text(st.characters(), max_size=3000))
def test_any_failure_fits_and_keeps_its_reason(reason: Reason, message: str) -> None:
    text = Outcome("convert", "0123456789abcdef", None, reason, message).to_json()
    assert len(text.encode()) <= MESSAGE_LIMIT_BYTES
    assert Outcome.from_json(text).reason is reason


@given(st.text(st.characters(exclude_categories=("C", "Z")), max_size=200))
def test_a_short_message_is_kept_as_it_is(message: str) -> None:
    text = Outcome("convert", "0123456789abcdef", None, Reason.CRASHED, message).to_json()
    assert Outcome.from_json(text).message == message


@pytest.mark.parametrize("character", ["x", "ä", "\\", '"', "\n", "\x1b", "\x00", "\U0001f600"])
def test_a_message_of_100_kilobytes_is_cut(character: str) -> None:
    outcome = Outcome(
        "reference", "0123456789abcdef", None, Reason.USER_CODE_FAILED, "start" + character * 100_000 + "end"
    )
    text = outcome.to_json()
    assert len(text.encode()) <= MESSAGE_LIMIT_BYTES
    message = Outcome.from_json(text).message
    assert message.startswith("start")
    assert message.endswith("end")


MICROSECONDS = {
    name: 1234567
    for name, field in Row.__dataclass_fields__.items()
    if field.type is int and field.default is dataclasses.MISSING
}
del MICROSECONDS["batch_size"], MICROSECONDS["concurrency"]
ENVIRONMENT = results.Environment("2.51.0", "gpu", "NVIDIA-A100-SXM4-80GB", "10.5.0", "AMD EPYC 7742", ("x" * 200,))
ROW = Row(
    batch_size=65536,
    concurrency=4096,
    throughput=123456.7,
    stable=True,
    spread=12.3,
    memory_bytes=123 * 2**30,
    **MICROSECONDS,
)


def test_rows_of_before_the_newest_columns_are_read() -> None:
    text = Outcome("measure", "0" * 16, results.MeasureResult((ROW,), ENVIRONMENT)).to_json()
    message = json.loads(text)
    message["result"]["online"] = [row[:-3] for row in message["result"]["online"]]
    read = Outcome.from_json(json.dumps(message)).result
    assert isinstance(read, results.MeasureResult)
    assert read.online == (dataclasses.replace(ROW, spread=0.0, client_bound=False, memory_bytes=0),)
    message["result"]["online"] = [row[:-4] for row in message["result"]["online"]]
    with pytest.raises(DocumentError):
        Outcome.from_json(json.dumps(message))


def test_the_points_of_a_part_of_a_search_fit() -> None:
    """24 points unlike each other, of which some could not be served, and two repeats."""
    chance = random.Random(2)
    points = tuple(
        results.SearchPoint(
            results.Tuning(2 ** chance.randrange(8), number % 5, True, (2, 4), 100, False),
            some_row(chance) if number % 6 else None,
            "" if number % 6 else "the server did not load it: " + "x" * 60,
        )
        for number in range(24)
    )
    searched = results.SearchResult("1" * 16, points, "", 1000, 123.4, ENVIRONMENT, points[1:3])
    outcome = Outcome("search", "0" * 16, searched)
    text = outcome.to_json()
    assert len(text.encode()) <= MESSAGE_LIMIT_BYTES
    assert rounded(Outcome.from_json(text)) == rounded(outcome)


def test_rows_of_a_full_sweep_fit() -> None:
    profile = results.ProfileResult(True, "Passed", "", 1e-3, 256, (ROW,) * 8, (ROW,) * 16, ENVIRONMENT)
    assert len(Outcome("profile", "0" * 16, profile).to_json().encode()) <= MESSAGE_LIMIT_BYTES


def some_row(chance: random.Random) -> Row:
    """A row of latencies of up to ten seconds, unlike any other."""
    latencies = {name: chance.randrange(10**7) for name in MICROSECONDS}
    return Row(
        batch_size=chance.randrange(1, 65537),
        concurrency=chance.randrange(1, 257),
        throughput=chance.random() * 1e5,
        stable=True,
        spread=chance.random() * 20,
        client_bound=chance.random() < 0.5,
        memory_bytes=chance.randrange(40 * 2**30, 41 * 2**30),
        **latencies,
    )


def test_the_fullest_result_fits() -> None:
    """8 offline and 16 online rows, a long message, and long command lines."""
    chance = random.Random(1)
    command = "perf_analyzer -m resnet50 --input-data /repository/references/0123456789abcdef/perf.json " + "x" * 300
    environment = results.Environment(
        "2.71.0",
        "gpu",
        "NVIDIA-A100-SXM4-80GB",
        "10.9.0.34",
        "AMD EPYC 7742 64-Core Processor, 128 cores",
        (command,) * 2,
    )
    offline, online = (tuple(some_row(chance) for _ in range(count)) for count in (8, 16))
    full = results.ProfileResult(True, "OutputsDiffer", "x" * 700, 1.234e-3, 256, offline, online, environment)
    outcome = Outcome("profile", "0" * 16, full)
    text = outcome.to_json()
    assert '"deflated"' in text
    assert len(text.encode()) <= MESSAGE_LIMIT_BYTES
    assert rounded(Outcome.from_json(text)) == rounded(outcome)


def test_too_many_rows_are_refused_not_cut() -> None:
    environment = results.Environment("2.51.0", "gpu", "", "", "", ())
    chance = random.Random(1)
    rows = tuple(some_row(chance) for _ in range(96))
    with pytest.raises(MessageTooLongError, match="measure"):
        Outcome("measure", "0" * 16, results.MeasureResult(rows, environment)).to_json()


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[]",
        '{"stage":"convert"}',
        '{"stage":"convert","key":"k","reason":"NoSuchReason","message":""}',
        '{"stage":"nothing","key":"k","result":{}}',
        '{"stage":"source","key":"k","result":{"digest":"d","files":"many","total_bytes":0}}',
        '{"stage":"source","key":"k","result":{"digest":"d","files":true,"total_bytes":0}}',
        '{"stage":"measure","key":"k","result":{"online":[[1,2]],"environment":{}}}',
        '{"stage":"measure","key":"k","result":{"online":[3],"environment":{}}}',
        '{"stage":"measure","key":"k","deflated":"not deflated"}',
        '{"stage":"measure","key":"k","deflated":3}',
    ],
)
def test_what_is_no_outcome_is_a_document_error(text: str) -> None:
    with pytest.raises(DocumentError):
        Outcome.from_json(text)


def test_a_field_that_was_added_later_to_a_part_is_left_out_at_its_default() -> None:
    tensor = Tensor("x", "FP32", (1, 8))
    found = RepositoryModel("m/1/model.onnx", 0, (tensor,), (tensor,), None, False, (), 0, False, {}, "")
    for stage, result in (
        ("reference", ReferenceResult(Signature((tensor,), (tensor,), 4), 1, 1, 1.0)),
        ("source", SourceResult("0" * 64, 1, 1, repositories=(found, None))),
    ):
        text = Outcome(stage, "0" * 16, result).to_json()
        assert not {"request_dims", "left_out"} & set(text.split('"')), text
        assert Outcome.from_json(text).result == result
    later = dataclasses.replace(found, left_out=("a: b",), inputs=(dataclasses.replace(tensor, request_dims=(8,)),))
    source = SourceResult("0" * 64, 1, 1, repositories=(later,))
    assert Outcome.from_json(Outcome("source", "0" * 16, source).to_json()).result == source
