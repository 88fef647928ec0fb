"""A Python step whose answers have other sizes than it declares, from the reference to the revision."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.converters.conversions import ensemble_conversion
from tests.converters.run_stage import run_convert, run_reference
from tests.converters.test_python_ensemble import DATALOADER, parsed
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import EnsembleCode, Entrypoint, ModelCode, ReferenceRequest, Step
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor

SOURCE, KEY, REVISION = "d" * 64, "0123456789abcdef", "f" * 16
SPLIT = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.most = pb_utils.get_output_config_by_name(config, "letters")["dims"][0]
    def execute(self, requests):
        return [self.answer(request.inputs()[0].as_numpy()[:, 0]) for request in requests]
    def answer(self, words):
        longest = max(len(word) for word in words)
        letters = np.array([[len(word) * (at < len(word)) for at in range(longest)] for word in words], np.float32)
        letters = letters[:, :self.most]
        lengths = np.array([[len(word)] for word in words], np.int64)
        return pb_utils.InferenceResponse([pb_utils.Tensor("letters", letters), pb_utils.Tensor("lengths", lengths)])
"""
"""Declares seven letters, and answers as many as the longest word of the request has, which is six at most."""
COUNT = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        arrays = [request.inputs()[0].as_numpy().astype(bool).sum(1)[:, None] for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("count", each)]) for each in arrays]
"""
WORD, LENGTHS, COUNTS = Tensor("WORD", "BYTES", (1,)), Tensor("LENGTHS", "INT64", (1,)), Tensor("COUNT", "INT64", (1,))
LETTERS = Tensor("LETTERS", "FP32", (7,))


def step(name: str, inputs: dict[str, str], outputs: dict[str, str], declared: Signature) -> Step:
    code = ModelCode("triton-python", Entrypoint(f"{name}/step.py", {}), 4, declared=declared, name=name)
    return Step(name, inputs, outputs, code)


def split(*outputs: Tensor) -> Step:
    own = (Tensor("letters", "FP32", (7,)), Tensor("lengths", "INT64", (1,)))
    names = {"letters": "LETTERS", "lengths": "LENGTHS"}
    return step("split", {"word": "WORD"}, names, Signature((Tensor("word", "BYTES", (1,)),), outputs or own, 4))


def whole(outputs: tuple[Tensor, ...], *steps: Step) -> ModelCode:
    return ModelCode("ensemble", Entrypoint("", {}), 4, EnsembleCode((WORD,), outputs, steps or (split(),)))


WHOLE = whole((LETTERS, LENGTHS))
COUNTED = step(
    "count",
    {"letters": "LETTERS"},
    {"count": "COUNT"},
    Signature((Tensor("letters", "FP32", (-1,)),), (Tensor("count", "INT64", (1,)),), 4),
)


@pytest.fixture
def source(mount: Path) -> Path:
    """The published source."""
    directory = layout.source_directory(SOURCE)
    for name, text in {"split/step.py": SPLIT, "count/step.py": COUNT, "data.py": DATALOADER}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def refer(code: ModelCode = WHOLE) -> ReferenceResult:
    return run_reference(
        ReferenceRequest(KEY, SOURCE, code, Entrypoint("data.py", {}), 64, needs_labels=False, batch_sizes=())
    )


def member(name: str = "split") -> Signature:
    key = layout.member_key(KEY, name)
    return read_result(layout.reference_directory(key), "reference", key, ReferenceResult).signature


def served(code: ModelCode = WHOLE) -> dict[str, list[list[int]]]:
    """The dimensions of the outputs in each config.pbtxt of the revision."""
    run_convert(ensemble_conversion(code, "words", KEY, key=REVISION, source=SOURCE))
    models = sorted(layout.model_repository(REVISION).iterdir())
    return {path.name: [list(each.dims) for each in parsed(path).output] for path in models}


def changed(source: Path, old: str, new: str, file: str = "split/step.py") -> None:
    text = (source / file).read_text()
    assert old in text
    (source / file).write_text(text.replace(old, new))


def test_another_size_is_served_as_one_that_varies_and_told(source: Path) -> None:
    result = refer()
    assert result.signature.outputs == (replace(LETTERS, dims=(-1,)), LENGTHS)
    assert result.warnings == ("output LETTERS is declared as [7], but is [-1], so it is served as [-1]",)
    assert [each.dims for each in member().outputs] == [(-1,), (1,)]
    shapes = [batch.outputs["LETTERS"].shape for batch in read_batches(layout.reference_directory(KEY))]
    assert shapes == [(4, 6), (2, 6)]
    assert served() == {"split": [[-1], [1]], "words": [[-1], [1]]}


def test_the_sizes_that_were_seen_are_told_and_those_that_are_right_stay(source: Path) -> None:
    changed(source, "letters = letters[:, :self.most]", "letters = np.stack([letters[:, :2]] * 3, 1)")
    declared = (Tensor("letters", "FP32", (3, 9)), Tensor("lengths", "INT64", (1,)))
    code = whole((Tensor("LETTERS", "FP32", (3, 9)), LENGTHS), split(*declared))
    result = refer(code)
    assert result.warnings == ("output LETTERS is declared as [3, 9], but is [3, 2], so it is served as [3, -1]",)
    assert served(code) == {"split": [[3, -1], [1]], "words": [[3, -1], [1]]}


def test_what_is_declared_rightly_is_served_as_it_is_declared(source: Path) -> None:
    declared = (Tensor("letters", "FP32", (-1,)), Tensor("lengths", "INT64", (1,)))
    outputs = (replace(LETTERS, dims=(-1,)), LENGTHS)
    code = whole(outputs, split(*declared))
    changed(source, "letters[:, :self.most]", "letters")
    result = refer(code)
    assert (result.warnings, result.signature.outputs) == ((), outputs)
    assert served(code) == {"split": [[-1], [1]], "words": [[-1], [1]]}
    settings = layout.model_repository(REVISION) / "split" / "1" / "step.json"
    assert settings.read_text() == '{"file": "split/step.py", "threads": 0}'


def test_a_size_that_comes_late_and_is_no_output_of_the_ensemble_is_served_and_told(source: Path) -> None:
    """Of what goes through a step, the first batches alone are kept."""
    changed(source, "longest = max(len(word) for word in words)", "longest = 7 if words[0] != b'cc' else 5")
    words = 'WORDS = ["ab", "c", "abc", "a"] * 2 + ["cc"]\n'
    (source / "data.py").write_text(DATALOADER.replace("def get", f"{words}def get"))
    code = whole((COUNTS,), split(), COUNTED)
    result = refer(code)
    assert result.warnings == ("output letters of model split is not always [7], so it is served as [-1]",)
    assert served(code) == {"count": [[1]], "split": [[-1], [1]], "words": [[1]]}
    kept = read_batches(layout.reference_directory(layout.member_key(KEY, "split")))
    assert {batch.outputs["letters"].shape[1] for batch in kept} == {7}, "no batch with the other size"


COMPLETES = """
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "word", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "letters", "data_type": "TYPE_FP32", "dims": [7]})
        config.add_output({"name": "lengths", "data_type": "TYPE_INT64", "dims": [1]})
        return config
"""


def declaring_itself(source: Path) -> ModelCode:
    changed(source, "class TritonPythonModel:\n", f"class TritonPythonModel:{COMPLETES}")
    own = split()
    return whole(
        (COUNTS,), replace(own, outputs={"letters": "LETTERS"}, code=replace(own.code, declared=None)), COUNTED
    )


def test_what_a_file_declares_itself_is_served_as_it_is_answered(source: Path) -> None:
    result = refer(declaring_itself(source))
    assert result.warnings == ("output letters of model split is not as its file declares it, so it is served as [-1]",)
    assert [each.dims for each in member().outputs] == [(-1,), (1,)]


def test_another_number_of_dimensions_is_served_if_it_is_always_the_same(source: Path) -> None:
    changed(source, "letters = letters[:, :self.most]", "letters = letters[:, :2, None]")
    result = refer()
    assert result.warnings == ("output LETTERS is declared as [7], but is [2, 1], so it is served as [-1, -1]",)
    assert served() == {"split": [[-1, -1], [1]], "words": [[-1, -1], [1]]}


def test_what_has_one_number_of_dimensions_and_then_another_is_refused(source: Path) -> None:
    changed(
        source,
        "letters = letters[:, :self.most]",
        "letters = letters if b'cab cc' not in words else letters[..., None]",
    )
    with pytest.raises(StageError) as error:
        refer()
    assert error.value.reason is Reason.FRAMEWORK_FAILED
    words = "output letters has the shape [1, 6, 1], but had 2 dimensions before: answer each request with as many"
    assert words in error.value.message


def test_what_has_the_batch_dimension_alone_gets_one_more(source: Path) -> None:
    """Triton cannot declare less than one dimension."""
    changed(source, "np.array([[len(word)]", "np.array([len(word)")
    result = refer()
    assert result.signature.outputs[1] == LENGTHS
    (batch, _) = read_batches(layout.reference_directory(KEY))
    assert batch.outputs["LENGTHS"].tolist() == [[3], [3], [3], [6]]


LENGTHS_OF = "np.array([[len(word)] for word in words], np.int64)"


def test_another_type_stays_refused(source: Path) -> None:
    changed(source, LENGTHS_OF, LENGTHS_OF.replace("64", "32"))
    with pytest.raises(StageError, match="output lengths has the type int32, but the configuration says TYPE_INT64"):
        refer()


@pytest.mark.parametrize(("rows", "shape"), [("[[7]]", "[1, 1]"), ("[7]", "[1]")])
def test_one_row_for_all_rows_of_a_request_stays_refused(source: Path, rows: str, shape: str) -> None:
    """Triton lets it pass, and a client has one answer for four samples."""
    changed(source, LENGTHS_OF, f"np.array({rows}, np.int64)")
    with pytest.raises(StageError) as error:
        refer()
    assert error.value.reason is Reason.BATCHING_UNSUPPORTED
    assert f"output lengths has the shape {shape}, but the request has 4 rows" in error.value.message


SERVER = """
import importlib.util, json, pathlib, sys
import numpy
from triton_converters.python_backend import messages, module, tensors
version, config = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
module.install()
specification = importlib.util.spec_from_file_location("model", version / "model.py")
model = importlib.util.module_from_spec(specification)
sys.modules["model"] = model
specification.loader.exec_module(model)
model._guard = lambda name: None
served = model.TritonPythonModel()
given = {"model_config": json.dumps(config), "model_name": "split", "model_instance_name": "split_0_0"}
served.initialize(given | {"model_repository": "", "model_version": "1"})
for word in ("ab", "abcdefghi"):
    tensor = tensors.Tensor("word", numpy.array([[word.encode()]], dtype=object))
    request = messages.InferenceRequest(
        inputs=[tensor], requested_output_names=["letters", "lengths"], model_name="split"
    )
    (response,) = served.execute([request])
    print(response.error().message() if response.has_error() else response.output_tensors()[0].as_numpy().tolist())
"""


def serve(dims: int) -> list[str]:
    """What clients of the published step get for two words, where the server has these dimensions of `letters`."""
    version = layout.model_repository(REVISION) / "split" / "1"
    outputs = [("letters", "TYPE_FP32", dims), ("lengths", "TYPE_INT64", 1)]
    tensors = [{"name": name, "data_type": kind, "dims": [size]} for name, kind, size in outputs]
    config = f'{{"name": "split", "max_batch_size": 4, "output": {tensors}}}'.replace("'", '"')
    argv = [sys.executable, "-c", SERVER, str(version), config]
    ran = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_the_server_passes_every_size_and_tells_the_step_what_its_author_declared(source: Path) -> None:
    refer()
    served()
    assert serve(-1) == ["[[2.0, 2.0]]", f"[{[9.0] * 7}]"], "seven letters at most, as declared"


def test_the_server_tells_the_step_what_its_file_declares_itself(source: Path) -> None:
    code = declaring_itself(source)
    refer(code)
    assert served(code)["split"] == [[-1], [1]]
    assert serve(-1) == ["[[2.0, 2.0]]", f"[{[9.0] * 7}]"], "seven letters at most, as declared"


def test_a_size_that_was_right_in_the_reference_is_an_error_of_a_request_that_differs(source: Path) -> None:
    refer()
    served()
    wrong = "output letters has the dimensions [7] after the batch, but the configuration says [2]"
    assert serve(2) == ["[[2.0, 2.0]]", f"step split: split/step.py: {wrong}; declare -1 where it varies"]
