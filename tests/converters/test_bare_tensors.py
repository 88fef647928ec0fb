"""A network's tensors of the batch dimension alone, such as class numbers: a server has one dimension more there."""

from pathlib import Path

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from tests.converters.conversions import ensemble_conversion
from tests.converters.run_stage import run_convert, run_reference
from tests.converters.test_python_ensemble import parsed
from triton_converters.claim_store.dump import Array, Arrays, read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import EnsembleCode, Entrypoint, ModelCode, ReferenceRequest, Step
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.load import framework
from triton_converters.load.ensemble import Ensemble, Member

SOURCE, KEY, REVISION = "d" * 64, "0123456789abcdef", "f" * 16
STEP = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]
    def answer(self, request):
        label = request.inputs()[0].as_numpy()
        assert label.shape[1:] == (1,), label.shape
        names = np.array([[b"even", b"odd"][each % 2] for each in label[:, 0]], object)[:, None]
        return pb_utils.InferenceResponse([pb_utils.Tensor("name", names)])
"""
ASKING = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]
    def answer(self, request):
        scores = pb_utils.Tensor("scores", request.inputs()[0].as_numpy())
        answer = pb_utils.InferenceRequest(model_name="top", inputs=[scores], requested_output_names=["label"]).exec()
        label = answer.output_tensors()[0].as_numpy()
        assert label.shape[1:] == (1,), label.shape
        given = label
        again = pb_utils.InferenceRequest(
            model_name="next", inputs=[pb_utils.Tensor("label", given)], requested_output_names=["after"]
        ).exec()
        if again.has_error():
            raise pb_utils.TritonModelException(again.error().message())
        return pb_utils.InferenceResponse([pb_utils.Tensor("after", again.output_tensors()[0].as_numpy())])
"""
DATALOADER = """
import numpy
def get_dataloader_fn(batch_size: int):
    def batches():
        scores = numpy.random.default_rng(0).random((6, 5), dtype=numpy.float32)
        for start in range(0, 6, batch_size):
            part = scores[start : start + batch_size]
            yield numpy.arange(start, start + len(part)), {"SCORES": part}, {}
    return batches
"""
SCORES, LABEL = Tensor("SCORES", "FP32", (5,)), Tensor("LABEL", "INT64", (1,))
AFTER, NAME = Tensor("AFTER", "INT64", (1,)), Tensor("NAME", "BYTES", (1,))


def save(file: Path, node: onnx.NodeProto, given: onnx.ValueInfoProto, made: onnx.ValueInfoProto) -> None:
    one = helper.make_tensor("one", TensorProto.INT64, [], [1])
    graph = helper.make_graph([node], "graph", [given], [made], [one] if "one" in node.input else [])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def network(name: str) -> ModelCode:
    return ModelCode("onnx", Entrypoint(f"{name}.onnx", {}), 4)


def step(name: str, declared: Signature, *calls: str) -> ModelCode:
    return ModelCode("triton-python", Entrypoint(f"{name}/step.py", {}), 4, declared=declared, name=name, calls=calls)


TOP = Step("top", {"scores": "SCORES"}, {"label": "LABEL"}, network("top"))
NEXT = Step("next", {"label": "LABEL"}, {"after": "AFTER"}, network("next"))
NAMED = Step(
    "named",
    {"label": "AFTER"},
    {"name": "NAME"},
    step("named", Signature((Tensor("label", "INT64", (1,)),), (Tensor("name", "BYTES", (1,)),), 4)),
)
ASKS = Step(
    "asks",
    {"scores": "SCORES"},
    {"after": "AFTER"},
    step(
        "asks",
        Signature((Tensor("scores", "FP32", (5,)),), (Tensor("after", "INT64", (1,)),), 4),
        "top",
        "next",
    ),
)

ASKING_ENSEMBLE = ModelCode(
    "ensemble",
    Entrypoint("", {}),
    4,
    EnsembleCode((SCORES,), (AFTER,), (ASKS,), tuple(Step(name, {}, {}, network(name)) for name in ("top", "next"))),
)


@pytest.fixture
def source(mount: Path) -> Path:
    """The published source: the place of the largest score, one after it, and the steps."""
    directory = layout.source_directory(SOURCE)
    for name, text in {"named/step.py": STEP, "asks/step.py": ASKING, "data.py": DATALOADER}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 5])
    label, after = (helper.make_tensor_value_info(each, TensorProto.INT64, ["batch"]) for each in ("label", "after"))
    save(directory / "top.onnx", helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0), scores, label)
    save(directory / "next.onnx", helper.make_node("Add", ["label", "one"], ["after"]), label, after)
    return directory


def refer(code: ModelCode) -> ReferenceResult:
    return run_reference(
        ReferenceRequest(KEY, SOURCE, code, Entrypoint("data.py", {}), 64, needs_labels=False, batch_sizes=())
    )


def test_what_a_network_answers_has_one_dimension_after_the_batch_for_the_next_model_and_the_client(
    source: Path,
) -> None:
    code = ModelCode(
        "ensemble", Entrypoint("", {}), 4, EnsembleCode((SCORES,), (LABEL, AFTER, NAME), (TOP, NEXT, NAMED))
    )
    assert refer(code).signature.outputs == (LABEL, AFTER, NAME)
    batches = list(read_batches(layout.reference_directory(KEY)))
    assert [batch.outputs["LABEL"].shape for batch in batches] == [(4, 1), (2, 1)]
    for batch in batches:
        top = batch.inputs["SCORES"].argmax(1)[:, None]
        numpy.testing.assert_array_equal(batch.outputs["LABEL"], top)
        numpy.testing.assert_array_equal(batch.outputs["AFTER"], top + 1)
        assert batch.outputs["NAME"].tolist() == [["odd" if each % 2 == 0 else "even"] for each in top[:, 0]]
    run_convert(ensemble_conversion(code, "words", KEY, key=REVISION, source=SOURCE))
    for name, side in (("top", "output"), ("next", "input"), ("next", "output")):
        (tensor,) = getattr(parsed(layout.model_repository(REVISION) / name), side)
        assert (list(tensor.dims), tensor.HasField("reshape"), list(tensor.reshape.shape)) == ([1], True, [])


def test_so_it_has_for_a_step_that_asks(source: Path) -> None:
    assert refer(ASKING_ENSEMBLE).signature.outputs == (AFTER,)
    for batch in read_batches(layout.reference_directory(KEY)):
        numpy.testing.assert_array_equal(batch.outputs["AFTER"], batch.inputs["SCORES"].argmax(1)[:, None] + 1)


def test_a_step_that_asks_with_the_batch_alone_is_refused_as_by_a_server(source: Path) -> None:
    (source / "asks/step.py").write_text(ASKING.replace("given = label", "given = label[:, 0]"))
    with pytest.raises(StageError, match=r"model next: input label is \[4\], but a server takes \[4, 1\]") as failed:
        refer(ASKING_ENSEMBLE)
    assert failed.value.reason is Reason.FRAMEWORK_FAILED


class Table:
    """Code: nothing declares what it takes."""

    inputs, outputs, open_axes, path, source = ("label",), ("row",), dict[str, tuple[int, ...]](), "table.py", Path()

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        return {"row": numpy.arange(15.0).reshape(5, 3)[inputs["label"]]}


def test_code_that_declares_no_shapes_gets_what_the_network_before_it_answers(source: Path) -> None:
    """As its author connects them in Python; config.pbtxt then has ``reshape`` for it, too."""
    row = Tensor("ROW", "FP32", (3,))
    table = Step("table", {"label": "LABEL"}, {"row": "ROW"}, ModelCode("pyt", Entrypoint("table.py", {}), 4))
    code = EnsembleCode((SCORES,), (LABEL, row), (TOP, table))
    top = framework.load(source, TOP.code, "onnx")
    answer = Ensemble((Member(TOP, top), Member(table, Table())), {}, code, source)
    scores = numpy.eye(5, dtype=numpy.float32)[[3, 1]]
    assert answer({"SCORES": scores})["LABEL"].tolist() == [[3], [1]]
    assert answer({"SCORES": scores})["ROW"].tolist() == [[9.0, 10.0, 11.0], [3.0, 4.0, 5.0]]
