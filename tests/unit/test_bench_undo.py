"""What `make bench-undo` makes of the requests and alerts that it saw."""

import json
from unittest.mock import Mock

from bench.alerting import spans
from bench.ramp.load import Answered
from bench.undo import canary, soak
from bench.undo.canary import Canary
from bench.undo.revisions import REVISIONS, Body, requests
from triton_plugin.drafting.validation.validate import check


def test_only_requests_between_the_move_and_the_undo_saw_the_bad_revision() -> None:
    answered = [Answered(1, 0.01), Answered(2, 0.02, "500"), Answered(3, 0.04), Answered(9, 0.01, "500")]
    found = soak.result("errs", answered, 2, 4, "SoakFailed: ...")
    assert (found.seconds, found.requests, found.failed, found.mean_milliseconds) == (2, 2, 1, 30.0)


def test_an_alert_that_fires_twice_has_two_spans() -> None:
    assert spans([5.0, 6.0, 7.0, 20.0, 21.0]) == [(5.0, 7.0), (20.0, 21.0)]
    assert spans([]) == []


def test_all_requests_of_a_canary_count_and_none_before_or_after_it() -> None:
    answered = [Answered(1, 0.01, "500"), Answered(2, 0.02), Answered(3, 0.04, "500"), Answered(9, 0.01, "500")]
    found = Canary("errs", 2, 4, 5, "SoakFailed: ...").among(answered)
    assert (found.requests, found.failed) == (2, 1)


def test_their_objects_are_valid() -> None:
    applied: list[Body] = []
    place = Mock(apply=applied.append)
    soak.apply(place, 1)
    canary.apply(place, 1)
    assert [check(each) for each in applied] == [[], []]


def test_each_revision_is_asked_for_words_that_the_last_one_lacks() -> None:
    asked = [json.loads(each)["inputs"][0]["data"][0] for each in requests(10_000)]
    lacking = sum(word >= REVISIONS["errs on 5 %"][1] for word in asked)
    assert 400 < lacking < 600
