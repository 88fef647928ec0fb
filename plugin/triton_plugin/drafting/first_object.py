"""A first TritonDeployment for a model folder, as commented YAML. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from triton_converters.contract.accuracy import nearest_name
from triton_converters.contract.formats import DECLARING, REPOSITORY, SHOWN, SOURCE_FORMATS
from triton_converters.contract.text import printable
from triton_operator.crdgen import NAME_PATTERN
from triton_operator.names import API_VERSION, KIND
from triton_plugin.drafting.marks import TODO, WRITTEN
from triton_plugin.drafting.model_folder import ModelFolder
from triton_plugin.drafting.triton_repository.lines import comments, lines
from triton_plugin.reading.found_models import required_arguments
from triton_plugin.reading.python_files import Entrypoint

DATA_ARGUMENTS = re.compile(r"(^|_)(data|dataset)(_(dir|directory|path|root|folder|file))?$")
CHECKPOINT_ARGUMENTS = re.compile(r"(^|_)(checkpoint|ckpt|weights|model_path|model_dir)($|_)")
DIRECTORY = re.compile(r"_dir(ectory)?$")
NAME_CHARACTERS = 40
"""The longest name that the CRD accepts: the names of children are longer."""
MAX_BATCH_SIZE = 8
"""The largest batch of a first object if no option gives one; a comment asks the user to fill in the right one."""
RESOURCES = "resources: {requests: {cpu: 100m}}"
MOST_NAMED_FILES = 5
"""How many other files a comment names, so that it stays one line that can be read."""


@dataclass(frozen=True)
class ObjectOptions:
    """The parts of a first object that the command's options give; a field that is empty or None was not given."""

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
    p99_latency: str = ""
    """Budget of the 99th percentile of latency, as a duration."""
    thresholds: tuple[tuple[str, float], ...] = ()
    """Metrics and their least values."""


def first_object(folder: ModelFolder, options: ObjectOptions) -> str:
    """Return the YAML; what is neither found nor given is marked TODO."""
    # Comments name files, and a file's name may hold anything; values are JSON, which escapes.
    return printable("\n".join(_lines(folder, options))) + "\n"


def _lines(folder: ModelFolder, options: ObjectOptions) -> Iterator[str]:
    name = options.name or object_name(folder.name)
    yield f"{WRITTEN}`. After every change, check it: `kubectl triton validate FILE`."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {KIND}"
    yield "metadata:"
    yield f"  name: {name}"
    yield "spec:"
    if not options.source:
        yield f"  # {TODO}: where the folder's files are: pvc://CLAIM/PATH or configmap://NAME (--source URI)."
    for text in (*notices(folder), *misspelled(folder, options)):
        yield _comment("  ", text)
    digest = f", sha256: {options.sha256}" if options.sha256 else ""
    secret = f", secretRef: {{name: {json.dumps(options.secret)}}}" if options.secret else ""
    yield f"  source: {{uri: {json.dumps(options.source or f'pvc://models/{name}')}{digest}{secret}}}"
    yield from _dataset(folder, options, name)
    yield from _user_files(folder)
    yield from _model(folder, options, name) if folder.pipeline is None else lines(folder.pipeline)
    yield from _pods(folder)
    if options.thresholds:
        yield "  # Accuracy that the served model must reach, by what MetricsCalculator returns."
        yield "  accuracy:"
        yield "    thresholds:"
        for metric, least in options.thresholds:
            yield f"    - {{metric: {json.dumps(metric)}, min: {json.dumps(least)}}}"
    elif folder.metrics and (folder.dataloaders or folder.model.format not in DECLARING):
        yield "  # Accuracy that the served model must reach; the metric is a name that MetricsCalculator returns."
        yield "  # `min` bounds the served model's own figure; `maxDegradation` only its difference to the framework's."
        yield "  # accuracy:"
        yield "  #   thresholds:"
        yield f"  #   - {{metric: accuracy, min: {TODO}, maxDegradation: 0.01}}"
    yield "  # Measured are batch sizes 1 and maxBatchSize, and requests in flight until a server is saturated, within"
    yield "  # a short time. To measure however long that takes:"
    yield "  # performance: {online: {concurrency: {start: 1}}}"
    yield "  selection:"
    yield "    objectives: [{metric: throughput}]"
    if options.p99_latency:
        yield "    # What exceeds this at every load is not rolled out."
        yield f"    constraints: {{p99Latency: {json.dumps(options.p99_latency)}}}"
    else:
        yield "    # Your latency budget, if you have one. What exceeds it at every load is not rolled out."
        yield "    # constraints: {p99Latency: 20ms}"
    if options.gpu:
        yield f"  gpu: {{product: {json.dumps(options.gpu)}}}"
    else:
        yield "  # For GPU nodes, pass --gpu PRODUCT; `kubectl get nodes -L nvidia.com/gpu.product` lists the products."


def notices(folder: ModelFolder) -> Iterator[str]:
    """Yield what the object lacks of the folder, and what has to be added, each with what to do."""
    if folder.pipeline is not None:
        yield from comments(folder.pipeline)
    if folder.steps:
        yield (
            f"Python steps are left out: {_file_list(list(folder.steps))}. To serve them, write a model of format"
            " triton-python for each, and connect all by `ensemble` (docs/python-steps.md)."
        )


def misspelled(folder: ModelFolder, options: ObjectOptions) -> Iterator[str]:
    """Yield a line for each threshold whose metric the folder spells otherwise, if at all.

    It only tells: a name may be computed. What begins or ends the name is a part that it may be computed from.
    """
    for metric, _ in options.thresholds:
        parts = {each for each in folder.metric_words if metric.startswith(each) or metric.endswith(each)}
        if metric not in folder.words and (nearest := nearest_name(metric, folder.metric_words - parts)):
            file = folder.metrics[0].path
            yield f"Check the threshold {metric!r}: {file} does not name it, but has {nearest!r}; is it spelled right?"


def undemanded(folder: ModelFolder, options: ObjectOptions) -> Iterator[str]:
    """Yield a line if the object computes metrics, and serves whatever they are."""
    if folder.metrics and folder.dataloaders and not options.thresholds:
        file = folder.metrics[0].path
        yield f"No threshold bounds the metrics of {file}, so any figure is served: demand a --threshold METRIC=MIN."


def object_name(text: str) -> str:
    """Return the nearest name that the CRD accepts."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:NAME_CHARACTERS].rstrip("-")
    return name if re.fullmatch(NAME_PATTERN, name) else "model"


def _dataset(folder: ModelFolder, options: ObjectOptions, name: str) -> Iterator[str]:
    files = [*folder.dataloaders[:1], *folder.metrics[:1]]
    arguments = [argument for each in files for argument in required_arguments(each)]
    if not options.dataset and not any(DATA_ARGUMENTS.search(each) for each in [*arguments, *folder.model.arguments]):
        return
    yield "  # Mounted read-only at $(DATASET)."
    if not options.dataset:
        yield f"  # {TODO}: where the data is: pvc://CLAIM/PATH (--dataset URI)."
    yield f"  dataset: {{uri: {json.dumps(options.dataset or f'pvc://datasets/{name}')}}}"


def _user_files(folder: ModelFolder) -> Iterator[str]:
    if not folder.dataloaders and folder.model.format in DECLARING:
        graph = "the model's file" if SOURCE_FORMATS[folder.model.format].library else "the model's graph"
        what = "config.pbtxt or the graph" if folder.model.format == REPOSITORY else graph
        yield f"  # Inputs are generated from what {what} declares, and accuracy is not judged."
        yield "  # For real inputs, write a dataloader (docs/user-files.md)."
        return
    yield f"  # Input and label names in the dataloader: {SOURCE_FORMATS[folder.model.format].tensors}."
    if folder.dataloaders:
        yield "  dataloader:"
        yield from _entrypoint(folder.dataloaders, folder)
    else:
        yield f"  # {TODO}: no file defines get_dataloader_fn; write one that yields real inputs (docs/user-files.md)."
        yield "  dataloader: {entrypoint: dataloader.py}"
    if folder.metrics:
        yield "  metrics:"
        yield from _entrypoint(folder.metrics, folder)


def _entrypoint(entrypoints: tuple[Entrypoint, ...], folder: ModelFolder) -> Iterator[str]:
    first, *others = entrypoints
    if others:
        yield _comment("    ", f"{TODO}: check this choice; also found: {_file_list([each.path for each in others])}.")
    yield f"    entrypoint: {json.dumps(first.path)}"
    yield from _arguments(required_arguments(first), first.has_argparser, folder)


def _model(folder: ModelFolder, options: ObjectOptions, name: str) -> Iterator[str]:
    model, source = folder.model, SOURCE_FORMATS[folder.model.format]
    yield "  models:"
    yield f"  - name: {name}"
    if model.format in SHOWN:
        yield f"    # It is {SHOWN[model.format]}."
    if not source.is_file:
        yield f"    format: {model.format}"
    yield f"    {'path' if source.is_file else 'entrypoint'}: {json.dumps(model.path)}"
    yield from _arguments(model.arguments, model.has_argparser, folder)
    if model.format == REPOSITORY and options.max_batch_size is None:
        yield "    # The settings of config.pbtxt in that folder are taken. Those in `config` here would come first."
        yield "    # The candidate is the file as it is. To try other formats, list `candidates` (docs/formats.md)."
        return
    if _follows_graph(folder, options):
        yield "    # The graph shows whether it has a batch dimension; config.maxBatchSize is then 4, and otherwise 0."
    else:
        if options.max_batch_size is None:
            yield f"    # {TODO}: the largest batch; 0: the model has no batch dimension (--max-batch-size N)."
        batching = ", dynamicBatching: {}" if _batch(options) else ""
        yield f"    config: {{maxBatchSize: {_batch(options)}{batching}}}"
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


def _follows_graph(folder: ModelFolder, options: ObjectOptions) -> bool:
    """Whether the largest batch is left to the operator, which looks into the graph."""
    return options.max_batch_size is None and folder.model.format in DECLARING


def _batch(options: ObjectOptions) -> int:
    return MAX_BATCH_SIZE if options.max_batch_size is None else options.max_batch_size


def _arguments(arguments: tuple[str, ...], has_argparser: bool, folder: ModelFolder) -> Iterator[str]:
    if not arguments:
        return
    if has_argparser:
        yield "    # update_argparser in this file may set defaults; leave out the arguments that have one."
    yield "    arguments:"
    for argument in arguments:
        value, note = _value(argument, folder)
        yield f"      {argument}: {json.dumps(value)}{_comment('  ', note) if note else ''}"


def _value(argument: str, folder: ModelFolder) -> tuple[str, str]:
    if DATA_ARGUMENTS.search(argument):
        return "$(DATASET)", ""
    if not CHECKPOINT_ARGUMENTS.search(argument):
        return TODO, f"{TODO}: this argument has no default"
    paths = list(folder.checkpoints)
    if DIRECTORY.search(argument):
        paths = list(dict.fromkeys(PurePosixPath(each).parent.as_posix() for each in paths))
    if not paths:
        return TODO, f"{TODO}: no file {', '.join(f'*{each}' for each in folder.suffixes)} was found"
    return paths[0], f"also found: {_file_list(paths[1:])}" if paths[1:] else ""


def _file_list(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED_FILES} more" if len(names) > MOST_NAMED_FILES else ""
    return ", ".join(names[:MOST_NAMED_FILES]) + more


def _comment(indent: str, text: str) -> str:
    """Return a comment on one line: a file's name may contain anything."""
    return f"{indent}# {' '.join(text.split())}"
