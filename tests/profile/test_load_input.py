"""The load's input: real samples as they are, or their values in the shapes the spec asks for."""

import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import InputShape
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.measuring.load_input import check_shapes, first_request, prepare, reshape, varying_shapes
from triton_converters.measuring.perf_input import PerfInput

SIGNATURE = Signature(
    (Tensor("TOKENS", "INT64", (-1,)), Tensor("MASK", "FP32", (2, -1)), Tensor("FLAG", "FP32", ())),
    (Tensor("OUT", "FP32", (-1,)),),
    4,
)


def document(length: int = 3) -> str:
    tokens = numpy.arange(2 * length, dtype=numpy.int64).reshape(2, length)
    collector = PerfInput(batched=True)
    mask, flag = numpy.ones((2, 2, length), numpy.float32), numpy.array([7, 8], numpy.float32)
    collector.add({"TOKENS": tokens, "MASK": mask, "FLAG": flag})
    return collector.to_json()


def test_without_batch_dimension_each_size_has_a_file_of_its_own(tmp_path: Path) -> None:
    unbatched = replace(SIGNATURE, max_batch_size=0)
    (tmp_path / "perf-256.json").write_text(document())
    assert prepare(tmp_path, tmp_path, (), unbatched, 256) == (str(tmp_path / "perf-256.json"), document())


def test_without_shapes_the_references_own_file_is_used(tmp_path: Path) -> None:
    (tmp_path / "perf.json").write_text(document())
    assert prepare(tmp_path, tmp_path / "nowhere", (), SIGNATURE) == (str(tmp_path / "perf.json"), document())


def test_with_shapes_a_file_of_its_own_is_named_without_a_folder(tmp_path: Path) -> None:
    reference, directory = tmp_path / "reference", tmp_path / "measurement"
    reference.mkdir()
    directory.mkdir()
    (reference / "perf.json").write_text(document())
    name, text = prepare(reference, directory, [InputShape("TOKENS", (5,))], SIGNATURE)
    assert name == "perf.json"
    assert (directory / name).read_text() == text
    assert [step["TOKENS"]["shape"] for step in json.loads(text)["data"]] == [[5], [5]]


@given(st.integers(1, 9), st.integers(1, 20))
def test_reshaped_values_are_real_ones_in_order(length: int, wanted: int) -> None:
    text = reshape(document(length), [InputShape("TOKENS", (wanted,))], SIGNATURE)
    request = first_request(text, SIGNATURE)
    assert request["TOKENS"].tolist() == [[number % length for number in range(wanted)]]
    assert request["MASK"].shape == (1, 2, length)


def test_the_first_step_is_a_request_in_the_servers_shapes() -> None:
    request = first_request(document(), SIGNATURE)
    assert {name: (array.shape, array.dtype.name) for name, array in request.items()} == {
        "TOKENS": ((1, 3), "int64"),
        "MASK": ((1, 2, 3), "float32"),
        "FLAG": ((1, 1), "float32"),
    }
    assert request["FLAG"].item() == 7


def test_inputs_with_varying_dimensions_are_named_with_their_shape() -> None:
    assert varying_shapes(document(), SIGNATURE) == (InputShape("TOKENS", (3,)), InputShape("MASK", (2, 3)))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (InputShape("IDS", (3,)), "the model has no input 'IDS'; it has: TOKENS, MASK, FLAG"),
        (InputShape("TOKENS", (3, 1)), r"\[3, 1\] does not fit input TOKENS, whose dimensions are \[-1\]"),
        (InputShape("MASK", (3, 1)), r"\[3, 1\] does not fit input MASK, whose dimensions are \[2, -1\]"),
    ],
)
def test_a_shape_that_does_not_fit_is_the_specs_fault(shape: InputShape, words: str) -> None:
    with pytest.raises(StageError, match=words) as error:
        check_shapes([shape], SIGNATURE)
    assert (error.value.reason, error.value.final) == (Reason.INVALID_SPEC, True)
