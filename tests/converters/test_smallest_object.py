"""A source on a web server and a path are a whole object: the planner's requests, run by the Jobs' own programs."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy
import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

from tests.converters.https_server import Server
from tests.converters.onnx_models import Graph
from tests.converters.run_stage import run_convert, run_reference
from tests.converters.test_length_first import attention, detections, recurrent, single, square
from tests.simulation.answers import Script
from tests.simulation.cluster import Cluster
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest
from triton_converters.contract.document import Document
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.results import ReferenceResult, Signature
from triton_converters.measuring import load_input
from triton_converters.stages import source

PROGRAMS: dict[str, Callable[[Any], Document]] = {
    "source": source.run,
    "reference": run_reference,
    "convert": run_convert,
}
"""What the simulation's Jobs run for real; there is no server to profile."""


class Ran:
    """Answers of the programs, each run once, and their requests by stage."""

    def __init__(self) -> None:
        self.requests: dict[str, Any] = {}
        self.answers: dict[str, Script] = {}

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """Return how the Job ends."""
        self.requests[stage] = request
        if stage not in PROGRAMS:
            return Script()
        if request.key not in self.answers:
            self.answers[request.key] = self._run(stage, request)
        return self.answers[request.key]

    def _run(self, stage: str, request: Any) -> Script:
        try:
            return Script(answer=Outcome(stage, request.key, PROGRAMS[stage](request)).to_json())
        except StageError as error:
            return Script(exit_code=EXIT_FINAL, reason=error.reason, message=error.message)


def classifier(images: Any, scores: Any) -> bytes:
    """A small classifier of pictures, with the first dimensions of its input and its output."""
    graph = Graph()
    features = graph.add("GlobalAveragePool", graph.conv("images", 3, 8, 3, 2))
    softmax = graph.add("Softmax", graph.add("Flatten", features))
    model = graph.model(
        {"images": (TensorProto.FLOAT, [images, 3, 32, 32])}, {"scores": (softmax, TensorProto.FLOAT, [scores, 8])}
    )
    return bytes(model.SerializeToString())


def deployed(server: Server) -> tuple[Cluster, Ran]:
    """The object of the server's file, at rest."""
    ran = Ran()
    digest = hashlib.sha256(server.behaviour.content).hexdigest()
    spec = {"source": {"uri": server.uri(), "sha256": digest}, "models": [{"name": "ocr", "path": "ocr.onnx"}]}
    cluster = Cluster(spec, ran)
    cluster.settle()
    return cluster, ran


@pytest.mark.parametrize(
    ("first", "size", "shape"),
    [((1, 1), 0, (1, 3, 32, 32)), (("N", "N"), 4, (4, 3, 32, 32)), (("unk__9", "unk__10"), 4, (4, 3, 32, 32))],
    ids=["fixed", "open", "from TensorFlow"],
)
def test_a_file_on_a_web_server_needs_nothing_else(
    server: Server, first: tuple[Any, Any], size: int, shape: tuple[int, ...]
) -> None:
    server.behaviour.content = classifier(*first)
    cluster, ran = deployed(server)
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    (model,) = cluster.status["resolved"]["models"]
    assert (model["format"], model["maxBatchSize"]) == ("onnx", size)
    assert cluster.status["signature"]["maxBatchSize"] == size
    reference, convert = ran.requests["reference"], ran.requests["convert"]
    assert isinstance(reference, ReferenceRequest)
    assert isinstance(convert, ConvertRequest)
    batches = list(read_batches(layout.reference_directory(reference.key)))
    assert [each.inputs["images"].shape for each in batches] == [shape] * 8
    assert len(numpy.unique(batches[0].outputs["scores"])) > 1
    revision = layout.model_repository(convert.key) / "ocr"
    config = text_format.Parse((revision / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (size, size > 0)
    dims = [list(each.dims) for each in (*config.input, *config.output)]
    assert dims == ([[3, 32, 32], [8]] if size else [[1, 3, 32, 32], [1, 8]])
    onnx.checker.check_model(str(revision / "1/model.onnx"))
    verified = cluster.condition("Verified")
    assert verified["reason"] == "GeneratedInputs"
    assert "inputs were generated: images FP32[" in verified["message"]


@pytest.mark.parametrize(
    ("model", "tries", "dims", "sample"),
    [
        (recurrent("seq", "batch"), 1, [[-1, -1, 6], [-1, -1, 8]], [224, 1, 6]),
        (recurrent("s0", "s1"), 2, [[-1, -1, 6], [-1, -1, 8]], [1, 224, 6]),
        (attention("points"), 1, [[-1, 4], [-1, 4]], [224, 4]),
        (attention("n"), 2, [[-1, 4], [-1, 4]], [1, 4]),
        (square("n", "n"), 1, [[-1, -1], [-1, -1]], [224, 224]),
        (detections("batch"), 2, [[-1, 3, 8], [-1, 3]], [1, 3, 8]),
        (single("N"), 2, [[-1, 4], [1, 4]], [1, 4]),
    ],
    ids=["recurrent", "unnamed", "points", "n", "square", "detections", "single"],
)
def test_a_first_axis_that_counts_no_samples_is_a_part_of_every_request(
    server: Server, model: Any, tries: int, dims: list[list[int]], sample: list[int]
) -> None:
    server.behaviour.content = model.SerializeToString()
    cluster, ran = deployed(server)
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    assert cluster.story.count("reference") == tries
    assert cluster.status["resolved"]["models"][0]["maxBatchSize"] == 0
    revision = layout.model_repository(ran.requests["convert"].key) / "ocr"
    config = text_format.Parse((revision / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (0, False)
    assert [list(each.dims) for each in (*config.input, *config.output)] == dims
    (warmup,) = config.model_warmup
    assert warmup.batch_size == 1
    assert list(warmup.inputs["x"].dims) == sample
    profile = ran.requests["profile"]
    assert (profile.offline.batch_sizes, profile.online.batch_sizes) == ((1,), (1,))
    reference = layout.reference_directory(ran.requests["reference"].key)
    signature = signature_of(ran)
    document = load_input.prepare(reference, reference, (), signature).of_shapes[0].document
    assert [list(each.dims) for each in load_input.varying_shapes(document, signature)] == [sample]
    assert list(load_input.first_request(document, signature)["x"].shape) == sample


def signature_of(ran: Ran) -> Signature:
    answer = ran.answers[ran.requests["reference"].key].answer
    assert answer is not None
    result = Outcome.from_json(answer).result
    assert isinstance(result, ReferenceResult)
    return result.signature


def test_a_classifier_of_scikit_learn_is_served_with_its_probabilities_as_a_tensor(server: Server) -> None:
    classes = {"domain": "ai.onnx.ml", "classlabels_int64s": [0, 1, 2]}
    zipped = helper.make_node("ZipMap", ["scores"], ["probabilities"], **classes)
    dictionary = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["scores"]), zipped],
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_value_info("probabilities", helper.make_sequence_type_proto(dictionary))],
    )
    operators = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    server.behaviour.content = helper.make_model(graph, opset_imports=operators, ir_version=8).SerializeToString()
    cluster, ran = deployed(server)
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    assert cluster.status["signature"]["maxBatchSize"] == 4
    assert cluster.status["signature"]["outputs"] == [{"name": "probabilities", "dataType": "FP32", "dims": [3]}]
    (batch, *_) = read_batches(layout.reference_directory(ran.requests["reference"].key))
    assert numpy.allclose(batch.outputs["probabilities"].sum(axis=1), 1)


def test_what_is_no_model_says_so_before_anything_is_run(server: Server) -> None:
    server.behaviour.content = b"<html>sign in</html>"
    cluster, ran = deployed(server)
    assert cluster.condition("Stalled")["reason"] == "FormatNotFound"
    assert set(ran.requests) == {"source"}
