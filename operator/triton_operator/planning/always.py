"""What each pass does however far the flow came: what serves is kept, followed, scaled, routed and spared. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from triton_converters.contract.records import HISTORY
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.observed.history import History
from triton_operator.planning.recording import remembered
from triton_operator.planning.status import status_of
from triton_operator.resources.disruptions import disruption_budget
from triton_operator.rollout import route, scale
from triton_operator.rollout.active import restored
from triton_operator.rollout.canary import Canary
from triton_operator.rollout.soak import Soaking
from triton_operator.stages import clean, repairing, serve
from triton_operator.stages.progress import Progress
from triton_operator.stages.serve import RolledOut


@dataclass(frozen=True)
class Intent:
    """What a pass wants, as far as it is known."""

    progress: Progress
    effects: Effects
    soak: Soaking
    """The soak of the active revision."""
    canary: Canary
    """The canary of the target revision, or what is left of another one's."""
    history: History
    verdicts: tuple[Verdict, ...] = ()
    """The conditions of scaling and of the route, if the spec asks for them."""
    again: tuple[float, ...] = ()
    """Seconds after which time alone changes something."""
    status: TritonDeploymentStatus = field(default_factory=TritonDeploymentStatus)
    """What is told of the object, once all is known that it tells of."""

    @property
    def asked(self) -> tuple[Verdict, ...]:
        """The conditions of all that the spec may ask for besides a server."""
        return (*self.verdicts, self.soak.verdict) if self.soak.verdict else self.verdicts

    @property
    def is_settled(self) -> bool:
        """Whether the target serves and nothing tries it any more."""
        complete = isinstance(self.progress, RolledOut) and self.progress.rollout.is_complete
        return complete and not self.soak.goes_on and self.canary.holds is None

    def plus(self, effects: Effects, verdict: Verdict | None = None, again: float | None = None) -> "Intent":
        """Return the intent with more of all."""
        return replace(
            self,
            effects=self.effects + effects,
            verdicts=(*self.verdicts, verdict) if verdict else self.verdicts,
            again=(*self.again, again) if again else self.again,
        )


def begun(context: Context, progress: Progress) -> Intent:
    """Return what the flow wants."""
    soak, canary = serve.soak_of(context, progress), serve.canary_of(context, progress)
    effects = Effects(failures=context.followed) + progress.effects
    return Intent(progress, effects, soak, canary, context.observed.history)


def note_damages(context: Context, intent: Intent) -> Intent:
    """Remember what servers that start have found."""
    return intent.plus(repairing.noticed(context))


def restore_active(context: Context, intent: Intent) -> Intent:
    """Make the active revision's Deployment again, unless the flow does."""
    made = [each["metadata"]["name"] for each in intent.effects.objects if each["kind"] == "Deployment"]
    return intent if context.serving in made else intent.plus(restored(context))


def keep_serving(context: Context, intent: Intent) -> Intent:
    """Keep the Service of the active revision while the target is not known yet."""
    if isinstance(intent.progress, RolledOut):
        return intent
    return intent.plus(serve.keep_serving(context, intent.soak, intent.canary))


def tell(context: Context, intent: Intent) -> Intent:
    """Say in the status what is known by now."""
    return replace(intent, status=status_of(context, intent.progress, intent.soak, intent.asked))


def remember_state(context: Context, intent: Intent) -> Intent:
    """Keep the state that serves in the history; once nothing tries it any more, clean what the history dropped."""
    history, settled = intent.history, intent.is_settled
    if HISTORY not in context.observed.unreadable:
        history = remembered(context, intent.progress, intent.effects, intent.status, settled=settled)
    noted = replace(intent, history=history)
    return noted.plus(clean.clean(context, history)) if settled else noted


def try_active(context: Context, intent: Intent) -> Intent:
    """Go on with soak and canary.

    Only after the history: the counters are not what the active revision is made of, so its state is without them.
    """
    soaked = intent.plus(intent.soak.effects, again=intent.soak.again_after)
    return soaked.plus(Effects(), again=intent.canary.again_after)


def follow_load(context: Context, intent: Intent) -> Intent:
    """Have KEDA scale the active revision."""
    scaled = scale.scale(context, serve.measures_active(context, intent.progress), intent.canary.share)
    return intent.plus(_object(scaled.scaled_object), scaled.verdict, scaled.again_after)


def lead_requests(context: Context, intent: Intent) -> Intent:
    """Have the Gateway API lead requests to the Services."""
    routed = route.route(context, intent.canary.share)
    return intent.plus(_object(routed.http_route), routed.verdict)


def spare_servers(context: Context, intent: Intent) -> Intent:
    """Let a drain end one of several servers at a time."""
    return intent.plus(_object(disruption_budget(context)))


ALWAYS: tuple[Callable[[Context, Intent], Intent], ...] = (
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
