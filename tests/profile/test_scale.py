"""The measured scale of outputs, and what measuring it takes."""

import tracemalloc

import numpy
import pytest

from triton_converters.gates.scale import Scale


def test_a_large_batch_is_measured_in_slices() -> None:
    batch = numpy.ones((64, 3, 128, 128), numpy.float32)
    tracemalloc.start()
    Scale().add(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * batch.nbytes


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (700, 1000)])
def test_slices_add_up_to_the_whole(shape: tuple[int, ...]) -> None:
    array = numpy.arange(numpy.prod(shape)).reshape(shape).astype(numpy.float32)
    whole, rows = Scale(), Scale()
    whole.add(array)
    for row in array:
        rows.add(row[None])
    assert numpy.allclose(whole.units(shape), rows.units(shape))
