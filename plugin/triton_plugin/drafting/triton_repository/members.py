"""What one folder of a repository becomes: an entry of spec.models. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from triton_converters.contract.formats import TRITON_PYTHON
from triton_converters.contract.repository_config import BACKENDS, OTHER_BACKENDS, TAKEN, UNBATCHED
from triton_converters.contract.text import quoted
from triton_operator.api.format_rules import OF_TRITON
from triton_plugin.drafting.triton_repository import code, pbtxt, tensors
from triton_plugin.drafting.triton_repository.files import DEFAULTS, PYTHON, ModelFiles, Repository
from triton_plugin.drafting.triton_repository.fixed_paths import MOUNT, SCRATCH
from triton_plugin.drafting.triton_repository.notes import Notes, names
from triton_plugin.drafting.triton_repository.pbtxt import Config
from triton_plugin.drafting.triton_repository.settings import batches_nothing, settings

MODEL = "model.py"
NEWEST = -1
ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
OF_STEPS = TAKEN | {"input.optional"}
"""Fields of a Python model's configuration that are taken."""
SETTINGS = ("dynamic_batching", "instance_group.rate_limiter", "optimization")
"""Messages of which ``contract.overrides`` takes some fields, and the CRD judges the text."""
ENVIRONMENT = "EXECUTION_ENV_PATH"
Entry = dict[str, Any]


def member(
    model: ModelFiles,
    name: str,
    version: int,
    largest: int,
    mapped: Collection[str],
    repository: Repository,
    notes: Notes,
) -> Entry:
    """Return the entry of spec.models for a step of an ensemble.

    ``version``: the one that the step names, or ``NEWEST``. ``largest``: the ensemble's batch. ``mapped``: the inputs
    that the step gets. What is wrong is told.
    """
    if model.fault:
        notes.faults.append((model.name, model.fault))
        return {"name": name}
    chosen = _version(model, version, notes)
    if model.backend == PYTHON:
        return _step(model, name, chosen, largest, mapped, repository, notes)
    if model.backend not in BACKENDS.values():
        instead = OTHER_BACKENDS.get(
            model.backend, f"the operator serves {', '.join(dict.fromkeys(BACKENDS.values()))}"
        )
        words = (
            f"backend {quoted(model.backend)} is not supported" if model.backend else "its folder has no model's file"
        )
        notes.faults.append((model.name, f"{words}: {instead}"))
        return {"name": name}
    return _network(model, name, chosen, largest, notes)


def _network(model: ModelFiles, name: str, version: int, largest: int, notes: Notes) -> Entry:
    """Return the entry of a model's file, whose config.pbtxt the source Job takes."""
    config = model.config
    batch = largest if version in model.batched else 0
    if config is None:
        file = next((each for each in DEFAULTS if each in model.versions.get(version, ())), "")
        return {"name": name, "path": f"{model.path}/{version}/{file}", "config": {"maxBatchSize": batch}}
    notes.judge(model.name, config, TAKEN, SETTINGS)
    for side in ("input", "output"):
        tensors.declared(model.name, config, side, notes)
    if config.input or config.max_batch_size:
        batch = config.max_batch_size
    if len(config.instance_group) > 1:
        notes.faults.append(
            (model.name, "it has several instance groups, but the server has one: keep one, with the count")
        )
    return {"name": name, "path": model.path, "config": {"maxBatchSize": batch}}


def _step(
    model: ModelFiles,
    name: str,
    version: int,
    largest: int,
    mapped: Collection[str],
    repository: Repository,
    notes: Notes,
) -> Entry:
    config = model.fields
    file = f"{model.path}/{version}/{config.default_model_filename or MODEL}"
    needs = code.judge(model, file, repository, notes)
    notes.judge(model.name, config, OF_STEPS, SETTINGS)
    if any(pbtxt.word(each, "kind") == "KIND_GPU" for each in config.instance_group):
        notes.left_out.append((model.name, "instance_group.kind: a step runs on the CPU"))
    inputs, outputs = (tensors.declared(model.name, config, side, notes) for side in ("input", "output"))
    batch = config.max_batch_size
    entry: Entry = {"name": name, "format": TRITON_PYTHON, "entrypoint": file}
    if needs.requirements:
        entry["requirements"] = needs.requirements
    if needs.paths.mount:
        entry[MOUNT] = needs.paths.mount
    if needs.paths.scratch:
        entry[SCRATCH] = list(needs.paths.scratch)
    if arguments := _arguments(model, config, notes):
        entry["arguments"] = arguments
    if batches_nothing(config, batch):
        notes.left_out.append((model.name, f"dynamic_batching: {UNBATCHED}"))
    if inputs and outputs:
        entry |= {
            "config": settings(config, batch),
            "inputs": _given(model, inputs, mapped, config, notes),
            "outputs": outputs,
        }
        return entry
    if inputs or outputs:
        notes.faults.append((model.name, "it lists inputs or outputs alone: list both, or neither"))
    notes.missing.append((model.name, "the largest batch that auto_complete_config sets; 0: none"))
    return entry | {"config": settings(config, batch or largest)}


def _given(
    model: ModelFiles, inputs: Sequence[Entry], mapped: Collection[str], config: Config, notes: Notes
) -> list[Entry]:
    """Return the inputs that the step gets: an optional one that no request has is none."""
    optional = {each.name for each in config.input if each.optional}
    unmapped = [each["name"] for each in inputs if each["name"] not in mapped]
    absent = [each for each in unmapped if each in optional]
    if absent:
        notes.left_out.append((model.name, f"optional inputs {names(absent)}: it runs as if no request had them"))
    for each in unmapped:
        if each not in optional:
            notes.faults.append((model.name, f"no step's input_map has its input {quoted(each)}: connect it"))
    return [each for each in inputs if each["name"] not in absent]


def _arguments(model: ModelFiles, config: Config, notes: Notes) -> dict[str, str]:
    """Return the parameters that the code finds in its configuration."""
    given = {name: each.string_value for name, each in sorted(config.parameters.items())}
    if ENVIRONMENT in given:
        message = f"parameters {ENVIRONMENT}: a step runs in the server's Python: list its packages in requirements.txt"
        notes.left_out.append((model.name, message))
    if wrong := [each for each in given if not ARGUMENT.fullmatch(each)]:
        message = (
            f"parameters {names(wrong)}: a name begins with a letter and has letters, digits, _ and -: rename them"
        )
        notes.faults.append((model.name, message))
    if dropped := [each for each in given if each in OF_TRITON and each != ENVIRONMENT]:
        notes.left_out.append(
            (model.name, f"parameters {names(dropped)}: Triton or the operator reads them, no step does")
        )
    return {key: value for key, value in given.items() if key not in OF_TRITON and key not in wrong}


def _version(model: ModelFiles, wanted: int, notes: Notes) -> int:
    """Return the version that is served: the newest of those that ``version_policy`` allows."""
    allowed = model.fields.version_policy.specific.versions
    there = [each for each in model.versions if not allowed or each in allowed]
    if not there:
        message = f"its folder has no version that may be served: add {quoted(f'{model.path}/1')} with the model's file"
        notes.faults.append((model.name, message))
        return 1
    newest = max(there)
    if wanted in (NEWEST, newest):
        return newest
    if wanted in there and model.backend == PYTHON:
        return wanted
    message = f"the ensemble asks for version {wanted}, but served is {newest}"
    notes.faults.append((model.name, f"{message}: set version_policy to that version alone, or add its folder"))
    return newest
