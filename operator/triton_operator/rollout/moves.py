"""What is recorded of the Service's move to a revision, and which revisions are not tried again. Pure."""

from dataclasses import replace

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api import renamed
from triton_operator.api.rollout import Rollout
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.resources.deployment import scaled
from triton_operator.rollout import wording
from triton_operator.rollout.room import makes_way


def record_move(context: Context, target: ServerView) -> Effects:
    """Record that the Service is about to move from the active revision to the target."""
    active = context.observed.servers.get(context.active_server or "")
    if context.spec.serving.soak is None or active is None:
        return Effects()
    promotion = Promotion(
        revision=target.revision_key,
        server=target.name,
        previous=active.name,
        previous_uid=active.uid,
        at=context.now.isoformat(),
        steps=known.steps if (known := context.observed.promotions.get(target.uid)) else (),
        before=context.triton_deployment.status.model_dump(
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude_defaults=True,
            include={"serving", "accuracy", "performance"},
        ),
    )
    if makes_way(context, target):
        words = wording.no_room(active.name, target.name)
        promotion = replace(promotion, before=None, reason=Reason.NO_SPARE_GPU, message=words)
    return Effects(promotions={target.uid: promotion})


def exclusion(context: Context, target: Attempt) -> Statement | None:
    """Why a revision is not tried again; None: it is, because it did not fail, or the spec has changed since."""
    keys = (target.key, *target.replaces)
    for promotion in context.observed.promotions.values():
        # The digest last: it is one of the whole spec, and most passes know no revision that failed.
        if (
            promotion.reason is Reason.SOAK_FAILED
            and promotion.revision in keys
            and promotion.intent == spec_digest(context)
        ):
            return Statement("Soaked", False, Reason.SOAK_FAILED, promotion.message)
    return None


def keep_deployment(context: Context, previous: ServerView | None) -> Effects:
    """A Deployment that is neither active nor the target, with its replicas, or fewer if the object wants fewer."""
    if previous is None:
        return Effects()
    body = scaled(context, previous, min(previous.replicas, context.spec.serving.replicas))
    return Effects() if body is None else Effects((body,))


def spec_digest(context: Context) -> str:
    """A digest of what the user asks for, without what changes no target.

    That is the replicas, which an autoscaler sets, and how a target takes over: the choice that ended a roll-out, taken
    back, is no wish to begin it anew.
    """
    spec = context.spec
    serving = spec.serving.model_copy(update={"replicas": 1})
    settled = spec.model_copy(update={"serving": serving, "suspend": False, "rollout": Rollout()})
    before = renamed.as_before(settled.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    return names.digest([before, context.triton_deployment.retry], 16)
