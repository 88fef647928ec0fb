"""The registry: what it names exists, what it refuses says what works instead."""

import importlib.util
from itertools import product
from typing import get_args

import pytest

from triton_converters.contract.formats import (
    AS_GIVEN,
    ENSEMBLE,
    FORMATS,
    HPS,
    REPOSITORY,
    SHOWN,
    SOURCE_FORMATS,
    THROUGH,
    refusal,
    unserved,
)
from triton_converters.contract.reasons import Reason
from triton_converters.found.kinds import FileKind
from triton_operator.api.model import ModelCandidate, SourceFormat

LOADED = [each for name, each in SOURCE_FORMATS.items() if name != REPOSITORY]
"""A model of a repository has another format before it is loaded."""
MODULES = sorted({module for each in LOADED for module in (each.loader, *each.converters.values())})


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_there(module: str) -> None:
    assert importlib.util.find_spec(module) is not None


def test_every_target_is_a_format_and_what_it_is_made_of_converts_too() -> None:
    for source in SOURCE_FORMATS.values():
        for target in source.converters:
            assert target in FORMATS
            assert THROUGH.get(target, target) in source.converters


def test_the_formats_that_are_tried_can_be_made() -> None:
    for source in SOURCE_FORMATS.values():
        assert set(source.tried) <= set(source.converters)


def test_the_api_has_the_sources_of_the_registry_and_all_say_where_names_come_from() -> None:
    assert set(get_args(SourceFormat)) == set(SOURCE_FORMATS) - {ENSEMBLE}
    assert all(source.tensors for name, source in SOURCE_FORMATS.items() if name not in (HPS, ENSEMBLE))
    assert set(get_args(ModelCandidate.model_fields["format"].annotation)) == set(FORMATS) - set(AS_GIVEN)


def test_a_folder_that_is_itself_a_model_is_told_what_to_do() -> None:
    assert all(bool(source.marker) == bool(source.alone) for source in SOURCE_FORMATS.values())


def test_a_file_that_shows_its_format_can_be_told_from_all_others() -> None:
    assert {each.format: each.words for each in FileKind if each.format} == SHOWN
    assert len(set(SHOWN.values())) == len(SHOWN)


@pytest.mark.parametrize(("source", "target"), list(product(SOURCE_FORMATS, FORMATS)))
def test_a_pair_without_a_way_is_refused_with_what_works(source: str, target: str) -> None:
    refused = refusal(source, target, "none")
    if target in SOURCE_FORMATS[source].converters:
        assert refused is None
    else:
        assert refused is not None
        reason, message = refused
        assert reason is Reason.CONVERSION_UNSUPPORTED
        assert all(other in message for other in SOURCE_FORMATS[source].converters)


@pytest.mark.parametrize(
    ("source", "target", "accelerator", "fits"),
    [
        ("pyt", "onnx", "trt", True),
        ("pyt", "onnx", "amp", False),
        ("pyt", "ts-script", "cuda", True),
        ("pyt", "ts-trace", "trt", False),
        ("onnx", "trt", "cuda", True),
        ("onnx", "trt", "trt", False),
        ("tf-keras", "tf-savedmodel", "amp", True),
        ("tf-keras", "tf-savedmodel", "trt", False),
    ],
)
def test_an_accelerator_goes_with_what_its_backend_runs(source: str, target: str, accelerator: str, fits: bool) -> None:
    refused = refusal(source, target, accelerator)
    assert (refused is None) is fits
    if refused is not None:
        reason, message = refused
        assert reason is Reason.INVALID_SPEC
        assert message.endswith(", ".join(FORMATS[target].accelerators))


@pytest.mark.parametrize(
    ("target", "release", "served"),
    [
        ("tf-savedmodel", "24.10", True),
        ("tf-savedmodel", "25.02", True),
        ("tf-savedmodel", "25.03", False),
        ("tf-trt", "26.08", False),
        ("tf-trt", "", True),
        ("onnx", "26.08", True),
        ("trt", "26.08", True),
    ],
)
def test_tensorflow_s_backend_ends_with_25_02(target: str, release: str, served: bool) -> None:
    message = unserved(target, release)
    assert (message is None) is served
    if message is not None:
        assert target in message
        assert "use format onnx or trt, or set spec.serving.image to an image of 25.02 or older" in message
