"""The truth table of a rollout's next move: every row, every combination of facts, and what no table may allow."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from triton_operator.rollout.decision import FAILED, TAKES_OVER, Facts, Figures, Move, Server, Trial, next_move

ANY = None
ROWS = [
    # server, figures, trial, serves, alone, undone, yields -> move
    (ANY, ANY, ANY, ANY, ANY, True, ANY, Move.UNDO),
    (Server.READY, Figures.MISSED, ANY, ANY, True, ANY, ANY, Move.SETTLE),
    (ANY, Figures.MISSED, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    (ANY, Figures.FAILED, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    (Server.LATE, ANY, ANY, ANY, ANY, ANY, ANY, Move.GIVE_UP),
    (ANY, ANY, ANY, ANY, ANY, ANY, True, Move.YIELD),
    (ANY, ANY, Trial.GOES_ON, ANY, ANY, ANY, ANY, Move.SHARE),
    (Server.UNWANTED, ANY, ANY, ANY, ANY, ANY, ANY, Move.STOP),
    (Server.STARTING, ANY, ANY, ANY, ANY, ANY, ANY, Move.START),
    (ANY, Figures.MISSING, ANY, ANY, ANY, ANY, ANY, Move.MEASURE),
    (ANY, ANY, Trial.HELD, ANY, ANY, ANY, ANY, Move.MEASURE),
    (ANY, ANY, ANY, True, ANY, ANY, ANY, Move.SERVE),
    (ANY, ANY, ANY, ANY, ANY, ANY, ANY, Move.TAKE_OVER),
]
"""The first row that fits decides."""


def everything() -> Iterator[Facts]:
    """Every combination of facts."""
    flags = (False, True)
    for each in product(Server, Figures, Trial, flags, flags, flags, flags):
        yield Facts(*each)


def decided(rows: Sequence[tuple[object, ...]], facts: Facts) -> object:
    """The move of the first row that fits; None if none does."""
    return next(
        (
            row[-1]
            for row in rows
            if all(wanted in (ANY, got) for wanted, got in zip(row, vars(facts).values(), strict=False))
        ),
        None,
    )


def test_every_combination_of_facts_has_the_move_of_its_row() -> None:
    for facts in everything():
        assert next_move(facts) is decided(ROWS, facts), facts


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_no_row_is_idle(number: int) -> None:
    others = [*ROWS[:number], *ROWS[number + 1 :]]
    assert any(decided(others, facts) is not decided(ROWS, facts) for facts in everything())


@pytest.mark.parametrize("move", Move)
def test_every_move_is_taken(move: Move) -> None:
    assert any(next_move(facts) is move for facts in everything())


def test_only_a_server_that_is_ready_and_measured_gets_requests() -> None:
    for facts in everything():
        if next_move(facts) in TAKES_OVER:
            assert facts.server is Server.READY
            assert facts.figures is Figures.PASSED or (facts.figures is Figures.MISSED and facts.alone)
            assert facts.trial is Trial.NONE or facts.figures is Figures.MISSED
            assert not facts.undone


def test_what_failed_or_was_undone_is_not_tried_further() -> None:
    for facts in everything():
        failed = facts.undone or facts.server is Server.LATE or facts.figures in (Figures.MISSED, Figures.FAILED)
        assert (next_move(facts) in FAILED) == failed
