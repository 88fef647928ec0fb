"""The truth table of who tells which Deployment is active: every row, and every combination of facts."""

import pytest

from tests.unit.truth_table import ANY, Rows, decided, everything, idle
from triton_operator.active import ActiveFacts, RecordState, ServiceTarget, Teller, teller

ROWS: Rows = {
    # recorded, service, told -> teller
    "it was deleted, and so was the Service": (RecordState.GONE, ServiceTarget.NOWHERE, ANY, Teller.RECORD),
    "it was deleted, and the Service leads to none": (RecordState.GONE, ServiceTarget.ASTRAY, ANY, Teller.RECORD),
    "the Service did not move yet": (RecordState.THERE, ServiceTarget.BACK, ANY, Teller.SERVICE),
    "it is recorded and there": (RecordState.THERE, ANY, ANY, Teller.RECORD),
    "the Service did not move yet, and it was deleted": (RecordState.GONE, ServiceTarget.BACK, ANY, Teller.SERVICE),
    "the Service leads to one that is there": (ANY, ServiceTarget.THERE, ANY, Teller.SERVICE),
    "none is recorded": (RecordState.NOTHING, ServiceTarget.BACK, ANY, Teller.SERVICE),
    "only the status tells of one that is there": (ANY, ANY, True, Teller.STATUS),
    "nothing tells of one that is there": (ANY, ANY, False, Teller.SERVICE),
}
EVERY = list(everything(ActiveFacts))


def test_every_combination_of_facts_has_the_teller_of_its_row() -> None:
    for facts in EVERY:
        assert teller(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle() -> None:
    assert idle(ROWS, EVERY) == []


@pytest.mark.parametrize("found", Teller)
def test_each_of_them_tells_it_somewhere(found: Teller) -> None:
    assert any(teller(facts) is found for facts in EVERY)


def test_no_service_that_leads_to_a_server_is_overruled_but_by_a_record_of_one_that_is_there() -> None:
    for facts in EVERY:
        if facts.service in (ServiceTarget.BACK, ServiceTarget.THERE):
            assert teller(facts) is Teller.SERVICE or facts.recorded is RecordState.THERE
