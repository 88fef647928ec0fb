"""A stage with user code as its three containers run it, and what user code may leave between them."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto

from tests.conftest import Attack
from tests.converters.conversions import conversion
from tests.converters.onnx_models import Graph
from tests.converters.restored import restore
from triton_converters import __main__ as program
from triton_converters.claim_store import inspection, sources
from triton_converters.claim_store.dump import Batch, read_batches, write_batch
from triton_converters.claim_store.publish import write_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    Entrypoint,
    ModelCode,
    ReferenceRequest,
)
from triton_converters.contract.document import Document
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult, Tensor
from triton_converters.incoming import documents
from triton_converters.incoming.documents import Converted, Dump, End, Names

SOURCE, REFERENCE, REVISION, CONVERSION = "d" * 64, "e" * 16, "1" * 16, "c" * 16
CODE = ModelCode("onnx", Entrypoint("model.onnx", {}), 4)
REFER = ReferenceRequest(REFERENCE, SOURCE, CODE, Entrypoint("loader.py", {}), 8, needs_labels=False)
CONVERT = conversion(
    CODE,
    key=REVISION,
    conversion_key=CONVERSION,
    source=SOURCE,
    reference=REFERENCE,
    model_name="small",
    gpu_product="NVIDIA-L4",
)
LOADER = """
import numpy
def get_dataloader_fn():
    x = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
    return lambda: iter([(numpy.arange(4), {"x": x}, None), (numpy.arange(3), {"x": x[:3] + 1}, None)])
"""


@pytest.fixture
def incoming(mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """INCOMING_MOUNT of a claim with a source."""
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "message"))
    source = layout.source_directory(SOURCE)
    source.mkdir(parents=True)
    graph = Graph()
    y = graph.add("MatMul", "x", graph.weight(3, 2))
    model = graph.model({"x": (TensorProto.FLOAT, ["n", 3])}, {"y": (y, TensorProto.FLOAT, ["n", 2])})
    onnx.save(model, str(source / "model.onnx"))
    (source / "loader.py").write_text(LOADER)
    return layout.INCOMING_MOUNT


def step(*arguments: str) -> tuple[int, Outcome | None]:
    """Run one container's process; returns its exit code and its termination message."""
    path = Path(os.environ["TERMINATION_LOG"])
    path.unlink(missing_ok=True)
    # An earlier Job of the object had its source.
    sources.receive(SOURCE)
    code = program.main(arguments)
    return code, Outcome.from_json(path.read_text()) if path.exists() else None


def prepare_and_produce(stage: str, request: Document) -> None:
    assert step("prepare", stage, request.to_json()) == (0, None)
    assert step("produce", stage) == (0, None)


def publish(stage: str, request: Document) -> Outcome:
    code, outcome = step("publish", stage, request.to_json())
    assert outcome is not None
    expected = 0 if outcome.result else EXIT_FINAL
    assert code == expected or outcome.reason in (Reason.STORAGE_FULL, Reason.RESULT_MISSING)
    return outcome


def refer() -> None:
    """Publish the reference, and leave INCOMING_MOUNT as a new pod has it."""
    prepare_and_produce("reference", REFER)
    assert publish("reference", REFER).result is not None
    empty(layout.INCOMING_MOUNT)


def empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_what_user_code_produced_is_published(incoming: Path) -> None:
    prepare_and_produce("reference", REFER)
    assert not layout.reference_directory(REFERENCE).exists(), "it has nothing that user code wrote before it is judged"
    result = publish("reference", REFER).result
    assert isinstance(result, ReferenceResult)
    assert result.signature.inputs == (Tensor("x", "FP32", (3,)),)
    assert (result.samples, result.batches) == (7, 2)
    empty(incoming)
    prepare_and_produce("convert", CONVERT)
    result = publish("convert", CONVERT).result
    assert isinstance(result, ConvertResult)
    assert result.max_absolute_error == 0.0
    files = [path for path in layout.revision_directory(REVISION).rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["config.pbtxt", "model.onnx", "result.json"]


PACKAGES = "abcdef0123456789"


def install(files: dict[str, str]) -> None:
    """Publish packages, and mount them as the container with user code has them."""
    site = layout.installed_packages(PACKAGES)
    site.mkdir(parents=True)
    for name, text in files.items():
        (site / name).write_text(text)
    layout.PACKAGES_MOUNT.symlink_to(site)


def test_user_code_imports_the_packages_after_everything_else(incoming: Path) -> None:
    ran = "open({!r}, 'w')"
    install(
        {
            "surveyor.py": "",
            "onnxruntime.py": "raise AssertionError('the image has it')",
            "now.pth": f"import os; {ran.format(str(incoming / 'pth'))}",
            "sitecustomize.py": ran.format(str(incoming / "site")),
        }
    )
    (layout.source_directory(SOURCE) / "loader.py").write_text(f"import surveyor, onnxruntime\n{LOADER}")
    prepare_and_produce("reference", replace(REFER, packages=PACKAGES))
    assert publish("reference", REFER).result is not None
    assert not {path.name for path in incoming.iterdir()} & {"pth", "site"}


def test_packages_that_are_gone_are_told_before_user_code_runs(incoming: Path) -> None:
    code, outcome = step("prepare", "reference", replace(REFER, packages=PACKAGES).to_json())
    assert outcome is not None
    assert (code, outcome.reason) == (1, Reason.INPUT_MISSING)
    assert "is no longer on the repository claim" in outcome.message


@pytest.mark.parametrize("claim", ["the same", "restored"])
@pytest.mark.parametrize("stage", ["reference", "convert"])
def test_what_is_on_the_claim_is_not_produced_again(incoming: Path, mount: Path, stage: str, claim: str) -> None:
    request = REFER if stage == "reference" else CONVERT
    refer()
    if stage == "convert":
        prepare_and_produce("convert", CONVERT)
    first = publish(stage, request)
    empty(incoming)
    if claim == "restored":
        restore(mount)
    assert step("prepare", stage, request.to_json()) == (0, None)
    assert documents.read(incoming, documents.ORDER, documents.Order).missing == ()
    assert publish(stage, request) == first


def test_a_conversion_of_another_revision_is_not_made_again(incoming: Path) -> None:
    refer()
    prepare_and_produce("convert", CONVERT)
    publish("convert", CONVERT)
    empty(incoming)
    other = replace(CONVERT, key="2" * 16)
    assert step("prepare", "convert", other.to_json()) == (0, None)
    assert documents.read(incoming, documents.ORDER, documents.Order).missing == ()
    assert publish("convert", other).result is not None


@pytest.mark.parametrize(("stage", "request_"), [("reference", REFER), ("convert", CONVERT)])
def test_a_missing_input_is_found_before_user_code_runs(incoming: Path, stage: str, request_: Document) -> None:
    (layout.source_directory(SOURCE) / "loader.py").unlink()
    (layout.source_directory(SOURCE) / "model.onnx").unlink()
    layout.source_directory(SOURCE).rmdir()
    code, outcome = step("prepare", stage, request_.to_json())
    assert outcome is not None
    assert (code, outcome.reason) == (1, Reason.INPUT_MISSING)
    assert list(incoming.iterdir()) == []


@pytest.mark.parametrize(("stage", "request_"), [("reference", REFER), ("convert", CONVERT)])
def test_missing_weights_are_found_before_user_code_runs(incoming: Path, stage: str, request_: Any) -> None:
    if stage == "convert":
        refer()
        empty(incoming)
    code, outcome = step("prepare", stage, replace(request_, weights="f" * 64).to_json())
    assert outcome is not None
    assert (code, outcome.reason) == (1, Reason.INPUT_MISSING)
    assert "f" * 64 in outcome.message


def test_a_user_s_image_gets_the_converters(incoming: Path) -> None:
    layout.CONVERTERS_MOUNT.mkdir()
    assert step("prepare", "reference", REFER.to_json()) == (0, None)
    copied = layout.CONVERTERS_MOUNT / "triton_converters"
    assert (copied / "__main__.py").read_bytes() == Path(program.__file__).read_bytes()
    assert not list(copied.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        ("raise ValueError('odd')", Reason.USER_CODE_FAILED),
        ("import sys; sys.exit(0)", Reason.USER_CODE_FAILED),
        ("def get_dataloader_fn():\n    return lambda: iter([])", Reason.DATALOADER_INVALID),
        ("import missing_package", Reason.USER_CODE_FAILED),
    ],
)
def test_a_failure_of_user_code_is_the_stage_s(incoming: Path, loader: str, reason: Reason) -> None:
    (layout.source_directory(SOURCE) / "loader.py").write_text(loader)
    prepare_and_produce("reference", REFER)
    assert publish("reference", REFER).reason is reason
    assert not layout.reference_directory(REFERENCE).exists()


def test_a_success_that_was_forged_publishes_nothing(incoming: Path) -> None:
    """User code writes its own end, and then ends the process with 0."""
    refer()
    assert step("prepare", "convert", CONVERT.to_json()) == (0, None)
    documents.write(incoming, documents.END, End())
    assert publish("convert", CONVERT).reason is Reason.CRASHED
    assert not layout.candidate_directory(CONVERSION).exists()
    assert not layout.revision_directory(REVISION).exists()


def test_a_success_that_was_forged_after_a_part_of_the_work_publishes_nothing(incoming: Path) -> None:
    prepare_and_produce("reference", REFER)
    (incoming / documents.DUMP).unlink()
    assert publish("reference", REFER).reason is Reason.CRASHED
    assert not layout.reference_directory(REFERENCE).exists()


FOREIGN = ("config.pbtxt", "libtriton_onnxruntime.so", "batchstrategy.so", "triton_python_backend_stub", "model.py")


def test_a_revision_holds_the_model_and_nothing_that_lay_beside_it(incoming: Path) -> None:
    refer()
    prepare_and_produce("convert", CONVERT)
    for name in FOREIGN:
        (incoming / CONVERSION / name).write_text("evil")
    result = publish("convert", CONVERT).result
    assert isinstance(result, ConvertResult)
    for directory in (layout.candidate_directory(CONVERSION), layout.revision_directory(REVISION)):
        text = b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
        assert b"evil" not in text
    assert (layout.model_repository(REVISION) / "small" / "config.pbtxt").read_text().startswith("max_batch_size: ")


@pytest.mark.parametrize(
    ("output", "shape", "words"),
    [
        ("z", ["n", 2], "it has no output y"),
        ("y", ["n", 2, 1], "its output y has 3 dimensions, not 2"),
        ("y", [], "its output y has 0 dimensions, not 2"),
    ],
)
def test_a_file_with_other_outputs_is_not_served(incoming: Path, output: str, shape: list[Any], words: str) -> None:
    refer()
    prepare_and_produce("convert", CONVERT)
    path = incoming / CONVERSION / "model.onnx"
    model = onnx.load(str(path))
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info(output, TensorProto.FLOAT, shape))
    onnx.save(model, str(path))
    outcome = publish("convert", CONVERT)
    assert (outcome.reason, words in outcome.message) == (Reason.CRASHED, True), outcome.message
    assert not layout.revision_directory(REVISION).exists()


def test_a_conversion_that_is_on_the_claim_is_not_replaced(incoming: Path) -> None:
    refer()
    prepare_and_produce("convert", CONVERT)
    publish("convert", CONVERT)
    served = layout.candidate_directory(CONVERSION) / "model.onnx"
    before = served.read_bytes()
    (incoming / CONVERSION / "model.onnx").write_bytes(b"another model")
    assert publish("convert", replace(CONVERT, key="2" * 16)).result is not None
    assert served.read_bytes() == before


def test_a_conversion_whose_file_was_damaged_is_made_again(incoming: Path) -> None:
    refer()
    prepare_and_produce("convert", CONVERT)
    first = publish("convert", CONVERT).result
    served = layout.candidate_directory(CONVERSION) / "model.onnx"
    content = served.read_bytes()
    served.write_bytes(b"damaged")
    empty(incoming)
    anew = replace(CONVERT, key="2" * 16)
    prepare_and_produce("convert", anew)
    second = publish("convert", anew).result
    assert served.read_bytes() == content
    assert isinstance(first, ConvertResult)
    assert isinstance(second, ConvertResult)
    assert second.content == first.content, "the same under another key"
    assert (layout.model_repository("1" * 16) / "small/1/model.onnx").read_bytes() == b"damaged", "it is left alone"


def test_the_figures_and_warnings_of_a_conversion_are_bounded(incoming: Path) -> None:
    refer()
    prepare_and_produce("convert", CONVERT)
    told = Converted(("\x1b[2J" + "w" * 10_000,) * 1000, -5.0, -1.0)
    (incoming / f"{CONVERSION}.json").write_text(told.to_json()[: 2**20] if len(told.to_json()) < 2**20 else "")
    assert publish("convert", CONVERT).reason is Reason.CRASHED, "longer than any document"
    documents.write(incoming, f"{CONVERSION}.json", replace(told, warnings=told.warnings[:50]))
    result = publish("convert", CONVERT).result
    assert isinstance(result, ConvertResult)
    assert (result.seconds, result.max_absolute_error, len(result.warnings)) == (0.0, 0.0, 4)
    assert all(len(line) <= 240 and line.isprintable() for line in result.warnings)


def left(incoming: Path, request: ConvertRequest, types: tuple[str, ...], version: str = "") -> None:
    """Leave a file that is no model, as if a converter had written it."""
    folder = incoming / request.conversion_key
    folder.mkdir()
    (folder / "model.pt").write_bytes(b"no TorchScript")
    (folder / "model.plan").write_bytes(b"no plan")
    inspection.write(folder, types, (), version, request.gpu_product)
    documents.write(incoming, f"{request.conversion_key}.json", Converted((), 1.0, None))
    documents.write_end(incoming, End())


def test_torchscript_is_not_loaded_by_who_publishes(incoming: Path) -> None:
    refer()
    request = replace(CONVERT, format="ts-trace", precision="fp16")
    left(incoming, request, ("FP16",))
    result = publish("convert", request).result
    assert isinstance(result, ConvertResult)
    assert result.data_types == ("FP16",)
    assert publish("convert", replace(request, key="2" * 16)).result is not None


def test_a_precision_other_than_asked_is_refused(incoming: Path) -> None:
    refer()
    request = replace(CONVERT, format="ts-trace", precision="fp16")
    left(incoming, request, ("FP32",))
    assert publish("convert", request).reason is Reason.PRECISION_MISMATCH
    assert not layout.candidate_directory(CONVERSION).exists()


def engine(incoming: Path, cache: bytes) -> Outcome:
    request = replace(CONVERT, format="trt")
    left(incoming, request, ("FP32",), "10.13.3.9")
    (incoming / f"{CONVERSION}.timing.cache").write_bytes(cache)
    return publish("convert", request)


def handed_on(incoming: Path) -> list[bytes]:
    """The timing caches that the next conversion gets."""
    other = replace(CONVERT, format="trt", conversion_key="b" * 16, key="2" * 16)
    assert step("prepare", "convert", other.to_json()) == (0, None)
    return [path.read_bytes() for path in incoming.glob("caches/10.13.3.9/timing.cache")]


def test_the_timing_cache_is_kept_and_handed_to_the_next_of_the_same_object(
    incoming: Path, mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(layout.OBJECT, "digits")
    monkeypatch.setenv(layout.CLAIM, "vision/models")
    refer()
    assert engine(incoming, b"measured").result is not None
    assert (mount / "caches/.objects/vision%2Fdigits/NVIDIA-L4/10.13.3.9/timing.cache").read_bytes() == b"measured"
    assert handed_on(incoming) == [b"measured"]


@pytest.mark.parametrize(
    ("name", "claim"), [("letters", "vision/models"), (None, "vision/models"), ("digits", "audio/models")]
)
def test_no_other_object_gets_the_timing_cache(
    incoming: Path, mount: Path, monkeypatch: pytest.MonkeyPatch, name: str | None, claim: str, attack: Attack
) -> None:
    monkeypatch.setenv(layout.OBJECT, "digits")
    monkeypatch.setenv(layout.CLAIM, "vision/models")
    refer()
    assert engine(incoming, b"measured").result is not None
    monkeypatch.delenv(layout.OBJECT)
    monkeypatch.setenv(layout.CLAIM, claim)
    if name:
        monkeypatch.setenv(layout.OBJECT, name)
    assert handed_on(incoming) == []
    attack(
        "author of an object",
        f"what TensorRT of {name or None} parses, by a timing cache",
        "it is handed to nobody else",
    )


def test_an_object_keeps_one_timing_cache_whatever_versions_it_tells(
    incoming: Path, mount: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    monkeypatch.setenv(layout.OBJECT, "digits")
    for old in ("NVIDIA-L4/10.0.0.1", "NVIDIA-A100/10.13.3.9"):
        write_file(mount / "caches/.objects/%2Fdigits" / old / "timing.cache", b"old")
    refer()
    assert engine(incoming, b"measured").result is not None
    assert [path.read_bytes() for path in mount.rglob("timing.cache")] == [b"measured"]
    attack("author of an object", "the claim, filled by caches of made-up versions", "one is kept")


def test_a_timing_cache_beyond_its_limit_is_left_out_and_the_engine_is_kept(
    incoming: Path, mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton_converters.incoming import model_files

    monkeypatch.setenv(layout.OBJECT, "digits")
    monkeypatch.setattr(model_files, "TIMING_CACHE_BYTES", 10)
    refer()
    assert engine(incoming, b"x" * 11).result is not None
    assert not list(mount.rglob("timing.cache"))


X = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
TAMPERED: dict[str, Callable[[Path], object]] = {
    "more samples than asked for": lambda root: [
        write_batch(root, number, Batch(numpy.arange(4), {"x": X}, {}, {"y": X[:, :2]})) for number in (2, 3)
    ],
    "no second answer": lambda root: (root / "again/batches/00000.npz").unlink(),
    "fewer answers of single samples": lambda root: (root / "singles/batches/00003.npz").unlink(),
    "no batch": lambda root: (root / "batches/00000.npz").unlink(),
    "a link to another file": lambda root: (root / "batches/00002.npz").symlink_to("/etc/passwd"),
    "ids that are too few": lambda root: write_batch(root, 1, Batch(numpy.arange(3), {"x": X}, {}, {"y": X[:, :2]})),
    "an input that cannot be served": lambda root: write_batch(
        root, 1, Batch(numpy.arange(4), {"x": X.astype(complex)}, {}, {"y": X[:, :2]})
    ),
    "other names": lambda root: documents.write(root, documents.DUMP, Dump(Names(("z",), ("y",)), (), 1.0)),
    "names of models that there are not": lambda root: (root / documents.DUMP).write_text("{}"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_reference_that_user_code_tampered_with_is_not_published(incoming: Path, case: str) -> None:
    prepare_and_produce("reference", REFER)
    TAMPERED[case](incoming)
    assert publish("reference", REFER).reason is Reason.CRASHED
    assert not layout.reference_directory(REFERENCE).exists()


JUDGED: dict[str, tuple[Callable[[Any], Any], Reason]] = {
    "NaN": (lambda y: y * numpy.float32("nan"), Reason.REFERENCE_NOT_FINITE),
    "half precision": (lambda y: y.astype(numpy.float16), Reason.FRAMEWORK_FAILED),
    "another number of samples": (lambda y: y[:2], Reason.BATCHING_UNSUPPORTED),
    "other answers": (lambda y: y + 1, Reason.REFERENCE_NOT_REPRODUCIBLE),
}


@pytest.mark.parametrize("case", JUDGED)
def test_who_publishes_judges_the_answers_itself(incoming: Path, case: str) -> None:
    prepare_and_produce("reference", REFER)
    first = next(read_batches(incoming))
    change, reason = JUDGED[case]
    write_batch(incoming, 0, replace(first, outputs={"y": change(first.outputs["y"])}))
    assert publish("reference", REFER).reason is reason


def test_what_lies_beside_the_batches_gets_nowhere(incoming: Path) -> None:
    prepare_and_produce("reference", REFER)
    (incoming / "perf.json").write_text("evil")
    (incoming / "batches" / "config.pbtxt").write_text("evil")
    assert publish("reference", REFER).result is not None
    names = sorted(path.name for path in layout.reference_directory(REFERENCE).rglob("*") if path.is_file())
    assert names == ["00000.npz", "00001.npz", "perf.json", "result.json"]
    assert "evil" not in (layout.reference_directory(REFERENCE) / "perf.json").read_text()


def test_the_time_that_user_code_claims_is_a_number(incoming: Path) -> None:
    prepare_and_produce("reference", REFER)
    dump = documents.read(incoming, documents.DUMP, Dump)
    documents.write(incoming, documents.DUMP, replace(dump, seconds=-1.0))
    result = publish("reference", REFER).result
    assert isinstance(result, ReferenceResult)
    assert result.seconds == 0.0


def test_the_commands_say_what_they_take(incoming: Path) -> None:
    code, outcome = step("reference", REFER.to_json())
    assert outcome is not None
    assert (code, outcome.reason) == (EXIT_FINAL, Reason.CRASHED)
    boxed = "packages,reference,convert,profile,metrics,comparison,search,measure"
    assert f"{{prepare,publish}} {{{boxed}}} REQUEST_JSON" in outcome.message
    assert json.loads(REFER.to_json())["key"] == REFERENCE
