"""A profile holds requests of other sizes against the scale of the whole reference."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from triton_converters.claim_store.dump import SIZES, Batch, write_batch
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES
from triton_converters.contract.results import Signature, Tensor
from triton_converters.stages.profile import produce

RANDOM = numpy.random.default_rng(4)
SIGNATURE = Signature((Tensor("X", "FP32", (-1, 10)),), (Tensor("Y", "FP32", (-1, 10)),), 0)


@pytest.mark.parametrize("off", [0.15, 30.0])
def test_one_scale_judges_requests_of_every_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    monkeypatch.setattr(layout.reference_directory, "__defaults__", (tmp_path,))
    home = layout.reference_directory("f")
    for place, number, rows, size in [(home, 0, 4, 300), (home, 1, 4, 300), (home / SIZES, 0, 3, 3)]:
        array = RANDOM.normal(0, size, (rows, 10)).astype(numpy.float32)
        write_batch(place, number, Batch(numpy.arange(1), {"X": array}, {}, {"Y": array}))
    server: Any = SimpleNamespace(
        signature=lambda: SIGNATURE, infer=lambda inputs, outputs: {"Y": inputs["X"] + numpy.float32(off)}
    )
    request: Any = SimpleNamespace(
        members=(), model_name="m", format="onnx", precision="fp16", revision="r", reference="f", max_batch_size=0,
        tolerance=DEFAULT_TOLERANCES["fp16"], keep_outputs=False,
    )  # fmt: skip
    monkeypatch.setattr(produce, "model_file", lambda *_: Path())
    monkeypatch.setattr(produce, "check_precision", lambda *_: None)
    verdict = produce._judge(request, server, SimpleNamespace(signature=SIGNATURE, samples=2))  # type: ignore[arg-type]
    assert ("agree in 3 requests" in verdict.message) is (off < 1), verdict.message
    assert verdict.served is not None
