"""Counting of elements that agree: the rule itself, sums over requests, and what must never pass."""

import tracemalloc

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.gates.agreement import Agreement, compare, describe
from triton_converters.gates.exact import RULES
from triton_converters.gates.scale import Scale

TOLERANCE = Tolerance(absolute=1e-3, relative=1e-2)
EXACT = Tolerance(0.0, 0.0)
ANY_FLOAT = st.floats(width=32, allow_nan=True, allow_infinity=True)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


def names(count: int) -> list[str]:
    return [f"id{number}" for number in range(count)]


def floats(*values: float) -> numpy.ndarray:
    return numpy.array(values, dtype=numpy.float32).reshape(len(values), 1)


def integers(*values: int) -> numpy.ndarray:
    return numpy.array(values, dtype=numpy.int64).reshape(len(values), 1)


@st.composite
def pairs(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> tuple[numpy.ndarray, numpy.ndarray]:
    shape = draw(st_numpy.array_shapes(min_dims=1, max_dims=3, max_side=5))
    array = st_numpy.arrays(numpy.float32, shape, elements=elements)
    return draw(array), draw(array)


@given(pairs(FINITE))
def test_the_rule_holds_element_by_element(pair: tuple[numpy.ndarray, numpy.ndarray]) -> None:
    framework, served = pair
    outside = [
        (a, b)
        for a, b in zip(served.ravel().tolist(), framework.ravel().tolist(), strict=True)
        if abs(a - b) > TOLERANCE.absolute + TOLERANCE.relative * abs(b)
    ]
    found = compare("OUT", framework, served, names(len(served)), TOLERANCE)
    assert (found.elements, found.outside, found.not_finite) == (framework.size, len(outside), 0)
    assert found.holds(RULES["fp32"]) is (not outside)
    assert (found.worst is None) is (not outside)


@given(st_numpy.arrays(numpy.float32, st_numpy.array_shapes(max_dims=3, max_side=5), elements=ANY_FLOAT))
def test_what_is_the_same_agrees_exactly(array: numpy.ndarray) -> None:
    found = compare("OUT", array, array.copy(), names(len(array)), EXACT)
    assert found == Agreement("OUT", True, elements=array.size)


@given(pairs(ANY_FLOAT), st.data())
def test_counts_add_up_over_requests(pair: tuple[numpy.ndarray, numpy.ndarray], data: st.DataObject) -> None:
    framework, served = pair
    ids, cut = names(len(served)), data.draw(st.integers(0, len(served)))
    whole = compare("OUT", framework, served, ids, TOLERANCE)
    parts = compare("OUT", framework[:cut], served[:cut], ids[:cut], TOLERANCE) + compare(
        "OUT", framework[cut:], served[cut:], ids[cut:], TOLERANCE
    )
    assert repr(parts) == repr(whole)  # by text: NaN is not equal to itself


@given(pairs(FINITE), st.sampled_from([numpy.nan, numpy.inf, -numpy.inf]), st.data())
def test_one_broken_element_is_counted_and_never_passes(
    pair: tuple[numpy.ndarray, numpy.ndarray], broken: float, data: st.DataObject
) -> None:
    framework = pair[0]
    served = framework.copy()
    index = data.draw(st.integers(0, framework.size - 1))
    served.ravel()[index] = broken
    found = compare("OUT", framework, served, names(len(served)), Tolerance(1e30, 1e30))
    assert (found.not_finite, found.outside) == (1, 1)
    assert not found.holds(RULES["fp16"])
    assert found.worst is not None
    assert found.worst.sample == f"id{index // (framework.size // len(framework))}"


def test_a_difference_at_the_bound_is_inside() -> None:
    assert compare("OUT", floats(1.0), floats(1.5), ["a"], Tolerance(0.25, 0.25)).outside == 0
    assert compare("OUT", floats(1.0), floats(1.5), ["a"], Tolerance(0.25, 0.24)).outside == 1


def test_the_tolerance_is_relative_to_the_framework_and_not_to_the_server() -> None:
    tolerance = Tolerance(0.0, 0.5)
    assert compare("OUT", floats(2.0), floats(1.0), ["a"], tolerance).holds(RULES["fp32"])
    assert not compare("OUT", floats(1.0), floats(2.0), ["a"], tolerance).holds(RULES["fp32"])


def test_the_difference_of_large_numbers_does_not_overflow() -> None:
    largest = float(numpy.finfo(numpy.float32).max)
    found = compare("OUT", floats(-largest), floats(largest), ["a"], EXACT)
    assert found.max_absolute_error == 2 * largest


def test_an_infinity_of_the_framework_must_be_the_same_one() -> None:
    assert compare("OUT", floats(numpy.inf), floats(numpy.inf), ["a"], EXACT).holds(RULES["fp32"])
    other = compare("OUT", floats(numpy.inf), floats(-numpy.inf), ["a"], TOLERANCE)
    assert (other.outside, other.not_finite, other.holds(RULES["fp32"])) == (1, 0, False)


@pytest.mark.parametrize("width", [2, 4])
def test_another_length_is_compared_on_the_common_prefix_and_the_rest_is_outside(width: int) -> None:
    framework = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    served = numpy.arange(2 * width, dtype=numpy.float32).reshape(2, width)
    served[:, : min(3, width)] = framework[:, : min(3, width)]
    found = compare("OUT", framework, served, ["a", "b"], EXACT)
    assert found.other_lengths == 2
    assert found.outside == 2
    assert found.elements == 2 * max(3, width)
    assert not found.holds(RULES["fp32"])


@pytest.mark.parametrize("width", [2, 5])
def test_zeros_beyond_the_common_prefix_are_padding(width: int) -> None:
    framework = numpy.array([[1, 2, 0], [3, 0, 0]], dtype=numpy.float32)
    served = numpy.zeros((2, width), dtype=numpy.float32)
    served[:, :2] = framework[:, :2]
    found = compare("OUT", framework, served, ["a", "b"], EXACT)
    assert (found.other_lengths, found.outside, found.elements) == (0, 0, 2 * min(3, width))
    assert found.holds(RULES["fp32"])


def test_a_sample_that_is_longer_by_more_than_padding_is_counted() -> None:
    framework = numpy.array([[1, 2, 0], [3, 0, 0]], dtype=numpy.float32)
    served = numpy.array([[1, 2, 0, 0], [3, 0, 0, 4]], dtype=numpy.float32)
    found = compare("OUT", framework, served, ["a", "b"], EXACT)
    assert (found.other_lengths, found.outside) == (1, 1)
    assert "1 samples have another length" in describe(found, TOLERANCE, RULES["fp32"])


def test_what_is_broken_beyond_the_common_prefix_is_counted_too() -> None:
    served = numpy.array([[1.0, numpy.nan]], dtype=numpy.float32)
    assert compare("OUT", floats(1.0), served, ["a"], EXACT).not_finite == 1


@pytest.mark.parametrize(("wrong", "passes"), [(0, True), (1, True), (2, False)])
def test_integers_agree_by_the_fraction_that_is_equal(wrong: int, passes: bool) -> None:
    framework = integers(*range(100))
    served = framework.copy()
    served[:wrong] += 1
    found = compare("OUT", framework, served, names(100), TOLERANCE)
    assert (found.outside, found.max_absolute_error) == (wrong, 0.0)
    assert found.holds(RULES["fp16"]) is passes
    assert found.holds(RULES["fp32"]) is (wrong == 0)


def test_a_large_answer_is_compared_in_slices() -> None:
    framework = numpy.ones((64, 3, 64, 64), numpy.float32)
    served = framework + numpy.float32(1e-4)
    served[40, 2, 1, 0] = 2.0
    scale = Scale()
    scale.add(framework)
    tracemalloc.start()
    found = compare("OUT", framework, served, names(64), TOLERANCE, scale)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.worst is not None
    assert (found.elements, found.outside, found.worst.sample, found.worst.position) == (786432, 1, "id40", (2, 1, 0))
    assert peak < 10 * framework.nbytes


def test_large_integers_that_differ_do_not_look_the_same_in_the_message() -> None:
    found = compare("OUT", integers(2**60, 1), integers(2**60 + 1, 1), names(2), EXACT)
    assert "served 1152921504606846977, framework 1152921504606846976" in describe(found, EXACT, RULES["fp32"])


@pytest.mark.parametrize("kind", [numpy.float32, numpy.int64, numpy.bool_, numpy.str_])
def test_what_is_empty_on_both_sides_agrees(kind: type) -> None:
    empty = numpy.zeros((2, 0), dtype=kind)
    found = compare("OUT", empty, empty, ["a", "b"], TOLERANCE)
    assert (found.elements, found.holds(RULES["fp32"]), found.holds(RULES["fp16"])) == (0, True, True)


@pytest.mark.parametrize("served", [0, 3])
def test_what_only_one_side_has_is_outside(served: int) -> None:
    framework, answer = (numpy.ones((2, size), numpy.float32) for size in (3 - served, served))
    assert not compare("OUT", framework, answer, ["a", "b"], TOLERANCE).holds(RULES["fp32"])


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (numpy.zeros((2, 1), numpy.float64), "served as float64"),
        (numpy.zeros((2, 1, 1), numpy.float32), r"served as float32\[2, 1, 1\], not float32\[2, 1\]"),
        (numpy.zeros((3, 1), numpy.float32), "for 2 samples"),
    ],
)
def test_other_types_ranks_and_batches_are_no_matter_of_tolerance(served: numpy.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compare("OUT", floats(1.0, 2.0), served, ["a", "b"], TOLERANCE)


def test_agreements_of_different_outputs_are_not_added() -> None:
    with pytest.raises(ValueError, match="different outputs"):
        Agreement("A", True) + Agreement("B", True)


def test_the_message_names_output_sample_both_values_and_counts() -> None:
    framework = numpy.array([[1.0, 2.0], [3.0, 4.0]], dtype=numpy.float32)
    served = numpy.array([[1.0, 2.5], [3.0, 5.0]], dtype=numpy.float32)
    found = compare("LOGITS", framework, served, ["cat.png", "dog.png"], TOLERANCE)
    assert describe(found, TOLERANCE, RULES["fp32"]) == (
        "output LOGITS: 2 of 4 elements are outside |served - framework| <= 0.001 + 0.01 * |framework|;"
        " the worst is element [1] of sample dog.png: served 5, framework 4; largest absolute error 1"
    )


def test_the_message_about_integers_says_how_many_must_be_equal() -> None:
    found = compare("CLASS", integers(1, 2), integers(1, 3), ["a", "b"], TOLERANCE)
    assert "output CLASS: 1 of 2 elements are not equal: at most 0 may be" in describe(found, TOLERANCE, RULES["fp32"])


def test_strings_agree_where_they_are_equal() -> None:
    framework, served = numpy.array([["a", "bc"], ["d", ""]]), numpy.array([["a", "longer"], ["d", ""]])
    found = compare("words", framework, served, ["0", "1"], Tolerance(1.0, 1.0))
    assert (found.elements, found.outside, found.is_floating) == (4, 1, False)
    assert not found.holds(RULES["fp32"])
    said = describe(found, Tolerance(1.0, 1.0), RULES["fp32"])
    assert said == "output words: 1 of 4 elements are not equal: at most 0 may be"
