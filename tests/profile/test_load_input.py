"""The load's input: real samples as they are, or their values in the shapes the spec asks for."""

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import InputShape, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Lengths, Mix, Signature, Tensor
from triton_converters.measuring.load_input import (
    LoadInput,
    OneShape,
    check_shapes,
    describe,
    first_request,
    prepare,
    reshape,
    varying_shapes,
)
from triton_converters.measuring.perf_input import PerfInput

SIGNATURE = Signature(
    (Tensor("TOKENS", "INT64", (-1,)), Tensor("MASK", "FP32", (2, -1)), Tensor("FLAG", "FP32", ())),
    (Tensor("OUT", "FP32", (-1,)),),
    4,
)


SWEEP = Sweep((1,), (1,), False)


def write(reference: Path, lengths: Sequence[int], batched: bool = True) -> None:
    """Write a batch of each length: two samples, or one request. FLAG numbers them."""
    for number, length in enumerate(lengths):
        rows = (2,) if batched else ()
        flags = numpy.array([2 * number, 2 * number + 1] if batched else number, numpy.float32)
        inputs = {
            "TOKENS": numpy.ones((*rows, length), numpy.int64),
            "MASK": numpy.ones((*rows, 2, length), numpy.float32),
            "FLAG": flags,
        }
        write_batch(reference, number, Batch(numpy.arange(2), inputs, {}, {"OUT": numpy.ones(2)}))


def document(length: int = 3) -> str:
    tokens = numpy.arange(2 * length, dtype=numpy.int64).reshape(2, length)
    collector = PerfInput(batched=True)
    mask, flag = numpy.ones((2, 2, length), numpy.float32), numpy.array([7, 8], numpy.float32)
    collector.add({"TOKENS": tokens, "MASK": mask, "FLAG": flag})
    return collector.to_json()


def first() -> str:
    return json.dumps({"data": json.loads(document())["data"][:1]}, separators=(",", ":"))


def test_without_batch_dimension_each_size_has_a_file_of_its_own(tmp_path: Path) -> None:
    unbatched = replace(SIGNATURE, max_batch_size=0)
    (tmp_path / "perf-256.json").write_text(document())
    found = prepare(tmp_path, tmp_path, (), unbatched, 256)
    assert found == LoadInput((OneShape(str(tmp_path / "perf-256.json"), first()),))


def test_without_shapes_the_references_own_file_is_used(tmp_path: Path) -> None:
    (tmp_path / "perf.json").write_text(document())
    write(tmp_path, [3, 3])
    found = prepare(tmp_path, tmp_path / "nowhere", (), SIGNATURE)
    assert found == LoadInput((OneShape(str(tmp_path / "perf.json"), first()),))
    assert describe(tmp_path, (), SIGNATURE, SWEEP) is None


def test_with_shapes_a_file_of_its_own_is_named_without_a_folder(tmp_path: Path) -> None:
    reference, directory = tmp_path / "reference", tmp_path / "measurement"
    reference.mkdir()
    directory.mkdir()
    (reference / "perf.json").write_text(document())
    write(reference, [3, 7])
    (found,) = prepare(reference, directory, [InputShape("TOKENS", (5,))], SIGNATURE).of_shapes
    assert found.file == "perf.json"
    text = (directory / found.file).read_text()
    assert [step["TOKENS"]["shape"] for step in json.loads(text)["data"]] == [[5], [5]]
    assert json.loads(found.document)["data"] == json.loads(text)["data"][:1]


def test_samples_of_several_shapes_are_sent_as_they_are_and_each_shape_has_a_file(tmp_path: Path) -> None:
    reference, directory = tmp_path / "reference", tmp_path / "measurement"
    directory.mkdir()
    write(reference, [7, 3, 7, 5])
    found = prepare(reference, directory, (), SIGNATURE)
    assert (found.mixed_file, found.mixed_samples) == ("mixed.json", 8)
    steps = json.loads((directory / "mixed.json").read_text())["data"]
    assert Counter(step["TOKENS"]["shape"][0] for step in steps) == {7: 4, 3: 2, 5: 2}
    assert all(step["MASK"]["shape"] == [2, *step["TOKENS"]["shape"]] for step in steps)
    # Each sample is sent once, with its own values.
    assert sorted(numpy.frombuffer(b64decode(step["FLAG"]["content"]["b64"]), "<f4").item() for step in steps) == [
        *range(8)
    ]
    assert [(each.file, each.samples) for each in found.of_shapes] == [
        ("shape-1.json", 2),
        ("shape-2.json", 2),
        ("shape-3.json", 4),
    ]
    for each, length in zip(found.of_shapes, (3, 5, 7), strict=True):
        text = (directory / each.file).read_text()
        assert varying_shapes(each.document, SIGNATURE) == (
            InputShape("TOKENS", (length,)),
            InputShape("MASK", (2, length)),
        )
        assert len(json.loads(text)["data"]) == each.samples
    assert describe(reference, (), SIGNATURE, SWEEP) == Mix(8, 3, (Lengths("TOKENS", 0, 3, 5, 7, 7),))


def test_a_file_is_named_from_where_perf_analyzer_runs(tmp_path: Path) -> None:
    write(tmp_path, [7, 3])
    found = prepare(tmp_path, tmp_path, (), SIGNATURE).below(Path("../inputs"))
    assert (found.mixed_file, found.of_shapes[0].file) == ("../inputs/mixed.json", "../inputs/shape-1.json")
    theirs = LoadInput((OneShape("/repository/perf.json", ""),))
    assert theirs.below(Path("../inputs")) == theirs


def test_without_batch_dimension_single_samples_keep_their_shapes(tmp_path: Path) -> None:
    unbatched = replace(SIGNATURE, max_batch_size=0)
    write(tmp_path, [7, 3, 7], batched=False)
    (tmp_path / "perf-1.json").write_text(document())
    assert prepare(tmp_path, tmp_path, (), unbatched, 1).mixed_samples == 3
    # With other sizes, the reference's batches are requests of the largest.
    (tmp_path / "perf-8.json").write_text(document())
    assert prepare(tmp_path, tmp_path, (), unbatched, 1).mixed_file == ""
    assert describe(tmp_path, (), unbatched, SWEEP) is None


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
