"""A file that is served as it is has the precision that it has: fp16 weights with fp32 inputs and outputs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.converters.onnx_models import inputs, transformer
from tests.converters.test_onnx_files import REQUEST, REVISION, bring, convert
from triton_converters.claim_store.revision import model_file
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import ServedModel
from triton_converters.contract.reasons import Reason
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.gates.candidate import GATES
from triton_converters.stages.profile import produce

__all__ = ["bring"]


def precision_gate(precision: str, published: tuple[str, ...]) -> None:
    file = model_file(REVISION, "small", "onnx")
    served: Any = type(
        "ServedCandidate",
        (),
        {"files": [(file, ServedModel("small", "onnx", precision))], "published_types": published},
    )
    GATES[0].check(served)


def test_fp16_weights_in_an_onnx_file_are_served_as_they_are(bring: Callable[..., None]) -> None:
    bring(to_fp16(transformer()), inputs("transformer"))
    result = convert()
    assert result.data_types[0] == "FP16"
    assert result.warnings[0] == "most weights of the file are FP16, and are served as they are"
    precision_gate("fp32", result.data_types)


def test_the_profile_reads_the_types_that_were_published(bring: Callable[..., None]) -> None:
    bring(to_fp16(transformer()), inputs("transformer"))
    result = convert()
    request: Any = type("Request", (), {
        "members": (), "model_name": "small", "format": "onnx", "precision": "fp32", "revision": REVISION,
        "reference": REQUEST.reference, "max_batch_size": 4, "tolerance": None, "keep_outputs": False,
    })  # fmt: skip
    server: Any = type("Server", (), {"signature": None, "infer": None})
    reference = produce.read_reference(REQUEST.reference)
    assert produce._candidate(request, server, reference).published_types == result.data_types


def test_another_file_in_its_place_is_still_a_mismatch(bring: Callable[..., None]) -> None:
    """On the claim, or by a converter that casts what nobody asked it to."""
    bring(to_fp16(transformer()), inputs("transformer"))
    convert()
    with pytest.raises(StageError) as caught:
        precision_gate("fp32", ("FP32",))
    assert caught.value.reason is Reason.PRECISION_MISMATCH


@pytest.mark.parametrize(
    ("source", "precision", "keeps"),
    [("onnx", "fp32", True), ("ts-script", "fp32", True), ("pyt", "fp32", False), ("onnx", "fp16", False)],
)
def test_only_a_file_keeps_its_types_and_only_if_nothing_is_cast(source: str, precision: str, keeps: bool) -> None:
    request = replace(REQUEST, model=replace(REQUEST.model, format=source), precision=precision)
    assert request.keeps_types is keeps
