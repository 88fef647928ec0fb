"""Release: the pods of a canary that ended stay until no gateway can send them a request any more. Pure."""

from dataclasses import replace
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.promotion import Promotion
from triton_operator.rollout import wording
from triton_operator.rollout.moves import keep_deployment
from triton_operator.rollout.trial import Trial
from triton_operator.rollout.trial_times import LONGEST_RELEASE_SECONDS, RELEASE_SECONDS


def release(context: Context, target: str = "") -> Trial:
    """End the canary of a revision that is no longer desired, and keep its pods until no request can come.

    The share of a canary that passed ends after the Service's move, so its revision may be active. ``target``: name of
    the Deployment whose canary goes on, or may begin.
    """
    begun = [
        (record, server)
        for record in context.observed.promotions.values()
        if (server := context.observed.servers.get(record.server)) is not None and server.uid == record.uid
        if record.by_route or record.steps
    ]
    # The share is that of the newest one, because no canary begins before the one before has ended.
    newest, server = max(begun, key=lambda each: datetime.fromisoformat(each[0].at), default=(None, None))
    if newest is None or server is None or server.name == target:
        return Trial()
    effects = Effects()
    if server.name != context.active_server:
        effects = keep_deployment(context, server)
        if newest.reason is None:
            now, message = context.now.isoformat(), wording.canary_abandoned_message(newest)
            newest = replace(newest, at=now, reason=Reason.SOAK_INCONCLUSIVE, message=message)
            effects += Effects(promotions={server.name: newest})
    seconds_left = _release_seconds(context, newest)
    return Trial(effects=effects, holds=server.name, again_after=seconds_left) if seconds_left > 0 else Trial()


def _release_seconds(context: Context, ended_canary: Promotion) -> float:
    """Return the seconds for which the pods of a canary that ended still have to stay.

    A Gateway that reports the later route makes them fewer.
    """
    route = context.observed.http_route
    if context.spec.serving.replicas == 0:
        return 0.0
    if route is not None and route.share > 0:
        # The share is about to end, or the API server refuses that it ends.
        return LONGEST_RELEASE_SECONDS
    ended_for = (context.now - datetime.fromisoformat(ended_canary.at)).total_seconds()
    return (RELEASE_SECONDS if route is None or route.is_seen else LONGEST_RELEASE_SECONDS) - ended_for
