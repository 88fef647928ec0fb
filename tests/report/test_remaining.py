"""The time that is left, from an object's status and its Jobs' logs."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.report.subjects import golden
from triton_plugin.reading.job_log import JobLog, sweeps
from triton_plugin.reading.subject import parse
from triton_plugin.telling.remaining import seconds_left, words_left

FIGURES = "812.3 inferences/s, p99 5031 us"
OFFLINE = f"offline 1/2: batch 1, concurrency 1: {FIGURES} (4.0 s); the rest takes at most 36 s\n"
FIRST = f"online 1 of at most 13: batch 1, concurrency 1: {FIGURES} (took 2.0 s); the rest takes at most 22 s\n"
# Searches write the seconds so, and sweeps as above.
SECOND = f"online 2 of at most 13: batch 1, concurrency 2: {FIGURES}, not stable (6.0 s); the rest takes at most 15 s\n"
ENDED = "the throughput no longer rises; 10 points are not measured\n"


def profile(*lines: str, candidate: str = "onnx-fp32", pod: str = "p") -> JobLog:
    return JobLog(pod, "profile", candidate, "".join(lines))


def left(case: str, logs: Sequence[JobLog], **spec: Any) -> float | None:
    """What is left of a golden case; ``spec``: fields to put in place of its own."""
    body, _ = golden(case)
    body["spec"] = body["spec"] | spec
    subject = parse(body, None)
    return seconds_left(subject.spec, subject.status, logs)


def test_the_rest_is_that_of_the_present_profile_of_those_to_come_and_of_the_preview() -> None:
    # onnx-fp32 is profiled, onnx-fp16 waits; then the preview has three points.
    assert left("profiling", [profile(OFFLINE, FIRST)], performance={}) == 22 + (10 + 28) + (10 + 3 * 2)


def test_the_total_is_corrected_as_points_end() -> None:
    assert left("profiling", [profile(OFFLINE)], performance={}) == 36 + (10 + 40) + (10 + 3 * 4)
    assert left("profiling", [profile(OFFLINE, FIRST, SECOND)], performance={}) == 15 + (10 + 27) + (10 + 3 * 4)
    assert left("profiling", [profile(OFFLINE, FIRST, SECOND, ENDED)], performance={}) == (10 + 12) + (10 + 3 * 4)


def test_sweeps_that_the_spec_asks_for_are_repeated_through_the_preview() -> None:
    line = f"online 4/4: batch 1, concurrency 4: {FIGURES} (3.0 s)\n"
    lines = [line.replace("4/4", f"{number}/4") for number in range(1, 5)]
    asked = {"online": {"concurrency": {"start": 1, "end": 4}}}
    assert left("profiling", [profile(*lines)], performance=asked) == 5 + (10 + 17) + (10 + 4 * 3)


def test_a_candidate_whose_profile_has_no_point_yet_counts_as_the_one_before() -> None:
    before, gates = profile(OFFLINE, ENDED, candidate="ts-trace-fp32"), profile("gates: Passed\n", pod="q")
    assert left("profiling", [before, gates], performance={}) == 2 * (10 + 4) + (10 + 3 * 4)


def test_an_announced_point_counts_with_those_after_it() -> None:
    takes = "a request takes about 0.2 s, so this point takes about 19 s, or 53 s if it does not settle"
    announced = f"online 1/3: batch 1: {takes}"
    assert _left_of(f"{announced}\n") == 19
    assert _left_of(f"{announced}; with the 2 after it about 4 min, at most 11 min at this pace\n") == 240


def _left_of(text: str) -> float:
    found = sweeps(profile(text))
    assert found is not None
    return found.left


def test_the_preview_s_own_log_tells_what_is_left_of_it() -> None:
    log = JobLog("m", "measure", "onnx-fp32", f"online 1/3: batch 1: {FIGURES} (9.0 s); 2 more, about 18 s\n")
    assert left("measuring-the-preview", [profile(OFFLINE), log]) == 18
    over = JobLog("m", "measure", "onnx-fp32", f"online 3/3: batch 1: {FIGURES} (9.0 s)\n")
    assert left("measuring-the-preview", [over]) == 0


def test_a_search_may_take_all_the_measurements_that_it_has_left() -> None:
    log = JobLog("s", "search", "onnx-fp16", f"search 25 of at most 60: max batch 8: {FIGURES} (4.0 s)\n")
    body, _ = golden("second-part-of-a-search")
    subject = parse(body, None)
    told = [profile(OFFLINE, FIRST, candidate="onnx-fp16"), log]
    assert seconds_left(subject.spec, subject.status, told) == 35 * 4 + (10 + 3 * 2)


@pytest.mark.parametrize("case", ["ready", "unschedulable", "soaking", "awaiting-approval", "suspended"])
def test_nothing_is_said_where_nothing_goes_on(case: str) -> None:
    assert left(case, [profile(OFFLINE, FIRST)]) is None


def test_nothing_is_said_before_a_point_has_told_anything() -> None:
    assert left("profiling", []) is None
    assert left("profiling", [profile("gates: Passed\n")]) is None
    assert left("profiling", [JobLog("d", "source", "", "download model.onnx: 30 %\n")]) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"online 3/3: batch 1: {FIGURES} (1.0 s)", "about 5 s left"),
        (f"online 1/3: batch 1: {FIGURES} (1.0 s); 2 more, about 41 s", "about 45 s left"),
        (f"online 1/3: batch 1: {FIGURES} (1.0 s); 2 more, about 12 min", "about 12 min left"),
        (f"online 1/3: batch 1: {FIGURES} (1.0 s); 2 more, about 3.5 h", "about 3.5 h left"),
        ("online 1/3: " + "9" * 400 + " (" + "9" * 400 + " s); 2 more, about " + "9" * 400 + " s", "about 5 s left"),
    ],
)
def test_it_is_never_nothing_and_in_few_digits(line: str, words: str) -> None:
    subject = parse(golden("measuring-the-preview")[0], None)
    assert words_left(subject.spec, subject.status, [JobLog("m", "measure", "onnx-fp32", line)]) == words


def test_a_soak_that_follows_is_not_counted_and_said() -> None:
    body, _ = golden("new-revision-about-to-be-measured")
    body["spec"]["serving"] = body["spec"].get("serving", {}) | {"soak": {}}
    subject = parse(body, None)
    log = JobLog("m", "measure", "onnx-fp32", f"online 1/3: batch 1: {FIGURES} (9.0 s); 2 more, about 18 s\n")
    assert words_left(subject.spec, subject.status, [log]) == "about 20 s left before the soak"
