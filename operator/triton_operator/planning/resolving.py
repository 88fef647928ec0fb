"""Fills in what a spec leaves out. Pure.

Formats and batch dimensions are what the source's content shows. Candidates and batch sizes that were chosen once are
kept in the status, like the images: a newer operator that would choose otherwise only says so. What is chosen in place
of a batch size if samples must not share a batch is chosen too: the reference stage, which finds that out, takes it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from pydantic import ValidationError

from triton_converters.contract.formats import DECLARING, SHOWN
from triton_operator import names
from triton_operator.api.model import Model, ModelCandidate, SourceFormat
from triton_operator.api.resolved import FromRepository, ModelOfRepository, Resolved, ResolvedModel
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.candidates.defaults import default_candidates, spare_candidates, takes_defaults
from triton_operator.context import Context
from triton_operator.jobs.source import FoundModel, found_models, source_work
from triton_operator.jobs.source import recorded_source as told_by
from triton_operator.stages import fitting

SHOWN_FORMATS: tuple[SourceFormat, ...] = tuple(each for each in get_args(SourceFormat) if each in SHOWN)
"""The formats that the source Job finds by itself from the files."""
DEFAULT_MAX_BATCH_SIZE = 4
"""`maxBatchSize` of a graph with a batch dimension: as Triton itself takes it for a model whose configuration it
completes, and as many samples as the default online sweep has in flight."""


@dataclass(frozen=True)
class _Findings:
    """What the source shows of what the spec leaves out, and what was chosen before."""

    digest: str
    """`Resolved.spec_digest`."""
    spec: TritonDeploymentSpec
    """The spec with the formats that were found."""
    source_models: Mapping[str, FoundModel]
    """What the source shows of the models, by their names."""
    formats: Mapping[str, SourceFormat]
    repositories: Mapping[str, FromRepository]
    recorded: Mapping[str, ResolvedModel]
    """The choices for the models in the status or the history, by the models' names."""

    @property
    def has_batches(self) -> bool:
        """Whether any graph has a batch dimension."""
        return any(each.graph is not None and each.graph.batched for each in self.source_models.values())


def with_resolved_spec(context: Context) -> Context:
    """Return the context with the spec that everything downstream reads: nothing is left out in it.

    Until the source Job has answered, what its record would show is still missing, and no candidates are chosen.
    """
    asks_source = bool(context.sought_models or context.graph_models)
    if not asks_source and not any(map(takes_defaults, context.spec.models)):
        return context
    digest = names.digest([context.pins.spec_digest, context.images.server], 16)
    recorded = _recorded_choice(context, digest)
    source_result = told_by(context, source_work(context))
    if source_result is None and asks_source:
        return replace(context, resolved=recorded)
    findings = _findings(context, digest, recorded, found_models(context, source_result) if source_result else {})
    if any(model.is_sought for model in findings.spec.models):
        return replace(context, resolved=recorded)
    with_batches = _with_choices(context, findings)
    if context.spec.ensemble is not None:
        with_batches = replace(with_batches, spare=_with_choices(context, findings, spares=True).resolved)
    if source_result is None or fitting.asks_for_batches(findings.spec) or not findings.has_batches:
        return with_batches
    return replace(with_batches, unbatched=_with_choices(context, findings, mixes=True).resolved)


def _findings(
    context: Context, digest: str, recorded: Resolved | None, source_models: Mapping[str, FoundModel]
) -> _Findings:
    repositories = _repositories(source_models)
    formats = _formats(context, source_models, repositories)
    models = [
        ResolvedModel(name=name, format=form, repository=repositories.get(name)) for name, form in formats.items()
    ]
    recorded_models = recorded.models if recorded else ()
    return _Findings(
        digest=digest,
        spec=Resolved(models=models).applied_to(context.spec),
        source_models=source_models,
        formats=formats,
        repositories=repositories,
        recorded={each.name: each for each in recorded_models if each.format == formats.get(each.name)},
    )


def _with_choices(context: Context, findings: _Findings, mixes: bool = False, spares: bool = False) -> Context:
    """Return the context with all that is found or chosen.

    ``mixes``: samples must not share a batch. ``spares``: the candidates that were chosen before, or are by default,
    have failed.
    """
    resolved_models = (_resolved_model(context, findings, model, mixes, spares) for model in findings.spec.models)
    models = [each for each in resolved_models if each != ResolvedModel(name=each.name)]
    if not models:
        return context
    choice = Resolved(models=models, spec_digest=findings.digest)
    spec = choice.applied_to(findings.spec)
    return replace(context, triton_deployment=replace(context.triton_deployment, spec=spec), resolved=choice)


def _resolved_model(context: Context, findings: _Findings, model: Model, mixes: bool, spares: bool) -> ResolvedModel:
    """Return what is found or chosen for a model."""
    recorded = findings.recorded.get(model.name, ResolvedModel(name=model.name))
    candidates: list[ModelCandidate] = []
    if takes_defaults(model):
        known = recorded.candidates or list(default_candidates(findings.spec, model, context.images))
        candidates = list(spare_candidates(findings.spec, model, context.images)) if spares else known
        candidates = candidates or known
    graph = findings.source_models.get(model.name, FoundModel()).graph
    max_batch_size = None
    if graph is not None:
        needs_batches = fitting.asks_for_batches(findings.spec)
        max_batch_size = _max_batch_size(
            model, graph.batched, 0 if mixes else _largest_batch(recorded.max_batch_size, graph.length, needs_batches)
        )
    return ResolvedModel(
        name=model.name,
        format=findings.formats.get(model.name),
        max_batch_size=max_batch_size,
        candidates=candidates,
        repository=findings.repositories.get(model.name),
    )


def _formats(
    context: Context, source_models: Mapping[str, FoundModel], repositories: Mapping[str, FromRepository]
) -> Mapping[str, SourceFormat]:
    """Return the formats that were found, by the names of the models whose format the source shows."""
    models = [model for model in context.sought_models if model.format is None or model.name in repositories]
    return {model.name: form for model in models for form in SHOWN_FORMATS if form == source_models[model.name].format}


def _repositories(source_models: Mapping[str, FoundModel]) -> Mapping[str, FromRepository]:
    """Return what the Triton repositories say, by the names of the models that lie in one."""
    repositories = ((name, each.repository) for name, each in source_models.items())
    try:
        return {name: FromRepository.of(repository) for name, repository in repositories if repository is not None}
    except ValidationError:
        # A Job of ours never answers with a value that a spec could not have; somebody else wrote this one.
        return {}


def _largest_batch(recorded: int | None, is_length: bool, needs_batches: bool) -> int:
    """Return `maxBatchSize` of a graph with a batch dimension: as chosen before, if the spec asks for no more.

    ``is_length``: the dimension seems to count no samples. ``needs_batches``: the spec has settings that need batches.
    """
    if recorded is None or (needs_batches and not recorded):
        return 0 if is_length and not needs_batches else DEFAULT_MAX_BATCH_SIZE
    return recorded


def _max_batch_size(model: Model, is_batched: bool | None, largest: int) -> int:
    """Return `maxBatchSize` of a model whose spec leaves it out; ``largest``: if its graph has a batch dimension."""
    if isinstance(model, ModelOfRepository) and model.config.max_batch_size is not None:
        return model.config.max_batch_size
    if is_batched is None or model.format not in DECLARING:
        return 1
    return largest if is_batched else 0


def _recorded_choice(context: Context, digest: str) -> Resolved | None:
    """Return the choice for the same digest that the status or the history has; None: neither has one."""
    recorded = (
        each for each in (context.triton_deployment.status.resolved, *_recorded_choices(context)) if each is not None
    )
    return next((each for each in recorded if each.spec_digest == digest), None)


def _recorded_choices(context: Context) -> Iterator[Resolved]:
    """Yield what was chosen for the states that served, newest first; an entry that somebody edited is left out."""
    for state in context.observed.history.served:
        try:
            yield Resolved.model_validate(state.resolved)
        except ValidationError:
            continue
