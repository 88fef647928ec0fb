"""What follows from a judgement: the whole table, and that the record of an older version is read."""

from itertools import product
from typing import get_args

import pytest

from triton_converters.contract.reasons import Reason
from triton_operator.api.rollout import OnInconclusive, Rollout
from triton_operator.observed.promotion import Promotion
from triton_operator.rollout.inconclusive import Course, next_course
from triton_operator.rollout.traffic import Verdict
from triton_operator.rollout.wording import undo_verdict

ANY = None
ROWS = [
    # onInconclusive, verdict, spoiled -> course
    (ANY, Reason.SOAK_PASSED, ANY, Course.GO_ON),
    (ANY, Reason.SOAK_FAILED, ANY, Course.UNDO),
    ("Continue", Reason.SOAK_INCONCLUSIVE, ANY, Course.GO_ON),
    ("Undo", Reason.SOAK_INCONCLUSIVE, ANY, Course.UNDO),
    ("Hold", Reason.SOAK_INCONCLUSIVE, False, Course.WAIT),
    ("Hold", Reason.SOAK_INCONCLUSIVE, True, Course.BEGIN_ANEW),
]
POLICIES: tuple[OnInconclusive, ...] = get_args(OnInconclusive)
VERDICTS = (Reason.SOAK_PASSED, Reason.SOAK_FAILED, Reason.SOAK_INCONCLUSIVE)


@pytest.mark.parametrize(("asked", "verdict", "spoiled"), list(product(POLICIES, VERDICTS, (False, True))))
def test_every_judgement_has_the_course_of_its_row(asked: OnInconclusive, verdict: Reason, spoiled: bool) -> None:
    facts = (asked, verdict, spoiled)
    (wanted,) = {row[-1] for row in ROWS if all(each in (ANY, fact) for each, fact in zip(row, facts, strict=False))}
    assert next_course(asked, Verdict(verdict, "words", spoiled)) is wanted


def test_without_the_field_no_traffic_is_no_proof() -> None:
    assert Rollout().on_inconclusive == "Hold"


def test_an_undo_without_a_verdict_says_so_and_one_with_a_verdict_says_that() -> None:
    failed = Verdict(Reason.SOAK_FAILED, "2 % of 500 requests failed")
    assert undo_verdict(failed) == failed
    found = undo_verdict(Verdict(Reason.SOAK_INCONCLUSIVE, "it answered 3 requests"))
    assert found.reason is Reason.SOAK_FAILED
    assert found.message == "it was not judged, because it answered 3 requests; spec.rollout.onInconclusive is Undo"


def test_a_promotion_that_an_older_version_recorded_is_read_and_one_that_is_not_held_is_as_before() -> None:
    at = "2026-11-21T00:00:00+00:00"
    old = f'{{"at":"{at}","previous":"digits-1","previous_uid":"1","revision":"0a","server":"digits-2"}}'
    assert Promotion.from_json(old) == Promotion("0a", "digits-2", "digits-1", "1", at)
    assert Promotion.from_json(old).to_json() == old
