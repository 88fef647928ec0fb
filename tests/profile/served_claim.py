"""A repository claim with references, sources and one revision of many models, as earlier stages leave them."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy
import onnx_models
from linear_model import MAX_BATCH_SIZE, SIGNATURE, batches, weights

from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.replay import write_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelConfig
from triton_converters.contract.measurement_requests import (
    KeptOutputs,
    Load,
    Measurement,
    MeasureRequest,
    MetricsRequest,
    ProfileRequest,
    Sweep,
    Tolerance,
)
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.measuring.perf_input import PerfInput, file_name
from triton_converters.model_config.model import Execution, render

REVISION = "5e7e15105e7e1510"
SOURCE = "a" * 64
SAMPLES = 40
METRICS = """
class MetricsCalculator:
    def calc(self, *, ids, y_pred, x, y_real):
        hits = y_pred["LOGITS"].argmax(axis=1) == y_real["LABEL"]
        return {"top1": hits.mean(), "samples": len(ids)}
"""
VARYING = Signature((Tensor("X", "FP32", (-1,)),), (Tensor("Y", "FP32", (-1,)),), 4)
WHOLE = Signature((Tensor("X", "FP32", (-1, 3)),), (Tensor("Y", "FP32", (-1, 3)),), 0)
BUMPY = Signature((Tensor("ROUNDS", "INT64", (1,)),), (Tensor("DONE", "FP32", (1,)),), 1)
WORDS = Signature(
    (Tensor("WORDS", "BYTES", (2,)),), (Tensor("SAME", "BYTES", (2,)), Tensor("FOREIGN", "BYTES", (2,))), 4
)
KNOWN = {"red": "rot", "green": "grün", "a" * 500: "ä" * 3000}
REFERENCES = {"linear": SIGNATURE, "varying": VARYING, "whole": WHOLE, "bumpy": BUMPY, "words": WORDS}
BUMPY_ROUNDS = (20,) * 7 + (2000,)
"""One request in eight takes a hundred times as long as the others."""


def build(root: Path) -> Path:
    """Write everything below ``root``; gives it back."""
    _reference(root, "linear", batches(SAMPLES))
    xs = [numpy.full((2, length), length, dtype=numpy.float32) for length in (7, 3, 7, 5)]
    _reference(root, "varying", (Batch(numpy.arange(2), {"X": x}, {}, {"Y": x * 2}) for x in xs))
    xs = [numpy.full((rows, 3), rows, dtype=numpy.float32) for rows in (2, 5)]
    _reference(root, "whole", (Batch(numpy.arange(1), {"X": x}, {}, {"Y": x * 2}) for x in xs))
    rounds = numpy.array(BUMPY_ROUNDS).reshape(-1, 1)
    done = {"DONE": rounds.astype(numpy.float32)}
    _reference(root, "bumpy", [Batch(numpy.arange(len(rounds)), {"ROUNDS": rounds}, {}, done)])
    pairs = numpy.array([["red", "green"], ["green", ""], ["größer", "red"], ["a" * 500, "red"], ["", "red"]])
    foreign = numpy.array([[KNOWN.get(word, "") for word in pair] for pair in pairs.tolist()])
    _reference(root, "words", [Batch(numpy.arange(5), {"WORDS": pairs}, {}, {"SAME": pairs, "FOREIGN": foreign})])
    source = layout.source_directory(SOURCE, root)
    source.mkdir(parents=True)
    (source / "metrics.py").write_text(METRICS)
    one_nan = weights()
    one_nan[0, 0] = numpy.nan
    for name, content, signature in (
        ("linear", onnx_models.linear(), SIGNATURE),
        ("scaled", onnx_models.linear(weights() * 1.05), SIGNATURE),
        ("swapped", onnx_models.linear(names=("SCALED", "LOGITS")), SIGNATURE),
        ("broken", onnx_models.linear(one_nan), SIGNATURE),
        ("frozen", onnx_models.linear(rows=1), SIGNATURE),
        ("half", onnx_models.half(onnx_models.linear), SIGNATURE),
        ("smaller", onnx_models.linear(), replace(SIGNATURE, max_batch_size=4)),
        ("varying", onnx_models.doubling(["N", "L"]), VARYING),
        ("whole", onnx_models.doubling(["L", 3]), WHOLE),
        ("bumpy", onnx_models.bumpy(), BUMPY),
        ("words", onnx_models.translation(KNOWN), WORDS),
        ("misread", onnx_models.translation(KNOWN | {"red": "blau"}), WORDS),
    ):
        _model(root, name, content, signature)
    (root / "measurements").mkdir()
    return root


def profile_request(key: str, model: str, ports: tuple[int, int, int], reference: str = "linear") -> ProfileRequest:
    """A small request; small windows, since the machine is shared and figures are not what is tested."""
    signature = REFERENCES[reference]
    return ProfileRequest(
        key=key,
        revision=REVISION,
        reference=reference,
        model_name=model,
        max_batch_size=signature.max_batch_size,
        format="onnx",
        precision="fp32",
        tolerance=Tolerance(1e-4, 1e-4),
        keep_outputs=False,
        load=load(ports),
        offline=Sweep((1, max(1, signature.max_batch_size)), (1,), True),
        online=Sweep((1,), (1, 2), False),
    )


def metrics_request(key: str, *candidates: KeptOutputs) -> MetricsRequest:
    return MetricsRequest(key, SOURCE, "linear", "onnx", MAX_BATCH_SIZE, Entrypoint("metrics.py", {}), candidates)


def measure_request(key: str, model: str, ports: tuple[int, int, int]) -> MeasureRequest:
    return MeasureRequest(key, REVISION, "linear", model, MAX_BATCH_SIZE, load(ports), Sweep((1,), (1, 2, 4), False))


def load(ports: tuple[int, int, int], stability_percentage: int = 90) -> Load:
    measurement = Measurement("TimeWindows", 20, 200, stability_percentage)
    return Load(f"localhost:{ports[1]}", "grpc", f"localhost:{ports[0]}", (), measurement)


def _reference(root: Path, key: str, content: Iterable[Batch]) -> None:
    """Keys of tests are words; the signature is what REFERENCES says."""
    signature, directory = REFERENCES[key], layout.reference_directory(key, root)
    directory.mkdir(parents=True)
    perf_input, samples, number = PerfInput(signature.max_batch_size > 0), 0, 0
    for number, batch in enumerate(content):
        write_batch(directory, number, batch)
        perf_input.add(batch.inputs)
        samples += len(batch.ids) if signature.max_batch_size else 1
    (directory / file_name(signature.max_batch_size, 1)).write_text(perf_input.to_json())
    write_result(directory, "reference", key, ReferenceResult(signature, samples, number + 1, 0.1))


def _model(root: Path, name: str, content: bytes, signature: Signature) -> None:
    directory = layout.model_repository(REVISION, root) / name
    (directory / "1").mkdir(parents=True)
    (directory / "1" / "model.onnx").write_bytes(content)
    batching = signature.max_batch_size > 1
    config = ModelConfig(1, "KIND_AUTO", batching, (), 0, cuda_graphs=False, warmup=False, parameters={})
    (directory / "config.pbtxt").write_text(render(signature, config, Execution("onnx", "none", 0, ""), {}))
