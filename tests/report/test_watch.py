import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from tests.report.subjects import expected, golden
from triton_operator.observed.history import History, State
from triton_operator.observed.revision import Revision
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import MissingError
from triton_plugin.reading.job_log import JobLog
from triton_plugin.reading.subject import parse
from triton_plugin.telling.progress import panel
from triton_plugin.telling.watch import LOST_SECONDS, Reads, watch


def watched(
    looks: list[dict[str, Any] | SubjectError],
    seconds: float = 1.0,
    log: Callable[[float], str | JobLog] = lambda _: "",
    timeout: float | None = None,
    results: Callable[[], dict[str, Any] | None] = lambda: None,
) -> tuple[int, str]:
    """What a watch says that finds these one after the other, and its exit status.

    ``log``: what was measured last at a time, in words or as the Job's log.
    """
    time = [0.0]
    left = iter(looks)

    def read() -> dict[str, Any]:
        found = next(left)
        if isinstance(found, SubjectError):
            raise found
        return found

    def sleep(_: float) -> None:
        time[0] += seconds

    def found_log() -> JobLog:
        found = log(time[0])
        return JobLog(words=found) if isinstance(found, str) else found

    console = Console(width=200, file=io.StringIO())
    status = watch(Reads(read, found_log, results), console, lambda: time[0], sleep, timeout)
    assert isinstance(console.file, io.StringIO)
    return status, console.file.getvalue()


def case(name: str) -> dict[str, Any]:
    return golden(name)[0]


def test_it_ends_with_the_outcome_of_a_ready_object() -> None:
    status, text = watched([case("converting-in-parallel"), case("profiling"), case("ready")])
    assert status == 0
    lines = text.splitlines()
    assert lines[0].lstrip().startswith("0 s  Converted")
    assert lines[1].lstrip().startswith("1 s  Verified")
    assert "Why onnx-fp32" in text


def test_it_goes_on_while_a_new_revision_is_soaked() -> None:
    undone = case("undone") | {"status": expected("undone")}
    status, text = watched([case("canary"), case("soaking"), undone])
    assert status == Exit.STALLED
    lines = text.splitlines()
    assert lines[0].lstrip().startswith("0 s  Soaked: Canary: step 2 of 3: ")
    assert lines[1].lstrip().startswith("1 s  Soaked: Soaking: Deployment ")
    assert lines[2].lstrip().startswith("2 s  Soaked: SoakFailed: ")
    assert watched([case("ready")])[0] == 0


def newer(name: str) -> dict[str, Any]:
    """An object with the status that the pass of a golden case writes."""
    return case(name) | {"status": expected(name)}


def test_it_follows_newer_files_of_an_object_that_stays_ready() -> None:
    status, text = watched([newer("newer-files"), newer("newer-files"), newer("ready")])
    assert status == 0
    assert text.splitlines()[0].lstrip().startswith("0 s  Converted: Running: ")
    status, text = watched([newer("newer-files"), newer("newer-files-fail")])
    assert status == Exit.STALLED
    assert (
        "Something newer does not serve, until something is changed.\n  what:  Converted: AllCandidatesFailed: " in text
    )
    assert "\n  to do: " in text


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("newer-version-only-told-of", Exit.WAITING),
        ("newer-version-staged", Exit.WAITING),
        ("newer-version-fails", Exit.STALLED),
        ("look-fails", Exit.OK),
    ],
)
def test_it_ends_with_what_became_of_a_newer_version(name: str, ends: Exit) -> None:
    assert watched([newer(name)])[0] == ends


def test_the_failure_of_an_earlier_spec_is_not_shown_after_its_cure() -> None:
    failed = newer("newer-files-fail")
    cured = copy.deepcopy(failed)
    cured["metadata"]["generation"] += 1
    mended = newer("ready")
    mended["metadata"]["generation"] = mended["status"]["observedGeneration"]
    status, text = watched([cured, mended])
    assert status == 0
    assert text.splitlines()[0].lstrip().startswith("0 s  SourceResolved: not observed yet")
    assert "AllCandidatesFailed" not in text.split("Verified")[0]


def test_an_object_of_an_operator_without_up_to_date_ends_as_it_did() -> None:
    older = newer("ready")
    older["status"]["conditions"] = [each for each in older["status"]["conditions"] if each["type"] != "UpToDate"]
    assert watched([older])[0] == 0


def test_it_ends_well_where_a_rollback_serves() -> None:
    body = newer("rolled-back")
    (found,) = [each for each in body["status"]["conditions"] if each["type"] == "UpToDate"]
    found |= {"status": "False", "reason": "RolledBack"}
    status, text = watched([body])
    assert status == 0
    assert "is rolled back: " in text


def held(name: str) -> dict[str, Any]:
    """A soak or a canary that waits for a person."""
    body = copy.deepcopy(case(name))
    (found,) = [each for each in body["status"]["conditions"] if each["type"] == "Soaked"]
    found["reason"] = "RolloutHeld"
    return body


@pytest.mark.parametrize("name", ["soaking", "canary"])
def test_it_ends_where_a_soak_or_a_canary_is_held_and_says_what_to_do(name: str) -> None:
    status, text = watched([case(name), held(name)])
    assert status == Exit.WAITING
    assert "spec.rollout.onInconclusive" in text


@pytest.mark.parametrize("name", ["soaking", "canary"])
def test_an_older_generations_held_rollout_is_not_the_end(name: str) -> None:
    edited = held(name)
    edited["metadata"]["generation"] += 1
    assert watched([edited, case("no-candidate-meets-the-constraint")])[0] == Exit.STALLED


def test_a_ready_object_is_told_apart_from_the_revision_before_it() -> None:
    told = {"accuracy": [{"metric": "accuracy", "served": "0.99", "threshold": "at least 0.9"}]}
    revision = Revision.of("1" * 16, "onnx-fp32", "digits", "digits-1", {}, told)
    data = {"history": History((State(("convert.1",), revision=revision),)).to_json()}
    results: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"name": "digits-results"}, "data": data}
    served = f"revision {'1' * 16}, which served before, had 0.99 when it was measured."
    words = f"\naccuracy 0.98; {served}\nIf the earlier one is better"
    status, text = watched([case("ready")], results=lambda: results)
    assert (status, words in text) == (Exit.OK, True)

    def denied() -> None:
        raise SubjectError("configmaps is forbidden")

    status, text = watched([case("ready")], results=denied)
    assert (status, "which served before" in text, "Why onnx-fp32" in text) == (Exit.OK, False, True)
    status, text = watched([case("no-candidate-meets-the-constraint")], results=lambda: results)
    assert (status, "which served before" in text) == (Exit.STALLED, False)


def test_a_line_names_only_the_candidates_whose_state_changed() -> None:
    later = case("profiling")
    changed = next(each for each in later["status"]["candidates"] if each["name"] == "onnx-fp32")
    changed["state"] = "Passed"
    _, text = watched([case("profiling"), later, case("ready")])
    first, second, *_ = text.splitlines()
    assert first.endswith("[ts-trace-fp32 Profiled, ts-script-fp32 Profiled, onnx-fp32 Profiling, onnx-fp16 Converted]")
    assert second.endswith("[onnx-fp32 Passed]")


def test_it_ends_where_somebody_has_to_approve_and_says_how() -> None:
    status, text = watched([case("profiling"), case("awaiting-approval")])
    assert status == Exit.WAITING
    assert "is waiting for you: Selected: AwaitingApproval: set spec.selection.approvedRevision: " in text


def test_a_search_is_told_as_it_goes_on_and_at_its_end() -> None:
    status, text = watched([case("second-part-of-a-search"), case("search-failed")])
    assert status == 0
    assert "Selected: Running: searching for a configuration of onnx-fp16: 24 of at most 60" in text.splitlines()[0]
    assert "Configuration searches:" in text


def test_it_ends_with_what_to_do_about_a_stalled_object() -> None:
    status, text = watched([case("no-candidate-meets-the-constraint")])
    assert status == Exit.STALLED
    assert "to do:" in text


def test_each_point_is_told_while_its_job_runs_and_the_log_is_not_read_more_often_than_that() -> None:
    asked: list[float] = []

    def log(time: float) -> str:
        asked.append(time)
        return f"onnx-fp16: search {25 + int(time) // 6} of at most 60: 812.3 inferences/s"

    _, text = watched([*13 * [case("second-part-of-a-search")], case("search-failed")], log=log)
    assert asked == [0, 3, 6, 9, 12, 13], "the last time at the end"
    lines = [line.strip() for line in text.splitlines() if "inferences/s" in line and "search 2" in line]
    assert lines == [
        f"{second} s    onnx-fp16: search {number} of at most 60: 812.3 inferences/s"
        for second, number in ((0, 25), (6, 26), (12, 27))
    ]


def test_the_last_measurement_is_told_before_the_change_that_it_led_to() -> None:
    _, text = watched([*4 * [case("rolling-out")], case("ready")], log=lambda time: f"online {3 + int(time) // 4}/4")
    lines = [line.strip() for line in text.splitlines()]
    last = lines.index("4 s    online 4/4")
    assert lines[last + 1].startswith("4 s  Ready")


def test_the_verdict_of_the_gates_is_told_once_for_each_candidate() -> None:
    """A fast server answers its first points between two looks at the log."""

    def log(time: float) -> JobLog:
        candidate = "onnx-fp32" if time < 30 else "onnx-fp16"
        return JobLog(
            candidate, "profile", candidate, "", f"{candidate}: offline 1/2", f"{candidate}: gates: Passed: 9"
        )

    _, text = watched([*60 * [case("profiling")], case("ready")], log=log)
    assert [line.split(maxsplit=2)[2] for line in text.splitlines() if "gates" in line] == [
        *("onnx-fp32: gates: Passed: 9", "onnx-fp16: gates: Passed: 9")
    ]


def test_the_time_that_is_left_is_told_with_each_point_and_with_a_sign_of_life() -> None:
    ended = "online 1 of at most 13: batch 1: 8.3 inferences/s, p99 5031 us (2.0 s); the rest takes at most 18 s"
    log = JobLog("p", "profile", "onnx-fp32", f"{ended}\n", f"onnx-fp32: {ended}")
    _, text = watched([*5 * [case("profiling")], case("ready")], seconds=20.0, log=lambda _: log)
    told = [line for line in text.splitlines() if "s left" in line]
    assert [line.split()[0] for line in told] == ["0", "60"]
    assert told[0].endswith(f"{ended} [about 65 s left]")
    assert told[1].endswith("still profiling onnx-fp32, 1 min [about 65 s left]")


def heartbeats(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "still " in line]


def test_while_nothing_changes_a_line_a_minute_says_that_the_work_goes_on() -> None:
    _, text = watched([*11 * [case("profiling")], case("ready")], seconds=20.0)
    assert heartbeats(text) == [f"{n * 60} s    still profiling onnx-fp32, {n} min" for n in (1, 2, 3)]


def test_a_change_or_a_measurement_starts_the_minute_anew() -> None:
    def log(time: float) -> str:
        return "onnx-fp16: online 1/4" if time >= 80 else ""

    early, late = case("converting-in-parallel"), case("rolling-out")
    _, text = watched([early, early, late, late, late, late, case("ready")], seconds=40.0, log=log)
    assert heartbeats(text) == ["160 s    still at Available: RollingOut, 1 min"]


def test_on_a_terminal_the_last_point_stands_below_the_candidates() -> None:
    console = Console(width=200, file=io.StringIO(), force_terminal=True)
    console.print(
        panel(
            parse(case("second-part-of-a-search"), None).status, 3.0, "onnx-fp16: search 25 of [60]", "about 5 s left"
        )
    )
    assert isinstance(console.file, io.StringIO)
    first, *_, last = console.file.getvalue().splitlines()
    assert "3 s; about 5 s left" in first
    assert "last: onnx-fp16: search 25 of [60]" in last


def test_an_older_generations_readiness_is_not_the_end() -> None:
    edited = case("ready")
    edited["metadata"]["generation"] = 2
    status, _ = watched([edited, edited, case("no-candidate-meets-the-constraint")])
    assert status == Exit.STALLED


def test_it_ends_when_its_time_is_over() -> None:
    status, text = watched([case("profiling")] * 5, seconds=20.0, timeout=60.0)
    assert status == Exit.TIMED_OUT
    assert "is in progress" in text
    assert text.splitlines()[-1].startswith("The time of --timeout is over; it was still profiling onnx-fp32")
    assert watched([case("profiling"), case("ready")], seconds=60.0, timeout=60.0)[0] == Exit.OK, "it is done in time"


def test_a_short_absence_of_the_api_server_is_waited_for() -> None:
    status, _ = watched([case("profiling"), SubjectError("gone"), case("ready")])
    assert status == 0


def test_a_long_one_is_an_error() -> None:
    with pytest.raises(SubjectError, match="gone"):
        watched([case("profiling"), SubjectError("gone"), SubjectError("gone")], seconds=LOST_SECONDS)


def test_an_object_that_is_not_there_is_an_error_at_once() -> None:
    with pytest.raises(SubjectError, match="no TritonDeployment"):
        watched([SubjectError("no TritonDeployment x")])


def test_an_object_that_is_deleted_is_an_error_at_once() -> None:
    with pytest.raises(MissingError, match="no TritonDeployment"):
        watched([case("profiling"), MissingError("no TritonDeployment x")])
