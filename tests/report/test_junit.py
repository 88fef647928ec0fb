"""The outcome as JUnit's XML: an object that is refused fails, and what was not reached is skipped."""

from xml.etree import ElementTree

from tests.report.subjects import golden, hostile, ready
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.junit import junit, junit_of_error


def suite(subject: Subject, *, is_late: bool = False) -> ElementTree.Element:
    return ElementTree.fromstring(junit(subject, is_late=is_late))  # noqa: S314 - made here


def named(found: ElementTree.Element, tag: str) -> list[str]:
    """The cases that have such an element."""
    return [each.get("name", "") for each in found.iter("testcase") if each.find(tag) is not None]


def test_of_a_ready_object_nothing_fails_and_each_candidate_has_its_figures() -> None:
    found = suite(ready())
    assert (found.get("tests"), found.get("failures"), found.get("skipped")) == (str(len(list(found))), "0", "0")
    candidates = [each for each in found if (each.get("classname") or "").endswith(".candidates")]
    assert [each.get("name") for each in candidates] == [each.name for each in ready().status.candidates]
    best = next(each for each in ready().status.candidates if each.rank == 1)
    (own,) = [each for each in candidates if each.get("name") == best.name]
    assert f"Selected: {best.throughput} inferences/s" in (own.findtext("system-out") or "")


def test_a_refused_object_fails_with_the_reason_and_what_comes_after_is_skipped() -> None:
    found = suite(parse(*golden("framework-misses-a-threshold")))
    failed = named(found, "failure")
    assert failed[0] == "Ready"
    assert len(failed) > 1
    assert {each.get("type") for each in found.iter("failure")} == {"ThresholdNotMet"}
    assert {"Available", "PerformanceMeasured"} <= set(named(found, "skipped"))
    assert all(each.text == each.get("message") for tag in ("failure", "skipped") for each in found.iter(tag))


def test_a_candidate_that_is_refused_is_no_failure_of_the_object() -> None:
    found = suite(parse(*golden("candidate-failed")))
    names = {each.name for each in parse(*golden("candidate-failed")).status.candidates if each.state == "Failed"}
    assert names
    assert names <= set(named(found, "skipped"))
    assert not names & set(named(found, "failure"))


def test_a_candidate_that_never_ran_is_skipped() -> None:
    subject = parse(*golden("profiling"))
    waiting = {each.name for each in subject.status.candidates if not each.throughput}
    assert waiting
    assert waiting <= set(named(suite(subject), "skipped"))
    assert "None" not in junit(subject)


def test_an_object_that_is_late_fails_with_what_went_on_and_that_is_all() -> None:
    found = suite(parse(*golden("profiling")), is_late=True)
    (failure,) = found.iter("failure")
    assert failure.get("type") == "TimedOut"
    assert (failure.text or "").startswith("The time of --timeout is over; it was still profiling onnx-fp32")


def test_what_could_not_be_checked_is_an_error() -> None:
    found = ElementTree.fromstring(junit_of_error("digits", "<b> is invalid"))  # noqa: S314 - made here
    assert (found.get("tests"), found.get("errors"), found.get("failures")) == ("1", "1", "0")
    (error,) = found.iter("error")
    assert error.text == error.get("message") == "<b> is invalid"


def test_words_of_others_stay_words() -> None:
    found = suite(hostile())
    assert found.tag == "testsuite"
    assert list(found.iter("script")) == []
