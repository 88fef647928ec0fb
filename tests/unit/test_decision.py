"""The truth table of a rollout's next move: every row, every combination of facts, and what no table may allow."""

from dataclasses import replace

import pytest

from tests.unit.truth_table import ANY, decided, everything, idle
from triton_operator.rollout.decision import (
    FAILED,
    POINTS_TO,
    Figures,
    Move,
    RolloutFacts,
    Server,
    Sharing,
    may_share,
    next_move,
)

ROWS = {
    # server, figures, sharing, is active, alone, undone, yields -> move
    "the target was undone": (ANY, ANY, ANY, ANY, ANY, True, ANY, Move.UNDO),
    "the first revision breaks a constraint": (Server.READY, Figures.MISSED, ANY, ANY, True, ANY, ANY, Move.SETTLE),
    "a later one breaks a constraint": (ANY, Figures.MISSED, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    "it cannot be measured": (ANY, Figures.FAILED, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    "its measurement does not begin in time": (ANY, Figures.LATE, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    "its server is late": (Server.LATE, ANY, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    "suspended while another made way": (ANY, ANY, ANY, ANY, ANY, ANY, True, Move.YIELD),
    "its canary failed": (ANY, Figures.PASSED, Sharing.FAILED, False, ANY, ANY, ANY, Move.UNDO),
    "its canary goes on": (ANY, Figures.PASSED, Sharing.GOES_ON, False, ANY, ANY, ANY, Move.SHARE),
    "no replicas are wanted": (Server.UNWANTED, ANY, ANY, ANY, ANY, ANY, ANY, Move.STOP),
    "its server starts": (Server.STARTING, ANY, ANY, ANY, ANY, ANY, ANY, Move.START),
    "it is not measured yet": (ANY, Figures.MISSING, ANY, ANY, ANY, ANY, ANY, Move.MEASURE),
    "another canary has the preview Service": (ANY, ANY, Sharing.HELD, ANY, ANY, ANY, ANY, Move.MEASURE),
    "it serves": (ANY, ANY, ANY, True, ANY, ANY, ANY, Move.SERVE),
    "the Service moves": (ANY, ANY, ANY, ANY, ANY, ANY, ANY, Move.PROMOTE),
}
EVERY = list(everything(RolloutFacts))


def test_every_combination_of_facts_has_the_move_of_its_row() -> None:
    for facts in EVERY:
        assert next_move(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle() -> None:
    assert idle(ROWS, EVERY) == []


@pytest.mark.parametrize("move", Move)
def test_every_move_is_taken(move: Move) -> None:
    assert any(next_move(facts) is move for facts in EVERY)


def test_only_a_server_that_is_ready_and_measured_gets_requests() -> None:
    for facts in EVERY:
        if next_move(facts) in POINTS_TO:
            assert facts.server is Server.READY
            assert facts.figures is Figures.PASSED or (facts.figures is Figures.MISSED and facts.alone)
            assert facts.sharing is Sharing.NONE or facts.figures is Figures.MISSED or facts.is_active
            assert not facts.undone


def test_a_canary_counts_where_only_ready_pods_may_be_missing() -> None:
    """A canary counts exactly if the Service would move to a ready target without one."""
    for facts in EVERY:
        ready = replace(facts, server=Server.READY)
        would_move = (
            facts.sharing is not Sharing.HELD and next_move(replace(ready, sharing=Sharing.NONE)) is Move.PROMOTE
        )
        assert may_share(facts) == (would_move and facts.server is not Server.LATE), facts


def test_only_a_canary_that_counts_changes_the_move() -> None:
    for facts in EVERY:
        if facts.sharing in (Sharing.GOES_ON, Sharing.FAILED) and not may_share(facts):
            assert next_move(facts) is next_move(replace(facts, sharing=Sharing.NONE)), facts


def test_what_failed_or_was_undone_is_not_tried_further() -> None:
    bad = (Figures.MISSED, Figures.FAILED, Figures.LATE)
    for facts in EVERY:
        failed = facts.undone or facts.server is Server.LATE or facts.figures in bad
        failed = failed or (facts.sharing is Sharing.FAILED and may_share(facts))
        assert (next_move(facts) in FAILED) == failed
