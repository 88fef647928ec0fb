"""The reference and the conversion of a model of trees: its library answers rows that reach its leaves."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.converters import grown
from tests.converters.conversions import conversion
from tests.converters.grown import LIGHTGBM, XGBOOST, light, saved
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest, Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Tensor
from triton_converters.found.batches import counts_length, has_batch_dimension
from triton_converters.load import lightgbm_trees, trees

SOURCE, REFERENCE = "d" * 64, "e" * 16
Refer = Callable[..., ReferenceResult]


def publish(content: bytes, name: str, loader: str = "") -> None:
    """Publish a file as the whole source, and a dataloader beside it."""
    directory = layout.source_directory(SOURCE)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)
    if loader:
        (directory / "dataloader.py").write_text(loader)


def refer(form: str, path: str, max_samples: int = 256, loader: str = "", max_batch_size: int = 64) -> ReferenceResult:
    code = ModelCode(form, Entrypoint(path, {}), max_batch_size)
    dataloader = Entrypoint(loader, {}) if loader else None
    return run_reference(ReferenceRequest(REFERENCE, SOURCE, code, dataloader, max_samples, needs_labels=False))


def request(form: str, path: str, **fields: Any) -> ConvertRequest:
    settings = {"format": "onnx", "onnx_opset": 17, "reference": REFERENCE, "model_name": "m", "source": SOURCE}
    keys = {"key": "b" * 16, "conversion_key": "c" * 16}
    return conversion(ModelCode(form, Entrypoint(path, {}), 64), **settings | keys | fields)


@pytest.mark.parametrize(
    ("form", "name", "content", "kind", "width"),
    [
        ("xgboost", "m.json", lambda: saved(XGBOOST["missing categories"](), "json"), "FP32", 1),
        ("xgboost", "m.model", lambda: saved(XGBOOST["multi:softprob"](), "ubj"), "FP32", 3),
        ("lightgbm", "m.txt", lambda: saved(LIGHTGBM["zeros are missing"](), "txt"), "FP64", 1),
    ],
    ids=["categories", "classes", "zeros"],
)
def test_what_the_library_answers_is_what_the_graph_answers(
    mount: Path, form: str, name: str, content: Callable[[], bytes], kind: str, width: int
) -> None:
    publish(content(), name)
    result = refer(form, name)
    assert result.signature.inputs == (Tensor("features", kind, (6,)),)
    assert result.signature.outputs == (Tensor("prediction", "FP32", (width,)),)
    assert result.samples == 256
    generated, leaves = result.warnings
    assert generated == f"inputs were generated: features {kind}[6]"
    found = re.fullmatch(r"the samples reach (\d+) of (\d+) leaves of the trees", leaves)
    assert found is not None
    assert int(found[1]) > 0.9 * int(found[2])
    rows = numpy.concatenate([each.inputs["features"] for each in read_batches(layout.reference_directory(REFERENCE))])
    assert len(numpy.unique(rows, axis=0)) > 200
    assert numpy.isnan(rows).any()
    converted = run_convert(request(form, name))
    assert converted.max_absolute_error is not None
    assert converted.max_absolute_error < 1e-5
    assert (layout.revision_directory("b" * 16) / "models/m/1/model.onnx").is_file()


LOADER = """
import numpy
def get_dataloader_fn(batch_size: int):
    return lambda: [(range(2), {{"features": numpy.eye(2, 6, dtype=numpy.{kind})}}, {{}})]
"""


def test_a_dataloaders_rows_are_asked_and_their_leaves_counted(mount: Path) -> None:
    publish(saved(LIGHTGBM["regression"](), "txt"), "m.txt", LOADER.format(kind="float64"))
    result = refer("lightgbm", "m.txt", loader="dataloader.py")
    assert result.samples == 2
    assert re.fullmatch(r"the samples reach \d+ of \d+ leaves of the trees", result.warnings[-1])


def test_rows_in_a_type_that_moves_them_across_thresholds_are_refused(mount: Path) -> None:
    publish(saved(LIGHTGBM["regression"](), "txt"), "m.txt", LOADER.format(kind="float32"))
    with pytest.raises(StageError, match="float64") as caught:
        refer("lightgbm", "m.txt", loader="dataloader.py")
    assert caught.value.reason is Reason.DATALOADER_INVALID


def test_rows_are_asked_one_by_one_without_a_batch_dimension(mount: Path) -> None:
    publish(saved(LIGHTGBM["regression"](), "txt"), "m.txt")
    result = refer("lightgbm", "m.txt", max_batch_size=0, max_samples=10)
    assert (result.samples, result.signature.inputs[0].dims) == (10, (-1, 6))


def test_the_source_job_knows_that_rows_are_a_batch(mount: Path) -> None:
    publish(saved(LIGHTGBM["regression"](), "txt"), "m.txt")
    assert has_batch_dimension(layout.source_directory(SOURCE), "m.txt")
    assert not counts_length(layout.source_directory(SOURCE), "m.txt")


def test_another_operator_set_is_written_if_it_is_asked_for_and_no_fp16(mount: Path) -> None:
    publish(saved(XGBOOST["multi:softmax"](), "json"), "m.json")
    refer("xgboost", "m.json")
    assert run_convert(request("xgboost", "m.json", onnx_opset=15)).max_absolute_error == 0
    with pytest.raises(StageError, match="use precision fp32") as caught:
        run_convert(request("xgboost", "m.json", key="a" * 16, conversion_key="9" * 16, precision="fp16"))
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED


# What a library makes of a file ---------------------------------------------------------------------------------------


def opens_never(content: bytes) -> Any:
    """A library that hangs."""
    time.sleep(60)


def ends(content: bytes) -> Any:
    """A library that ends its process."""
    os.kill(os.getpid(), signal.SIGSEGV)


def complains(content: bytes) -> Any:
    """A library that says what is wrong."""
    raise ValueError("version 9 of the file\nstack: 1")


@pytest.mark.parametrize(
    ("library", "words"),
    [
        (opens_never, "m.txt: lightgbm 4 did not answer within 1 s as it opened the file; save it anew"),
        (ends, "m.txt: lightgbm 4 ended by SIGSEGV as it opened the file; save it anew"),
        (complains, "lightgbm 4 does not open m.txt: version 9 of the file"),
    ],
)
def test_a_library_that_hangs_or_dies_or_complains_is_told_with_the_file(
    mount: Path, monkeypatch: pytest.MonkeyPatch, library: Callable[[bytes], Any], words: str
) -> None:
    publish(saved(light("regression")(), "txt"), "m.txt")
    monkeypatch.setattr(trees, "TRIAL_SECONDS", 1 if library is opens_never else 60)
    monkeypatch.setattr(lightgbm_trees, "opened", library)
    monkeypatch.setattr(lightgbm_trees, "_runtime", lambda: "lightgbm 4")
    with pytest.raises(StageError) as caught:
        refer("lightgbm", "m.txt")
    assert (caught.value.reason, caught.value.message) == (Reason.CHECKPOINT_INVALID, words)


def test_what_counts_is_what_the_library_has_read(mount: Path) -> None:
    """LightGBM reads the lines of a tree up to an empty one; the reader would take the second for the leaves."""
    text = saved(light("regression")(), "txt").decode()
    (values,) = re.findall(r"^leaf_value=.*$", text.partition("\nTree=1")[0], re.MULTILINE)
    other = f"leaf_value={' '.join('1000' for _ in values.split())}\n"
    changed = text.replace("\n\n\nTree=1", f"\n\n{other}\nTree=1")
    sizes = re.search(r"^tree_sizes=(\d+)", text, re.MULTILINE)
    assert sizes is not None
    assert changed != text
    changed = changed.replace(sizes[0], f"tree_sizes={int(sizes[1]) + len(other)}")
    publish(changed.encode(), "m.txt")
    refer("lightgbm", "m.txt")
    converted = run_convert(request("lightgbm", "m.txt"))
    assert converted.max_absolute_error is not None
    assert converted.max_absolute_error < 1e-5


@pytest.mark.parametrize(
    ("form", "content", "reason", "words"),
    [
        ("xgboost", b'{"learner":{}}', Reason.CHECKPOINT_INVALID, "m is not a model as XGBoost 2 or later saves it"),
        ("lightgbm", b"tree\n", Reason.CHECKPOINT_INVALID, "m is not a model as LightGBM 3 or later saves it"),
        (
            "lightgbm",
            saved(light("regression", linear_tree=True)(), "txt"),
            Reason.CONVERSION_UNSUPPORTED,
            "m has linear models in its leaves",
        ),
    ],
)
def test_what_cannot_be_read_or_converted_is_told_by_the_reference(
    mount: Path, form: str, content: bytes, reason: Reason, words: str
) -> None:
    publish(content, "m")
    with pytest.raises(StageError, match=words) as caught:
        refer(form, "m")
    assert caught.value.reason is reason


def test_a_file_that_is_too_long_is_not_read(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(bytes(11), "m")
    monkeypatch.setattr(trees, "MOST_BYTES", 10)
    with pytest.raises(StageError, match="m has 11 bytes; at most 10 are read"):
        refer("xgboost", "m")


def test_a_table_of_another_width_is_told() -> None:
    content = saved(light("regression")(), "txt")
    path = Path("m.txt")
    forest = lightgbm_trees.lightgbm_model.read(content)
    reached = numpy.zeros(len(forest.left), bool)
    model = trees.TreesFramework(lightgbm_trees.opened(content), "lightgbm 4", forest, path, "m.txt", reached)
    with pytest.raises(StageError, match=r"m.txt: features is \[1, 5\], not \[rows, 6\]"):
        model({"features": grown.PLAIN[:1, :5]})
