"""A Python step is tried in one process, without a cluster."""

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tests.converters.sources import WriteSource

STEP = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        self.scale = float(json.loads(args["model_config"])["parameters"]["scale"]["string_value"])
    def execute(self, requests):
        responses = []
        for request in requests:
            words = pb_utils.get_input_tensor_by_name(request, "word").as_numpy()
            lengths = np.array([[len(each) * self.scale] for each in words[:, 0]], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("length", lengths)]))
        return responses
"""
LOADER = """
import numpy as np
def get_dataloader_fn(batch_size: int, word: str):
    return lambda: iter([([0], {"TEXT": np.array([[word]] * batch_size), "REST": np.zeros((1, 2))}, None)])
"""
FILES = {"steps/count.py": STEP, "dataloader.py": LOADER}
DECLARED = ("--input", "word:BYTES:1", "--output", "length:FP32:1", "--max-batch-size", "4", "--argument", "scale=2")
LOADED = ("--dataloader", "dataloader.py", "--dataloader-argument", "word=grün")


def tried(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_converters.try_step", str(folder), "steps/count.py", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_step_gets_the_dataloaders_first_sample_and_its_outputs_are_shown_and_kept(
    write_source: WriteSource, tmp_path: Path
) -> None:
    kept = tmp_path / "out.npz"
    found = tried(write_source(FILES), *DECLARED, *LOADED, "--take", "word=TEXT", "--save", str(kept))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines() == ["input word: <U4[1, 1] [['grün']]", "output length: float32[1, 1] [[10.0]]"]
    with numpy.load(kept) as arrays:
        assert arrays["length"].tolist() == [[10.0]], "UTF-8 has five bytes, twice"


def test_arrays_of_a_file_are_the_samples_of_a_later_step(write_source: WriteSource, tmp_path: Path) -> None:
    numpy.savez(tmp_path / "in.npz", word=numpy.array([["a"], ["abc"]]))
    found = tried(write_source(FILES), *DECLARED, "--data", str(tmp_path / "in.npz"))
    assert found.stdout.splitlines()[-1] == "output length: float32[2, 1] [[2.0], [6.0]]"


def test_more_rows_than_the_largest_batch_are_refused_as_a_server_does(
    write_source: WriteSource, tmp_path: Path
) -> None:
    numpy.savez(tmp_path / "in.npz", word=numpy.array([["a"]] * 5))
    found = tried(write_source(FILES), *DECLARED, "--data", str(tmp_path / "in.npz"))
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == "DataloaderInvalid: word has 5 samples, and --max-batch-size is 4: give at most as many\n"


def test_texts_that_were_saved_as_objects_are_told_in_one_sentence(write_source: WriteSource, tmp_path: Path) -> None:
    file = tmp_path / "in.npz"
    numpy.savez(file, word=numpy.array([["a"], ["abc"]], dtype=object))
    found = tried(write_source(FILES), *DECLARED, "--data", str(file))
    assert found.returncode == 1
    assert 'word holds objects, which are not read: save texts by numpy.array(texts, dtype="S")' in found.stderr
    assert "Traceback" not in found.stderr
    numpy.savez(file, word=numpy.array([["a"], ["abc"]], dtype="S"))
    assert tried(write_source(FILES), *DECLARED, "--data", str(file)).returncode == 0


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        ({}, (*DECLARED, *LOADED), "DataloaderInvalid: nothing gives input word: there are TEXT, REST; write --take"),
        (
            {},
            ("--input", "word:FP32:1", *DECLARED[2:], *LOADED, "--take", "word=TEXT"),
            "DataloaderInvalid: TEXT is <U4, and input word is declared as FP32",
        ),
        (
            {},
            (*DECLARED, *LOADED, "--take", "word=REST"),
            "DataloaderInvalid: REST is float64, and input word is declared as BYTES",
        ),
        (
            {},
            ("--input", "word:FP32:1", *DECLARED[2:], *LOADED, "--take", "word=REST"),
            "DataloaderInvalid: REST is float64, and input word is declared as FP32: give it in that type",
        ),
        ({}, (*DECLARED, "--data", "none.npz"), "DataloaderInvalid: none.npz is no .npz file with arrays by name"),
        (
            {"steps/count.py": STEP.replace("np.float32", "np.float64")},
            (*DECLARED, *LOADED, "--take", "word=TEXT"),
            "FrameworkFailed: ",
        ),
        ({"steps/count.py": "import none_such\n"}, (*DECLARED, *LOADED), "none_such"),
        ({"dataloader.py": LOADER.replace(", None)]", ")]")}, (*DECLARED, *LOADED), "the first batch is not (ids,"),
    ],
    ids=[
        "no array",
        "another type",
        "numbers for text",
        "wider numbers",
        "no file",
        "a wrong output",
        "no package",
        "no batch",
    ],
)
def test_what_fails_is_told_as_a_job_tells_it(
    write_source: WriteSource, files: dict[str, str], options: tuple[str, ...], words: str
) -> None:
    found = tried(write_source(FILES | files), *options)
    assert (found.returncode, found.stdout) == (1, "")
    assert words in found.stderr


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--input", "word:STRING:1"), "'STRING' is no type; types are"),
        (("--input", "word"), "'word' is no tensor such as pixels:FP32:64"),
        (("--take", "word"), "'word' has no '='"),
    ],
)
def test_an_option_of_another_form_is_refused(write_source: WriteSource, option: tuple[str, str], words: str) -> None:
    found = tried(write_source(FILES), *option, *LOADED)
    assert found.returncode == 2
    assert words in found.stderr


def test_bytes_that_no_file_of_arrays_keeps_are_told(write_source: WriteSource, tmp_path: Path) -> None:
    step = STEP.replace("[len(each) * self.scale]", r"[b'\xff\x00']").replace("np.float32", "object")
    declared = ("--input", "word:BYTES:1", "--output", "length:BYTES:1", *DECLARED[4:], "--take", "word=TEXT")
    found = tried(write_source(FILES | {"steps/count.py": step}), *declared, *LOADED, "--save", str(tmp_path / "o.npz"))
    assert (found.returncode, list(tmp_path.glob("o.npz"))) == (1, [])
    assert r"output length: object[1, 1] [[b'\xff\x00']]" in found.stdout
    assert "nothing is saved: length holds bytes" in found.stderr


def test_a_place_that_cannot_be_written_to_is_told(write_source: WriteSource, tmp_path: Path) -> None:
    found = tried(write_source(FILES), *DECLARED, *LOADED, "--take", "word=TEXT", "--save", str(tmp_path / "no/o.npz"))
    assert found.returncode == 1
    assert "output length: float32[1, 1]" in found.stdout
    assert found.stderr.startswith("nothing is saved: [Errno 2]")
