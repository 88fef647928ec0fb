"""Models that do not load say why, in the words of NVIDIA's backends."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tests.images.server import Server, wait_ready
from tests.images.test_backends import ask, rows

pytestmark = pytest.mark.images

MESSAGES = {
    "onnxruntime_accelerator": "unknown Execution Accelerator 'openvino' is requested",
    "onnxruntime_bf16": "unsupported datatype TYPE_BF16 for input 'x'",
    "onnxruntime_corrupt": "onnx runtime error 7: Load model from .*model.onnx failed",
    "onnxruntime_fixed_batch": r"the first dimension must be -1; but shape expected by the model is \[1,4\]",
    "onnxruntime_input_name": "unexpected inference input 'wrong', allowed inputs are: x",
    "onnxruntime_input_rank": r"the model expects 2 dimensions \(shape \[-1,4\]\) but .* specifies 3 dimensions",
    "onnxruntime_input_type": "configuration expects datatype TYPE_FP16 for input 'x', model provides TYPE_FP32",
    "onnxruntime_inputs": "configuration expects 2 inputs, model provides 1",
    "onnxruntime_missing": "unable to find '/models/onnxruntime_missing/1/model.onnx'",
    "onnxruntime_output_dim": r"the model expects 2 dimensions \(shape \[-1,4\]\) but .* complete shape \[-1,5\]",
    "onnxruntime_output_name": "unexpected inference output 'wrong', allowed outputs are: y",
    "onnxruntime_output_type": "configuration expects datatype TYPE_INT32 for output 'y', model provides TYPE_FP32",
    "onnxruntime_parameter": "parameter 'intra_op_thread_count' with value 'many'",
    "onnxruntime_string": "configuration expects datatype TYPE_STRING for input 'x', model provides TYPE_FP32",
    "onnxruntime_unbatched": r"expects 2 dimensions \(shape \[-1,4\]\) but the model configuration specifies 1 dim",
    "pytorch_bf16": "unsupported datatype TYPE_BF16 for input 'x'",
    "pytorch_corrupt": "failed to load model 'pytorch_corrupt': ",
    "pytorch_inputs": "configuration expects 2 inputs, model provides 1",
    "pytorch_missing": "unable to find '/models/pytorch_missing/1/model.pt'",
    "pytorch_string": "unsupported datatype TYPE_STRING for input 'x' for model 'pytorch_string'",
    "pytorch_output_index": "output OUTPUT__1 in the model configuration refers to an output index which doesn't exist",
}


@pytest.mark.parametrize("model", MESSAGES)
def test_model_is_refused(explicit: Server, model: str) -> None:
    with pytest.raises(InferenceServerException) as error:
        explicit.client().load_model(model)
    assert re.search(MESSAGES[model], str(error.value))
    assert not explicit.client().is_model_ready(model)


def test_output_type_is_checked_by_the_answer(explicit: Server) -> None:
    client = explicit.client()
    client.load_model("pytorch_output_type")
    with pytest.raises(InferenceServerException, match="TYPE_INT32 for output 'y', model provides TYPE_FP32"):
        ask(explicit, "pytorch_output_type", x=rows(1))
    client.unload_model("pytorch_output_type")


def test_server_with_a_corrupt_model_exits(repositories: Path, start: Callable[..., Server]) -> None:
    server = start(repositories / "corrupt", "--model-control-mode=none")
    assert server.process.wait(300) == 1
    assert "onnx runtime error 7: Load model from /models/model/1/model.onnx failed" in server.log()
    assert "failed to load all models" in server.log()


def test_load_with_config_changes_a_model(repositories: Path, start: Callable[..., Server]) -> None:
    """What a search of configurations does; and the server ends soon after SIGTERM."""
    server = start(repositories / "good", "--model-control-mode=explicit", "--load-model=onnxruntime_batch")
    client = wait_ready(server).client()
    before = client.get_model_config("onnxruntime_batch", as_json=True)["config"]
    assert before["instance_group"][0].get("count") == 1
    override = (
        '{"backend": "onnxruntime", "max_batch_size": 4, "instance_group": [{"count": 2, "kind": "KIND_CPU"}], '
        '"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}], '
        '"output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [4]}]}'
    )
    client.load_model("onnxruntime_batch", config=override)
    after = client.get_model_config("onnxruntime_batch", as_json=True)["config"]
    assert (after["instance_group"][0]["count"], after["max_batch_size"]) == (2, 4)
    np.testing.assert_array_equal(ask(server, "onnxruntime_batch", x=rows(3)).as_numpy("y"), rows(6))
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 10
    assert "instance 'onnxruntime_batch_0_0': " in server.log()
