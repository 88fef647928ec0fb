import io
from typing import Any

import pytest
from rich.console import Console

from tests.report.subjects import golden
from triton_plugin.subject import SubjectError
from triton_plugin.watch import LOST_SECONDS, watch


def watched(looks: list[dict[str, Any] | SubjectError], seconds: float = 1.0) -> tuple[int, str]:
    """What a watch says that finds these one after the other, and its exit status."""
    time = [0.0]
    left = iter(looks)

    def read() -> dict[str, Any]:
        found = next(left)
        if isinstance(found, SubjectError):
            raise found
        return found

    def sleep(_: float) -> None:
        time[0] += seconds

    console = Console(width=200, file=io.StringIO())
    status = watch(read, console, lambda: time[0], sleep)
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


def test_it_ends_where_somebody_has_to_approve_and_says_how() -> None:
    status, text = watched([case("profiling"), case("awaiting-approval")])
    assert status == 1
    assert "waits for you: Selected: AwaitingApproval: set spec.selection.approvedRevision: " in text


def test_a_search_is_told_as_it_goes_on_and_at_its_end() -> None:
    status, text = watched([case("second-part-of-a-search"), case("search-failed")])
    assert status == 0
    assert "Selected: Searching: searching a configuration of onnx-fp16: 24 of at most 60" in text.splitlines()[0]
    assert "Searches of better configurations:" in text


def test_it_ends_with_1_and_with_what_to_do_about_a_stalled_object() -> None:
    status, text = watched([case("no-candidate-meets-the-constraint")])
    assert status == 1
    assert "to do:" in text


def test_an_older_generations_readiness_is_not_the_end() -> None:
    edited = case("ready")
    edited["metadata"]["generation"] = 2
    status, _ = watched([edited, edited, case("no-candidate-meets-the-constraint")])
    assert status == 1


def test_a_short_absence_of_the_api_server_is_waited_for() -> None:
    status, _ = watched([case("profiling"), SubjectError("gone"), case("ready")])
    assert status == 0


def test_a_long_one_is_an_error() -> None:
    with pytest.raises(SubjectError, match="gone"):
        watched([case("profiling"), SubjectError("gone"), SubjectError("gone")], seconds=LOST_SECONDS)


def test_an_object_that_is_not_there_is_an_error_at_once() -> None:
    with pytest.raises(SubjectError, match="no TritonDeployment"):
        watched([SubjectError("no TritonDeployment x")])
