"""One object of a repository: its models, and the ensemble that connects them. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from triton_converters.contract.text import quoted
from triton_operator.api.ensemble import MODELS
from triton_plugin.drafting.triton_repository import tensors
from triton_plugin.drafting.triton_repository.batches import largest_batch
from triton_plugin.drafting.triton_repository.calls import called
from triton_plugin.drafting.triton_repository.files import ENSEMBLE, ModelFiles, Repository
from triton_plugin.drafting.triton_repository.fixed_paths import keep_apart
from triton_plugin.drafting.triton_repository.members import NEWEST, Entry, member
from triton_plugin.drafting.triton_repository.notes import Notes, RequirementsFile, Words, names
from triton_plugin.drafting.triton_repository.pbtxt import PbtxtError
from triton_plugin.errors import FolderError

OF_ENSEMBLES = frozenset(
    (
        *("name", "platform", "backend", "max_batch_size", "ensemble_scheduling", "version_policy.all"),
        *(f"{side}.{field}" for side in ("input", "output") for field in ("name", "data_type", "dims", "optional")),
        *(f"ensemble_scheduling.step.{field}" for field in ("model_name", "model_version", "input_map", "output_map")),
        *("input.reshape", "output.reshape", "input.format", "response_cache", "model_transaction_policy"),
    )
)
"""Fields of an ensemble's configuration that are taken, or judged by their values."""
UNHEEDED = ("version_policy", "parameters", "model_warmup", "default_model_filename")
"""Fields that change nothing of an ensemble."""
MOST_STEPS = 8 * MODELS
"""Steps that are looked at: ten ensembles, each twice in the one above it, have a thousand."""
FEWER = f"an object has at most {MODELS} models, also of ensembles within it: join some, or serve them apart"
STEP = "_step"
"""Ends the name of a model that was alone: clients use the ensemble's, which has the model's."""


@dataclass(frozen=True)
class Pipeline:
    """What a repository becomes."""

    path: str
    """Path of the folder of the ensemble, or of the Python model, relative to the source."""
    models: tuple[Entry, ...]
    """spec.models."""
    ensemble: Entry
    """spec.ensemble."""
    left_out: Words
    """What the object does not say, by the folder's name."""
    doubts: Words
    """What may fail on a server, by the folder's name."""
    missing: Words
    """What has to be added before it can run, by the folder's name."""
    requirements_files: tuple[RequirementsFile, ...] = ()
    """The requirements files that steps lack."""


@dataclass(frozen=True)
class _Step:
    model: ModelFiles
    version: int
    inputs: dict[str, str]
    outputs: dict[str, str]


def pipeline(repository: Repository, path: str) -> Pipeline:
    """Return the object of an ensemble, or of a Python model that is in none.

    Raises FolderError, which names all models that cannot be served, each with what to do.
    """
    notes, chosen = Notes(), repository.models[path]
    try:
        found = (
            _of_ensemble(repository, chosen, notes) if chosen.backend == ENSEMBLE else _alone(repository, chosen, notes)
        )
    except PbtxtError as error:
        notes.faults.append((chosen.name, str(error)))
    if notes.faults:
        lines = "\n  ".join(f"{name}: {words}" for name, words in dict.fromkeys(notes.faults))
        raise FolderError(f"{path} cannot become an object:\n  {lines}")
    ensemble, models = found
    notes.doubts += keep_apart(models)
    taken = {path, *repository.members, *repository.called}
    others = sorted(each.name for each in repository.models.values() if each.path not in taken)
    left_out = list(dict.fromkeys(notes.left_out))
    if others:
        left_out.append((names(others), "not in this pipeline: write another object to serve it"))
    doubts, missing = (list(dict.fromkeys(each)) for each in (notes.doubts, notes.missing))
    return Pipeline(
        path,
        tuple(models),
        ensemble,
        left_out,
        doubts,
        missing,
        tuple({each.path: each for each in reversed(notes.requirements_files)}.values()),
    )


def _alone(repository: Repository, model: ModelFiles, notes: Notes) -> tuple[Entry, list[Entry]]:
    """Return the ensemble that has the Python model as its one step, under the model's name."""
    config = model.fields
    inputs, outputs = (tensors.declared(model.name, config, side, Notes()) for side in ("input", "output"))
    required = {each.name for each in config.input if not each.optional}
    taken = [each for each in inputs if each["name"] in required] or inputs
    entry = member(model, model.name + STEP, NEWEST, 0, {each["name"] for each in taken}, repository, notes)
    if not inputs or not outputs:
        message = "config.pbtxt lists no input and output, which an ensemble has to declare: list both there"
        notes.faults.append((model.name, message))
    if both := {each["name"] for each in taken} & {each["name"] for each in outputs}:
        message = f"{quoted(min(both))} is the name of an input and of an output: rename one, here and in the file"
        notes.faults.append((model.name, message))
    step = {
        "model": entry["name"],
        "inputMap": [{"input": each["name"], "tensor": each["name"]} for each in taken],
        "outputMap": [{"output": each["name"], "tensor": each["name"]} for each in outputs],
    }
    models = [entry, *called(repository, [(model, entry)], notes)]
    largest = largest_batch(repository, [(model, entry)], config.max_batch_size, notes)
    return _ensemble(model.name, largest, taken, outputs, [step]), models


def _of_ensemble(repository: Repository, chosen: ModelFiles, notes: Notes) -> tuple[Entry, list[Entry]]:
    config = chosen.fields
    notes.judge(chosen.name, config, OF_ENSEMBLES, UNHEEDED)
    for each in config.input:
        if each.optional:
            words = f"input {quoted(each.name)} is optional: here every request has to have it"
            notes.left_out.append((chosen.name, words))
    inputs, outputs = (tensors.declared(chosen.name, config, side, notes) for side in ("input", "output"))
    largest = config.max_batch_size
    found = list(_steps(repository, chosen, notes, (chosen.path,), count(1)))
    if len(found) > MODELS:
        notes.faults.append((chosen.name, f"it has {len(found)} steps; {FEWER}"))
    steps = _ordered(chosen, found, {each["name"] for each in inputs}, notes)
    # Of an ensemble within it, the outer one may leave outputs, which Triton takes of no step.
    used = {each["name"] for each in outputs}.union(*(each.inputs.values() for each in steps))
    models, mapped = [], []
    for step, name in zip(steps, _model_names(steps, notes), strict=True):
        kept = {key: tensor for key, tensor in step.outputs.items() if tensor in used} or step.outputs
        models.append(member(step.model, name, step.version, largest, step.inputs, repository, notes))
        mapped.append(
            {
                "model": name,
                "inputMap": [{"input": key, "tensor": value} for key, value in step.inputs.items()],
                "outputMap": [{"output": key, "tensor": value} for key, value in kept.items()],
            }
        )
    asking = [(step.model, entry) for step, entry in zip(steps, models, strict=True)]
    models += called(repository, asking, notes)
    largest = largest_batch(repository, asking, largest, notes)
    return _ensemble(chosen.name, largest, inputs, outputs, mapped), models


def _ensemble(name: str, largest: int, inputs: Any, outputs: Any, steps: Any) -> Entry:
    return {"name": name, "maxBatchSize": largest, "inputs": inputs, "outputs": outputs, "steps": steps}


def _steps(
    repository: Repository, chosen: ModelFiles, notes: Notes, within: tuple[str, ...], looked_at: Iterator[int]
) -> Iterator[_Step]:
    """Yield the steps of an ensemble.

    ``within``: the paths of the ensembles that it is a step of, itself the last. ``looked_at``: counts all steps.
    Raises PbtxtError for too many.
    """
    for number, step in enumerate(chosen.fields.ensemble_scheduling.step):
        if next(looked_at) > MOST_STEPS:
            raise PbtxtError(f"it has more than {MOST_STEPS} steps; {FEWER}")
        name = step.model_name
        found = repository.sibling(chosen.path, name)
        inputs, outputs = (dict(sorted(side.items())) for side in (step.input_map, step.output_map))
        if found is None:
            words = "the repository has no folder of this model: add it, with config.pbtxt and the model's file"
            notes.faults.append((quoted(name), words))
        elif found.backend != ENSEMBLE:
            yield _Step(found, step.model_version or NEWEST, inputs, outputs)
        elif found.path in within:
            notes.faults.append((found.name, "this ensemble is a step of itself: remove that step"))
        else:
            tensors_outside = {**inputs, **outputs}
            notes.left_out.append((found.name, "the ensemble within this one has no name here: its steps are listed"))
            for each in _steps(repository, found, notes, (*within, found.path), looked_at):
                yield _outside(each, tensors_outside, f"{found.name}_{number}_")


def _outside(step: _Step, outer: Mapping[str, str], prefix: str) -> _Step:
    """Return a step of an ensemble within another with the tensors of the outer one; ``outer``: those that it names."""
    inputs, outputs = (
        {key: outer.get(tensor, f"{prefix}{tensor}") for key, tensor in side.items()}
        for side in (step.inputs, step.outputs)
    )
    return replace(step, inputs=inputs, outputs=outputs)


def _ordered(chosen: ModelFiles, steps: Sequence[_Step], tensors_there: set[str], notes: Notes) -> list[_Step]:
    """Return the steps in the order in which data flows, which Triton finds by itself."""
    waiting, ordered = list(steps), []
    while ready := [each for each in waiting if tensors_there.issuperset(each.inputs.values())]:
        ordered.append(ready[0])
        waiting.remove(ready[0])
        tensors_there |= set(ready[0].outputs.values())
    for each in waiting if not notes.faults else ():
        lacking = min(set(each.inputs.values()) - tensors_there)
        notes.faults.append(
            (each.model.name, f"no step of {chosen.name} makes its tensor {quoted(lacking)}: connect it")
        )
    return [*ordered, *waiting]


def _model_names(steps: Sequence[_Step], notes: Notes) -> list[str]:
    """Return a name for each step, the folder's if it can be; a model that is used twice is served twice."""
    given: list[str] = []
    for step in steps:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", step.model.name).lstrip("_-") or "model"
        name = next(each for each in chain([plain], (f"{plain}_{number}" for number in count(2))) if each not in given)
        given.append(name)
        if step.model.name in [each.model.name for each in steps[: len(given) - 1]]:
            notes.left_out.append((step.model.name, f"it is used twice, so it is served twice, here as {name}"))
        elif name != step.model.name:
            notes.left_out.append((step.model.name, f"an object cannot name it so: it is called {name}"))
    return given
