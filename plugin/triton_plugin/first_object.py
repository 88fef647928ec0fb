"""A first TritonDeployment for a model folder, as commented YAML. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from triton_converters.contract.formats import DECLARING, REPOSITORY, SOURCES
from triton_converters.contract.text import printable
from triton_operator.crdgen import NAME_PATTERN
from triton_operator.names import API_VERSION, KIND
from triton_plugin.found_models import asked_of
from triton_plugin.model_folder import ModelFolder
from triton_plugin.python_files import Entrypoint

DATA_ARGUMENTS = re.compile(r"(^|_)(data|dataset)(_(dir|directory|path|root|folder|file))?$")
CHECKPOINT_ARGUMENTS = re.compile(r"(^|_)(checkpoint|ckpt|weights|model_path|model_dir)($|_)")
DIRECTORY = re.compile(r"_dir(ectory)?$")
TODO = "TODO"
NAME_CHARACTERS = 40
MAX_BATCH_SIZE = 8
RESOURCES = "resources: {requests: {cpu: 100m}}"
NAMED = 5
"""How many other files a comment names."""


@dataclass(frozen=True)
class Known:
    """What only the user can know, from the command's options; empty or None: not given."""

    name: str = ""
    """Name of the object and its model."""
    source: str = ""
    sha256: str = ""
    """Digest of the source."""
    secret: str = ""
    """Secret with the credentials for the source."""
    dataset: str = ""
    gpu: str = ""
    """Product of the nodes' GPUs."""
    max_batch_size: int | None = None


def first_object(folder: ModelFolder, known: Known) -> str:
    """Return the YAML; what is neither found nor given is marked TODO."""
    # Comments name files, and a file's name may hold anything; values are JSON, which escapes.
    return printable("\n".join(_lines(folder, known))) + "\n"


def _lines(folder: ModelFolder, known: Known) -> Iterator[str]:
    name = known.name or object_name(folder.name)
    yield "# Written by `kubectl triton`. After every change, check it: `kubectl triton validate FILE`."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {KIND}"
    yield "metadata:"
    yield f"  name: {name}"
    yield "spec:"
    if not known.source:
        yield f"  # {TODO}: where the folder's files are: pvc://CLAIM/PATH or configmap://NAME (--source URI)."
    digest = f", sha256: {known.sha256}" if known.sha256 else ""
    secret = f", secretRef: {{name: {json.dumps(known.secret)}}}" if known.secret else ""
    yield f"  source: {{uri: {json.dumps(known.source or f'pvc://models/{name}')}{digest}{secret}}}"
    yield from _dataset(folder, known, name)
    yield from _user_files(folder)
    yield from _model(folder, known, name)
    yield from _pods(folder)
    if folder.metrics and (folder.dataloaders or folder.model.format not in DECLARING):
        yield "  # Accuracy that the served model must reach; the metric is a name that MetricsCalculator returns."
        yield "  # accuracy:"
        yield "  #   thresholds:"
        yield "  #   - {metric: accuracy, maxDegradation: 0.01}"
    yield "  # A short first run. For more points, add batch sizes and raise end (set step for a wide range)."
    yield "  performance:"
    if not _follows_graph(folder, known):
        yield f"    offline: {{batchSizes: {sorted({1, max(1, _batch(known))})}}}"
    yield "    online: {concurrency: {start: 1, end: 4}}"
    yield "  selection:"
    yield "    objectives: [{metric: throughput}]"
    yield "    # Your latency budget, if you have one. What exceeds it at every load is not rolled out."
    yield "    # constraints: {p99Latency: 20ms}"
    if known.gpu:
        yield f"  gpu: {{product: {json.dumps(known.gpu)}}}"
    else:
        yield "  # For GPU nodes, pass --gpu PRODUCT; `kubectl get nodes -L nvidia.com/gpu.product` lists the products."


def object_name(text: str) -> str:
    """Return the nearest name that the CRD accepts."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:NAME_CHARACTERS].rstrip("-")
    return name if re.fullmatch(NAME_PATTERN, name) else "model"


def _dataset(folder: ModelFolder, known: Known, name: str) -> Iterator[str]:
    files = [*folder.dataloaders[:1], *folder.metrics[:1]]
    asked = [argument for each in files for argument in asked_of(each)]
    if not known.dataset and not any(DATA_ARGUMENTS.search(each) for each in [*asked, *folder.model.asks]):
        return
    yield "  # Mounted read-only at $(DATASET)."
    if not known.dataset:
        yield f"  # {TODO}: where the data is: pvc://CLAIM/PATH (--dataset URI)."
    yield f"  dataset: {{uri: {json.dumps(known.dataset or f'pvc://datasets/{name}')}}}"


def _user_files(folder: ModelFolder) -> Iterator[str]:
    if not folder.dataloaders and folder.model.format in DECLARING:
        what = "config.pbtxt or the graph" if folder.model.format == REPOSITORY else "the model's graph"
        yield f"  # Inputs are generated from what {what} declares, and accuracy is not judged."
        yield "  # For real inputs, write a dataloader (docs/user-files.md)."
        return
    yield f"  # Input and label names in the dataloader: {SOURCES[folder.model.format].tensors}."
    if folder.dataloaders:
        yield "  dataloader:"
        yield from _entrypoint(folder.dataloaders, folder)
    else:
        yield f"  # {TODO}: no file defines get_dataloader_fn; write one that yields real inputs (docs/user-files.md)."
        yield "  dataloader: {entrypoint: dataloader.py}"
    if folder.metrics:
        yield "  metrics:"
        yield from _entrypoint(folder.metrics, folder)


def _entrypoint(found: tuple[Entrypoint, ...], folder: ModelFolder) -> Iterator[str]:
    first, *others = found
    if others:
        yield _comment("    ", f"{TODO}: check this choice; also found: {_named([each.path for each in others])}.")
    yield f"    entrypoint: {json.dumps(first.path)}"
    yield from _arguments(asked_of(first), first.declares, folder)


def _model(folder: ModelFolder, known: Known, name: str) -> Iterator[str]:
    model, source = folder.model, SOURCES[folder.model.format]
    yield "  models:"
    yield f"  - name: {name}"
    if not source.is_file:
        yield f"    format: {model.format}"
    yield f"    {'path' if source.is_file else 'entrypoint'}: {json.dumps(model.path)}"
    yield from _arguments(model.asks, model.declares, folder)
    if model.format == REPOSITORY and known.max_batch_size is None:
        yield "    # The settings of config.pbtxt in that folder are taken. Those in `config` here would come first."
        yield "    # The candidate is the file as it is. To try other formats, list `candidates` (docs/formats.md)."
        return
    if _follows_graph(folder, known):
        yield "    # The graph shows whether it has a batch dimension; config.maxBatchSize is then 4, and otherwise 0."
    else:
        if known.max_batch_size is None:
            yield f"    # {TODO}: the largest batch; 0: the model has no batch dimension (--max-batch-size N)."
        batching = ", dynamicBatching: {}" if _batch(known) else ""
        yield f"    config: {{maxBatchSize: {_batch(known)}{batching}}}"
    yield "    # The operator chooses up to three candidates: formats and precisions to convert, verify and measure."
    yield "    # To choose them yourself, list them in `candidates` (docs/formats.md)."


def _pods(folder: ModelFolder) -> Iterator[str]:
    yield "  # A pod that requests no CPU gets next to none on a busy node, and a server may then hang as it loads."
    yield "  conversion:"
    if folder.model.format == "tf-estimator":
        yield f"    # {TODO}: an image with TensorFlow 2.15, the last release with Estimators (docs/tensorflow.md)."
        yield f"    image: {TODO}"
    elif folder.requirements:
        yield "    # Python packages that the files import; what the image lacks is installed (docs/user-files.md)."
        yield f"    requirements: {folder.requirements}"
    yield f"    pod: {{{RESOURCES}}}"
    yield f"  serving: {{pod: {{{RESOURCES}}}}}"


def _follows_graph(folder: ModelFolder, known: Known) -> bool:
    """Whether the largest batch is left to the operator, which looks into the graph."""
    return known.max_batch_size is None and folder.model.format in DECLARING


def _batch(known: Known) -> int:
    return MAX_BATCH_SIZE if known.max_batch_size is None else known.max_batch_size


def _arguments(asked: tuple[str, ...], declares: bool, folder: ModelFolder) -> Iterator[str]:
    if not asked:
        return
    if declares:
        yield "    # update_argparser in this file may set defaults; leave out the arguments that have one."
    yield "    arguments:"
    for argument in asked:
        value, note = _value(argument, folder)
        yield f"      {argument}: {json.dumps(value)}{_comment('  ', note) if note else ''}"


def _value(argument: str, folder: ModelFolder) -> tuple[str, str]:
    if DATA_ARGUMENTS.search(argument):
        return "$(DATASET)", ""
    if not CHECKPOINT_ARGUMENTS.search(argument):
        return TODO, f"{TODO}: this argument has no default"
    found = list(folder.checkpoints)
    if DIRECTORY.search(argument):
        found = list(dict.fromkeys(PurePosixPath(each).parent.as_posix() for each in found))
    if not found:
        return TODO, f"{TODO}: no file {', '.join(f'*{each}' for each in folder.suffixes)} was found"
    return found[0], f"also found: {_named(found[1:])}" if found[1:] else ""


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _comment(indent: str, text: str) -> str:
    """Return a comment on one line: a file's name may contain anything."""
    return f"{indent}# {' '.join(text.split())}"
