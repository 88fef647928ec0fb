"""A configuration is judged as the profile judged its candidate: by scale and size of the whole reference."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from served_row import BASE
from test_walk import REQUEST

from triton_converters.claim_store.dump import Array, Batch, write_batch
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import scale
from triton_converters.search.probe import Probe

Refusals = Callable[..., list[str]]
RANDOM = numpy.random.default_rng(4)
SMALL, LARGE = (RANDOM.normal(0, size, (8, 10)).astype(numpy.float32) for size in (3, 300))


@pytest.fixture
def refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refusals:
    """Returns why configurations are refused, for the batches of a reference and the error of what is served."""
    for locate in (layout.reference_directory, layout.revision_directory, layout.model_repository):
        monkeypatch.setattr(locate, "__defaults__", (tmp_path,))
    home = layout.reference_directory(REQUEST.reference)
    config = layout.model_repository(REQUEST.revision) / REQUEST.model_name / "config.pbtxt"
    config.parent.mkdir(parents=True)
    config.write_text("max_batch_size: 8")

    def load(batches: list[Array], error: float, *sizes: int, precision: str = "fp16") -> list[str]:
        request = replace(REQUEST, precision=precision, tolerance=DEFAULT_TOLERANCES[precision])
        width = batches[0].shape[1:]
        signature = Signature((Tensor("X", "FP32", width),), (Tensor("Y", "FP32", width),), 8)
        for number, array in enumerate(batches):
            write_batch(home, number, Batch(numpy.arange(8), {"X": array}, {}, {"Y": array}))
        loaded = {"size": 0}
        server = SimpleNamespace(
            reload=lambda config: "",
            wait_ready=lambda: None,
            signature=lambda: replace(signature, max_batch_size=loaded["size"]),
            infer=lambda inputs, outputs: {"Y": inputs["X"] + numpy.float32(error)},
        )
        probe = Probe(request, server, signature, None)
        found = []
        for size in sizes:
            loaded["size"] = size
            found.append(probe.load(replace(BASE, max_batch_size=size)))
        return found

    return load


def test_the_first_samples_are_held_against_the_whole_references_scale(
    refusals: Refusals, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[bool] = []
    monkeypatch.setattr(
        "triton_converters.gates.answers.measure",
        lambda *arguments: measured.append(True) or scale.measure(*arguments),
    )
    assert refusals([SMALL, LARGE, LARGE, LARGE], 0.15, 8, 4) == ["", ""]
    assert len(measured) == 1


def test_a_first_sample_that_is_near_0_by_chance_is_held_against_the_whole_references_size(refusals: Refusals) -> None:
    scores = numpy.array([0.004, 0.9, -0.8, 0.5, -0.3, 0.7, 0.6, -0.9], numpy.float32)[:, None]
    assert refusals([scores], 0.002, 1, 2, 8) == ["", "", ""]
    assert "are outside" in refusals([scores], 0.02, 1)[0]


@pytest.mark.parametrize(("types", "passes"), [(("FP16",), True), (("FP32",), False), ((), False)])
def test_half_weights_in_an_fp32_candidate_are_judged_as_the_profile_judged_them(
    refusals: Refusals, types: tuple[str, ...], passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_converters.search.probe.published_types", lambda revision: types)
    scores = numpy.array([0.004, 0.9, -0.8, 0.5, -0.3, 0.7, 0.6, -0.9], numpy.float32)[:, None]
    assert (refusals([scores], 0.002, 8, precision="fp32") == [""]) == passes
