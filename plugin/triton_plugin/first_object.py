"""A first TritonDeployment for a model folder, as commented YAML. Pure."""

import json
import re
from collections.abc import Iterator

from triton_operator.crdgen import NAME_PATTERN
from triton_operator.names import API_VERSION, KIND
from triton_plugin.model_folder import Entrypoint, FolderError, ModelFolder

STAGE_ARGUMENTS = {"batch_size", "precision", "output_format"}
"""What the operator passes by itself to a function that asks for it."""
DATA_ARGUMENTS = re.compile(r"(^|_)(data|dataset)($|_)")
CHECKPOINT_ARGUMENTS = re.compile(r"(^|_)(checkpoint|ckpt|weights|model_path)($|_)")
TODO = "TODO"
NAME_CHARACTERS = 40


def first_object(folder: ModelFolder) -> str:
    """The YAML; what only the user knows is marked TODO. Raises FolderError where there is nothing to convert."""
    if folder.framework == "tensorflow":
        raise FolderError(
            f"{folder.model.path} imports TensorFlow; this command writes objects for PyTorch models only"
        )
    return "\n".join(_lines(folder)) + "\n"


def _lines(folder: ModelFolder) -> Iterator[str]:
    name = object_name(folder.name)
    yield "# Written by `kubectl triton init`. `kubectl triton validate FILE` checks it after every change."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {KIND}"
    yield "metadata:"
    yield f"  name: {name}"
    yield "spec:"
    yield "  # The folder's files on a PersistentVolumeClaim: pvc://CLAIM/PATH (docs/source.md)."
    yield f'  source: {{uri: "pvc://models/{name}"}}'
    if folder.dataloader is None:
        yield "  # TODO: no file defines get_dataloader_fn; write one that yields real inputs (docs/user-files.md)."
        yield "  dataloader: {entrypoint: dataloader.py}"
    else:
        if _wants_data(folder.dataloader):
            yield "  # Mounted read-only at $(DATA)."
            yield f'  data: {{uri: "pvc://datasets/{name}"}}'
        yield "  dataloader:"
        yield f"    entrypoint: {folder.dataloader.path}"
        yield from _arguments(folder.dataloader, folder, "    ")
    if folder.metrics is not None:
        yield "  metrics:"
        yield f"    entrypoint: {folder.metrics.path}"
        yield from _arguments(folder.metrics, folder, "    ")
    yield "  models:"
    yield f"  - name: {name}"
    yield "    format: pyt"
    yield f"    entrypoint: {folder.model.path}"
    yield from _arguments(folder.model, folder, "    ")
    yield "    # 0: the model has no batch dimension."
    yield "    config: {maxBatchSize: 8, dynamicBatching: {}}"
    yield "    # Each is converted, compared with PyTorch's own answers, and measured; the best one serves."
    yield "    candidates:"
    for candidate, kind, precision in (
        ("trace-fp32", "ts-trace", "fp32"),
        ("onnx-fp32", "onnx", "fp32"),
        ("onnx-fp16", "onnx", "fp16"),
    ):
        yield f"    - {{name: {candidate}, format: {kind}, precision: {precision}}}"
    if folder.metrics is not None:
        yield "  # What the served model must be worth, by the names that MetricsCalculator returns."
        yield "  # accuracy:"
        yield "  #   thresholds:"
        yield '  #   - {metric: accuracy, maximumDegradation: "0.01"}'
    yield "  performance:"
    yield "    offline: {batchSizes: [1, 8]}"
    yield "    online: {concurrency: {start: 1, end: 8}}"
    yield "  selection:"
    yield "    objectives: [{metric: Throughput}]"
    yield "    # The latency budget."
    yield '    constraints: [{metric: P99LatencyMicroseconds, maximum: "100000"}]'
    yield "  # On GPU nodes: gpu: {count: 1}, and candidates with accelerator cuda or trt."


def object_name(text: str) -> str:
    """The nearest name that the CRD takes."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:NAME_CHARACTERS].rstrip("-")
    return name if re.fullmatch(NAME_PATTERN, name) else "model"


def _wants_data(dataloader: Entrypoint) -> bool:
    return any(DATA_ARGUMENTS.search(each) for each in dataloader.required)


def _arguments(entrypoint: Entrypoint, folder: ModelFolder, indent: str) -> Iterator[str]:
    asked = [each for each in entrypoint.required if each not in STAGE_ARGUMENTS]
    if not asked:
        return
    yield f"{indent}arguments:"
    for argument in asked:
        value, note = _value(argument, folder)
        yield f"{indent}  {argument}: {json.dumps(value)}" + (f"  # {note}" if note else "")


def _value(argument: str, folder: ModelFolder) -> tuple[str, str]:
    if DATA_ARGUMENTS.search(argument):
        return "$(DATA)", ""
    if CHECKPOINT_ARGUMENTS.search(argument):
        others = folder.checkpoints[1:]
        if folder.checkpoints:
            return folder.checkpoints[0], f"also there: {', '.join(others[:5])}" if others else ""
        return TODO, f"{TODO}: no file {', '.join('*' + each for each in ('.safetensors', '.pt', '.pth'))} was found"
    return TODO, f"{TODO}: it has no default"
