"""One pass a case: the whole intent, as objects/ and cases/ have it; README.md says how to read them."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden import shown
from tests.golden.files import CASES, NAMES, OBJECTS, stored, text
from tests.golden.pages import RECORDS, Pages, case, dumped, page_of, pages
from tests.golden.record_names import readable
from tests.states.moments import MOMENTS
from tests.states.passes import objects, planned, reached
from triton_operator import names

PAGES = (*shown.OBJECTS, RECORDS)


@cache
def known() -> Pages:
    """The pages in the files."""
    return stored()


def compare(path: Path, found: str, updates: bool) -> None:
    """Fail with the lines in which a file differs from what it should be; or write it, if that is asked for."""
    if updates:
        path.write_text(found, encoding="utf-8")
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    name = f"{path.parent.name}/{path.name}"
    lines = list(unified_diff(golden.splitlines(), found.splitlines(), name, "the plan", lineterm=""))
    assert not lines, "\n".join([*lines, "", "If that is meant: pytest tests/golden --update-golden"])


# The pages come first, because the cases are told by them.
@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_object_of_its_case(name: str, updates: bool) -> None:
    compare(OBJECTS / f"{name}.yaml", dumped(pages(planned)[name]), updates)


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_does_and_says_what_is_expected(name: str, updates: bool) -> None:
    compare(CASES / f"{name}.yaml", text(name, known()), updates)


def test_every_kind_of_object_has_a_page() -> None:
    """Else each case that has one shows it whole."""
    made = {page_of(body) for name in MOMENTS for body in planned(name).objects}
    assert made == set(shown.OBJECTS), "tests/golden/shown.py names the case that shows it"


@pytest.mark.parametrize(("folder", "known_names"), [(CASES, NAMES), (OBJECTS, PAGES)], ids=["cases", "objects"])
def test_every_file_is_of_something(folder: Path, known_names: Sequence[str], updates: bool) -> None:
    left = {path for path in folder.iterdir() if path.stem not in known_names}
    for path in left if updates else ():
        path.unlink()
    assert updates or not left


def test_records_are_named_by_what_they_are_about() -> None:
    keys = ["a" * 16, "b" * 16, "c" * 16, "d" * 16]
    records = {f"convert.{key}": "{}" for key in keys} | {f"image.profile.{keys[0]}": "x", "history": "{}"}
    records |= {f"finished.convert.{key}": f"2026-11-21T00:00:0{9 - number}Z" for number, key in enumerate(keys)}
    jobs = [{"metadata": {"labels": labels("convert", keys[0], "onnx-fp32")}}]
    assert readable(records, jobs) == {
        f"convert.{keys[0]}": "convert.onnx-fp32",
        f"convert.{keys[1]}": "convert.earlier-3",
        f"convert.{keys[2]}": "convert.earlier-2",
        f"convert.{keys[3]}": "convert.earlier-1",
        f"finished.convert.{keys[0]}": "finished.convert.onnx-fp32",
        f"finished.convert.{keys[1]}": "finished.convert.earlier-3",
        f"finished.convert.{keys[2]}": "finished.convert.earlier-2",
        f"finished.convert.{keys[3]}": "finished.convert.earlier-1",
        f"image.profile.{keys[0]}": "image.profile.earlier-1",
        "history": "history",
    }


def labels(stage: str, key: str, candidate: str) -> dict[str, str]:
    return {names.STAGE_LABEL: stage, names.KEY_LABEL: key, names.CANDIDATE_LABEL: candidate}


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places of all plain values: what holds each, and where."""
    for place, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list):
            yield from leaves(each)
        else:
            yield value, place


@pytest.mark.parametrize("name", ["profiling", "ready"])
def test_no_change_of_an_object_goes_unseen(name: str) -> None:
    wanted, bodies, before = planned(name), objects(name), reached(name)

    def told(*changed: dict[str, Any]) -> str:
        return case(replace(wanted, objects=changed), known(), {}, before.spec, before.of_kind("Job"))

    golden = told(*bodies)
    for number in range(len(bodies)):
        assert told(*bodies[:number], *bodies[number + 1 :]) != golden
    # Alone, because all cases' texts together take long to write.
    for body in bodies:
        alone = told(body)
        for place in range(len(list(leaves(body)))):
            changed = deepcopy(body)
            holder, key = list(leaves(changed))[place]
            holder[key] = "changed"
            assert told(changed) != alone, (body["kind"], key)
