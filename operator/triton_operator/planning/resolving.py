"""Fills in what a spec leaves out. Pure.

Formats are what the source's content shows. Candidates that were chosen once are kept in the status, like the images: a
newer operator that would choose otherwise only says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import ValidationError

from triton_converters.contract.records import record_name
from triton_converters.contract.results import SourceResult
from triton_operator import names
from triton_operator.api.model import Candidate, SourceFormat
from triton_operator.api.resolved import Resolved, ResolvedModel
from triton_operator.candidates.defaults import default_candidates, takes_defaults
from triton_operator.context import Context
from triton_operator.stages.source import source_work

FOUND: tuple[SourceFormat, ...] = ("onnx", "ts-script", "tf-savedmodel")
"""The formats that the source Job tells."""


def resolved(context: Context) -> Context:
    """Return the context with the spec that everything downstream reads: nothing is left out in it.

    Until the source's record tells the formats, they are missing, and no candidates are chosen.
    """
    digest = names.digest([context.pins.spec_digest, context.images.server], 16)
    pinned, formats = _pinned(context, digest), _formats(context)
    found = Resolved(models=[ResolvedModel(name=name, format=form) for name, form in formats.items()])
    spec = found.applied_to(context.spec)
    if any(model.format is None for model in spec.models):
        return replace(context, resolved=pinned)
    same = (each for each in pinned.models if each.format == formats.get(each.name)) if pinned else ()
    kept = {each.name: each.candidates for each in same}
    chosen: dict[str, list[Candidate]] = {
        model.name: kept.get(model.name) or list(default_candidates(spec, model, context.images.server))
        for model in spec.models
        if takes_defaults(model)
    }
    models = [
        ResolvedModel(name=model.name, format=formats.get(model.name), candidates=chosen.get(model.name, []))
        for model in spec.models
        if model.name in formats or model.name in chosen
    ]
    if not models:
        return context
    filled = Resolved(models=models, spec_digest=digest)
    return replace(context, deployment=replace(context.deployment, spec=filled.applied_to(spec)), resolved=filled)


def _formats(context: Context) -> Mapping[str, SourceFormat]:
    """Return the formats that the source's record tells, by the names of the models whose spec leaves them out."""
    record = context.observed.records.get(record_name("source", source_work(context).key))
    result = record.outcome.result if record else None
    if not isinstance(result, SourceResult):
        return {}
    sought = [model.name for model in context.spec.models if model.format is None]
    told = zip(sought, result.formats, strict=False)
    return {name: known for name, form in told for known in FOUND if known == form}


def _pinned(context: Context, digest: str) -> Resolved | None:
    """Return what was chosen for the same digest."""
    known = (each for each in (context.deployment.status.resolved, *_recorded(context)) if each is not None)
    return next((each for each in known if each.spec_digest == digest), None)


def _recorded(context: Context) -> Iterator[Resolved]:
    """Yield what was chosen for the states that served, newest first; an entry that somebody edited is left out."""
    for state in context.observed.history.served:
        try:
            yield Resolved.model_validate(state.resolved)
        except ValidationError:
            continue
