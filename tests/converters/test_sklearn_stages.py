"""The reference and the conversion of a model of scikit-learn: the library answers, column by column."""

import os
import pickle
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from sklearn.linear_model import LinearRegression

from tests.converters.run_stage import run_convert
from tests.converters.saved_pipelines import BODIES, CONVERTED, SUGAR, UNCONVERTED, altered, saved
from tests.converters.test_trees_stages import REFERENCE, publish, refer, request
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Tensor
from triton_converters.load import sklearn_model, trees


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_of_words_has_an_input_for_each_column(mount: Path) -> None:
    publish(saved(CONVERTED["words for a forest"]()), "m.skops")
    result = refer("sklearn", "m.skops")
    kinds = ("FP64", "BYTES", "FP64", "BYTES", "FP64")
    assert result.signature.inputs == tuple(Tensor(f"x{place}", kind, (1,)) for place, kind in enumerate(kinds))
    assert result.signature.outputs == (Tensor("prediction", "FP32", (2,)),)
    assert result.samples == 256
    assert re.fullmatch(r"the samples reach \d+ of \d+ leaves of the trees", result.warnings[-1])
    (first, *_) = read_batches(layout.reference_directory(REFERENCE))
    assert first.inputs["x1"].shape == (64, 1)
    converted = run_convert(request("sklearn", "m.skops"))
    assert converted.max_absolute_error is not None
    assert converted.max_absolute_error < 1e-5


@pytest.mark.filterwarnings("ignore")
def test_a_table_of_numbers_is_one_input_and_a_linear_model_has_no_leaves(mount: Path) -> None:
    publish(saved(LinearRegression().fit(BODIES, numpy.stack([SUGAR, -SUGAR], 1))), "m.skops")
    result = refer("sklearn", "m.skops")
    assert result.signature.inputs == (Tensor("features", "FP64", (10,)),)
    assert result.signature.outputs == (Tensor("prediction", "FP32", (2,)),)
    assert not any("leaves" in each for each in result.warnings)
    assert run_convert(request("sklearn", "m.skops", onnx_opset=18)).max_absolute_error is not None
    with pytest.raises(StageError, match="use precision fp32") as caught:
        run_convert(request("sklearn", "m.skops", key="a" * 16, conversion_key="9" * 16, precision="fp16"))
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED


LOADER = """
import numpy
def get_dataloader_fn(batch_size: int):
    inputs = {name: numpy.ones((2, 1)) for name in ("x0", "x2", "x4")}
    words = {"x1": numpy.array([["Oslo"], ["nowhere"]]), "x3": numpy.array([[b"yes"], [b"no"]], object)}
    return lambda: [(range(2), inputs | words, {})]
"""


@pytest.mark.filterwarnings("ignore")
def test_a_dataloaders_words_may_be_text_or_bytes(mount: Path) -> None:
    publish(saved(CONVERTED["words for a linear model"]()), "m.skops", LOADER)
    assert refer("sklearn", "m.skops", loader="dataloader.py").samples == 2


@pytest.mark.filterwarnings("ignore")
def test_what_skl2onnx_does_not_convert_is_told_with_what_it_said(mount: Path) -> None:
    made, words = UNCONVERTED["an empty column"]
    publish(saved(made()), "m.skops")
    refer("sklearn", "m.skops")
    with pytest.raises(StageError, match=f"m.skops: skl2onnx does not convert it: .*{words}") as caught:
        run_convert(request("sklearn", "m.skops"))
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED


def remove(schema: Any, files: dict[str, bytes]) -> None:
    """Take an array away."""
    del files[next(name for name in files if name.endswith(".npy"))]


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (lambda: pickle.dumps(LinearRegression()), Reason.CHECKPOINT_INVALID, r"skops.io.dump\(model, 'model.skops'\)"),
        (lambda: b"something else", Reason.CHECKPOINT_INVALID, "m is no file of skops"),
        (
            lambda: altered(saved(LinearRegression().fit(BODIES, SUGAR)), remove),
            Reason.CHECKPOINT_INVALID,
            "m is not a model as skops saves it .*; save it anew",
        ),
        (
            lambda: saved(LinearRegression()),
            Reason.CHECKPOINT_INVALID,
            "m has a model that is not trained; save it anew",
        ),
        (lambda: saved({"a": 1}), Reason.CONVERSION_UNSUPPORTED, "ends with a dict that answers nothing"),
    ],
)
def test_what_cannot_be_read_is_told_by_the_reference(
    mount: Path, content: Callable[[], bytes], reason: Reason, words: str
) -> None:
    publish(content(), "m")
    with pytest.raises(StageError, match=words) as caught:
        refer("sklearn", "m")
    assert caught.value.reason is reason


def lose(schema: Any, files: dict[str, bytes]) -> None:
    """Rename what every answer needs."""
    for each in schema["content"]["content"]:
        if each == "coef_":
            schema["content"]["content"]["lost"] = schema["content"]["content"].pop(each)
            return


def test_a_library_that_finds_no_row_to_answer_is_told_with_the_file(mount: Path) -> None:
    publish(altered(saved(LinearRegression().fit(BODIES, SUGAR)), lose), "m.skops")
    with pytest.raises(StageError, match=r"m.skops failed in scikit-learn .*coef_") as caught:
        refer("sklearn", "m.skops")
    assert caught.value.reason is Reason.FRAMEWORK_FAILED


def hangs(file: Path) -> Any:
    """A library that hangs."""
    time.sleep(60)


def ends(file: Path) -> Any:
    """A library that ends its process."""
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("library", "words"), [(hangs, "did not answer within 1 s"), (ends, "ended by SIGSEGV")], ids=["hangs", "ends"]
)
def test_a_library_that_hangs_or_dies_is_told_with_the_file(
    mount: Path, monkeypatch: pytest.MonkeyPatch, library: Callable[[Path], Any], words: str
) -> None:
    publish(saved(LinearRegression().fit(BODIES, SUGAR)), "m.skops")
    monkeypatch.setattr(trees, "TRIAL_SECONDS", 1 if library is hangs else 60)
    monkeypatch.setattr(sklearn_model, "opened", library)
    monkeypatch.setattr("triton_converters.load.sklearn_pipeline._try", library)
    with pytest.raises(StageError, match=f"m.skops: scikit-learn .* {words} as it opened the file") as caught:
        refer("sklearn", "m.skops")
    assert caught.value.reason is Reason.CHECKPOINT_INVALID
