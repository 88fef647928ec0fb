"""The truth table of a target's room on GPUs: every row, and every combination of facts."""

from tests.unit.truth_table import ANY, Rows, decided, everything, idle
from triton_operator.rollout.room import HAS_TIME, MAKES_WAY, Room, RoomFacts, next_room


def row(found: Room, **wanted: object) -> tuple[object, ...]:
    """A row of the table, in the order of the facts; what it does not name does not matter."""
    return *(wanted.get(each, ANY) for each in RoomFacts.__dataclass_fields__), found


ROWS: Rows = {
    "no server is wanted": row(Room.NONE, wanted=False),
    "it was made for too long": row(Room.SPENT, makes_way=True, overdue=True),
    "it was made": row(Room.MADE, makes_way=True),
    "the target was stopped until the suspension ends": row(Room.BARRED, suspended=True, stopped=True),
    "the suspension takes the target's time": row(Room.BARRED, suspended=True, helps=True, overdue=True),
    "the suspension stops no server": row(Room.NONE, suspended=True),
    "the target needs it": row(Room.BEGINS, helps=True, waited=True, was_ready=False),
    "the target has GPUs, or waits for others": row(Room.NONE),
}
EVERY = list(everything(RoomFacts))


def test_every_combination_of_facts_has_the_room_of_its_row() -> None:
    for facts in EVERY:
        assert next_room(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle_and_every_room_is_found() -> None:
    assert idle(ROWS, EVERY) == []
    assert {next_room(facts) for facts in EVERY} == set(Room)


def test_no_server_stops_for_a_target_that_its_gpus_do_not_help() -> None:
    for facts in EVERY:
        assert next_room(facts) not in MAKES_WAY or facts.makes_way or (facts.helps and not facts.suspended)


def test_every_outage_has_an_end() -> None:
    for facts in EVERY:
        if facts.makes_way and facts.overdue and facts.wanted:
            assert next_room(facts) not in HAS_TIME
