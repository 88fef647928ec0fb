"""The numerical gate over a whole reference, and the mutants it must catch."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy
import pytest
from linear_model import MAX_BATCH_SIZE, SIGNATURE, Linear, batches, mutated, weights

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import answers
from triton_converters.gates.answers import Answers, Infer
from triton_converters.gates.outputs import check_outputs
from triton_converters.gates.signature import check_signature

FP32 = Tolerance(1e-4, 1e-4)
FP16 = Tolerance(1e-2, 1e-2)


def serve(
    infer: Infer, reference: Iterable[Batch], signature: Signature, tolerance: Tolerance, keep_outputs: bool = False
) -> Answers:
    """What is answered to the whole reference."""
    reference = list(reference)
    scales = answers.scales_of(reference, signature.max_batch_size > 0, tolerance, "")
    return answers.collect(infer, reference, signature, tolerance, scales, keep_outputs)


def gate(infer: Infer, precision: str = "fp32", tolerance: Tolerance = FP32) -> StageError | None:
    """The gate's verdict on the linear model's reference."""
    try:
        check_outputs(serve(infer, batches(), SIGNATURE, tolerance), precision, tolerance)
    except StageError as error:
        return error
    return None


def swap(inputs: Arrays, answer: dict[str, Array]) -> dict[str, Array]:
    return answer | {"LOGITS": answer["SCALED"], "SCALED": answer["LOGITS"]}


def one_nan(inputs: Arrays, answer: dict[str, Array]) -> dict[str, Array]:
    answer["LOGITS"][0, 0] = numpy.nan
    return answer


def reversed_within_the_batch(inputs: Arrays, answer: dict[str, Array]) -> dict[str, Array]:
    return {name: array[::-1] for name, array in answer.items()}


def frozen_at_eight(inputs: Arrays, answer: dict[str, Array]) -> dict[str, Array]:
    wrong = len(inputs["FEATURES"]) != MAX_BATCH_SIZE
    return {name: numpy.zeros_like(array) if wrong else array for name, array in answer.items()}


def test_a_request_that_fails_after_others_is_told_by_its_samples() -> None:
    """What refuses the very first request has nothing to do with its samples."""

    def answering(model: Linear, most: int) -> Infer:
        def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
            if len(model.sizes) == most:
                raise StageError(Reason.INFERENCE_FAILED, "tritonserver refused it")
            return model(inputs, outputs)

        return infer

    for most, words in enumerate(("tritonserver refused it", "a request of 5 samples (1, 2, 3, 4, ...) fails: ")):
        with pytest.raises(StageError, match=f"^{re.escape(words)}"):
            serve(answering(Linear(), most), batches(), SIGNATURE, FP32)


def test_the_model_itself_passes_with_every_sample_and_size() -> None:
    model = Linear()
    served = serve(model, batches(samples=40), SIGNATURE, FP32)
    check_outputs(served, "fp32", FP32)
    assert served.samples == 40
    assert served.sizes >= {1, 5, 8}
    assert sum(model.sizes) >= 40
    assert served.max_absolute_error < 1e-5
    assert {name: each.elements >= 40 for name, each in served.agreements.items()} == dict.fromkeys(
        ("LOGITS", "SCALED", "CLASS"), True
    )


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_the_maximum_is_served_also_where_the_reference_is_smaller(samples: int) -> None:
    model = Linear()
    assert serve(model, batches(samples), SIGNATURE, FP32).samples == samples
    assert set(model.sizes) >= {1, 5, 8}


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", FP32), ("fp16", FP16)])
@pytest.mark.parametrize(
    ("infer", "reason"),
    [
        (mutated(swap), Reason.OUTPUTS_DIFFER),
        (Linear(weights() * 1.05), Reason.OUTPUTS_DIFFER),
        (mutated(one_nan), Reason.OUTPUTS_NOT_FINITE),
        (mutated(reversed_within_the_batch), Reason.OUTPUTS_DIFFER),
        (mutated(frozen_at_eight), Reason.OUTPUTS_DIFFER),
    ],
    ids=["swapped", "scaled", "nan", "mixed up", "frozen batch"],
)
def test_mutants_are_caught(infer: Infer, reason: Reason, precision: str, tolerance: Tolerance) -> None:
    verdict = gate(infer, precision, tolerance)
    assert verdict is not None
    assert verdict.reason is reason
    assert verdict.final
    assert "of sample" in verdict.message


def test_rounding_to_half_precision_passes_as_fp16_and_not_as_fp32() -> None:
    half = Linear(weights().astype(numpy.float16).astype(numpy.float32))
    assert gate(half, "fp16", FP16) is None
    verdict = gate(half, "fp32", FP32)
    assert verdict is not None
    assert "spec.conversion.tolerances" in verdict.message


def test_the_message_names_the_other_outputs_that_are_outside() -> None:
    verdict = gate(mutated(swap))
    assert verdict is not None
    assert "output LOGITS" in verdict.message
    assert "these outputs do not agree either: SCALED" in verdict.message


def test_an_empty_reference_is_never_a_pass() -> None:
    with pytest.raises(StageError, match="nothing was compared"):
        check_outputs(serve(Linear(), [], SIGNATURE, FP32), "fp32", FP32)


@pytest.mark.parametrize(
    "change",
    [
        lambda inputs, answer: answer | {"LOGITS": answer["LOGITS"][:, :2]},
        lambda inputs, answer: answer | {"LOGITS": answer["LOGITS"][:-1]},
        lambda inputs, answer: answer | {"LOGITS": answer["LOGITS"].astype(numpy.float64)},
        lambda inputs, answer: answer | {"LOGITS": answer["LOGITS"][None]},
    ],
    ids=["dims", "batch", "type", "rank"],
)
def test_answers_of_another_shape_or_type_break_the_signature(
    change: Callable[[Arrays, dict[str, Array]], dict[str, Array]],
) -> None:
    verdict = gate(mutated(change))
    assert verdict is not None
    assert verdict.reason is Reason.SIGNATURE_MISMATCH


def test_outputs_are_kept_by_sample_in_the_references_order() -> None:
    served = serve(Linear(), batches(), SIGNATURE, FP32, keep_outputs=True)
    expected = numpy.concatenate([batch.outputs["LOGITS"] for batch in batches()])
    numpy.testing.assert_allclose(numpy.stack([each["LOGITS"] for each in served.outputs]), expected, atol=1e-5)


def test_the_largest_output_of_a_sample_is_known() -> None:
    served = serve(Linear(), batches(), SIGNATURE, FP32)
    assert served.output_bytes == {"LOGITS": 16, "SCALED": 16, "CLASS": 8}


SCALAR = Signature((Tensor("X", "FP32", ()),), (Tensor("Y", "FP32", ()),), 4)


def test_a_tensor_that_is_nothing_but_the_batch_is_served_with_one_dimension_more() -> None:
    def double(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        assert inputs["X"].shape[1:] == (1,)
        return {"Y": inputs["X"] * 2}

    x = numpy.arange(1, 7, dtype=numpy.float32)
    reference = [Batch(numpy.arange(6), {"X": x}, {}, {"Y": x * 2})]
    served = serve(double, reference, SCALAR, FP32, keep_outputs=True)
    check_outputs(served, "fp32", FP32)
    assert [float(each["Y"]) for each in served.outputs] == [2, 4, 6, 8, 10, 12]


WHOLE = Signature((Tensor("X", "FP32", (-1, 3)),), (Tensor("Y", "FP32", (-1,)),), 0)


def test_a_model_without_batch_dimension_is_served_request_by_request() -> None:
    sizes = []

    def total(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        sizes.append(inputs["X"].shape)
        return {"Y": inputs["X"].sum(axis=1)}

    xs = [numpy.random.default_rng(rows).normal(size=(rows, 3)).astype(numpy.float32) for rows in (2, 5, 3)]
    reference = [Batch(numpy.arange(len(x)), {"X": x}, {}, {"Y": x.sum(axis=1)}) for x in xs]
    served = serve(total, reference, WHOLE, FP32)
    check_outputs(served, "fp32", FP32)
    assert (served.samples, sizes) == (3, [(2, 3), (5, 3), (3, 3)])
    assert served.output_bytes == {"Y": 20}


def test_samples_of_different_lengths_are_compared_each_in_its_own() -> None:
    signature = Signature((Tensor("X", "FP32", (-1,)),), (Tensor("Y", "FP32", (-1,)),), 4)
    xs = [numpy.ones((2, length), dtype=numpy.float32) * length for length in (3, 5, 3, 2)]
    reference = [Batch(numpy.arange(2), {"X": x}, {}, {"Y": x + 1}) for x in xs]

    def cut_short(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        return {"Y": (inputs["X"] + 1)[:, :4]}

    check_outputs(serve(lambda i, o: {"Y": i["X"] + 1}, reference, signature, FP32), "fp32", FP32)
    with pytest.raises(StageError, match="samples have another length") as error:
        check_outputs(serve(cut_short, reference, signature, FP32), "fp32", FP32)
    assert error.value.reason is Reason.OUTPUTS_DIFFER


def test_a_number_of_detections_that_varies_is_compared_request_by_request() -> None:
    signature = Signature((Tensor("X", "FP32", (-1,)),), (Tensor("BOXES", "FP32", (-1,)),), 0)
    xs = [numpy.array(values, numpy.float32) for values in ([0, 0], [0, 3], [4, 5], [0, 0])]
    reference = [Batch(numpy.arange(1), {"X": x}, {}, {"BOXES": x[x > 0]}) for x in xs]

    def found(threshold: float) -> Infer:
        return lambda inputs, outputs: {"BOXES": inputs["X"][inputs["X"] > threshold]}

    check_outputs(serve(found(0), reference, signature, FP32), "fp32", FP32)
    for threshold in (-1, 3):
        served = serve(found(threshold), reference, signature, FP32)
        with pytest.raises(StageError, match="elements are outside") as error:
            check_outputs(served, "fp32", FP32)
        assert error.value.reason is Reason.OUTPUTS_DIFFER
        assert "tolerances" not in error.value.message


def test_what_nothing_was_compared_of_is_named_next_to_what_agrees() -> None:
    signature = Signature((Tensor("X", "FP32", (2,)),), (Tensor("Y", "FP32", (2,)), Tensor("BOXES", "FP32", (-1,))), 4)
    x = numpy.ones((4, 2), numpy.float32)
    reference = [Batch(numpy.arange(4), {"X": x}, {}, {"Y": x, "BOXES": x[:, :0]})]
    served = serve(lambda inputs, _: {"Y": inputs["X"], "BOXES": inputs["X"][:, :0]}, reference, signature, FP32)
    check_outputs(served, "fp32", FP32)
    assert served.describe().endswith("; nothing was found, and so nothing compared, in BOXES")


def test_the_servers_declaration_may_order_tensors_differently() -> None:
    check_signature(replace(SIGNATURE, outputs=SIGNATURE.outputs[::-1]), SIGNATURE, MAX_BATCH_SIZE)


def test_a_served_file_may_leave_the_size_of_an_output_open() -> None:
    outputs = tuple(replace(each, dims=tuple(-1 for _ in each.dims)) for each in SIGNATURE.outputs)
    check_signature(replace(SIGNATURE, outputs=outputs), SIGNATURE, MAX_BATCH_SIZE)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (replace(SIGNATURE, max_batch_size=4), "max_batch_size is 4, not 8"),
        (replace(SIGNATURE, outputs=SIGNATURE.outputs[:2]), "the outputs are LOGITS, SCALED, not CLASS"),
        (replace(SIGNATURE, inputs=(Tensor("features", "FP32", (6,)),)), "the inputs are features, not FEATURES"),
        (replace(SIGNATURE, inputs=(Tensor("FEATURES", "FP16", (6,)),)), r"FP16\[6\], not FP32\[6\]"),
        (replace(SIGNATURE, inputs=(Tensor("FEATURES", "FP32", (-1,)),)), r"FP32\[-1\], not FP32\[6\]"),
    ],
)
def test_a_declaration_that_differs_is_named(declared: Signature, words: str) -> None:
    with pytest.raises(StageError, match=words) as error:
        check_signature(declared, SIGNATURE, MAX_BATCH_SIZE)
    assert error.value.reason is Reason.SIGNATURE_MISMATCH


def test_the_longest_text_of_a_sample_counts_not_the_average_of_its_request() -> None:
    """perf_analyzer reserves that many bytes for each sample, and a longer answer would not fit."""
    signature = Signature((Tensor("X", "INT32", (1,)),), (Tensor("WORDS", "BYTES", (1,)),), 4)
    words = numpy.array([["a"], ["b"], ["c"], ["größer" * 10]])
    batch = Batch(numpy.arange(4), {"X": numpy.arange(4, dtype=numpy.int32)[:, None]}, {}, {"WORDS": words})

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        return {"WORDS": words[inputs["X"][:, 0]]}

    served = serve(infer, [batch], signature, FP32)
    check_outputs(served, "fp32", FP32)
    assert served.output_bytes == {"WORDS": 4 + 10 * len("größer".encode())}
