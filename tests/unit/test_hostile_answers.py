"""A termination message is text that users' code may write: whatever it says costs little and ends as DocumentError."""

import base64
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile_messages import messages
from tests.hostile_text import obeyed
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import INFLATED_LIMIT_BYTES, MessageTooLongError, Outcome, read_again
from triton_converters.contract.reason_kinds import Containers
from triton_converters.contract.reasons import FAILURES, Reason
from triton_converters.contract.results import (
    CandidateMetrics,
    Counters,
    Environment,
    MeasureResult,
    MetricsResult,
    ProfileResult,
    ReferenceResult,
    Row,
    SearchEnd,
    SearchPoint,
    SearchResult,
    Signature,
    SnapshotResult,
    SourceResult,
    Tensor,
    Tuning,
)
from triton_operator.api.status import CONDITION_MESSAGE_BYTES
from triton_operator.effects import Statement, conditions_of
from triton_operator.observed.history import History
from triton_operator.observed.job import JobView, job_view
from triton_operator.observed.pod import pod_view
from triton_operator.observed.snapshot import observe
from triton_plugin.reading.subject import printable

KEY = "0123456789abcdef"
EXAMPLES = 1000
PEAK_BYTES = 4 * 2**20
"""Most memory that reading one message may take."""
ROW = Row(4, 16, 123.4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, True, 1.5, False, 512 * 2**20)
TUNING = Tuning(8, 2, True, (2, 4), 100, False)
ENVIRONMENT = Environment("2.51.0", "gpu", "NVIDIA-A100-SXM4-80GB", "10.0.1", "AMD EPYC 7742", ("perf_analyzer",))
METRICS = (CandidateMetrics(KEY, (0.96,)), CandidateMetrics(KEY, (), "MetricFailed", "metrics.py, line 3"))
OUTCOMES = (
    Outcome("source", KEY, SourceResult("d" * 64, 3, 1000)),
    Outcome("reference", KEY, ReferenceResult(Signature((Tensor("x", "FP32", (1, -1)),), (), 8), 64, 8, 1.0)),
    Outcome("profile", KEY, ProfileResult(True, "Passed", "", 1e-6, 64, (ROW,), (ROW,), ENVIRONMENT)),
    Outcome("metrics", KEY, MetricsResult(("accuracy",), (None,), METRICS)),
    Outcome("search", KEY, SearchResult("s", (SearchPoint(TUNING, ROW),), SearchEnd.GOES_ON, 30, 1.5, ENVIRONMENT, ())),
    Outcome("measure", KEY, MeasureResult((ROW,), ENVIRONMENT)),
    Outcome("snapshot", KEY, SnapshotResult((Counters("digits-a", 100, 1, 2000),), ())),
    Outcome("convert", KEY, None, Reason.CONVERSION_FAILED, "model.py, line 3"),
)
VALID = {outcome.stage: json.loads(outcome.to_json()) for outcome in OUTCOMES}


def measured(value: Any, column: int = -1) -> str:
    """The answer of a measure Job with that value in a column of its row; the last is ``memory_bytes``."""
    envelope = json.loads(json.dumps(VALID["measure"]))
    envelope["result"]["online"][0][column] = value
    return json.dumps(envelope)


def deflated(plain: bytes) -> str:
    """An answer whose result is deflated."""
    return json.dumps({"stage": "measure", "key": KEY, "deflated": base64.b85encode(zlib.compress(plain, 9)).decode()})


def failed(reason: str, message: str) -> str:
    return json.dumps({"stage": "convert", "key": KEY, "reason": reason, "message": message})


PLAIN = json.dumps(VALID["measure"]["result"]).encode()
HOSTILE = {
    "a string is multiplied": measured("x" * 900),
    "a list is multiplied": measured([0] * 900),
    "a flag is a text": measured("no", column=15),
    "a count of 400 digits": measured(10**400, column=3),
    "a float of 400 digits": measured(10**400, column=2),
    "5,000 digits are no number": deflated(PLAIN.replace(b"123.4", b"1" * 5000)),
    "an integer that no API takes": measured(2**63, column=3),
    "memory that no API takes": measured(2**60),
    "not a number": measured(float("nan"), column=2),
    "infinity": measured(float("-inf"), column=2),
    "a number that becomes infinite": measured(0, column=2).replace("[4, 16, 0,", "[4, 16, 1e999,"),
    "half a character": measured(1).replace("AMD", "\\ud800"),
    "half a character in a message": failed("Crashed", "\ud800"),
    "half a character in the text": failed("Crashed", "").replace("Crashed", "\ud800"),
    "nested": "[" * 2000,
    "nested and whole": "[" * 2000 + "]" * 2000,
    "nested less": measured(json.loads("[" * 100 + "]" * 100)),
    "nested and deflated": deflated(b"[" * 30_000 + b"]" * 30_000),
    "a row is an object": measured(1).replace("[[4", '[{"4": [4').replace("]], ", "]}], "),
    "inflates to 90 MiB": deflated(b" " * (90 * 2**20)),
    "inflates to a little too much": deflated(PLAIN + b" " * INFLATED_LIMIT_BYTES),
    "inflates to many lists": deflated(b"[" + b"[]," * 20_000 + b"[]]"),
    "something follows what is deflated": json.dumps(
        VALID["measure"] | {"deflated": base64.b85encode(zlib.compress(PLAIN) + b"more").decode()}
    ),
    "half of what is deflated": json.dumps(
        VALID["measure"] | {"deflated": base64.b85encode(zlib.compress(PLAIN)[:-8]).decode()}
    ),
    "no UTF-8 inside": deflated(b"\xff" + PLAIN),
    "longer than the kubelet cuts": measured(1) + " " * 4096,
    "a stage is a list": json.dumps(VALID["measure"] | {"stage": ["measure"]}),
    "a stage is nothing": json.dumps(VALID["measure"] | {"stage": None}),
    "a key is a number": json.dumps(VALID["measure"] | {"key": 3}),
    "a failure that is Ready": failed("Ready", "nothing is left to do"),
    "a failure that waits": failed("Suspended", "spec.suspend is true"),
    "a failure that passed": failed("Passed", ""),
    "a reason is an object": failed("Crashed", "").replace('"Crashed"', "{}"),
    "a message is a list": failed("Crashed", "m").replace('"m"', "[1]"),
}
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


def read(text: str) -> Outcome | None:
    """The outcome, or None where it is refused; asserts that reading it took little memory."""
    tracemalloc.start()
    try:
        return Outcome.from_json(text)
    except DocumentError:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < PEAK_BYTES


@hostile
def test_a_hostile_answer_is_refused_and_costs_little(text: str) -> None:
    assert read(text) is None


@hostile
def test_the_results_of_a_hostile_answer_are_as_if_absent(text: str) -> None:
    data = {"history": text, f"measure.{KEY}": text, f"convert.{KEY}": text, "failure.job": text}
    observed = observe("digits", [{"kind": "ConfigMap", "metadata": {"name": "digits-results"}, "data": data}])
    assert observed.records == {}
    assert observed.history == History()


def ended(stage: str, container: str, message: bytes, code: int) -> JobView:
    """What is seen of a Job whose container left a message, as far as the kubelet keeps it."""
    labels = {"triton-operator.dev/stage": stage, "triton-operator.dev/key": KEY}
    job = {"metadata": {"name": "job", "uid": "uid-job", "labels": labels}, "spec": {}}
    end = {"exitCode": code, "message": message[:4096].decode(errors="replace")}
    others = [{"name": stage, "state": {"terminated": {"exitCode": code}}}] if container != stage else []
    initial = [{"name": container, "state": {"terminated": end}}] if container != stage else []
    main = others or [{"name": stage, "state": {"terminated": end}}]
    pod = {
        "metadata": {"name": "pod", "ownerReferences": [{"uid": "uid-job"}]},
        "spec": {"initContainers": [{"name": each["name"]} for each in initial]},
        "status": {"phase": "Failed", "initContainerStatuses": initial, "containerStatuses": main},
    }
    return job_view(job, [pod_view(pod)], [])


@pytest.mark.parametrize("stage", sorted(VALID))
@pytest.mark.parametrize("container", ["run", ""], ids=["user-code", "the-main-one"])
@pytest.mark.parametrize("code", [0, 1, 42])
def test_whatever_a_container_says_it_is_no_result_and_only_shown(stage: str, container: str, code: int) -> None:
    for what, message in messages(stage, KEY).items():
        view = ended(stage, container or stage, message, code)
        assert view.record is None, what
        for trouble in filter(None, (view.failure, view.pending)):
            assert trouble.reason in FAILURES, what
            verdict = Statement("Converted", False, trouble.reason, trouble.message)
            (told,) = conditions_of([verdict], [], 1, datetime.now(UTC))
            assert obeyed(told.message) == set(), what
            assert len(told.message.encode()) <= CONDITION_MESSAGE_BYTES, what


@pytest.mark.parametrize("stage", sorted(VALID))
@pytest.mark.parametrize("reason", [each for each in Reason if Containers.RUN not in each.found_by])
def test_run_speaks_with_no_other_container_s_voice(stage: str, reason: Reason) -> None:
    """User code may write its container's message and end it; what it may say is judged by the next container."""
    view = ended(stage, "run", json.dumps({"stage": stage, "key": KEY, "reason": reason, "message": "m"}).encode(), 143)
    trouble = view.failure or view.pending
    assert trouble is None or Containers.RUN in trouble.reason.found_by


OPERATORS = sorted(set(Reason) - FAILURES)


@pytest.mark.parametrize("reason", OPERATORS)
def test_what_only_the_operator_says_is_refused_from_a_pod(reason: Reason) -> None:
    view = ended("convert", "convert", failed(reason, "said by a Job").encode(), 1)
    trouble = view.failure or view.pending
    assert trouble is not None
    assert trouble.reason is Reason.CRASHED
    assert read(failed(reason, "said by a Job")) is None


def test_a_new_reason_is_the_operator_s_alone() -> None:
    """These were a Job's to give by their place in the enum, or could have been."""
    assert set(OPERATORS) >= {
        Reason.APPLY_FAILED,
        Reason.APPLY_REFUSED,
        Reason.CONTESTED,
        Reason.EVICTED,
        Reason.INTERNAL_ERROR,
        Reason.NOT_ALLOWED,
        Reason.NOT_BEST,
        Reason.PASSED,
        Reason.REQUEST_FAILED,
        Reason.ROLLED_BACK,
        Reason.STATUS_REFUSED,
        Reason.THRESHOLD_NOT_MET,
    }


def test_there_are_a_thousand_hostile_messages_and_more() -> None:
    """Examples that hypothesis draws, and the two lists for each stage, container and exit code."""
    assert EXAMPLES >= 1000
    assert len(messages("source", KEY)) >= 20
    assert len(messages("source", KEY)) * len(VALID) * 6 >= 1000


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.stage)
def test_an_honest_answer_is_read(outcome: Outcome) -> None:
    assert read(outcome.to_json()) == outcome


def test_a_text_is_parsed_once_and_what_is_wrong_with_it_is_told_each_time() -> None:
    text = OUTCOMES[0].to_json()
    assert read_again(text) == Outcome.from_json(text)
    assert read_again(text) is read_again(text)
    for _ in range(2):
        with pytest.raises(DocumentError):
            read_again("{}")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of decoded JSON with each of its keys or indices."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from places(each)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(categories=None), max_size=20),
    st.sampled_from([10**400, -(2**63) - 1, 2**62, "x" * 900, "\ud800", 1e308]),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(sorted(VALID)), st.booleans(), st.data())
def test_whatever_changes_in_an_answer_it_is_read_or_refused(stage: str, packed: bool, data: st.DataObject) -> None:
    envelope = json.loads(json.dumps(VALID[stage]))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(envelope))))
        container[key] = data.draw(values)
    if packed and "result" in envelope:
        plain = json.dumps(envelope.pop("result")).encode()
        envelope["deflated"] = base64.b85encode(zlib.compress(plain, 9)).decode()
    outcome = read(json.dumps(envelope))
    if outcome is not None:
        assert len(repr(outcome)) < 2**16
        # What is read can be written again: no number is infinite, and no text holds half a character.
        json.dumps(asdict(outcome), allow_nan=False, ensure_ascii=False).encode()


def test_an_error_names_the_place_and_both_types_and_never_quotes() -> None:
    with pytest.raises(DocumentError) as caught:
        Outcome.from_json(measured("a secret", column=3))
    assert str(caught.value) == "MeasureResult.online[0].client_send must be int, not str"
    for text in (measured("a secret"), failed("a secret", ""), json.dumps({"a secret": 1})):
        with pytest.raises(DocumentError) as caught:
            Outcome.from_json(text)
        assert "secret" not in str(caught.value)


def test_a_result_that_could_not_be_read_is_not_written() -> None:
    environment = Environment("2.51.0", "cpu", "", "", "", ("x" * INFLATED_LIMIT_BYTES,))
    with pytest.raises(MessageTooLongError):
        Outcome("measure", KEY, MeasureResult((ROW,), environment)).to_json()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"key": ' * 100_000, "9" * 5000, '{"key": NaN}', "\ud800"])
def test_a_request_is_read_or_refused_too(text: str) -> None:
    with pytest.raises(DocumentError):
        SourceRequest.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"served": [], "dropped": Infinity}',
        '{"served": [], "dropped": ' + "9" * 400 + "}",
        '{"served": ["source.a"], "dropped": 0}',
        '{"served": [["source.a"]], "dropped": 0}',
        '{"served": [["source.a"]], "profiles": [["a"]], "images": [{}], "revisions": [null], "dropped": 0}',
        '{"served": [["source.a"]], "profiles": ["a", "b"], "images": [{}], "revisions": [null], "dropped": 0}',
    ],
)
def test_a_broken_history_is_empty(text: str) -> None:
    assert History.from_json(text) == History()


def test_control_characters_are_taken_out_of_every_kind_of_list() -> None:
    assert printable({"a": ("\x1b", ["\x00"])}) == {"a": ["\N{REPLACEMENT CHARACTER}", ["\N{REPLACEMENT CHARACTER}"]]}
