"""New weights for a graph that serves: of a newer version of a followed source, the active candidate alone is tried.

The others would rank as they did: the graph, the configuration and the servers are those that were measured. They are
tried again each week, after an edit or a retry, where the graph is another one, and where that candidate fails.
"""

from datetime import datetime
from itertools import chain

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_operator import names
from triton_operator.candidates.candidate import candidates_of
from triton_operator.context import Context
from triton_operator.jobs.source import followed
from triton_operator.observed.following import Following
from triton_operator.observed.history import State
from triton_operator.observed.trouble import Trouble

ALL_AGAIN_SECONDS = 7 * 86400.0
"""How long the ranking of the candidates counts: a week, so that what drifts, such as nodes or data, is found out at a
seventh of the cost of every night."""


def skipped(context: Context, signature: Signature, candidate: str) -> Trouble | None:
    """Return why a candidate is not tried: the version that was taken has the graph of the one before; None: it is.

    ``signature``: the inputs and outputs of that version. ``candidate``: a name, also of what a search found.
    """
    only = tried_alone(context)
    if not only or candidate in (only, names.tuned_name(only)) or not _has_same_graph(context, signature):
        return None
    taken = followed(context).taken
    assert taken is not None
    message = (
        f"{taken.label} has the inputs, outputs and formats of the active revision, so {only} alone is tried; all"
        f" candidates are tried each week, or if you type: {context.retry_command}"
    )
    return Trouble(Reason.SAME_GRAPH, message)


def tried_alone(context: Context) -> str:
    """Return the candidate that alone is to be tried if the graph is the same; empty: all are."""
    known = followed(context)
    is_ranked = known.compared is not None and known.compared.basis == ranking_basis(context)
    return known.only if is_ranked else ""


def winner(context: Context, known: Following, version: str) -> str:
    """Return the candidate that alone is to be tried of a version that is taken now; empty: all are.

    Of one that served before, it is the candidate that served, whatever the time: its results are recorded.
    """
    history = context.observed.history
    before = (each.revision for each in history.states if each.revision is not None)
    revision = next((each for each in before if each.followed_version == version), None)
    if revision is None and known.compared is not None:
        age = (context.now - datetime.fromisoformat(known.compared.at)).total_seconds()
        revision = history.revision_of_server(context.active_server) if age < ALL_AGAIN_SECONDS else None
    served = revision.candidate if revision is not None else ""
    candidates = (each.name for each in candidates_of(context.spec))
    return next((each for each in candidates if served in (each, names.tuned_name(each))), "")


def ranking_basis(context: Context) -> str:
    """Return a digest of all but the version that decides how candidates rank."""
    owner = context.triton_deployment
    return names.digest([owner.ranking_digest, owner.retry, context.pins.model_dump(mode="json")], 16)


def has_served_tensors(context: Context, signature: Signature) -> bool:
    """Return whether a version has the inputs and outputs of the one that serves, or it is not known what those are."""
    state = _served_state(context)
    record = context.observed.records.get(record_name("reference", state.reference)) if state is not None else None
    result = record.outcome.result if record is not None else None
    return not isinstance(result, ReferenceResult) or _tensors(result.signature) == _tensors(signature)


def _has_same_graph(context: Context, signature: Signature) -> bool:
    state = _served_state(context)
    chosen = context.resolved.model_dump(mode="json", by_alias=True, exclude_defaults=True) if context.resolved else {}
    return state is not None and state.resolved == chosen and has_served_tensors(context, signature)


def _served_state(context: Context) -> State | None:
    """Return the state that serves, or the last one that did while the Service moves; None: neither is recorded."""
    states = [each for each in context.observed.history.states if each.revision is not None]
    active = (each for each in states if each.revision and each.revision.server == context.active_server)
    return next(chain(active, states), None)


def _tensors(signature: Signature) -> list[list[tuple[str, str, tuple[int, ...]]]]:
    def shapes(tensors: tuple[Tensor, ...]) -> list[tuple[str, str, tuple[int, ...]]]:
        return [(each.name, each.data_type, each.served_dims) for each in tensors]

    return [shapes(signature.inputs), shapes(signature.outputs)]
