"""A configuration is judged as the profile judged its candidate: by the scale of the whole reference."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from served_row import BASE
from test_walk import REQUEST

from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import scale
from triton_converters.search.probe import Probe

RANDOM = numpy.random.default_rng(4)
SMALL, LARGE = (RANDOM.normal(0, size, (8, 10)).astype(numpy.float32) for size in (3, 300))
SIGNATURE = Signature((Tensor("X", "FP32", (10,)),), (Tensor("Y", "FP32", (10,)),), 8)


def test_the_first_samples_are_held_against_the_whole_references_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for locate in (layout.reference_directory, layout.revision_directory, layout.model_repository):
        monkeypatch.setattr(locate, "__defaults__", (tmp_path,))
    request = replace(REQUEST, precision="fp16", tolerance=DEFAULT_TOLERANCES["fp16"])
    home = layout.reference_directory(request.reference)
    for number, array in enumerate([SMALL, LARGE, LARGE, LARGE]):
        write_batch(home, number, Batch(numpy.arange(8), {"X": array}, {}, {"Y": array}))
    config = layout.model_repository(request.revision) / request.model_name / "config.pbtxt"
    config.parent.mkdir(parents=True)
    config.write_text("max_batch_size: 8")
    loaded = {"size": 0}
    measured: list[bool] = []
    monkeypatch.setattr(
        "triton_converters.gates.verify.measure",
        lambda *arguments: measured.append(True) or scale.measure(*arguments),  # type: ignore[func-returns-value]
    )
    server = SimpleNamespace(
        reload=lambda config: "",
        wait_ready=lambda: None,
        signature=lambda: replace(SIGNATURE, max_batch_size=loaded["size"]),
        infer=lambda inputs, outputs: {"Y": inputs["X"] + numpy.float32(0.15)},
    )
    probe = Probe(request, server, SIGNATURE, None)  # type: ignore[arg-type]
    for size in (8, 4):
        loaded["size"] = size
        assert not probe.load(replace(BASE, max_batch_size=size))
    assert len(measured) == 1
