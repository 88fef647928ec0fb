"""`bench.batches` from a graph to how large a batch would have grown."""

import numpy
import onnx
import pytest

from bench.batches import SIZES, gain, grown, milliseconds
from bench.defaults import SUBJECTS
from hack.deploy.command import ROOT


def test_a_batch_grows_as_long_as_a_doubling_is_worth_it() -> None:
    # With 0.2 ms for the request: 1.2, 0.7, 0.45, 0.44.
    assert grown({4: 1.0, 8: 0.5, 16: 0.25, 32: 0.24}) == 16
    assert grown({4: 1.0, 8: 1.0, 16: 0.1, 32: 0.1}) == 4
    assert grown({4: 1.0, 8: 0.5, 16: 0.3, 32: 0.1}) == 32


def test_what_a_request_takes_besides_the_model_is_part_of_the_gain() -> None:
    assert gain({4: 0.8, 8: 0.3}, 8) == pytest.approx(1.0)
    assert gain({4: 0.01, 8: 0.005}, 8) == pytest.approx(0.0244, abs=0.001)


def test_a_sample_of_a_cheap_model_costs_less_in_a_batch() -> None:
    graph = onnx.load(ROOT / "manifests/samples/digits/digits.onnx")
    costs = milliseconds(graph, SUBJECTS["digits"].samples()[0])
    assert costs is not None
    assert tuple(costs) == SIZES
    assert costs[32] < costs[1]


def test_a_sample_that_takes_no_batch_is_left_out() -> None:
    graph = onnx.load(ROOT / "manifests/samples/digits/digits.onnx")
    assert milliseconds(graph, {"X": numpy.zeros((1, 64), numpy.float32)}) is None
