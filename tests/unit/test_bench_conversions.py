"""`bench.conversions`: the reports, the functions that rebuild them, and what counts as a difference."""

import ast
import json

import numpy
import pytest

from bench.conversions.__main__ import HERE, LIBRARIES, OUTPUT, reports
from bench.conversions.models.run import differing

REPORTS = 40


def rebuilt(library: str) -> set[str]:
    text = (HERE / f"models/{library}_reports.py").read_text(encoding="utf-8")
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return {each.name for each in functions if not each.name.startswith("_")}


def test_there_are_as_many_reports_as_the_rule_says() -> None:
    assert len(reports()) == REPORTS


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_report_has_a_function_or_a_reason_why_not(library: str) -> None:
    own = {name for name, each in reports().items() if each["library"] == library and "cannot" not in each}
    assert own == rebuilt(library)


def test_the_table_is_made_of_these_reports() -> None:
    rows = json.loads(OUTPUT.read_text(encoding="utf-8"))["rows"]
    assert [row["link"] for row in rows] == [each["link"] for each in reports().values()]


def test_what_counts_as_a_difference() -> None:
    labels, numbers = numpy.array([0, 1, 1, 0]), numpy.array([[1.0], [2.0], [numpy.nan], [4.0]])
    moved = numpy.array([[0], [1e-3], [0], [1e-4]])
    wrong, largest = differing([labels, numbers], [labels, numbers + moved])
    assert wrong.tolist() == [False, True, False, False]
    assert largest == pytest.approx(1e-3)
    wrong, _ = differing([labels, numbers], [numpy.array([1, 1, 1, 0]), numpy.nan_to_num(numbers)])
    assert wrong.tolist() == [True, False, True, False]


def test_answers_of_another_form_do_not_compare() -> None:
    with pytest.raises(ValueError, match="2 values a row instead of 1"):
        differing([numpy.zeros(3)], [numpy.zeros((3, 2))])
