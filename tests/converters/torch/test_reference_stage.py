"""The reference stage with a real framework."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.converters.torch.cases import REFERENCE
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Tensor

pytestmark = pytest.mark.torch
Refer = Callable[..., ReferenceResult]


def test_the_dump_is_what_the_framework_answers(refer: Refer, published: Path) -> None:
    result = refer("Recommender")
    assert (result.samples, result.batches) == (12, 3)
    assert result.signature.inputs == (Tensor("items", "INT64", (5,)), Tensor("visitor", "FP32", (4,)))
    assert result.signature.outputs == (Tensor("scores", "FP32", (3,)), Tensor("best", "INT64", ()))
    directory = layout.reference_directory(REFERENCE)
    assert read_result(directory, "reference", REFERENCE, ReferenceResult) == result
    assert len(json.loads((directory / "perf.json").read_text())["data"]) == 12
    assert sorted(path.name for path in directory.iterdir()) == ["batches", "perf.json", "result.json"]
    assert [path.name for path in directory.parent.iterdir()] == [REFERENCE]
    for batch in read_batches(directory):
        assert (batch.outputs["scores"].argmax(-1) == batch.outputs["best"]).all()


def test_varying_lengths_and_booleans(refer: Refer) -> None:
    signature = refer("Masked").signature
    assert signature.inputs == (Tensor("steps", "FP32", (-1, 4)), Tensor("mask", "BOOL", (-1,)))
    assert signature.outputs == (Tensor("tags", "FP32", (-1, 3)), Tensor("summary", "FP32", (3,)))


def test_a_model_without_batch_dimension(refer: Refer) -> None:
    result = refer("Points")
    assert result.signature.inputs == (Tensor("points", "FP32", (-1, 3)),)
    assert result.signature.outputs == (Tensor("direction", "FP32", (3,)),)
    assert (result.signature.max_batch_size, result.samples) == (0, 3)


@pytest.mark.parametrize(
    ("kind", "reason", "words"),
    [
        ("Stochastic", Reason.REFERENCE_NOT_REPRODUCIBLE, "run twice"),
        ("BatchStatistics", Reason.BATCHING_UNSUPPORTED, "statistics of the batch"),
        ("BatchNorm", Reason.BATCHING_UNSUPPORTED, "a batch of 4 works, but a batch of 1 fails"),
        ("Half", Reason.FRAMEWORK_FAILED, "float16"),
        ("TooFew", Reason.FRAMEWORK_FAILED, "1 outputs"),
    ],
)
def test_a_framework_that_proves_nothing_is_refused(refer: Refer, kind: str, reason: Reason, words: str) -> None:
    with pytest.raises(StageError) as caught:
        refer(kind)
    assert caught.value.reason is reason
    assert words in caught.value.message
    assert list(layout.ROOT.glob("references/*")) == []


def test_an_output_in_double_precision_is_served(refer: Refer) -> None:
    assert [each.data_type for each in refer("Double").signature.outputs] == ["FP64"]


def test_a_layer_left_in_training_mode_is_refused(refer: Refer) -> None:
    with pytest.raises(StageError) as caught:
        refer("Classifier", training="norm")
    assert caught.value.reason is Reason.ENTRYPOINT_INVALID
    assert "norm (BatchNorm2d)" in caught.value.message


def test_constant_outputs_are_refused(refer: Refer, published: Path) -> None:
    weights = {"head.weight": torch.zeros(3, 4), "head.bias": torch.ones(3)}
    torch.save(weights, published / "zero.pt")
    with pytest.raises(StageError) as caught:
        refer("Branching", checkpoint="zero.pt", loader={"batches": "1"})
    assert caught.value.reason is Reason.REFERENCE_CONSTANT


def test_infinite_outputs_are_refused(refer: Refer, published: Path) -> None:
    weights = {"head.weight": torch.full((3, 4), 3e38), "head.bias": torch.ones(3)}
    torch.save(weights, published / "huge.pt")
    with pytest.raises(StageError) as caught:
        refer("Branching", checkpoint="huge.pt")
    assert caught.value.reason is Reason.REFERENCE_NOT_FINITE


def test_wrong_shapes_are_the_framework_s_own_words(refer: Refer, published: Path) -> None:
    with pytest.raises(StageError) as caught:
        refer("Branching", loader={"kind": "Points"}, inputs="points")
    assert caught.value.reason in (Reason.FRAMEWORK_FAILED, Reason.DATALOADER_INVALID)
    assert "points" in caught.value.message


def test_a_second_run_uses_what_is_there(refer: Refer) -> None:
    first = refer("Recommender")
    inode = layout.reference_directory(REFERENCE).stat().st_ino
    assert refer("Recommender") == first
    assert layout.reference_directory(REFERENCE).stat().st_ino == inode
