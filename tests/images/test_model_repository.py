"""A model's folder of a Triton repository: the real server has the settings of the user's config.pbtxt."""

from collections.abc import Callable

import numpy
import pytest
import tritonclient.grpc as triton

from tests.converters.conftest import mount
from tests.converters.test_model_repository import CONFIG, GRAPH, Deploy, deploy, served
from tests.images.server import Server, wait_ready
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout

__all__ = ["deploy", "mount"]
pytestmark = pytest.mark.images


def test_a_server_has_the_settings_of_the_file_and_answers_alike(deploy: Deploy, start: Callable[..., Server]) -> None:
    files: dict[str, bytes | str] = {"models/ocr/config.pbtxt": CONFIG, "models/ocr/1/model.onnx": GRAPH}
    _, ran = deploy(files)
    repository = served(ran)[0].parent
    for path in (repository, *repository.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    client = wait_ready(start(repository)).client()
    config = client.get_model_config("reader").config
    assert (config.max_batch_size, config.instance_group[0].count) == (8, 2)
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 16
    assert config.parameters["intra_op_thread_count"].string_value == "1"
    batch = next(iter(read_batches(layout.reference_directory(ran.requests["reference"].key))))
    images = batch.inputs["images"]
    given = triton.InferInput("images", images.shape, "FP32")
    given.set_data_from_numpy(images)
    answer = client.infer("reader", [given]).as_numpy("scores")
    numpy.testing.assert_allclose(answer, batch.outputs["scores"], atol=1e-5)
