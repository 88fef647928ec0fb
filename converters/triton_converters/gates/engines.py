"""Whether TensorRT inside ONNX Runtime built engines. Where it takes no part of a graph, ONNX Runtime says nothing."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

CACHE = "trt_engine_cache_path"
"""The parameter of config.pbtxt that names the directory in which ONNX Runtime keeps engines."""
ENGINE = "*.engine"
"""The names that ONNX Runtime gives to engines."""
MOST = 1000
"""Most engines of a directory that are counted."""


def directories(repository: Path) -> tuple[Path, ...]:
    """Return the directories that the models of a repository keep engines in."""
    found: dict[Path, None] = {}
    for file in sorted(repository.glob("*/config.pbtxt")):
        config = text_format.Parse(file.read_text(encoding="utf-8"), model_config_pb2.ModelConfig())
        for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator:
            if path := accelerator.parameters.get(CACHE):
                found[Path(path)] = None
    return tuple(found)


def count(caches: Iterable[Path]) -> int:
    """Return how many engines the directories hold, at most MOST each: the server writes what it likes."""
    return sum(sum(1 for _ in islice(path.glob(ENGINE), MOST)) for path in caches)


def check_engines(caches: Iterable[Path]) -> None:
    """Raise StageError(GainsNothing) if one of the directories of a server that has answered holds no engine."""
    if not all(count([path]) for path in caches):
        message = (
            "the server has answered, but TensorRT inside ONNX Runtime built no engine, so the candidate is the same as"
            " without the accelerator trt"
        )
        advice = "read the log of the container tritonserver, and remove the candidate or its accelerator"
        raise StageError(Reason.GAINS_NOTHING, f"{message}; {advice}")
