"""What each pass does however far the flow came. Pure.

The active revision keeps its Deployment and its Service, its soak goes on, KEDA scales it, the Gateway API leads
requests to it, and drains end one of its servers at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import HISTORY
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import AddOn, Effects, Statement
from triton_operator.observed.following import Following
from triton_operator.observed.history import History
from triton_operator.planning.conditions import Outline, outline_of, unknown_while_undecided
from triton_operator.planning.following import follow
from triton_operator.planning.recording import remembered
from triton_operator.planning.status import status_of
from triton_operator.resources.disruptions import disruption_budget
from triton_operator.rollout import route, scale
from triton_operator.rollout.active import restore_deployment
from triton_operator.rollout.trial import Trial
from triton_operator.stages import clean, publish, repairing, serve
from triton_operator.stages.progress import Progress


@dataclass(frozen=True)
class Draft:
    """The plan of a pass while it is made. Each function of ALWAYS returns a more complete one."""

    progress: Progress
    outline: Outline
    """What the conditions are made of."""
    effects: Effects
    soak: Trial
    """The soak of the active revision."""
    canary: Trial
    """The canary of the target revision, or of an earlier target whose canary is being ended."""
    history: History
    following: Following | None = None
    """What is known of the source from this pass on; None until `follow_source` has run."""
    conditions: tuple[Statement, ...] = ()
    """The conditions of scaling and of the route, if the spec asks for them."""
    requeue_after: tuple[float, ...] = ()
    """Pauses in seconds, of which the shortest decides when the next pass comes. Each is due to time alone."""
    status: TritonDeploymentStatus = field(default_factory=TritonDeploymentStatus)
    """The status that the pass writes; empty until `make_status` has run."""

    @property
    def optional_conditions(self) -> tuple[Statement, ...]:
        """The conditions of all that the spec may have besides a server: scaling, a route, a soak."""
        return (*self.conditions, self.soak.condition) if self.soak.condition else self.conditions

    @property
    def is_settled(self) -> bool:
        """Whether the target serves and nothing tries it any more."""
        return self.progress.is_complete and not self.soak.goes_on and self.canary.holds is None

    def plus(self, effects: Effects, condition: Statement | None = None, requeue_after: float | None = None) -> "Draft":
        """Return the draft with these effects, this condition and this pause added to its own."""
        return replace(
            self,
            effects=self.effects + effects,
            conditions=(*self.conditions, condition) if condition else self.conditions,
            requeue_after=(*self.requeue_after, requeue_after) if requeue_after else self.requeue_after,
        )

    def with_add_on(self, add_on: AddOn) -> "Draft":
        """Return the draft with this object, and what is told of it."""
        effects = Effects((add_on.body,)) if add_on.body is not None else Effects()
        return self.plus(effects, add_on.condition, add_on.again_after)


def first_draft(context: Context, progress: Progress) -> Draft:
    """Return the draft with what the steps of the flow want."""
    soak, canary = serve.soak_of(context, progress), serve.canary_of(context, progress)
    # While all is made again, the flow may end before the Job that found something missing.
    known = {} if progress.is_complete else context.observed.failures
    missing = {name: each for name, each in known.items() if each.reason is Reason.INPUT_MISSING}
    effects = Effects(failures=missing) + progress.effects
    return Draft(progress, outline_of(context, progress), effects, soak, canary, context.observed.history)


def note_damages(context: Context, draft: Draft) -> Draft:
    """Remember what servers that start have found."""
    return draft.plus(repairing.record_damage_at_start(context))


def restore_active(context: Context, draft: Draft) -> Draft:
    """Make the active revision's Deployment again, unless the flow does."""
    made = [each["metadata"]["name"] for each in draft.effects.objects if each["kind"] == "Deployment"]
    return draft if context.active_server in made else draft.plus(restore_deployment(context))


def keep_service(context: Context, draft: Draft) -> Draft:
    """Keep the Service of the active revision while the target is not known yet."""
    if draft.progress.is_rolled_out:
        return draft
    return draft.plus(serve.keep_serving(context, draft.soak, draft.canary))


def follow_source(context: Context, draft: Draft) -> Draft:
    """Look at the source if a look is due, and decide what becomes of the version that the last one found."""
    followed = follow(context, draft.progress, draft.outline, draft.soak)
    with_source = replace(draft, following=followed.known, outline=followed.outline)
    return with_source.plus(followed.effects, requeue_after=followed.again_after)


def tell_published(context: Context, draft: Draft) -> Draft:
    """Tell what of what serves is published, or why nothing is."""
    told = publish.published_condition(context, draft.progress)
    if told is None or not context.spec.serving.serves:
        return draft
    return draft.plus(Effects(), unknown_while_undecided(told))


def make_status(context: Context, draft: Draft) -> Draft:
    """Make the status from the progress and the conditions; what follows in ALWAYS does not change it."""
    assert draft.following is not None
    status = status_of(context, draft.progress, draft.outline, draft.soak, draft.following, draft.optional_conditions)
    return replace(draft, status=status)


def remember_state(context: Context, draft: Draft) -> Draft:
    """Keep the state that serves in the history; once nothing tries it any more, clean what the history dropped."""
    history, is_settled = draft.history, draft.is_settled
    if HISTORY not in context.observed.unreadable:
        history = remembered(context, draft.progress, draft.effects, draft.status, settled=is_settled)
    with_history = replace(draft, history=history)
    if not is_settled:
        return with_history
    effects, again_after = clean.clean(context, history)
    return with_history.plus(effects, requeue_after=again_after)


def continue_trials(context: Context, draft: Draft) -> Draft:
    """Carry on the soak and the canary of this pass.

    This comes after the history, because the records of a soak's counters are no part of the state that serves.
    """
    with_soak = draft.plus(draft.soak.effects, requeue_after=draft.soak.again_after)
    return with_soak.plus(Effects(), requeue_after=draft.canary.again_after)


def scale_active(context: Context, draft: Draft) -> Draft:
    """Have KEDA scale the active revision."""
    return draft.with_add_on(
        scale.scale(context, serve.is_measuring_active(context, draft.progress), draft.canary.share)
    )


def route_requests(context: Context, draft: Draft) -> Draft:
    """Have the Gateway API lead requests to the Services."""
    return draft.with_add_on(route.route(context, draft.canary.share))


def spare_servers(context: Context, draft: Draft) -> Draft:
    """Let a drain end one of several servers at a time."""
    return draft.with_add_on(AddOn(body=disruption_budget(context)))


def keep_servers(context: Context, draft: Draft) -> Draft:
    """Keep the active revision's server and what leads to it, unless nothing is to serve."""
    if not context.spec.serving.serves:
        return draft
    for keep in (restore_active, keep_service, scale_active, route_requests, spare_servers):
        draft = keep(context, draft)
    return draft


ALWAYS: tuple[Callable[[Context, Draft], Draft], ...] = (
    note_damages,
    keep_servers,
    follow_source,
    tell_published,
    make_status,
    remember_state,
    continue_trials,
)
"""What is done after the flow, in this order."""
