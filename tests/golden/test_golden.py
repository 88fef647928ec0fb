"""One pass a case: the whole intent, as objects/ and cases/ have it; README.md says how to read them."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from difflib import unified_diff
from functools import cache
from typing import Any

import pytest

from tests.golden.files import CASES, OBJECTS, stored
from tests.golden.pages import Pages, case, dumped, pages
from tests.states.moments import MOMENTS
from tests.states.passes import objects, planned, status


@cache
def known() -> Pages:
    """The pages in the files."""
    return stored()


def assert_same(name: str, golden: str, found: str) -> None:
    """Fail with the lines that differ."""
    lines = list(unified_diff(golden.splitlines(), found.splitlines(), name, "the plan", lineterm=""))
    assert not lines, "\n".join([*lines, "", "If that is meant: pytest tests/golden --update-golden"])


def test_every_file_is_of_a_moment() -> None:
    assert {path.stem for path in CASES.iterdir()} == set(MOMENTS)


@pytest.mark.parametrize("name", MOMENTS)
def test_the_plan_is_the_expected_one(name: str) -> None:
    golden = (CASES / f"{name}.yaml").read_text(encoding="utf-8")
    assert_same(f"cases/{name}.yaml", golden, case(planned(name), known(), status(name)))


def test_every_object_and_record_that_is_shown_is_made() -> None:
    found = pages(map(planned, MOMENTS))
    assert set(known()) == set(found)
    for name, page in found.items():
        assert_same(f"objects/{name}.yaml", (OBJECTS / f"{name}.yaml").read_text(encoding="utf-8"), dumped(page))


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places of all plain values: what holds each, and where."""
    for place, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list):
            yield from leaves(each)
        else:
            yield value, place


@pytest.mark.parametrize("name", ["profiling", "ready"])
def test_no_change_of_an_object_goes_unseen(name: str) -> None:
    wanted, bodies = planned(name), objects(name)
    golden = case(wanted, known(), status(name))
    for number in range(len(bodies)):
        fewer = (*bodies[:number], *bodies[number + 1 :])
        assert case(replace(wanted, objects=fewer), known(), status(name)) != golden
    # Alone, because all cases' texts together take long to write.
    for body in bodies:
        alone = case(replace(wanted, objects=(body,)), known(), {})
        for place in range(len(list(leaves(body)))):
            changed = deepcopy(body)
            holder, key = list(leaves(changed))[place]
            if key not in ("kind", "component"):
                holder[key] = "changed"
                assert case(replace(wanted, objects=(changed,)), known(), {}) != alone, (body["kind"], key)
