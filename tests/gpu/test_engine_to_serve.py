"""The engine that `served.py` serves, built as the convert Job builds it."""

import os
from pathlib import Path

import numpy
import pytest

from tests.converters.onnx_models import inputs
from tests.gpu.model import MODEL, SIGNATURE
from triton_converters.claim_store.dump import Batch
from triton_converters.contract.conversion_requests import TensorRtOptions
from triton_converters.contract.formats import FORMATS
from triton_converters.convert import tensorrt_library
from triton_converters.convert.tensorrt_library import Library
from triton_converters.convert.trt import profile_shapes

pytestmark = pytest.mark.gpu


def test_the_engine_to_serve_is_built(library: Library) -> None:
    folder = Path(os.environ["GPU_FOLDER"])
    example = Batch(numpy.arange(2), inputs(MODEL), {}, {})
    graph = folder / "models/graph/1" / FORMATS["onnx"].file
    options = TensorRtOptions(workspace_bytes=2**30, builder_optimization_level=3)
    built = tensorrt_library.build(library, graph, profile_shapes([example], SIGNATURE, 0), options, b"")
    (folder / "models/engine/1" / FORMATS["trt"].file).write_bytes(built.plan)
    (folder / "tensorrt").write_text(library.version)
