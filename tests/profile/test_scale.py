"""The measured scale of outputs, and what measuring it takes."""

import tracemalloc

import numpy
import pytest

from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.gates.agreement import compare
from triton_converters.gates.exact import RULES
from triton_converters.gates.scale import Scale


def test_a_large_batch_is_measured_in_slices() -> None:
    batch = numpy.ones((64, 3, 128, 128), numpy.float32)
    tracemalloc.start()
    Scale().add(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * batch.nbytes


def test_a_mask_in_a_long_row_takes_no_memory_for_what_lies_between() -> None:
    row = numpy.ones((1, 50_000), numpy.float32)
    row[0, 0] = numpy.finfo(numpy.float32).min
    tracemalloc.start()
    scale = Scale()
    scale.add(row)
    assert scale.units(row.shape)[0, 1] == 1.0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * row.nbytes


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (700, 1000)])
def test_slices_add_up_to_the_whole(shape: tuple[int, ...]) -> None:
    array = numpy.arange(numpy.prod(shape)).reshape(shape).astype(numpy.float32)
    whole, rows = Scale(), Scale()
    whole.add(array)
    for row in array:
        rows.add(row[None])
    assert numpy.allclose(whole.units(shape), rows.units(shape))


def test_what_is_empty_may_be_longer_than_what_was_measured() -> None:
    found, nothing = numpy.full((1, 2, 3), 5.0, numpy.float32), numpy.zeros((1, 0, 4), numpy.float32)
    scale = Scale()
    for array in (found, nothing):
        scale.add(array)
    assert compare("OUT", nothing, nothing, ["1"], Tolerance(1e-4, 1e-4), scale).holds(RULES["fp32"])
