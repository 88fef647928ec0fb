"""One pass over one TritonDeployment: observe, plan, write what differs, report.

store ─> parse ─> observe ─> plan ─> delete ─> apply what drifts ─> status ─> events

A pass never waits and never raises. A user's error goes into the status; another error leads to a later pass, and goes
into the status if it lasts; a bug leaves a traceback too. A pass that wrote something is followed by another; one that
wrote nothing is the last.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.triton_deployment import (
    InvalidSpecError,
    TritonDeployment,
    parse,
    parse_kept,
    parse_status,
)
from triton_operator.kube import ownership
from triton_operator.kube.errors import ClusterError, NotLeaderError, RefusedError
from triton_operator.kube.kinds import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    HTTP_ROUTE,
    SCALED_OBJECT,
    TRITON_DEPLOYMENT,
    ApiKind,
    kind_of,
)
from triton_operator.kube.managed_fields import trimmed
from triton_operator.names import GPU_PRODUCT_LABEL, Body
from triton_operator.observed.gpu import NodeGpu, Nodes, gpu_of
from triton_operator.observed.routes import hosts
from triton_operator.observed.snapshot import Observed, measured_nodes, observe, recorded_servers
from triton_operator.observed.turn import FREE, Turn, held_up
from triton_operator.planning import setbacks
from triton_operator.planning.keeping import keep
from triton_operator.planning.plan import Event, Plan, plan
from triton_operator.planning.setbacks import Report, Setback
from triton_operator.resources.job import keeps_off
from triton_operator.resources.room import may_take
from triton_operator.runtime import log_fields
from triton_operator.runtime.carrying_out import CarryingOut
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.outcome import Carried, outcome_of
from triton_operator.runtime.outside import ApiServer, PassStore
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reporting import Reporter, UnwrittenStatusError
from triton_operator.runtime.store import Key
from triton_operator.runtime.store_facts import facts_of
from triton_operator.runtime.turns import Turns, wish_for
from triton_operator.runtime.writing import Writer, Written, by_key
from triton_operator.settings import Settings
from triton_operator.stages.skipping import built_gpu_product

LONGEST_FIGHT = 20
"""Passes in a row that may write. After more, another client must be undoing them: a Warning says so, the pauses grow,
and a pass goes on after what it had to write again, so that nothing else of the object waits for that client."""
LONGEST_RETRY_AFTER_SECONDS = 60.0
"""The longest Retry-After that is respected, in seconds. The API server says 1; a proxy may say anything."""
CLAIM_AGAIN_SECONDS = 300.0
"""The pause, in seconds, before the next pass of an object that names a claim: it is the user's, and no watch tells of
its deletion, which waits for the object's pods."""
log = logging.getLogger(__name__)


class Reconciler:
    """Makes passes over TritonDeployments; over each, only one at a time."""

    def __init__(
        self,
        cluster: ApiServer,
        store: PassStore,
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        optional: Collection[ApiKind] = (),
        turns: Turns | None = None,
    ) -> None:
        """`optional`: the kinds of other projects that the API server knows, and that are watched.

        `turns`: the queue of the objects that wait to measure; by default an empty one.
        """
        self._turns = turns or Turns()
        self._cluster = cluster
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._writer = Writer(cluster, store, metrics)
        self._reporter = Reporter(cluster, store, self._writer)
        self._clock = clock
        self._optional = optional
        self._writing_passes: dict[Key, int] = {}
        """How many passes in a row wrote something."""

    def reconcile(self, key: Key) -> Result:
        """Make one pass; never raises."""
        with self._metrics.reconcile_seconds.time(), log_fields.fields(namespace=key.namespace, object=key.name):
            try:
                return self._pass(key)
            except UnwrittenStatusError as error:
                # The pass has tried its one status, so the next one tells of a refusal.
                log.log(
                    _level(error),
                    "%s: the status was not written, and the pass is repeated after a pause: %s",
                    key,
                    error,
                )
                self._metrics.failed(error.counted)
                return _after_a_pause(error.retry_after)
            except NotLeaderError as error:
                # Another replica works now. Once this one does again, nothing is known of the time between.
                log.info("%s: the pass ended: %s", key, error)
                self._reporter.forget(key)
                return _after_a_pause(error.retry_after)
            except ClusterError as error:
                # Refused objects are collected, so what is refused here is a read, which the chart should grant.
                log.log(_level(error), "%s: the pass failed and is repeated after a pause: %s", key, error)
                return self._ended(key, error, setbacks.request_failed(error))
            except Exception as error:
                log.exception("%s: the pass failed because of a bug and is repeated after a pause", key)
                return self._ended(key, error, setbacks.internal_error(error))
            finally:
                self._turns.passed(key, self._store.measuring)

    def _pass(self, key: Key) -> Result:
        """Observe, plan, carry out and report. Raises ClusterError if nothing gets through, or no status is taken."""
        owner, now = self._store.owner(key), self._clock()
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return self._forget(key)
        log_fields.add(generation=owner["metadata"]["generation"])
        try:
            triton_deployment = parse(owner)
        except InvalidSpecError as error:
            return self._refuse(key, owner, error, now)
        self._metrics.objects.seen(key, triton_deployment.spec, triton_deployment.status)
        claims = [] if triton_deployment.spec.repository.claim_name else [triton_deployment.claim_name]
        known = self._known(key, owner, *claims)
        children = ownership.ours(owner, known)
        observed = self._observe(key, triton_deployment, children, known)
        self._metrics.jobs_seen(key, observed, now)
        planned = plan(triton_deployment, observed, self._settings, now)
        turn = self._turn(key, observed, planned, now)
        if turn != FREE:
            planned = plan(triton_deployment, replace(observed, turn=turn), self._settings, now)
        return self._fulfil(key, owner, CarryingOut(self._writer, owner, by_key(children), planned), now)

    def _turn(self, key: Key, observed: Observed, planned: Plan, now: datetime) -> Turn:
        """Whether the object may start the Job that measures which a plan has, beside those of all others."""
        most = self._settings.measurements_per_node
        bodies = (each for each in planned.objects if each["metadata"]["name"] not in observed.jobs)
        new = next((each for each in bodies if names.MEASURES_LABEL in each["metadata"].get("labels", {})), None)
        if most and new is not None:
            wish, pod = wish_for(new, observed), new["spec"]["template"]["spec"]

            def has_other_node(besides: frozenset[str]) -> bool | None:
                nodes = self._cluster.other_nodes(pod.get("nodeSelector", {}), besides)
                return None if nodes is None else any(may_take(each, pod) for each in nodes)

            return self._turns.ask(key, wish, now, most, self._store.measuring, has_other_node)
        held = next((each for each in observed.jobs.values() if held_up(each)), None)
        if most and held is not None:
            return self._turns.hold(key, held.name, now, keeps_off=keeps_off(held.body))
        self._turns.leave(key)
        return FREE

    def _forget(self, key: Key) -> Result:
        """Leave an object that is gone or goes: the garbage collector deletes its children."""
        self._turns.leave(key)
        self._writing_passes.pop(key, None)
        self._reporter.forget(key)
        self._metrics.forget(key)
        return Result()

    def _refuse(self, key: Key, owner: Body, error: InvalidSpecError, now: datetime) -> Result:
        """Report a spec that the user has to correct, and keep what serves. Raises as `_pass` does."""
        children, kept = ownership.ours(owner, self._known(key, owner)), parse_kept(owner)
        claims = (each for each in (*children, *self._named_claim(kept)) if kind_of(each) is CLAIM)
        claim = next((each for each in claims if each["metadata"]["name"] == kept.claim_name), None)
        planned = keep(owner, error, replace(observe(key.name, children), claim=claim), self._settings, now)
        carried = self._carry_out(key, CarryingOut(self._writer, owner, by_key(children), planned))
        self._reporter.report(key, owner, Report(planned.status, planned.events), now)
        self._metrics.objects.seen(key, None, parse_status(self._store.owner(key) or owner))
        return self._next(key, owner, carried, carried.written, now)

    def _known(self, key: Key, owner: Body, *claims: str) -> list[Body]:
        """The children and the Events that the store has, and what it lacks of all that decides for good.

        ``claims``: names of the claims that the operator makes and the pass needs.

        The store lacks what lost its label, and what found no room. A pass that took the records or a recorded
        Deployment for missing would forget, delete and judge for ever, so it asks the API server once.
        """
        known = self._store.children(key)
        if (owner.get("status") or {}).get("observedGeneration", -1) < 0:
            # The records are written before the first status.
            return known

        def look(kind: ApiKind, *wanted: str) -> None:
            there = by_key(known)
            for name in wanted:
                found = self._cluster.get(kind, key.namespace, name) if (kind, name) not in there else None
                if found is not None:
                    known.append(trimmed(kind, found))

        look(CONFIG_MAP, names.results(key.name))
        look(DEPLOYMENT, *recorded_servers(key.name, ownership.ours(owner, known)))
        look(CLAIM, *claims)
        return known

    def _observe(
        self, key: Key, triton_deployment: TritonDeployment, children: Iterable[Body], known: Iterable[Body]
    ) -> Observed:
        """Return the snapshot that the pass decides by. ``known``: what the store has, Events included."""
        product, children = built_gpu_product(triton_deployment.spec), list(children)
        events = (body for body in known if kind_of(body) is EVENT)
        observed = observe(
            triton_deployment.name,
            [*children, *events, *self._named_claim(triton_deployment)],
            Nodes(
                self._cluster.has_node(GPU_PRODUCT_LABEL, product) if product else None,
                self._gpus(triton_deployment, children),
            ),
            self._store.others_on_claim(key, triton_deployment.claim_name),
            triton_deployment.claim_name,
            has_keda=SCALED_OBJECT in self._optional,
            has_gateway_api=HTTP_ROUTE in self._optional,
        )
        if (route := triton_deployment.spec.serving.route) is not None:
            wanted = hosts(key.namespace, route.model_dump(by_alias=True))
            observed = replace(observed, host_holder=self._store.host_holder(key, wanted))
        if triton_deployment.spec.source.interval is not None:
            observed = replace(observed, looks_beside=self._store.looks_beside(key))
        if observed.unreadable:
            entries = f"{names.results(triton_deployment.name)}: {', '.join(observed.unreadable)}"
            log.warning("%s: nothing is removed from the claim: unreadable entries in ConfigMap %s", key, entries)
        return observed

    def _gpus(self, triton_deployment: TritonDeployment, children: Iterable[Body]) -> Mapping[str, NodeGpu]:
        """The GPUs of the nodes on which figures come about that are not recorded yet."""
        gpu = triton_deployment.spec.gpu
        if gpu is None or gpu.count == 0:
            return {}
        nodes = measured_nodes(triton_deployment.name, children)
        return {name: gpu_of(self._cluster.node_labels(name), gpu.resource_name) for name in nodes}

    def _named_claim(self, triton_deployment: TritonDeployment) -> Iterable[Body]:
        """The claim that the spec names, if it exists. It is the user's, so no watch tells of it."""
        if triton_deployment.spec.repository.claim_name is None:
            return
        body = self._cluster.get(CLAIM, triton_deployment.namespace, triton_deployment.claim_name)
        if body is not None:
            yield {"apiVersion": CLAIM.api_version, "kind": CLAIM.kind, **body}

    def _fulfil(self, key: Key, owner: Body, carrying_out: CarryingOut, now: datetime) -> Result:
        """Carry a plan out, then report that by one status, then say when the next pass is due."""
        carried = self._carry_out(key, carrying_out)
        is_told = carried.whole and self._tell(key, owner, carried, now)
        return self._next(key, owner, carried, carried.written or (["the status"] if is_told else []), now)

    def _carry_out(self, key: Key, carrying_out: CarryingOut) -> Carried:
        """Make the cluster what the plan says, log what could not be written, and count that by the first of it."""
        carried = carrying_out.take_steps(to_the_end=self._writing_passes.get(key, 0) >= LONGEST_FIGHT)
        if failures := carried.all_failures:
            level = logging.WARNING if failures.refused or carried.without else logging.INFO
            log.log(level, "%s: %s", key, failures)
            self._metrics.failed(failures[0])
        return carried

    def _tell(self, key: Key, owner: Body, carried: Carried, now: datetime) -> bool:
        """Report what became of the plan. Return whether a status was written; one of a failure wakes no pass."""
        planned, setback = outcome_of(owner, carried, now)
        if setback is not None:
            self._reporter.fails(key, owner, setback, planned, now)
            return False
        return self._reporter.report(key, owner, Report(planned.status, planned.events), now)

    def _next(self, key: Key, owner: Body, carried: Carried, written: Written, now: datetime) -> Result:
        """Return when the next pass is due. ``written``: what this one wrote; empty: nothing."""
        if carried.whole and carried.failures:
            return _after_a_pause(carried.failures.retry_after)
        if written:
            return self._again(key, owner, written, now)
        self._writing_passes.pop(key, None)
        if carried.without:
            return Result(failed=True)
        pause = carried.plan.requeue_after
        is_named = facts_of(TRITON_DEPLOYMENT, owner).claim != names.claim(key.name)
        return Result(again_after=CLAIM_AGAIN_SECONDS if pause is None and is_named else pause)

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
            self._reporter.post(owner, Event("Warning", Reason.CONTESTED, message), now)
        self._metrics.reconcile_errors.labels("Fight").inc()
        return Result(failed=True)

    def _ended(self, key: Key, error: Exception, setback: Setback) -> Result:
        """Count a pass that an error ended, tell the user of it if it lasts, and have it repeated after a pause."""
        self._metrics.failed(error)
        try:
            owner, now = self._store.owner(key), self._clock()
            if owner is not None and "deletionTimestamp" not in owner["metadata"]:
                self._reporter.fails(key, owner, setback, None, now)
        except ClusterError as again:
            log.warning("%s: its status cannot report the error: %s: %s", key, type(again).__name__, again)
        except Exception:
            # What the pass observed may be the cause of both.
            log.exception("%s: its status cannot report the error because of another bug", key)
        return _after_a_pause(error.retry_after if isinstance(error, ClusterError) else 0.0)


def _after_a_pause(seconds: float) -> Result:
    """Have a pass repeated after a pause of at least so many seconds, as the API server asks."""
    return Result(again_after=min(seconds, LONGEST_RETRY_AFTER_SECONDS) or None, failed=True)


def _level(error: ClusterError) -> int:
    """Return the level to log at: a refusal waits for a person, all else may pass by itself."""
    return logging.WARNING if isinstance(error, RefusedError) else logging.INFO
