"""Source: a Job reads or downloads spec.source and publishes it on the claim under its digest.

Others do the same for spec.weights, and for spec.dataset unless it is on a claim, from which it is mounted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from triton_converters.contract.formats import DECLARING
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_operator.api.model import Model
from triton_operator.api.resolved import ModelOfRepository
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.run import run
from triton_operator.jobs.source import FoundGraph, FoundModel, SourceRun, SourceWork, found_models, works
from triton_operator.observed.failures import Failure
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.progress import Progress
from triton_operator.stages.unfinished import unfinished

F = TypeVar("F", Trouble, Failure)
"""What may name a field of spec.source in its message."""

MIXES = "answers a sample in a batch otherwise than alone, or not at all"
"""What a framework does whose model has no batch dimension, in words."""


@dataclass(frozen=True, kw_only=True)
class Sourced(Progress):
    """The source is published."""

    source: SourceResult


def resolve(context: Context, progress: Progress) -> Progress:
    """Return Sourced once the source is published, and the weights and the data if the spec has any."""
    if lost := _claim_lost(context):
        return progress.waiting(lost, stalled=True)
    runs = [(field, work, run(context, work, repeats=True)) for field, work in works(context).items()]
    for field, work, this in runs:
        if this.result is None:
            others = (each.effects for _, _, each in runs if each is not this)
            progress = replace(progress, effects=sum(others, progress.effects))
            words = f"the Job that reads {work.request.uri}"
            return unfinished(context, progress, "SourceResolved", words, _renamed(this, field))
    results = [this.result for *_, this in runs if this.result is not None]
    messages = [_published(work, found) for (_, work, _), found in zip(runs, results, strict=True)]
    result = results[0]
    condition = Statement("SourceResolved", True, Reason.RESOLVED, "; ".join([*messages, *_found(context, result)]))
    return progress.noting(condition, sum((this.effects for *_, this in runs), Effects())).reached(
        Sourced, source=result
    )


def _found(context: Context, result: SourceResult) -> Iterator[str]:
    """Yield what the files of the models show, in words."""
    found = found_models(context, result)
    for model in context.sought_models:
        if (form := found[model.name].format) is not None:
            yield f"{model.path} is of format {form}"
    for model in context.spec.models:
        graph = found.get(model.name, FoundModel()).graph
        if isinstance(model, ModelOfRepository):
            taken = ", ".join(model.repository.config.model_dump(by_alias=True, exclude_unset=True)) or "nothing"
            yield f"config.pbtxt in {model.path} sets {taken}"
        if graph is None or graph.batched is None or _says_batch(model):
            continue
        if model.format in DECLARING:
            yield f"{model.path} {_words(model.config.largest_batch, graph)}"


def _words(batch: int, graph: FoundGraph) -> str:
    """Return what a model's graph and the framework's run showed; ``batch``: the `maxBatchSize` that followed."""
    if not graph.batched:
        return f"shows no batch dimension, so maxBatchSize is {batch}; if it has one, set config.maxBatchSize"
    if batch > 1:
        return f"has a batch dimension, so maxBatchSize is {batch}"
    if batch == 0 and graph.length:
        words = "has an open first dimension that seems to be a length, so maxBatchSize is 0"
        return f"{words}; if it counts samples, set config.maxBatchSize"
    return f"has an open first dimension, but {MIXES}, so maxBatchSize is {batch}"


def _says_batch(model: Model) -> bool:
    return isinstance(model, ModelOfRepository) and model.repository.config.max_batch_size is not None


def _published(work: SourceWork, result: SourceResult) -> str:
    """The words for what a Job published."""
    version = f" (version {result.resolved})" if result.resolved else ""
    return f"{work.request.uri}{version} is published as sha256:{result.digest}"


def _renamed(this: SourceRun, field: str) -> SourceRun:
    """What became of a Job, whose messages name the fields of spec.source, with the ones that the user has to edit."""

    def renamed(failed: F | None) -> F | None:
        return failed and replace(failed, message=failed.message.replace("spec.source", field))

    return replace(this, failure=renamed(this.failure), failing=renamed(this.failing))


def _claim_lost(context: Context) -> Statement | None:
    """The condition where the claim's volume is gone, and every result with it."""
    claim = context.observed.claim
    if claim is None or claim.get("status", {}).get("phase") != "Lost":
        return None
    name, volume = claim["metadata"]["name"], claim["spec"].get("volumeName", "")
    message = (
        f"PersistentVolumeClaim {name} lost its volume {volume}; delete the claim, and the operator makes it and all"
        " results again"
    )
    return Statement("SourceResolved", False, Reason.CLAIM_LOST, message)
