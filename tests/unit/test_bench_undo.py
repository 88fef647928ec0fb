"""What `make bench-undo` makes of the requests and alerts that it saw."""

from bench.alerting import spans
from bench.ramp.load import Answered
from bench.undo import deployment, result
from triton_plugin.validation.validate import check


def test_only_requests_between_the_move_and_the_undo_saw_the_bad_revision() -> None:
    answered = [Answered(1, 0.01, True), Answered(2, 0.02, False), Answered(3, 0.04, True), Answered(9, 0.01, False)]
    found = result("errs", answered, 2, 4, "SoakFailed: ...")
    assert (found.seconds, found.requests, found.failed, found.mean_milliseconds) == (2, 2, 1, 30.0)


def test_an_alert_that_fires_twice_has_two_spans() -> None:
    assert spans([5.0, 6.0, 7.0, 20.0, 21.0]) == [(5.0, 7.0), (20.0, 21.0)]
    assert spans([]) == []


def test_its_object_is_valid() -> None:
    assert check(deployment(1)) == []
