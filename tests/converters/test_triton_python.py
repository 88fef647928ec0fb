"""Python steps outside a server: what the reference computes with, and what it refuses."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy
import pytest

from tests.converters.sources import WriteSource
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError, TerminatedError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.load.triton_python import PythonStep, load
from triton_converters.python_backend import messages, module, tensors
from triton_converters.user import user_code

DECLARED = Signature(
    (Tensor("word", "BYTES", (1,)),), (Tensor("length", "INT64", (1,)), Tensor("again", "BYTES", (1,))), 8
)
HEAD = """
import asyncio, json, os, sys
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
"""
LENGTHS = """
    def execute(self, requests):
        responses = []
        for request in requests:
            words = pb_utils.get_input_tensor_by_name(request, "word").as_numpy()
            lengths = np.array([[len(each)] for each in words[:, 0]])
            words[...] = "gone"
            again = np.array([[f"{each}"] for each in lengths[:, 0]], dtype=object)
            tensors = [pb_utils.Tensor("again", again), pb_utils.Tensor("length", lengths)]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
"""
COMPLETE = """
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(8)
        config.add_input({"name": "word", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "length", "data_type": "TYPE_INT64", "dims": [1]})
        config.add_output({"name": "again", "data_type": "TYPE_STRING", "dims": [1]})
        return config
"""
OTHERS = {"steps/near.py": "", "far.py": ""}
WORDS = numpy.array([["grün"], [""]])


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No test leaves the module for another one."""
    path, known = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in (*(set(sys.modules) - known), module.NAME):
        sys.modules.pop(name, None)


Load = Callable[..., PythonStep]


@pytest.fixture
def step(write_source: WriteSource) -> Load:
    """A function that loads a step with a class of this body."""

    def loaded(body: str, declared: Signature | None = DECLARED, **arguments: str) -> PythonStep:
        source, entrypoint = (
            write_source({"steps/lengths.py": HEAD + body, **OTHERS}),
            Entrypoint("steps/lengths.py", arguments),
        )
        return load(source, ModelCode("triton-python", entrypoint, 8, declared=declared), "")

    return loaded


def failure(step: Load, body: str) -> tuple[Reason, str]:
    with pytest.raises(StageError) as error:
        step(body)({"word": WORDS})
    return error.value.reason, error.value.message


@pytest.mark.parametrize(("body", "declared"), [(LENGTHS, DECLARED), (COMPLETE + LENGTHS, None)], ids=["spec", "file"])
def test_a_step_takes_bytes_and_gives_text(step: Load, body: str, declared: Signature | None) -> None:
    model, words = step(body, declared), WORDS.copy()
    found = model({"word": words})
    assert (model.inputs, model.outputs) == (("word",), ("length", "again"))
    assert found["length"].tolist() == [[5], [0]]
    assert (found["again"].dtype.kind, found["again"].tolist()) == ("U", [["5"], ["0"]])
    assert words.tolist() == WORDS.tolist(), "what a step does with its inputs changes none of the reference's"


def test_text_is_sent_as_it_was_when_the_tensor_was_made_and_numbers_as_they_are_in_the_end(step: Load) -> None:
    """As the server does: a step may fill one array again and again."""
    body = """
    def execute(self, requests):
        text, length = np.array([["first"]] * 2, dtype=object), np.zeros((2, 1), np.int64)
        tensors = [pb_utils.Tensor("again", text), pb_utils.Tensor("length", length)]
        text[...], length[...] = "second", 7
        return [pb_utils.InferenceResponse(tensors)]
"""
    found = step(body)({"word": WORDS})
    assert (found["again"].tolist(), found["length"].tolist()) == ([["first"]] * 2, [[7]] * 2)


def test_a_step_starts_as_on_a_server(step: Load) -> None:
    body = """
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.told = [os.getcwd(), os.path.basename(args["model_repository"])]
        self.told += [config["parameters"]["size"]["string_value"]]
        self.told += [os.path.basename(pb_utils.get_model_dir()), str(sorted(map(type, args.values()), key=str)[0])]
    def execute(self, requests):
        text = pb_utils.Tensor("again", np.array([[" ".join(self.told)]] * 2, dtype=object))
        length = pb_utils.Tensor("length", np.zeros((2, 1), np.int64))
        return [pb_utils.InferenceResponse([text, length]) for _ in requests]
"""
    found = step(body, size="7")({"word": WORDS})
    assert found["again"][0, 0] == "/ steps 7 steps <class 'str'>"


def test_a_step_is_told_the_largest_batch_of_the_spec_as_on_a_server(step: Load) -> None:
    told = """
    def initialize(self, args):
        self.told = str(json.loads(args["model_config"])["max_batch_size"])
"""
    body = COMPLETE.replace("size(8)", "size(32)") + told + LENGTHS.replace('f"{each}"', "self.told")
    assert step(body, None)({"word": WORDS})["again"].tolist() == [["8"], ["8"]]


def test_the_files_of_a_dataloader_next_to_a_step_import_what_they_always_did(write_source: WriteSource) -> None:
    source = write_source({"steps/lengths.py": HEAD + LENGTHS, "steps/data.py": "import far, near", **OTHERS})
    step = load(source, ModelCode("triton-python", Entrypoint("steps/lengths.py", {}), 8, declared=DECLARED), "")
    assert user_code.load(source, "steps/data.py").far.__file__ == str(source / "far.py")
    assert step({"word": WORDS})["length"].tolist() == [[5], [0]]


def test_a_step_names_its_siblings_by_a_dot_as_in_a_folder_of_a_version(write_source: WriteSource) -> None:
    files = {"steps/deep/er.py": "from ..near import WORD", "steps/near.py": "WORD = 'near'"}
    body = "from . import near\nfrom .deep.er import WORD\n" + HEAD + LENGTHS.replace('f"{each}"', "WORD")
    source = write_source({"steps/my.first.py": body, **files})
    entrypoint = Entrypoint("steps/my.first.py", {})
    step = load(source, ModelCode("triton-python", entrypoint, 8, name="my.step", declared=DECLARED), "")
    assert step({"word": WORDS})["again"].tolist() == [["near"], ["near"]]


ANSWER = "pb_utils.InferenceResponse([pb_utils.Tensor('length', length), pb_utils.Tensor('again', again)])"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("return [None]", "execute returned NoneType in place of a response"),
        ("return []", "execute returned 0 responses for 1 requests"),
        ("yield 1", "execute is a generator"),
        (
            "length = length.astype(np.int32); return [ANSWER]",
            "output length has the type int32, but the configuration",
        ),
        ("length = length[:1]; return [ANSWER]", "output length has the shape [1, 1], but the request has 2 rows"),
        ("again[0] = '\\udcff'; return [ANSWER]", "output again holds text that is not Unicode"),
        ("return [pb_utils.InferenceResponse([])]", "the response lacks output again; it has: none"),
        ("raise ValueError('no picture')", "steps/lengths.py:8: ValueError: no picture"),
        ("sys.exit(2)", "steps/lengths.py:8: the code called sys.exit(2)"),
        ("raise asyncio.CancelledError('late')", "steps/lengths.py:8: asyncio.exceptions.CancelledError: late"),
        ("raise KeyboardInterrupt", "steps/lengths.py:8: KeyboardInterrupt"),
        ("raise BaseException('own')", "steps/lengths.py:8: BaseException: own"),
        (
            "return [pb_utils.InferenceResponse(error=pb_utils.TritonError('own words'))]",
            "steps/lengths.py answered with an error: own words",
        ),
    ],
)
def test_what_a_server_would_answer_with_an_error(step: Load, lines: str, words: str) -> None:
    made = "length, again = np.zeros((2, 1), np.int64), np.array([['a'], ['b']], dtype=object)"
    body = f"    def execute(self, requests):\n        {made}\n        {lines.replace('ANSWER', ANSWER)}\n"
    reason, message = failure(step, body)
    assert words in message
    assert reason is (Reason.ENTRYPOINT_INVALID if "yield" in lines else Reason.FRAMEWORK_FAILED)


FAULTS = {
    "cancelled": "raise asyncio.CancelledError",
    "interrupted": "raise KeyboardInterrupt",
    "own": "raise type('Own', (BaseException,), {})('own')",
    "exits": "sys.exit()",
    "takes requests": "requests.clear(); return []",
    "hides a tensor": "return [type('Odd', (pb_utils.InferenceResponse,), {'output_tensors': lambda self: 1 / 0})([])]",
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_error_of_one_request_harms_no_other(step: Load, fault: str, kind: str) -> None:
    body = f"""
    {kind} execute(self, requests):
        for request in requests:
            if b"bad" in pb_utils.get_input_tensor_by_name(request, "word").as_numpy():
                {fault}
        return self.others(requests)
"""
    model = step(body + LENGTHS.replace("execute", "others"))
    requests = [
        messages.InferenceRequest(
            inputs=[tensors.Tensor("word", numpy.array([[word]], dtype=object))],
            requested_output_names=["length", "again"],
            model_name="m",
        )
        for word in (b"one", b"bad", b"three")
    ]
    found = model.model.execute(requests)
    assert [each.has_error() for each in found] == [False, True, False]
    assert "steps/lengths.py" in found[1].error().message()


def test_a_job_that_is_asked_to_stop_stops(step: Load, write_source: WriteSource) -> None:
    body = "    def execute(self, requests):\n        raise self.end\n"
    model = step(body)
    vars(type(model.model._model))["execute"].__globals__["TritonPythonModel"].end = TerminatedError
    with pytest.raises(TerminatedError):
        model({"word": WORDS})


def test_what_no_step_may_do_is_refused_even_if_the_step_goes_on(step: Load) -> None:
    asks = """
    def execute(self, requests):
        try:
            requests[0].exec()
        except Exception:
            pass
        return self.others(requests)
"""
    found = failure(step, asks + LENGTHS.replace("execute", "others"))
    words = "steps/lengths.py: it asks model 'steps/lengths.py', but calls of its model in spec.models lists none"
    assert found == (Reason.CONVERSION_UNSUPPORTED, f"{words}: add the name there")


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("    def execute(self, requests): pass\n1 / 0", Reason.USER_CODE_FAILED, "lengths.py:7: ZeroDivisionError"),
        ("    import near, far", Reason.USER_CODE_FAILED, "lengths.py:6: ModuleNotFoundError: No module named 'far'"),
        ("    pass\nsys.exit(3)", Reason.USER_CODE_FAILED, "lengths.py:7: the code called sys.exit(3)"),
        (
            COMPLETE + LENGTHS + "    def initialize(self, args): int('a')",
            Reason.USER_CODE_FAILED,
            "ValueError: invalid literal for int() with base 10: 'a'",
        ),
        ("    pass", Reason.ENTRYPOINT_INVALID, "defines no class TritonPythonModel with a method execute"),
        (LENGTHS, Reason.ENTRYPOINT_INVALID, "declare its inputs and outputs in the spec, or in auto_complete_config"),
        (
            COMPLETE.replace("return config", "config.set_model_transaction_policy({'decoupled': True}); return config")
            + LENGTHS,
            Reason.ENTRYPOINT_INVALID,
            "its configuration is decoupled",
        ),
        (COMPLETE.replace("[1]", "[np.int64(1)]") + LENGTHS, Reason.ENTRYPOINT_INVALID, "leaves no configuration"),
        (COMPLETE.replace("return config", "pass") + LENGTHS, Reason.ENTRYPOINT_INVALID, "returned NoneType, not the"),
    ],
    ids=[
        "raises",
        "far",
        "exits",
        "initialize",
        "classless",
        "undeclared",
        "decoupled",
        "unreadable",
        "nothing",
    ],
)
def test_a_file_that_is_no_step(step: Load, body: str, reason: Reason, words: str) -> None:
    with pytest.raises(StageError) as error:
        step(body, None)
    assert error.value.reason is reason
    assert words in error.value.message


def test_a_file_cannot_add_a_batch_dimension_to_the_specs_model(write_source: WriteSource) -> None:
    source = write_source({"steps/lengths.py": HEAD + COMPLETE + LENGTHS})
    with pytest.raises(StageError, match=r"sets max_batch_size 8, but config\.maxBatchSize of the model is 0"):
        load(source, ModelCode("triton-python", Entrypoint("steps/lengths.py", {}), 0), "")


def test_each_of_two_steps_finds_its_own_folder_while_it_answers(write_source: WriteSource) -> None:
    late = "__import__('triton_python_backend_utils').get_model_dir()[-1]"
    body = HEAD + LENGTHS.replace('f"{each}"', late)
    source = write_source({"a/one.py": body, "b/one.py": body})
    codes = [ModelCode("triton-python", Entrypoint(f"{each}/one.py", {}), 8, declared=DECLARED) for each in "ab"]
    steps = [load(source, code, "") for code in codes]
    assert [each({"word": WORDS})["again"][0, 0] for each in steps] == ["a", "b"]


HANGING = """
import numpy, sys, time
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        asked = requests[0].inputs()[0].as_numpy()
        while asked[0, 0] < 0:
            pass
        return [pb_utils.InferenceResponse([pb_utils.Tensor("x", asked)])]
"""


def test_a_step_that_does_not_return_ends_its_process_and_says_where_it_stood(write_source: WriteSource) -> None:
    source = write_source({"steps/hanging.py": HANGING})
    program = f"""
import pathlib, time, numpy
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.results import Signature, Tensor
from triton_converters.load.triton_python import load
from triton_converters.python_backend import user_step
user_step.EXECUTE_SECONDS = 2
tensors = (Tensor("x", "INT64", (1,)),)
code = ModelCode("triton-python", Entrypoint("steps/hanging.py", {{}}), 8, declared=Signature(tensors, tensors, 8))
step = load(pathlib.Path({str(source)!r}), code, "")
print(step({{"x": numpy.array([[7]])}})["x"])
time.sleep(3)
print("idle", flush=True)
step({{"x": numpy.array([[-7]])}})
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (1, "[[7]]\nidle\n")
    # The loop's head or its body.
    assert any(f'hanging.py", line {line} in execute' in ran.stderr for line in (7, 8)), ran.stderr
