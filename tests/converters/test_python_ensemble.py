"""An ensemble of Python steps around an ONNX model, from the reference to the revision."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from tests.converters.conversions import ensemble_conversion, save_doubling
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.dump import Arrays, read_batches
from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    EnsembleCode,
    Entrypoint,
    ModelCode,
    ReferenceRequest,
    Step,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.load.framework import load
from triton_converters.stages.convert import prepare as converting
from triton_converters.stages.reference import evidence, step_checks
from triton_converters.stages.reference import prepare as referring

SOURCE, KEY = "d" * 64, "0123456789abcdef"
COUNT = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
from near import LETTERS
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "word", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "counts", "data_type": "TYPE_FP32", "dims": [-1]})
        return config
    def initialize(self, args):
        scale = json.loads(args["model_config"])["parameters"]["scale"]["string_value"]
        self.scale = np.float32(scale)
    def execute(self, requests):
        responses = []
        for request in requests:
            words = [each.decode() for each in request.inputs()[0].as_numpy()[:, 0]]
            counts = np.array([[word.count(letter) for letter in LETTERS] for word in words], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("counts", self.scale * counts)]))
        return responses
"""
LABEL = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "scores", "data_type": "TYPE_FP32", "dims": [3]})
        config.add_output({"name": "label", "data_type": "TYPE_STRING", "dims": [1]})
        return config
    def execute(self, requests):
        names = np.array(["a", "b", "c"], dtype=object)
        labels = [names[request.inputs()[0].as_numpy().argmax(1)][:, None] for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("label", each)]) for each in labels]
"""
DATALOADER = """
import numpy
WORDS = ["aab", "bbc", "ccb", "abba b", "", "cab cc"]
def get_dataloader_fn(batch_size: int):
    def batches():
        for start in range(0, len(WORDS), batch_size):
            words = numpy.array(WORDS[start : start + batch_size], dtype=object)[:, None]
            yield numpy.arange(start, start + len(words)), {"WORD": words}, {}
    return batches
"""


def code(path: str, **arguments: str) -> ModelCode:
    form = "onnx" if path.endswith(".onnx") else "triton-python"
    return ModelCode(form, Entrypoint(path, arguments), 4)


STEPS = (
    Step("count", {"word": "WORD"}, {"counts": "COUNTS"}, code("count/step.py", scale="2")),
    Step("double", {"x": "COUNTS"}, {"y": "SCORES"}, code("double.onnx")),
    Step("label", {"scores": "SCORES"}, {"label": "LABEL"}, code("label/step.py")),
)
WHOLE = ModelCode(
    "ensemble",
    Entrypoint("", {}),
    4,
    EnsembleCode((Tensor("WORD", "BYTES", (1,)),), (Tensor("LABEL", "BYTES", (1,)),), STEPS),
)


@pytest.fixture
def source(mount: Path) -> Path:
    """The published source."""
    directory = layout.source_directory(SOURCE)
    files = {"count/step.py": COUNT, "count/near.py": 'LETTERS = "abc"', "label/step.py": LABEL, "data.py": DATALOADER}
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    save_doubling(directory / "double.onnx")
    return directory


def refer(model: ModelCode = WHOLE) -> ReferenceResult:
    return run_reference(
        ReferenceRequest(KEY, SOURCE, model, Entrypoint("data.py", {}), 64, needs_labels=False, batch_sizes=())
    )


def convert() -> None:
    run_convert(ensemble_conversion(WHOLE, "words", KEY, {"count": "2"}, key="f" * 16, source=SOURCE))


def parsed(directory: Path) -> Any:
    """config.pbtxt, read by NVIDIA's protobuf."""
    return text_format.Parse((directory / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def test_the_reference_runs_every_step(source: Path) -> None:
    result = refer()
    assert (result.signature.inputs, result.signature.outputs) == (WHOLE.ensemble.inputs, WHOLE.ensemble.outputs)
    batches = list(read_batches(layout.reference_directory(KEY)))
    labels = [label for batch in batches for label in batch.outputs["LABEL"][:, 0].tolist()]
    assert labels == ["a", "b", "c", "b", "a", "c"]
    key = layout.member_key(KEY, "count")
    member = read_result(layout.reference_directory(key), "reference", key, ReferenceResult).signature
    assert member.outputs == (Tensor("counts", "FP32", (-1,)),), "as the file says, not as the samples happen to be"
    counts = [batch.outputs["counts"].tolist() for batch in read_batches(layout.reference_directory(key))]
    assert counts[0][0] == [4.0, 2.0, 0.0]


MIXING = {
    "the first for all": (("request.inputs()", "requests[0].inputs()"), "number 2 of 4, label: 1 of 1 elements differ"),
    "another order": (("for each in labels]", "for each in labels[::-1]]"), "number 1 of 4, label: 1 of 1"),
    "joined": (
        ("return [", "labels = [np.concatenate(labels)] * len(labels)\n        return ["),
        "one of 4 fails: step step: label/step.py: output label has the shape [4, 1], but the request has 1 rows",
    ),
    "each as long as the first": (
        ("in labels]", "in [np.vstack(labels)[i * len(labels[0]) :][: len(own)] for i, own in enumerate(labels)]]"),
        "number 3 of 3, label: 1 of 1 elements differ",
    ),
}


@pytest.mark.parametrize("how", MIXING)
def test_a_step_that_mixes_requests_is_refused(source: Path, how: str) -> None:
    """No gate could tell: they send one request at a time, and only a server's batcher hands on several."""
    change, words = MIXING[how]
    (source / "label/step.py").write_text(LABEL.replace(*change))
    with pytest.raises(StageError) as error:
        refer()
    assert error.value.reason is Reason.BATCHING_UNSUPPORTED
    assert words in error.value.message
    assert error.value.message.endswith("in their order, or set models[].config.maxBatchSize to 0")


def test_a_step_that_fills_one_array_for_all_requests_is_refused(source: Path) -> None:
    kept = "kept = vars(self).setdefault(f'of {len(words)}', np.zeros((len(words), 3), np.float32))"
    filled = f"            {kept}\n            kept[...] = self.scale * counts\n            responses.app"
    text = COUNT.replace("            responses.app", filled).replace("self.scale * counts)", "kept)")
    (source / "count/step.py").write_text(text)
    with pytest.raises(StageError, match="model count: execute answers requests that it gets at once otherwise"):
        refer()


def test_a_step_that_draws_random_numbers_is_named(source: Path) -> None:
    """The label hardly ever changes with it, so the ensemble's own outputs would not tell."""
    text = COUNT.replace("self.scale * counts", "self.scale * counts + np.random.rand(*counts.shape).astype('f') / 9")
    (source / "count/step.py").write_text(text)
    with pytest.raises(StageError, match="model count answers one request in two ways") as error:
        refer()
    assert error.value.reason is Reason.REFERENCE_NOT_REPRODUCIBLE


SAMPLES = {
    "within a batch": (4, "word[:2] != 'cc'", "sample 2 fails"),
    "the very first": (4, "word != 'aab'", "sample 0 fails"),
    "the first of a later batch": (4, "word", "sample 4 fails"),
    "alone in its batch": (1, "word[:2] != 'cc'", "sample 2 fails"),
    "of several, the first": (4, "word[:2] != 'cc' and len(word) < 5", "sample 2 fails"),
}


@pytest.mark.parametrize("which", SAMPLES)
def test_a_step_that_fails_for_one_sample_is_told_by_that_sample(source: Path, which: str) -> None:
    """Batches have nothing to do with it, so nobody is told to do without them."""
    size, works, words = SAMPLES[which]
    failing = f"            assert all({works} for word in words)\n"
    (source / "count/step.py").write_text(COUNT.replace("            counts = ", f"{failing}            counts = "))
    (source / "data.py").write_text(DATALOADER.replace("def batches():", f"def batches(batch_size={size}):"))
    with pytest.raises(StageError, match=rf"^{words}: model count: .*count/step.py:19: AssertionError") as error:
        refer()
    assert error.value.reason is Reason.FRAMEWORK_FAILED


def test_a_sample_is_told_by_its_id_and_its_number(source: Path) -> None:
    """Ids of many dataloaders begin anew in each batch."""
    failing = "            assert all(words)\n"
    (source / "count/step.py").write_text(COUNT.replace("            counts = ", f"{failing}            counts = "))
    (source / "data.py").write_text(DATALOADER.replace("(start, start + len(words))", "(len(words))"))
    words = re.escape("sample 0 (number 4 of the dataloader, counted from 0) fails: model count: ")
    with pytest.raises(StageError, match=f"^{words}"):
        refer()


def test_a_step_that_one_sample_breaks_for_good_is_told_by_its_batch(source: Path) -> None:
    failing = "self.broken = getattr(self, 'broken', False) or not all(words)\n            assert not self.broken"
    (source / "count/step.py").write_text(COUNT.replace("counts = ", f"{failing}\n            counts = ", 1))
    words = r"a sample of number \d+ to \d+ of the dataloader, counted from 0, fails, and then all do: model count: "
    with pytest.raises(StageError, match=f"^{words}"):
        refer()


def test_a_step_that_fails_for_every_sample_is_told_by_none(source: Path) -> None:
    (source / "count/step.py").write_text(COUNT.replace("            counts = ", "            counts = no"))
    with pytest.raises(StageError, match=r"^model count: "):
        refer()


def test_text_of_a_fixed_width_is_told_with_its_tensor_and_what_to_write(source: Path) -> None:
    (source / "label/step.py").write_text(LABEL.replace('["a", "b", "c"], dtype=object', '["a", "b", "c"]'))
    with pytest.raises(StageError, match=r"Tensor label is <U1: write numpy.array\(texts, dtype=object\)"):
        refer()


def test_a_step_may_pad_to_the_longest_of_all_requests_with_any_number() -> None:
    alone = [{"ids": numpy.array([[7, 8]])}, {"ids": numpy.array([[7, 8, 9]])}]
    padded = [{"ids": numpy.array([[7, 8, 1]])}, alone[1]]
    step_checks.check_together(padded, alone, "tokenize")
    with pytest.raises(StageError, match="number 2 of 2, ids: 3 of 3 elements differ"):
        step_checks.check_together(padded, [alone[0], {"ids": numpy.array([[4, 5, 6]])}], "tokenize")


def test_a_step_that_cuts_to_the_shortest_of_all_requests_is_refused_but_for_zeros() -> None:
    alone = [{"ids": numpy.array([[7, 8]])}, {"ids": numpy.array([[7, 8, 9]])}]
    cut = [alone[0], {"ids": numpy.array([[7, 8]])}]
    with pytest.raises(StageError, match=r"number 2 of 2, ids: shape \[1, 2\] and \[1, 3\], and the part") as error:
        step_checks.check_together(cut, alone, "tokenize")
    assert error.value.reason is Reason.BATCHING_UNSUPPORTED
    step_checks.check_together(cut, [alone[0], {"ids": numpy.array([[7, 8, 0]])}], "tokenize")


def test_a_step_that_takes_one_request_at_a_time_is_asked_for_each(source: Path) -> None:
    text = LABEL.replace("labels = [", "request, = requests\n        labels = [")
    (source / "label/step.py").write_text(text)
    assert refer().samples == 6


def test_a_step_that_takes_one_row_at_a_time_is_enough_for_an_ensemble_that_does(source: Path) -> None:
    one = "assert all(len(each.inputs()[0].as_numpy()) == 1 for each in requests)"
    (source / "label/step.py").write_text(LABEL.replace("labels = [", f"{one}\n        labels = ["))
    (source / "data.py").write_text(DATALOADER.replace("def batches():", "def batches(batch_size=1):"))
    assert refer(replace(WHOLE, max_batch_size=1)).samples == 6


ROWS = [{"x": numpy.array([row])} for row in ([1, 2], [3], [5], [7, 8])]


@pytest.mark.parametrize(
    ("requests", "largest", "values"),
    [(ROWS, 4, [[[5]], [[3], [5]], [[3]]]), (ROWS, 3, []), (ROWS[:2], 4, []), (ROWS[:1], 4, [])],
    ids=["whole", "too few rows", "other shapes", "one sample"],
)
def test_unequal_requests_are_made_of_two_samples_that_fit(
    requests: list[Arrays], largest: int, values: list[list[list[int]]]
) -> None:
    assert [each["x"].tolist() for each in evidence.unequal(requests, largest)] == values


def test_the_revision_holds_what_a_server_loads(source: Path) -> None:
    refer()
    convert()
    models = layout.model_repository("f" * 16)
    assert sorted(path.name for path in models.iterdir()) == ["count", "double", "label", "words"]
    files = [path.relative_to(models / "count").as_posix() for path in (models / "count").rglob("*") if path.is_file()]
    assert sorted(files) == [
        "1/_triton_step.py", "1/guard.py", "1/model.py",
        "1/source/count/near.py", "1/source/count/step.py", "1/step.json",
        "config.pbtxt", "warmup/word",
    ]  # fmt: skip
    settings = json.loads((models / "count" / "1" / "step.json").read_text())
    assert settings == {"file": "count/step.py", "threads": 2, "completes": True}
    config = parsed(models / "count")
    assert (config.backend, config.max_batch_size, config.parameters["scale"].string_value) == ("python", 4, "2")
    assert [(each.name, list(each.dims)) for each in (*config.input, *config.output)] == [
        ("word", [1]),
        ("counts", [-1]),
    ]
    assert (models / "count" / "warmup" / "word").read_bytes() == b"\x03\0\0\0aab"


def test_the_folder_of_a_steps_file_is_where_a_server_mounts_it(source: Path) -> None:
    refer()
    convert()
    folder = layout.step_folder("f" * 16, "count", "count/step.py")
    assert sorted(each.name for each in folder.iterdir()) == ["near.py", "step.py"]


def test_a_folder_that_is_to_be_mounted_and_is_not_there_is_no_empty_one(source: Path) -> None:
    def at(path: str, mount_path: str) -> ModelCode:
        step = replace(STEPS[0], code=replace(code(path, scale="2"), mount_path=mount_path))
        assert WHOLE.ensemble is not None
        return replace(WHOLE, ensemble=replace(WHOLE.ensemble, steps=(step, *STEPS[1:])))

    def prepare(model: ModelCode, convert: bool) -> None:
        request = ReferenceRequest(KEY, SOURCE, model, Entrypoint("data.py", {}), 64, needs_labels=False)
        if convert:
            converting.run(ensemble_conversion(model, "words", KEY, {}, key="e" * 16, source=SOURCE), source)
        else:
            referring.run(request, source)

    refer()
    for convert in (False, True):
        prepare(at("count/step.py", "/models/count/1"), convert)
        prepare(at("other/step.py", ""), convert)
        with pytest.raises(StageError) as error:
            prepare(at("other/step.py", "/models/count/1"), convert)
        assert error.value.reason is Reason.ENTRYPOINT_INVALID
        assert error.value.message == "the source has no file 'other/step.py'"


def test_a_step_may_pass_a_tensor_on_under_its_name(source: Path) -> None:
    passing = LABEL.replace(
        'pb_utils.Tensor("label", each)]) for each in labels]',
        'pb_utils.Tensor("label", each), pb_utils.Tensor("scores", each)]) for each in labels]',
    )
    output = 'config.add_output({"name": "scores", "data_type": "TYPE_STRING", "dims": [1]})'
    (source / "label" / "step.py").write_text(
        passing.replace("        return config", f"        {output}\n        return config")
    )
    assert WHOLE.ensemble is not None
    last = replace(STEPS[2], outputs={"label": "LABEL", "scores": "SAME"})
    ensemble = replace(WHOLE.ensemble, steps=(*STEPS[:2], last))
    run_reference(
        ReferenceRequest(
            KEY, SOURCE, replace(WHOLE, ensemble=ensemble), Entrypoint("data.py", {}), 64,
            needs_labels=False, batch_sizes=(),
        )
    )  # fmt: skip
    key = layout.member_key(KEY, "label")
    member = read_result(layout.reference_directory(key), "reference", key, ReferenceResult).signature
    assert member.inputs == (Tensor("scores", "FP32", (3,)),)
    assert member.outputs == (Tensor("label", "BYTES", (1,)), Tensor("scores", "BYTES", (1,)))


def test_a_step_that_fails_is_named(source: Path) -> None:
    (source / "label" / "step.py").write_text(LABEL.replace("argmax(1)", "argmax(2)"))
    with pytest.raises(StageError) as error:
        refer()
    assert error.value.reason is Reason.FRAMEWORK_FAILED
    assert error.value.message.startswith("model label: step step: label/step.py:12: ")


def test_two_steps_of_one_name_have_their_own_files(source: Path) -> None:
    (source / "label" / "near.py").write_text("LETTERS = None")
    (source / "label" / "step.py").write_text(
        LABEL.replace("import numpy", "from near import LETTERS\nimport numpy", 1)
    )
    refer()
    batch = next(iter(read_batches(layout.reference_directory(KEY))))
    assert numpy.array_equal(batch.outputs["LABEL"][:, 0], ["a", "b", "c", "b"])


def test_a_step_has_the_tensors_of_the_spec_and_its_name_in_triton(source: Path) -> None:
    silent = """
import triton_python_backend_utils as utils
class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]
    def execute(self, requests):
        word = [utils.get_input_tensor_by_name(each, "word").as_numpy() for each in requests]
        names = [each.astype(object) for each in word]
        for each in names:
            each[:] = self.name
        return [utils.InferenceResponse([utils.Tensor("label", each)]) for each in names]
"""
    (source / "label" / "silent.py").write_text(silent)
    sides = ((Tensor("word", "BYTES", (1,)),), (Tensor("label", "BYTES", (1,)),))
    step = ModelCode("triton-python", Entrypoint("label/silent.py", {}), 4, declared=Signature(*sides, 4), name="namer")
    framework = load(source, step, "triton-python")
    assert (framework.inputs, framework.outputs) == (("word",), ("label",))
    assert framework({"word": numpy.array([["a"], ["b"]])})["label"].tolist() == [["namer"], ["namer"]]
