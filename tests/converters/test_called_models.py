"""A Python step that asks other models: the reference against what a server does, and what is published."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy
import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

from tests.converters.conversions import ensemble_conversion, save_doubling
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.dump import Array, Arrays, read_batches, write_batch
from triton_converters.claim_store.origins import ASKED, origins
from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    MOST_ASKED,
    EnsembleCode,
    Entrypoint,
    ModelCode,
    ReferenceRequest,
    Step,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.load import framework
from triton_converters.load.called import CalledModel
from triton_converters.python_backend import tensors
from triton_converters.python_backend.messages import InferenceRequest

SOURCE, KEY = "d" * 64, "0123456789abcdef"
HEAD = """
import asyncio
import numpy as np
import triton_python_backend_utils as pb
def request(x, model="large", wanted=("y",), **fields):
    return pb.InferenceRequest(
        model_name=model, requested_output_names=list(wanted), inputs=[pb.Tensor("x", x)], **fields
    )
def array(response):
    if response.has_error():
        raise pb.TritonModelException(response.error().message())
    return response.output_tensors()[0].as_numpy()
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(each.inputs()[0].as_numpy()) for each in requests]
    def one(self, x):
        return pb.InferenceResponse([pb.Tensor("y", np.asarray(self.ask(x), np.float32))])
"""
CASCADE = (
    HEAD
    + """
    def ask(self, x):
        y = array(request(x, "small").exec())
        unsure = y[:, 0] > 8
        if unsure.any():
            y = np.array(y)
            y[unsure] = array(request(x[unsure], "large").exec()) + 0.5
        return y
"""
)
ASYNC = (
    HEAD
    + """
    def execute(self, requests):
        async def every():
            return await asyncio.gather(*[request(each.inputs()[0].as_numpy()).async_exec() for each in requests])
        return [pb.InferenceResponse([pb.Tensor("y", array(each))]) for each in asyncio.run(every())]
"""
)
DATALOADER = """
import numpy
def get_dataloader_fn(batch_size: int, largest: int = 12):
    def batches():
        for start in range(0, largest, batch_size):
            rows = numpy.arange(start, min(start + batch_size, largest))
            yield rows, {"IN": (rows[:, None] * [1, 2, 3]).astype(numpy.float32)}, {}
    return batches
"""
X = numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32)
SIDES = (Tensor("x", "FP32", (3,)),), (Tensor("y", "FP32", (3,)),)
STEP = ModelCode(
    "triton-python",
    Entrypoint("steps/cascade.py", {}),
    4,
    declared=Signature(*SIDES, 4),
    name="cascade",
    calls=("small", "large"),
)
CODE = EnsembleCode(
    (Tensor("IN", "FP32", (3,)),),
    (Tensor("OUT", "FP32", (3,)),),
    (Step("cascade", {"x": "IN"}, {"y": "OUT"}, STEP),),
    tuple(Step(name, {}, {}, ModelCode("onnx", Entrypoint(f"{name}.onnx", {}), 4)) for name in ("small", "large")),
)
WHOLE = ModelCode("ensemble", Entrypoint("", {}), 4, CODE)


@pytest.fixture
def source(mount: Path) -> Path:
    """The published source."""
    directory = layout.source_directory(SOURCE)
    (directory / "steps").mkdir(parents=True)
    (directory / "steps" / "cascade.py").write_text(CASCADE)
    (directory / "data.py").write_text(DATALOADER)
    save_doubling(directory / "small.onnx")
    save_doubling(directory / "large.onnx")
    return directory


def refer(**arguments: str) -> ReferenceResult:
    loader = Entrypoint("data.py", arguments)
    return run_reference(ReferenceRequest(KEY, SOURCE, WHOLE, loader, 64, needs_labels=False, batch_sizes=()))


Asked = Callable[..., Any]


@pytest.fixture
def ask(source: Path) -> Asked:
    """What the ensemble answers to X, whose step returns an expression over its input; or the reason and words."""

    def answer(expression: str, head: str = "") -> Any:
        body = f"{head}{HEAD}\n    def ask(self, x):\n        return {expression}\n"
        (source / "steps" / "cascade.py").write_text(body)
        loaded = framework.load(source, WHOLE, "ensemble")
        try:
            return loaded({"IN": X})["OUT"].tolist()
        except StageError as error:
            return error.reason, error.message

    return answer


def test_what_a_step_asks_is_answered_and_is_the_reference_of_the_models(source: Path) -> None:
    result = refer()
    assert (result.signature.inputs, result.signature.outputs) == (CODE.inputs, CODE.outputs)
    rows = numpy.concatenate([each.outputs["OUT"] for each in read_batches(layout.reference_directory(KEY))])
    expected = numpy.arange(12)[:, None] * [2.0, 4.0, 6.0]
    expected[5:] += 0.5
    assert rows.tolist() == expected.tolist()
    for name, first in (("small", [0.0, 0.0, 0.0]), ("large", [5.0, 10.0, 15.0])):
        key = layout.member_key(KEY, name)
        member = read_result(layout.reference_directory(key), "reference", key, ReferenceResult)
        assert member.signature == Signature(*SIDES, 4)
        batch = next(iter(read_batches(layout.reference_directory(key))))
        assert batch.inputs["x"][0].tolist() == first, "the first that the step asked it"
        assert batch.outputs["y"].tolist() == (2 * batch.inputs["x"]).tolist()
        assert len(batch.ids) == len(batch.inputs["x"])


def test_a_model_that_no_sample_leads_to_is_told(source: Path) -> None:
    with pytest.raises(StageError) as error:
        refer(largest="3")
    assert error.value.reason is Reason.DATALOADER_INVALID
    assert error.value.message == (
        "no step asked model large anything, so nothing shows how to convert it: let the dataloader yield samples for"
        " which a step asks it, or remove it from calls"
    )


def test_only_so_many_requests_are_kept_and_those_in_which_a_size_differs(source: Path) -> None:
    refer(largest="60")
    key = layout.member_key(KEY, "large")
    sizes = [len(each.ids) for each in read_batches(layout.reference_directory(key))]
    first = [3, 4, 4]
    assert sizes[:3] == first, "two in which nothing differs, and one of another size"
    assert len(sizes) <= MOST_ASKED
    assert set(sizes[3:]) == {1}, "samples alone, to know of which sample a request is"


def test_it_is_known_of_which_samples_the_rows_are_that_a_model_was_asked_for(source: Path) -> None:
    """INT8 calibrates by some of the samples, and is judged by others. Row n of the dataloader begins with n."""
    refer(largest="60")
    for name in ("small", "large"):
        key = layout.member_key(KEY, name)
        rows = [row.tolist() for each in read_batches(layout.reference_directory(key)) for row in each.inputs["x"]]
        total, made_of = origins(key, batched=True)
        assert total == 60
        assert all(row[0] in samples for row, samples in zip(rows, made_of, strict=True))
        exact = {samples.start for samples in made_of if len(samples) == 1}
        assert len(exact) >= 7, "rows of which one sample is known"


def test_what_user_code_writes_of_samples_is_not_believed_if_it_cannot_be(source: Path) -> None:
    refer(largest="60")
    folder = layout.reference_directory(layout.member_key(KEY, "large"))
    (first, *_) = read_batches(folder)
    for label in ([[0, 61]], [[-1, 1]], [[3, 3]], [[0, 1, 2]], [[0.0, 1.0]]):
        write_batch(folder, 0, replace(first, labels={ASKED: numpy.array(label * len(first.ids))}))
        assert origins(layout.member_key(KEY, "large"), batched=True)[1][0] == range(60)


def test_the_revision_holds_every_model_and_warms_up_all_but_the_one_that_asks(source: Path) -> None:
    refer()
    run_convert(ensemble_conversion(WHOLE, "whole", KEY, key="f" * 16, source=SOURCE))
    models = layout.model_repository("f" * 16)
    assert sorted(path.name for path in models.iterdir()) == ["cascade", "large", "small", "whole"]
    configs = {
        path.name: text_format.Parse((path / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
        for path in sorted(models.iterdir())
    }
    assert [name for name, each in configs.items() if each.model_warmup] == ["large", "small"]
    assert [each.model_name for each in configs["whole"].ensemble_scheduling.step] == ["cascade"]
    assert (configs["large"].backend, configs["large"].max_batch_size) == ("onnxruntime", 4)


def test_requests_may_be_asked_together_from_a_coroutine(source: Path) -> None:
    (source / "steps" / "cascade.py").write_text(ASYNC)
    assert framework.load(source, WHOLE, "ensemble")({"IN": X})["OUT"].tolist() == (2 * X).tolist()


def test_threads_may_ask_too(ask: Asked) -> None:
    pool = "from concurrent.futures import ThreadPoolExecutor\n"
    expression = "next(ThreadPoolExecutor(4).map(lambda each: array(request(each).exec()), [x]))"
    assert ask(expression, pool) == (2 * X).tolist()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("array(request(x, wanted=['z']).exec())", "model large: it has no output z; it has: y"),
        (
            "array(pb.InferenceRequest(model_name='large', requested_output_names=['y'], inputs=[]).exec())",
            "model large: the request has the inputs none, but the model takes x",
        ),
        (
            "array(request(np.float64(x)).exec())",
            "model large: input x is float64[2, 3], but the model takes float32[batch, 3]",
        ),
        ("array(request(np.float16(x)).exec())", "model large: input x is float16[2, 3], but the model takes float32"),
        (
            "array(request(x[:, :2]).exec())",
            "model large: input x is float32[2, 2], but the model takes float32[batch, 3]",
        ),
        (
            "array(request(np.repeat(x, 3, axis=0)).exec())",
            "model large: the request has 6 rows, but the largest batch has 4: ask in parts, or set"
            " config.maxBatchSize of the model",
        ),
    ],
)
def test_what_a_server_refuses_is_an_error_in_the_response(ask: Asked, expression: str, words: str) -> None:
    reason, message = ask(expression)
    assert reason is Reason.FRAMEWORK_FAILED
    assert words in message
    assert message.startswith("model cascade: step cascade: steps/cascade.py:11: ")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            "array(request(x, 'cascade').exec())",
            "it asks model 'cascade', but calls of its model in spec.models lists small, large: add the name there",
        ),
        ("array(request(x).exec(decoupled=True))", "asking for several responses"),
        ("array(request(x, flags=1).exec())", "a sequence (flags of InferenceRequest) is not supported"),
        ("array(request(x, model_version=2).exec())", "it asks version 2 of model large, but a server has version 1"),
        (
            "array(request(x, preferred_memory=pb.PreferredMemory(pb.TRITONSERVER_MEMORY_GPU, 0)).exec())",
            "an answer in the memory of a GPU",
        ),
        (
            "x if request(x[:0]).exec().has_error() else 0",
            "it asks model large for 0 rows, to which Triton's ONNX Runtime backend never answers",
        ),
        ("request(x).is_cancelled()", "is_cancelled of a request that the code made itself ends a server"),
    ],
)
def test_what_no_step_may_ask_is_refused(ask: Asked, expression: str, words: str) -> None:
    reason, message = ask(expression)
    assert reason is Reason.CONVERSION_UNSUPPORTED
    assert f"model cascade: steps/cascade.py: {words}" in message


@pytest.mark.parametrize("given", ["{'y'}", "(each for each in 'y')", "'y'", "{'y': 1}.keys()"])
def test_a_request_takes_a_list_of_names_alone(ask: Asked, given: str) -> None:
    """Those that a request asks for are a set, which a server's InferenceRequest does not take."""
    fields = f"model_name='large', requested_output_names={given}, inputs=[pb.Tensor('x', x)]"
    reason, message = ask(f"array(pb.InferenceRequest({fields}).exec())")
    assert reason is Reason.FRAMEWORK_FAILED
    assert "TypeError: requested_output_names of an InferenceRequest is a list, not" in message


@pytest.mark.parametrize(
    "expression",
    [
        "array(request(x, wanted=[]).exec())",
        "array(request(x, timeout=1000, correlation_id=3, request_id='a', parameters={'a': 1}).exec())",
        "array(request(x, model_version=1).exec())",
        "array(request(x, b'large').exec())",
        "array(request(x, preferred_memory=pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU)).exec())",
        "array(request(x).exec()) if request(np.float64(x)).exec().has_error() else 0",
    ],
)
def test_what_makes_no_difference_is_taken(ask: Asked, expression: str) -> None:
    assert ask(expression) == (2 * X).tolist()


def test_a_step_asks_nothing_while_it_is_loaded(source: Path) -> None:
    text = CASCADE + "\n    def initialize(self, args):\n        request(np.zeros((1, 3), np.float32)).exec()\n"
    (source / "steps" / "cascade.py").write_text(text)
    with pytest.raises(StageError) as error:
        framework.load(source, WHOLE, "ensemble")
    assert error.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert "asking another model outside execute (InferenceRequest.exec)" in error.value.message


BY_PLACE = "y, z = (each.as_numpy() for each in request(x, wanted='yz').exec().output_tensors())"
BY_NAME = (
    "response = request(x, wanted='zy').exec()"
    "\n        y, z = (pb.get_output_tensor_by_name(response, each).as_numpy() for each in 'yz')"
)


def _ask_for_two(source: Path, lines: str) -> None:
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xyz"]
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Add", ["x", "x"], ["z"])]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), source / "large.onnx")
    asking = f"        array(request(x, 'small').exec())\n        {lines}\n        return y - z\n"
    (source / "steps" / "cascade.py").write_text(f"{HEAD}\n    def ask(self, x):\n{asking}")


def test_outputs_may_be_taken_by_their_names(source: Path) -> None:
    _ask_for_two(source, BY_NAME)
    assert refer().samples == 12


def test_outputs_that_are_taken_by_their_places_are_told(source: Path) -> None:
    """NVIDIA's backend of ONNX Runtime answers them sorted, others as the configuration has them."""
    _ask_for_two(source, BY_PLACE)
    with pytest.raises(StageError) as error:
        refer()
    assert error.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert "model cascade: it takes outputs of large by their place in output_tensors() (y: largest" in str(error.value)
    assert "get_output_tensor_by_name(response, NAME)" in error.value.message


def test_strings_reach_a_model_as_text_and_the_step_as_bytes(source: Path) -> None:
    sides = [helper.make_tensor_value_info(name, TensorProto.STRING, ["batch", 1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", sides[:1], sides[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source / "words.onnx"
    )
    asking = (
        "\n    def ask(self, x):"
        "\n        words = np.array([[b'a'], ['b']], dtype=object)"
        "\n        found = array(request(words, 'words').exec())"
        "\n        assert found.dtype == object and found.tolist() == [[b'a'], [b'b']], found"
        "\n        return x\n"
    )
    (source / "steps" / "cascade.py").write_text(HEAD + asking)
    words = Step("words", {}, {}, ModelCode("onnx", Entrypoint("words.onnx", {}), 4))
    loaded = framework.load(source, _with(called=(words,), calls=("words",)), "ensemble")
    assert loaded({"IN": X})["OUT"].tolist() == X.tolist()


def _with(*, called: tuple[Step, ...], calls: tuple[str, ...]) -> ModelCode:
    (step,) = CODE.steps
    steps = (replace(step, code=replace(step.code, calls=calls)),)
    return replace(WHOLE, ensemble=replace(CODE, steps=steps, called=called))


def test_a_name_that_is_no_model_is_told(source: Path) -> None:
    with pytest.raises(StageError, match="calls names large, but") as error:
        framework.load(source, _with(called=CODE.called[:1], calls=("large",)), "ensemble")
    assert error.value.reason is Reason.INVALID_SPEC


class Doubling:
    """A framework that takes any type and rank, as code of PyTorch does."""

    inputs, outputs, path = ("x",), ("y",), "any.py"
    open_axes: ClassVar[dict[str, tuple[int, ...]]] = {}
    source = Path()

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        return {"y": 2 * inputs["x"]}


def test_of_what_a_model_is_asked_the_first_and_all_that_differ_are_kept() -> None:
    """Whatever is kept becomes one configuration, or the reason why none serves it."""
    called = CalledModel(Step("any", {}, {}, ModelCode("pyt", Entrypoint("any.py", {}), 0)), Doubling())
    plain = numpy.zeros((2, 3), numpy.float32)
    wide, tall = numpy.zeros((2, 5), numpy.float32), numpy.zeros((4, 3), numpy.float32)
    order = [plain, plain, plain, wide, wide, plain, tall, plain[0], plain.astype(numpy.float64), tall[:, :1]]
    for array in order:
        request = InferenceRequest(model_name="any", requested_output_names=["y"], inputs=[tensors.Tensor("x", array)])
        assert not called.answer(request).has_error()
        array.fill(1)
    kept = [(each.inputs["x"].shape, each.inputs["x"].dtype.name) for each in called.kept]
    assert kept == [
        ((2, 3), "float32"), ((2, 3), "float32"), ((2, 5), "float32"), ((4, 3), "float32"), ((3,), "float32"),
        ((2, 3), "float64"),
    ]  # fmt: skip
    assert not called.kept[0].inputs["x"].any(), "as they were asked, whatever the step writes later"
