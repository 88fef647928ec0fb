"""What each pass does however far the flow came. Pure.

The active revision keeps its Deployment and its Service, its soak goes on, KEDA scales it, the Gateway API leads
requests to it, and drains end one of its servers at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from triton_converters.contract.records import HISTORY
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.history import History
from triton_operator.planning.conditions import Outline, outline
from triton_operator.planning.recording import remembered
from triton_operator.planning.status import status_of
from triton_operator.resources.disruptions import disruption_budget
from triton_operator.rollout import route, scale
from triton_operator.rollout.active import restore_deployment
from triton_operator.rollout.canary import Canary
from triton_operator.rollout.soak import Soaking
from triton_operator.stages import clean, repairing, serve
from triton_operator.stages.progress import Progress


@dataclass(frozen=True)
class Draft:
    """The plan of a pass while it is made: what is desired, as far as it is known."""

    progress: Progress
    outline: Outline
    """What the conditions are made of."""
    effects: Effects
    soak: Soaking
    """The soak of the active revision."""
    canary: Canary
    """The canary of the target revision, or what is left of another one's."""
    history: History
    conditions: tuple[Statement, ...] = ()
    """The conditions of scaling and of the route, if the spec asks for them."""
    again: tuple[float, ...] = ()
    """Seconds after which time alone changes something."""
    status: TritonDeploymentStatus = field(default_factory=TritonDeploymentStatus)
    """What is told of the object, once all is known that it tells of."""

    @property
    def extras(self) -> tuple[Statement, ...]:
        """The conditions of all that the spec may have besides a server: scaling, a route, a soak."""
        return (*self.conditions, self.soak.condition) if self.soak.condition else self.conditions

    @property
    def is_settled(self) -> bool:
        """Whether the target serves and nothing tries it any more."""
        return self.progress.is_complete and not self.soak.goes_on and self.canary.holds is None

    def plus(self, effects: Effects, condition: Statement | None = None, again: float | None = None) -> "Draft":
        """Return the draft with more of all."""
        return replace(
            self,
            effects=self.effects + effects,
            conditions=(*self.conditions, condition) if condition else self.conditions,
            again=(*self.again, again) if again else self.again,
        )


def begun(context: Context, progress: Progress) -> Draft:
    """Return what the flow wants."""
    soak, canary = serve.soak_of(context, progress), serve.canary_of(context, progress)
    effects = Effects(failures=context.followed) + progress.effects
    return Draft(progress, outline(context, progress), effects, soak, canary, context.observed.history)


def note_damages(context: Context, draft: Draft) -> Draft:
    """Remember what servers that start have found."""
    return draft.plus(repairing.record_damage_at_start(context))


def restore_active(context: Context, draft: Draft) -> Draft:
    """Make the active revision's Deployment again, unless the flow does."""
    made = [each["metadata"]["name"] for each in draft.effects.objects if each["kind"] == "Deployment"]
    return draft if context.active_server in made else draft.plus(restore_deployment(context))


def keep_serving(context: Context, draft: Draft) -> Draft:
    """Keep the Service of the active revision while the target is not known yet."""
    if draft.progress.is_rolled_out:
        return draft
    return draft.plus(serve.keep_serving(context, draft.soak, draft.canary))


def tell(context: Context, draft: Draft) -> Draft:
    """Say in the status what is known by now."""
    return replace(draft, status=status_of(context, draft.progress, draft.outline, draft.soak, draft.extras))


def remember_state(context: Context, draft: Draft) -> Draft:
    """Keep the state that serves in the history; once nothing tries it any more, clean what the history dropped."""
    history, settled = draft.history, draft.is_settled
    if HISTORY not in context.observed.unreadable:
        history = remembered(context, draft.progress, draft.effects, draft.status, settled=settled)
    noted = replace(draft, history=history)
    return noted.plus(clean.clean(context, history)) if settled else noted


def try_active(context: Context, draft: Draft) -> Draft:
    """Go on with soak and canary.

    Only after the history: the counters are not what the active revision is made of, so its state is without them.
    """
    soaked = draft.plus(draft.soak.effects, again=draft.soak.again_after)
    return soaked.plus(Effects(), again=draft.canary.again_after)


def follow_load(context: Context, draft: Draft) -> Draft:
    """Have KEDA scale the active revision."""
    scaled = scale.scale(context, serve.is_measuring_active(context, draft.progress), draft.canary.share)
    return draft.plus(_object(scaled.scaled_object), scaled.condition, scaled.again_after)


def lead_requests(context: Context, draft: Draft) -> Draft:
    """Have the Gateway API lead requests to the Services."""
    routed = route.route(context, draft.canary.share)
    return draft.plus(_object(routed.http_route), routed.condition)


def spare_servers(context: Context, draft: Draft) -> Draft:
    """Let a drain end one of several servers at a time."""
    return draft.plus(_object(disruption_budget(context)))


ALWAYS: tuple[Callable[[Context, Draft], Draft], ...] = (
    note_damages,
    restore_active,
    keep_serving,
    follow_load,
    lead_requests,
    spare_servers,
    tell,
    remember_state,
    try_active,
)
"""What is done after the flow, in this order."""


def _object(body: dict[str, Any] | None) -> Effects:
    return Effects((body,)) if body is not None else Effects()
