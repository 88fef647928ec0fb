"""What a benchmark's server and its profile stage find on a claim: a reference, and models of a revision."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from bench.gates.trial import FILE, Reference, reference
from triton_converters.claim_store.dump import Array
from triton_converters.claim_store.replay import write_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ModelConfig
from triton_converters.contract.results import ReferenceResult
from triton_converters.gates.signature import as_served
from triton_converters.model_config.model import Execution, render


def key_of(name: str) -> str:
    """Return a key of a name: 16 hexadecimal digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def publish_reference(made: Reference, key: str, root: Path) -> Reference:
    """Move a reference to where its key has it on the claim at ``root``, and return it there."""
    directory = layout.reference_directory(key, root)
    directory.parent.mkdir(parents=True, exist_ok=True)
    made.directory.rename(directory)
    write_result(directory, "reference", key, ReferenceResult(made.signature, made.samples, made.batches, 0.1))
    return replace(made, directory=directory)


def publish_model(
    root: Path, revision: str, name: str, graph: Any, batch: int, samples: list[dict[str, Array]]
) -> Reference:
    """Put a reference and a revision with one model below ``root``, and return the reference, whose key is the name's.

    ``batch``: the largest one.
    """
    source = root / "work"
    source.mkdir()
    onnx.save(graph, str(source / FILE))
    made = publish_reference(reference(source, batch, source / "reference", samples), key_of(name), root)
    model = layout.model_repository(revision, root) / name
    (model / "1").mkdir(parents=True)
    (source / FILE).rename(model / "1" / "model.onnx")
    write_config(model, made, dynamic_batching=True)
    return made


def write_config(directory: Path, made: Reference, dynamic_batching: bool) -> None:
    """Write config.pbtxt of the ONNX file in ``directory``/1, for one instance on the CPU."""
    signature = as_served(made.signature, directory / "1" / "model.onnx", "onnx")
    config = ModelConfig(1, "KIND_CPU", dynamic_batching, (), 0, cuda_graphs=False, warmup=False, parameters={})
    text = render(signature, config, Execution("onnx", "none", 0, ""), {})
    (directory / "config.pbtxt").write_text(text, encoding="utf-8")
