"""The record of the Service's move to a revision, and the exclusion of revisions that failed. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.rollout import Rollout
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.resources.deployment import scaled
from triton_operator.rollout import wording
from triton_operator.rollout.active import is_told
from triton_operator.rollout.room import makes_way


def record_move(context: Context, target: ServerView) -> Effects:
    """Record that the Service is about to move from the active revision to the target."""
    active = context.observed.servers.get(context.active_server or "")
    if context.spec.serving.soak is None or active is None:
        return Effects()
    now = context.now.isoformat()
    begun = context.observed.promotions.get(target.name)
    promotion = Promotion(
        revision=target.revision_key,
        server=target.name,
        uid=target.uid,
        previous=active.name,
        at=now,
        since=now,
        intent=spec_digest(context),
        steps=begun.steps if begun is not None and begun.uid == target.uid else (),
        before=_status_of(context, active, begun),
    )
    if makes_way(context, target):
        message = wording.no_room_message(active.name, target.name)
        promotion = replace(promotion, before=None, reason=Reason.NO_SPARE_GPU, message=message)
    return Effects(promotions={target.name: promotion})


def _status_of(context: Context, active: ServerView, begun: Promotion | None) -> Mapping[str, Any] | None:
    """The status of the active revision, or what an earlier record of the same move has of it; None: neither has any.

    The last status is of another revision after somebody led the Service back by hand.
    """
    if not is_told(context, active.name):
        return begun.before if begun is not None and begun.previous == active.name else None
    return context.triton_deployment.status.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=True,
        include={"serving", "accuracy", "performance"},
    )


def exclusion(context: Context, target: Attempt) -> Statement | None:
    """Return why a revision is not tried again; None: it did not fail, or the spec has changed since."""
    keys = (target.key, *target.replaces)
    for promotion in context.observed.promotions.values():
        # The digest last: it is one of the whole spec, and most passes know no revision that failed.
        if (
            promotion.reason is Reason.SOAK_FAILED
            and promotion.revision in keys
            and promotion.intent == spec_digest(context)
        ):
            return wording.undone_condition(promotion)
    return None


def keep_deployment(context: Context, previous: ServerView | None) -> Effects:
    """Keep a Deployment that is neither active nor the target, with as many replicas as before, or as the spec has."""
    if previous is None:
        return Effects()
    body = scaled(context, previous, min(previous.replicas, context.spec.serving.replicas))
    return Effects() if body is None else Effects((body,))


def spec_digest(context: Context) -> str:
    """Return a digest of the spec and the retry annotation, without the fields that change no target.

    Those are the replicas, which an autoscaler sets, who is let in, spec.suspend, and spec.rollout: to take back a
    choice that ended a rollout is no wish to begin it anew.
    """
    spec = context.spec
    serving = spec.serving.model_copy(update={"replicas": 1, "network_policy": None})
    comparable_spec = spec.model_copy(update={"serving": serving, "suspend": False, "rollout": Rollout()})
    said = comparable_spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return names.digest([said, context.triton_deployment.retry], 16)
