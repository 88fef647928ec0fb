"""Fills in what a spec leaves out. Pure.

What was chosen once is kept in the status, like the images: a newer operator that would choose otherwise only says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from triton_operator import names
from triton_operator.api.model import Candidate
from triton_operator.api.status import Resolved, ResolvedModel
from triton_operator.candidates.defaults import default_candidates, takes_defaults
from triton_operator.context import Context


def resolved(context: Context) -> Context:
    """Return the context with the spec that everything downstream reads: no candidates are left out in it."""
    digest = names.digest([context.pins.spec_digest, context.images.server], 16)
    chosen = _pinned(context, digest)
    models = tuple(
        ResolvedModel(
            name=model.name,
            candidates=chosen.get(model.name) or default_candidates(context.spec, model, context.images.server),
        )
        for model in context.spec.models
        if takes_defaults(model)
    )
    if not models:
        return context
    found = {model.name: model.candidates for model in models}
    filled = [
        model.model_copy(update={"candidates": found[model.name]}) if model.name in found else model
        for model in context.spec.models
    ]
    spec = context.spec.model_copy(update={"models": filled})
    return replace(
        context,
        deployment=replace(context.deployment, spec=spec),
        resolved=Resolved(models=list(models), spec_digest=digest),
    )


def _pinned(context: Context, digest: str) -> Mapping[str, Sequence[Candidate]]:
    """Return the candidates that were chosen for the same digest, by the model's name."""
    known = (each for each in (context.deployment.status.resolved, *_recorded(context)) if each is not None)
    found = next((each for each in known if each.spec_digest == digest), None)
    return {model.name: model.candidates for model in found.models} if found else {}


def _recorded(context: Context) -> Iterator[Resolved]:
    """Yield what was chosen for the states that served, newest first; an entry that somebody edited is left out."""
    for state in context.observed.history.served:
        try:
            yield Resolved.model_validate(state.resolved)
        except ValidationError:
            continue
