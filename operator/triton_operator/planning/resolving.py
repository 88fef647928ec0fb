"""Fills in what a spec leaves out. Pure.

Formats and batch dimensions are what the source's content shows. Candidates and batch sizes that were chosen once are
kept in the status, like the images: a newer operator that would choose otherwise only says so. A batch size is chosen
again once, if the framework's run shows that samples must not share a batch: it becomes 0, and a request keeps its
first dimension, whatever that counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from pydantic import ValidationError

from triton_converters.contract.formats import DECLARING, SHOWN
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_operator import names
from triton_operator.api.model import Candidate, Model, SourceFormat
from triton_operator.api.resolved import FromRepository, ModelOfRepository, Resolved, ResolvedModel
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.candidates.defaults import default_candidates, takes_defaults
from triton_operator.context import Context
from triton_operator.jobs.reference import reference_work
from triton_operator.jobs.run import run
from triton_operator.jobs.source import FoundModel, found_models, source_work
from triton_operator.jobs.source import recorded_source as told_by
from triton_operator.observed.failures import Failure
from triton_operator.stages import fitting

FOUND: tuple[SourceFormat, ...] = tuple(each for each in get_args(SourceFormat) if each in SHOWN)
"""The formats that the source Job tells."""
BATCH = 4
"""`maxBatchSize` of a graph with a batch dimension: as Triton itself takes it for a model whose configuration it
completes, and as many samples as the default online sweep has in flight."""


@dataclass(frozen=True)
class _Findings:
    """What the source shows of what the spec leaves out, and what was chosen before."""

    digest: str
    """`Resolved.spec_digest`."""
    spec: TritonDeploymentSpec
    """The spec with the formats that were found."""
    found: Mapping[str, FoundModel]
    """What the source shows of the models, by their names."""
    formats: Mapping[str, SourceFormat]
    repositories: Mapping[str, FromRepository]
    kept: Mapping[str, ResolvedModel]
    """What was chosen for the models before, by their names."""

    @property
    def has_batches(self) -> bool:
        """Whether any graph has a batch dimension."""
        return any(each.graph is not None and each.graph.batched for each in self.found.values())


def resolved(context: Context) -> Context:
    """Return the context with the spec that everything downstream reads: nothing is left out in it.

    Until the source's record tells what is sought there, that is missing, and no candidates are chosen.
    """
    asks_source = bool(context.sought or context.graphs)
    if not asks_source and not any(map(takes_defaults, context.spec.models)):
        return context
    digest = names.digest([context.pins.spec_digest, context.images.server], 16)
    pinned, told = _pinned(context, digest), told_by(context, source_work(context))
    if told is None and asks_source:
        return replace(context, resolved=pinned)
    findings = _findings(context, digest, pinned, found_models(context, told) if told else {})
    if any(model.is_sought for model in findings.spec.models):
        return replace(context, resolved=pinned)
    with_batches = _chosen(context, findings)
    if told is None or fitting.asks_for_batches(findings.spec) or not findings.has_batches:
        return with_batches
    failed = _batches_failed(with_batches, told)
    # The Job that failed is deleted before the status says what follows from it.
    return replace(_chosen(context, findings, mixes=True), followed=failed) if failed else with_batches


def _findings(context: Context, digest: str, pinned: Resolved | None, found: Mapping[str, FoundModel]) -> _Findings:
    repositories = _repositories(found)
    formats = _formats(context, found, repositories)
    shown = [ResolvedModel(name=name, format=form, repository=repositories.get(name)) for name, form in formats.items()]
    chosen = pinned.models if pinned else ()
    return _Findings(
        digest=digest,
        spec=Resolved(models=shown).applied_to(context.spec),
        found=found,
        formats=formats,
        repositories=repositories,
        kept={each.name: each for each in chosen if each.format == formats.get(each.name)},
    )


def _chosen(context: Context, findings: _Findings, mixes: bool = False) -> Context:
    """Return the context with all that is found or chosen. ``mixes``: samples must not share a batch."""
    every = (_filled(context, findings, model, mixes) for model in findings.spec.models)
    models = [each for each in every if each != ResolvedModel(name=each.name)]
    if not models:
        return context
    choice = Resolved(models=models, spec_digest=findings.digest)
    spec = choice.applied_to(findings.spec)
    return replace(context, triton_deployment=replace(context.triton_deployment, spec=spec), resolved=choice)


def _filled(context: Context, findings: _Findings, model: Model, mixes: bool) -> ResolvedModel:
    """Return what is found or chosen for a model."""
    old = findings.kept.get(model.name, ResolvedModel(name=model.name))
    candidates: list[Candidate] = []
    if takes_defaults(model):
        candidates = old.candidates or list(default_candidates(findings.spec, model, context.images))
    graph = findings.found.get(model.name, FoundModel()).graph
    batch = None
    if graph is not None:
        asks = fitting.asks_for_batches(findings.spec)
        batch = _batch(model, graph.batched, 0 if mixes else _largest(old.max_batch_size, graph.length, asks))
    return ResolvedModel(
        name=model.name,
        format=findings.formats.get(model.name),
        max_batch_size=batch,
        candidates=candidates,
        repository=findings.repositories.get(model.name),
    )


def _formats(
    context: Context, found: Mapping[str, FoundModel], repositories: Mapping[str, FromRepository]
) -> Mapping[str, SourceFormat]:
    """Return the formats that were found, by the names of the models whose format the source shows."""
    shown = [model for model in context.sought if model.format is None or model.name in repositories]
    return {model.name: known for model in shown for known in FOUND if known == found[model.name].format}


def _repositories(found: Mapping[str, FoundModel]) -> Mapping[str, FromRepository]:
    """Return what the Triton repositories say, by the names of the models that lie in one."""
    told = ((name, each.repository) for name, each in found.items())
    try:
        return {name: FromRepository.of(said) for name, said in told if said is not None}
    except ValidationError:
        # No Job of ours tells what a spec could not say.
        return {}


def _largest(old: int | None, length: bool, asks: bool) -> int:
    """Return `maxBatchSize` of a graph with a batch dimension: as chosen before, if the spec asks for no more.

    ``length``: the dimension seems to count no samples. ``asks``: the spec has settings that need batches.
    """
    if old is None or (asks and not old):
        return 0 if length and not asks else BATCH
    return old


def _batch(model: Model, batched: bool | None, largest: int) -> int:
    """Return `maxBatchSize` of a model whose spec leaves it out; ``largest``: if its graph has a batch dimension."""
    if isinstance(model, ModelOfRepository) and model.config.max_batch_size is not None:
        return model.config.max_batch_size
    if batched is None or model.format not in DECLARING:
        return 1
    return largest if batched else 0


def _batches_failed(context: Context, told: SourceResult) -> Mapping[str, Failure]:
    """Return the failure of the reference Job with these batch sizes if it found that samples must not share a batch.

    By the Job's name; empty: it did not.
    """
    observed = context.observed
    failures = [*(job.failure for job in observed.jobs.values()), *observed.failures.values()]
    if not any(each is not None and each.reason is Reason.BATCHING_UNSUPPORTED for each in failures):
        return {}
    found = run(context, reference_work(context, told))
    rejected = found.failure is not None and found.failure.reason is Reason.BATCHING_UNSUPPORTED
    return found.effects.failures if rejected else {}


def _pinned(context: Context, digest: str) -> Resolved | None:
    """Return what was chosen for the same digest."""
    known = (each for each in (context.triton_deployment.status.resolved, *_recorded(context)) if each is not None)
    return next((each for each in known if each.spec_digest == digest), None)


def _recorded(context: Context) -> Iterator[Resolved]:
    """Yield what was chosen for the states that served, newest first; an entry that somebody edited is left out."""
    for state in context.observed.history.served:
        try:
            yield Resolved.model_validate(state.resolved)
        except ValidationError:
            continue
