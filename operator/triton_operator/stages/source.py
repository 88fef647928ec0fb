"""Source: a Job reads or downloads spec.source and publishes it on the claim under its digest.

Others do the same for spec.weights, and for spec.dataset unless it is on a claim, from which it is mounted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from triton_converters.contract.formats import DECLARING
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_operator.api.model import Model
from triton_operator.api.resolved import ModelOfRepository
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.look import look
from triton_operator.jobs.run import run, waiting_reason
from triton_operator.jobs.source import (
    FoundGraph,
    FoundModel,
    SourceWork,
    followed,
    found_models,
    source_works,
    unfollowed_source,
)
from triton_operator.stages.progress import Progress
from triton_operator.stages.unfinished import STALLED_SECONDS, await_result

MIXES_WORDS = "answers a sample in a batch otherwise than alone, or not at all"
"""How the framework's run shows that a model has no batch dimension, in words."""


@dataclass(frozen=True, kw_only=True)
class Sourced(Progress):
    """The source is published."""

    source: SourceResult


def resolve(context: Context, progress: Progress) -> Progress:
    """Return Sourced once the source is published, and the weights and the data if the spec has any."""
    if useless_claim := _lost_claim(context) or _claim_of_one_pod(context):
        return progress.wait_with(useless_claim, stalled=True)
    if (awaited := _awaited_look(context)) is not None:
        return progress.wait_with(awaited, stalled=awaited.status is False and _fails_for_long(context))
    runs = [(work, run(context, work, repeats=True)) for work in source_works(context)]
    for work, job_run in runs:
        if job_run.result is None:
            other_effects = (each.effects for _, each in runs if each is not job_run)
            progress = replace(progress, effects=sum(other_effects, progress.effects))
            job_words = f"the Job that reads {work.request.uri}"
            return await_result(context, progress, "SourceResolved", job_words, job_run)
    results = [job_run.result for _, job_run in runs if job_run.result is not None]
    messages = [_published_message(work, source_result) for (work, _), source_result in zip(runs, results, strict=True)]
    result = results[0]
    condition = Statement(
        "SourceResolved", True, Reason.RESOLVED, "; ".join([*messages, *_found_messages(context, result)])
    )
    return progress.with_condition(condition, sum((job_run.effects for _, job_run in runs), Effects())).advance_to(
        Sourced, source=result
    )


def _awaited_look(context: Context) -> Statement | None:
    """Return the condition while nothing of a followed source is published or taken; None: something is."""
    known = followed(context)
    if context.spec.source.interval is None or known.taken is not None or unfollowed_source(context) is not None:
        return None
    if known.failed is not None:
        message = f"{known.failed.message}; the operator looks again"
        return Statement("SourceResolved", False, known.failed.reason, message)
    job_run = look(context)
    words = f"the Job that looks which version {context.spec.source.uri} has"
    reason, message = Reason.WAITING, f"{words} starts once other objects of the namespace have looked"
    if job_run is not None and (job_run.active or context.spec.suspend or context.observed.claim_terminates):
        reason, message = waiting_reason(words, job_run, context)
    return Statement("SourceResolved", False, reason, message)


def _fails_for_long(context: Context) -> bool:
    failed = followed(context).failed
    since = datetime.fromisoformat(failed.since) if failed is not None else context.now
    return (context.now - since).total_seconds() > STALLED_SECONDS


def _found_messages(context: Context, result: SourceResult) -> Iterator[str]:
    """Yield messages about formats and batch dimensions that were found in the files of the models."""
    models = found_models(context, result)
    for model in context.sought_models:
        if (format_name := models[model.name].format) is not None:
            yield f"{model.path} is of format {format_name}"
    for model in context.spec.models:
        graph = models.get(model.name, FoundModel()).graph
        if isinstance(model, ModelOfRepository) and model.is_of_mlflow:
            yield f"{model.path} names {model.repository.file}"
        elif isinstance(model, ModelOfRepository):
            settings = ", ".join(model.repository.config.model_dump(by_alias=True, exclude_unset=True)) or "nothing"
            yield f"config.pbtxt in {model.path} sets {settings}"
            if left_out := model.repository.left_out:
                yield f"left out of it: {', '.join(each.rpartition(': ')[0] for each in left_out)}"
        if graph is None or graph.batched is None or _says_batch(model):
            continue
        if model.format in DECLARING:
            yield f"{model.path} {_batch_words(model.config.largest_batch, graph)}"


def _batch_words(batch: int, graph: FoundGraph) -> str:
    """Return what a model's graph and the framework's run showed. ``batch``: the `maxBatchSize` that follows."""
    if not graph.batched:
        return f"shows no batch dimension, so maxBatchSize is {batch}; if it has one, set config.maxBatchSize"
    if batch > 1:
        return f"has a batch dimension, so maxBatchSize is {batch}"
    if batch == 0 and graph.length:
        length_words = "has an open first dimension that seems to be a length, so maxBatchSize is 0"
        return f"{length_words}; if it counts samples, set config.maxBatchSize"
    return f"has an open first dimension, but {MIXES_WORDS}, so maxBatchSize is {batch}"


def _says_batch(model: Model) -> bool:
    return isinstance(model, ModelOfRepository) and model.repository.config.max_batch_size is not None


def _published_message(work: SourceWork, result: SourceResult) -> str:
    """Return the message about the files that a Job published."""
    version = f" (version {result.resolved})" if result.resolved else ""
    return f"{work.request.uri}{version} is published as sha256:{result.digest}"


def _lost_claim(context: Context) -> Statement | None:
    """Return the condition if the claim has lost its volume, and every result with it; else None."""
    claim = context.observed.claim
    if claim is None or claim.get("status", {}).get("phase") != "Lost":
        return None
    name, volume = claim["metadata"]["name"], claim["spec"].get("volumeName", "")
    message = (
        f"PersistentVolumeClaim {name} lost its volume {volume}; restore it from a snapshot if there is one; else"
        " delete the claim, if spec.source still has the files: the operator makes it and all results again"
    )
    return Statement("SourceResolved", False, Reason.CLAIM_LOST, message)


def _claim_of_one_pod(context: Context) -> Statement | None:
    """Return the condition if the claim is for one pod at a time; else None.

    The Job that measures a server mounts the claim beside it, and would wait for ever.
    """
    claim = context.observed.claim
    if claim is None or "ReadWriteOncePod" not in claim["spec"].get("accessModes", ()):
        return None
    message = (
        f"PersistentVolumeClaim {claim['metadata']['name']} has the access mode ReadWriteOncePod, but a server and the"
        " Job that measures it need the claim at the same time; name one with ReadWriteOnce, which keeps all pods on"
        " one node, or with ReadWriteMany, in spec.repository.claimName"
    )
    return Statement("SourceResolved", False, Reason.CLAIM_UNUSABLE, message)
