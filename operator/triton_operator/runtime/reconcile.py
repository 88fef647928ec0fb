"""One pass over one TritonDeployment: observe, plan, write what differs, report.

store ─> parse ─> observe ─> plan ─> delete ─> apply what drifts ─> status ─> events

A pass never waits and never raises. A user's error goes into the status, a transient error leads to a later pass, and a
bug does both and leaves a traceback. A pass that wrote something is followed by another; one that wrote nothing is the
last.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.deployment import InvalidSpecError, TritonDeployment, parse, parse_status
from triton_operator.api.status import ConditionType, TritonDeploymentStatus
from triton_operator.kube import ownership
from triton_operator.kube.bodies import event_body, failed, refused, stalled, status_body
from triton_operator.kube.cluster import (
    Cluster,
    ClusterError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from triton_operator.kube.kinds import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    HTTP_ROUTE,
    JOB,
    NETWORK_POLICY,
    OPTIONAL,
    SCALED_OBJECT,
    TRITON_DEPLOYMENT,
    Kind,
    kind_named,
    kind_of,
)
from triton_operator.names import GPU_PRODUCT_LABEL
from triton_operator.observed.snapshot import Observed, observe
from triton_operator.planning.plan import Event, Plan, plan
from triton_operator.runtime import log_fields
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.store import Key, Store
from triton_operator.runtime.writing import Body, Children, Refusals, Writer, Written, by_key, key_of
from triton_operator.settings import Settings
from triton_operator.stages.skipping import product_asked

NEEDED_BY_PODS = {CLAIM, NETWORK_POLICY}
"""The kinds that must exist before a pod may run."""
STARTS_WORK = NEEDED_BY_PODS | {JOB}
REFUSED: Mapping[Kind, tuple[ConditionType, str]] = {
    SCALED_OBJECT: ("Autoscaling", "the replicas stay as they are"),
    HTTP_ROUTE: ("Routed", "the route stays as it is"),
}
"""The condition that tells if an object of a kind that a cluster may lack is refused, and what then holds, in words."""
LONGEST_FIGHT = 20
"""Passes in a row that may write. After more, another client must be undoing them: a Warning says so, the pauses grow,
and a pass goes on after what it had to write again, so that nothing else of the object waits for that client."""
LONGEST_RETRY_AFTER_SECONDS = 60.0
"""The longest Retry-After that is respected. The API server says 1; a proxy may say anything."""

log = logging.getLogger(__name__)


class Reconciler:
    """Makes passes over TritonDeployments; over each, only one at a time."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        optional: Collection[Kind] = (),
    ) -> None:
        """`optional`: the kinds of other projects that the API server knows, and that are watched."""
        self._cluster = cluster
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._writer = Writer(cluster, store, metrics)
        self._clock = clock
        self._optional = optional
        self._writing_passes: dict[Key, int] = {}

    def reconcile(self, key: Key) -> Result:
        """Make one pass; never raises."""
        with self._metrics.reconcile_seconds.time(), log_fields.fields(namespace=key.namespace, object=key.name):
            try:
                return self._pass(key)
            except UnavailableError as error:
                log.info("%s: the pass failed and is repeated after a pause: %s", key, error)
                self._count_error(error)
                return Result(again_after=min(error.retry_after, LONGEST_RETRY_AFTER_SECONDS) or None, failed=True)
            except RefusedError as error:
                # The pass reports refused objects itself, so it is the status that was refused.
                log.warning("%s: the API server refuses the status; the pass is repeated after a pause: %s", key, error)
                self._count_error(error)
                self._report_failure(key, error)
            except ClusterError as error:
                log.info("%s: the pass failed and is repeated after a pause: %s", key, error)
                self._count_error(error)
            except Exception as error:
                log.exception("%s: the pass failed because of a bug and is repeated after a pause", key)
                self._metrics.reconcile_errors.labels("Bug").inc()
                self._report_failure(key, error)
        return Result(failed=True)

    def _pass(self, key: Key) -> Result:
        owner = self._store.deployment(key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            # The garbage collector deletes the children.
            self._writing_passes.pop(key, None)
            self._metrics.forget(key)
            return Result()
        log_fields.add(generation=owner["metadata"]["generation"])
        now = self._clock()
        known = self._store.children(key)
        children = ownership.ours(owner, known)
        try:
            deployment = parse(owner)
        except InvalidSpecError as error:
            self._stall(owner, parse_status(owner), error.reason, str(error), now)
            self._metrics.objects.seen(key, None, parse_status(self._store.deployment(key) or owner))
            return Result()
        self._metrics.objects.seen(key, deployment.spec, deployment.status)
        events = [body for body in known if kind_of(body) is EVENT]
        observed = self._observe(key, deployment, [*children, *events, *self._named_claim(deployment)])
        for ended in self._metrics.stages.seen(key, observed.jobs.values(), now):
            words, job = "%s: Job %s ended after %.0f s: %s", ended.job
            log.info(words, key, job.name, ended.seconds, ended.reason, extra={"stage": job.stage})
        return self._carry_out(key, owner, by_key(children), plan(deployment, observed, self._settings, now), now)

    def _observe(self, key: Key, deployment: TritonDeployment, children: Iterable[Body]) -> Observed:
        """Return the snapshot that the pass decides by."""
        product = product_asked(deployment.spec)
        observed = observe(
            deployment.name,
            children,
            self._cluster.has_node(GPU_PRODUCT_LABEL, product) if product else None,
            self._store.others_on_claim(key),
            deployment.claim_name,
            has_keda=SCALED_OBJECT in self._optional,
            has_gateway_api=HTTP_ROUTE in self._optional,
        )
        if observed.unreadable:
            entries = f"{names.results(deployment.name)}: {', '.join(observed.unreadable)}"
            log.warning("%s: nothing is removed from the claim: unreadable entries in ConfigMap %s", key, entries)
        return observed

    def _carry_out(self, key: Key, owner: Body, by_name: Children, intent: Plan, now: datetime) -> Result:
        """Make the cluster what the plan says, and report that. ``by_name``: the children as they are."""
        refusals = Refusals()
        fights, written = self._writing_passes.get(key, 0) >= LONGEST_FIGHT, Written()
        for take in (self._make_room, self._start_work):
            written += take(owner, by_name, intent, refusals)
            if written and not fights:
                return self._again(key, owner, written, now)
        others = [each for each in intent.objects if kind_of(each) not in {*STARTS_WORK, *OPTIONAL}]
        if refusals and _lacks(by_name, intent):
            # No new server either. One that is there follows its replicas.
            others = [each for each in others if kind_of(each) is not DEPLOYMENT or key_of(each) in by_name]
        written += self._writer.apply_all(owner, by_name, others, refusals)
        # Whatever else is refused: the share of a canary that failed has to end.
        applied, without = self._apply_optional(owner, by_name, intent)
        written += applied
        if refusals:
            log.warning("%s: %s", key, refusals)
            self._count_error(refusals[0])
            self._stall(owner, intent.status, Reason.APPLY_REFUSED, str(refusals), now)
            return Result(failed=True)
        if without:
            reported = self._report_without(owner, intent, without, now)
        else:
            reported = self._report(owner, intent.status, intent.events, now)
        if written or reported:
            return self._again(key, owner, written or ["the status"], now)
        self._writing_passes.pop(key, None)
        return Result(failed=True) if without else Result(again_after=intent.requeue_after)

    def _apply_optional(
        self, owner: Body, children: Children, intent: Plan
    ) -> tuple[Written, dict[ConditionType, str]]:
        """Apply the objects of other projects' kinds. Return what was written, and why any was refused.

        KEDA's webhook, for one, refuses a second scaler of one object: a user's own is left alone. It stalls nothing.
        """
        written, without = Written(), dict[ConditionType, str]()
        for kind, (condition, rest) in REFUSED.items():
            refusals, message = Refusals(), ""
            wanted = [each for each in intent.objects if kind_of(each) is kind]
            try:
                written += self._writer.apply_all(owner, children, wanted, refusals)
            except NotFoundError as error:
                message = str(error)
            if refusals:
                self._count_error(refusals[0])
                message = str(refusals)
            if message:
                without[condition] = f"{message}; {rest}"
        return written, without

    def _report_without(self, owner: Body, intent: Plan, without: Mapping[ConditionType, str], now: datetime) -> bool:
        """Report the plan's status, except that the API server refused objects that nothing else needs."""
        old = parse_status(owner)
        # The plan took them for granted.
        events = [each for each in intent.events if each.condition not in without]
        known = {each.type for each in old.conditions if each.reason == Reason.APPLY_REFUSED}
        for name, message in without.items():
            if name not in known:
                events.append(Event("Warning", Reason.APPLY_REFUSED, f"{name}: {message}"))
        return self._report(owner, refused(owner, old, intent.status, without, now), events, now)

    def _named_claim(self, deployment: TritonDeployment) -> Iterable[Body]:
        """The claim that the spec names, if it exists. It is the user's, so no watch tells of it."""
        if deployment.spec.repository.claim_name is None:
            return
        body = self._cluster.get(CLAIM, deployment.namespace, deployment.claim_name)
        if body is not None:
            yield {"apiVersion": CLAIM.api_version, "kind": CLAIM.kind, **body}

    def _make_room(self, owner: Body, children: Children, intent: Plan, refusals: Refusals) -> Written:
        """Delete what is no longer wanted, before a quota refuses what is. Return what was deleted.

        What may not be deleted stops nothing else.

        The results are recorded first, because the Jobs that are deleted hold them until then.
        """
        gone = [
            child
            for reference in intent.deletions
            if (child := children.get((kind_named(reference.api_version, reference.kind), reference.name)))
            and "deletionTimestamp" not in child["metadata"]
        ]
        if not gone:
            return []
        records = [each for each in intent.objects if kind_of(each) is CONFIG_MAP]
        self._writer.apply_all(owner, children, records, refusals)
        if refusals:
            return []
        return self._writer.delete_all(owner, gone, refusals)

    def _start_work(self, owner: Body, children: Children, intent: Plan, refusals: Refusals) -> Written:
        """Apply what makes Jobs run. If that wrote anything, records and reports are left to the next pass.

        So each of many new objects has its Job before the first status is written.
        """
        wanted = [desired for desired in intent.objects if kind_of(desired) in STARTS_WORK]
        before = [desired for desired in wanted if kind_of(desired) in NEEDED_BY_PODS]
        written = self._writer.apply_all(owner, children, before, refusals)
        if refusals and _lacks(children, intent):
            return written
        jobs = [each for each in wanted if kind_of(each) is JOB]
        return written + self._writer.apply_all(owner, children, jobs, refusals)

    def _stall(self, owner: Body, wanted: TritonDeploymentStatus, reason: Reason, message: str, now: datetime) -> None:
        """Report that the object is stalled until somebody changes something."""
        old = parse_status(owner)
        known = any(item.type in ("Stalled", "UpToDate") and item.reason == reason for item in old.conditions)
        events = () if known else (Event("Warning", reason, message),)
        self._report(owner, stalled(owner, old, wanted, reason, message, now), events, now)

    def _report_failure(self, key: Key, error: Exception) -> None:
        """Report that a pass ended with an error of the operator. What the pass observed may be the cause."""
        try:
            owner, now = self._store.deployment(key), self._clock()
            if owner is None or "deletionTimestamp" in owner["metadata"]:
                return
            old = parse_status(owner)
            status = failed(owner, old, error, now)
            message = next(item.message for item in status.conditions if item.type == "Stalled")
            self._report(owner, status, (Event("Warning", Reason.INTERNAL_ERROR, message),), now)
        except Exception as again:
            log.warning("%s: its status cannot report the error: %s: %s", key, type(again).__name__, again)

    def _report(self, owner: Body, status: TritonDeploymentStatus, events: Iterable[Event], now: datetime) -> bool:
        """Write the status if it differs, then post the events. Return whether the status was written."""
        if status == parse_status(owner):
            return False
        try:
            written = self._cluster.apply_status(status_body(owner, status))
        except NotFoundError:
            # Deleted in the meantime.
            return False
        self._store.put(TRITON_DEPLOYMENT, written)
        ready = next((item for item in status.conditions if item.type == "Ready"), None)
        self._writer.wrote(owner, "status", owner, f"Ready {ready.status}, {ready.reason}" if ready else "")
        for event in events:
            self._post(owner, event, now)
        return True

    def _post(self, owner: Body, event: Event, now: datetime) -> None:
        try:
            self._cluster.create_event(event_body(owner, event.type, event.reason, event.message, now))
        except ClusterError as error:
            # An Event is a courtesy; the status or the log says the same.
            log.warning("Event %s was not created: %s", event.reason, error)

    def _again(self, key: Key, owner: Body, written: Written, now: datetime) -> Result:
        """Have another pass follow one that wrote these objects; after a pause, if it is one of too many."""
        passes = self._writing_passes.get(key, 0) + 1
        self._writing_passes[key] = passes
        if passes <= LONGEST_FIGHT:
            return Result(again_after=0.0)
        message = (
            f"another client keeps undoing what the operator applies to {', '.join(written)}: {passes} passes in a row"
            " had to write. Find it with kubectl get --show-managed-fields; the operator goes on, with growing pauses"
        )
        log.warning("%s: %s", key, message)
        if passes == LONGEST_FIGHT + 1:
            self._post(owner, Event("Warning", Reason.CONTESTED, message), now)
        self._metrics.reconcile_errors.labels("Fight").inc()
        return Result(failed=True)

    def _count_error(self, error: ClusterError) -> None:
        self._metrics.reconcile_errors.labels(type(error).__name__.removesuffix("Error")).inc()


def _lacks(children: Children, intent: Plan) -> bool:
    """Whether a claim or a NetworkPolicy that pods need is not there yet."""
    return any(kind_of(each) in NEEDED_BY_PODS and key_of(each) not in children for each in intent.objects)
