"""What each TritonDeployment promises and was measured to do, as metrics to compare with its servers' own.

The labels `namespace`, `object` and `revision` are those that the chart's PodMonitor gives the servers' series, and
`model` is Triton's: the model, or the ensemble, that clients ask for. Of each object there is one active revision, so
the number of series is bounded by the rows of its sweep.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import is_time
from triton_operator.api.duration import seconds
from triton_operator.api.measured_status import RowStatus
from triton_operator.api.selection import Constraints
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.runtime.store import Key

OBJECT = ("namespace", "object")
REVISION = (*OBJECT, "model", "revision")
ROW = (*REVISION, "batch_size", "concurrency")
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "triton_operator_stalled": (
        "1 for a TritonDeployment that is stalled, with the reason of its Stalled condition.",
        (*OBJECT, "reason"),
    ),
    "triton_operator_not_up_to_date": (
        "1 for a TritonDeployment whose UpToDate condition is False, with its reason.",
        (*OBJECT, "reason"),
    ),
    "triton_operator_failing": (
        "1 for a TritonDeployment over which every pass fails, with the reason of its Reconciling condition.",
        (*OBJECT, "reason"),
    ),
    "triton_operator_rollout_held": (
        "1 for a TritonDeployment whose canary or soak has had no verdict for so long that a person has to look.",
        OBJECT,
    ),
    "triton_operator_worse_than_before": (
        "1 for a TritonDeployment whose newest candidates are refused because a metric is worse than before.",
        OBJECT,
    ),
    "triton_operator_outdated_since_seconds": (
        "Time (Unix) since which looks have found other versions of a followed source than the version that serves.",
        OBJECT,
    ),
    "triton_operator_last_look_seconds": (
        "Time (Unix) at which a look last found which version a followed source has.",
        OBJECT,
    ),
    "triton_operator_look_failed": (
        "1 for a TritonDeployment of whose source it is not known whether something newer is there, with the reason of"
        " its UpToDate condition.",
        (*OBJECT, "reason"),
    ),
    "triton_operator_no_server_ready": (
        "1 for a TritonDeployment whose active revision has no server that is ready, though servers are wanted, with"
        " the reason of its Available condition.",
        (*OBJECT, "reason"),
    ),
    "triton_operator_active_revision": (
        "1 for the active revision of a TritonDeployment.",
        (*REVISION, "candidate", "format", "precision"),
    ),
    "triton_operator_ensemble": (
        "1 for a TritonDeployment that serves an ensemble. Triton counts each failed request to it twice.",
        (*OBJECT, "model"),
    ),
    "triton_operator_latency_limit_seconds": (
        "Highest latency that spec.selection.constraints allow, by statistic: average, p50, p90, p95 or p99.",
        (*OBJECT, "model", "statistic"),
    ),
    "triton_operator_measured_throughput": (
        "Inferences (samples) per second of the active revision's best measurement through the Service.",
        REVISION,
    ),
    "triton_operator_measured_p99_latency_seconds": (
        "P99 latency of the active revision's best measurement through the Service.",
        REVISION,
    ),
    "triton_operator_replica_throughput": (
        "Inferences (samples) per second of the active revision's best measurement as a candidate, on one replica.",
        REVISION,
    ),
    "triton_operator_sweep_throughput": (
        "Inferences (samples) per second of each measurement of the active revision's online sweep.",
        ROW,
    ),
    "triton_operator_sweep_p99_latency_seconds": (
        "P99 latency, seen by the client, of each measurement of the active revision's online sweep.",
        ROW,
    ),
    "triton_operator_sweep_server_latency_seconds": (
        "Mean time in the server, queue included, of each measurement of the active revision's online sweep.",
        ROW,
    ),
}
"""Name of each metric: what it says, and its labels."""

TOLD = {
    ("Stalled", "True"): "triton_operator_stalled",
    ("UpToDate", "False"): "triton_operator_not_up_to_date",
    ("UpToDate", "Unknown"): "triton_operator_look_failed",
}
"""The metric of a condition with a status, if it has one."""

Sample = tuple[str, tuple[str, ...], float]
"""Name of the metric, values of its labels, value."""


class ObjectMetrics(Collector):
    """The metrics of all TritonDeployments, as the last passes saw them.

    Passes are made by the replica that leads, so no series is there twice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: dict[Key, tuple[Sample, ...]] = {}

    def seen(self, key: Key, spec: TritonDeploymentSpec | None, status: TritonDeploymentStatus) -> None:
        """Take in an object; without a spec if that is invalid."""
        found = tuple(samples(key, spec, status))
        with self._lock:
            self._samples[key] = found

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        with self._lock:
            self._samples.pop(key, None)

    def clear(self) -> None:
        """Forget all objects."""
        with self._lock:
            self._samples.clear()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families, empty."""
        for name, (words, labels) in FAMILIES.items():
            yield GaugeMetricFamily(name, words, labels=labels)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families with all samples."""
        families = {family.name: family for family in self.describe()}
        with self._lock:
            known = list(self._samples.values())
        for name, labels, value in chain.from_iterable(known):
            families[name].add_metric(labels, value)
        yield from families.values()


def samples(key: Key, spec: TritonDeploymentSpec | None, status: TritonDeploymentStatus) -> Iterator[Sample]:
    """Yield the samples of one object."""
    yield from _conditions(key, status)
    yield from _versions(key, status)
    if (failing := status.failing) is not None:
        yield "triton_operator_failing", (*key, failing.reason), 1.0
    if spec is not None:
        active = status.active
        model = (active.model if active is not None else None) or spec.served_name
        if spec.ensemble is not None:
            yield "triton_operator_ensemble", (*key, model), 1.0
        for statistic, limit in _limits(spec.selection.constraints):
            yield "triton_operator_latency_limit_seconds", (*key, model, statistic), limit
        yield from _revision(key, model, status)


def _conditions(key: Key, status: TritonDeploymentStatus) -> Iterator[Sample]:
    """Yield what the conditions say."""
    for each in status.conditions:
        if (name := TOLD.get((each.type, each.status))) is not None:
            yield name, (*key, each.reason), 1.0
        if each.reason == Reason.ROLLOUT_HELD and each.type == "Soaked":
            yield "triton_operator_rollout_held", tuple(key), 1.0
        if (each.type, each.reason) == ("Verified", Reason.WORSE_THAN_BEFORE):
            yield "triton_operator_worse_than_before", tuple(key), 1.0
        if (each.type, each.status) == ("Available", "False") and _is_outage(status, each.reason):
            yield "triton_operator_no_server_ready", (*key, each.reason), 1.0


def _versions(key: Key, status: TritonDeploymentStatus) -> Iterator[Sample]:
    """Yield what looks found of a source that is followed."""
    source = status.source
    if source is None or source.latest is None:
        return
    times = {
        "triton_operator_outdated_since_seconds": source.outdated_since,
        "triton_operator_last_look_seconds": source.last_checked_at,
    }
    for name, time in times.items():
        if is_time(time):
            yield name, tuple(key), datetime.fromisoformat(time).timestamp()


def _is_outage(status: TritonDeploymentStatus, reason: str) -> bool:
    """Whether clients get no answer that they got before: a first revision, and no replicas by wish, are no outage."""
    return status.active is not None and reason != Reason.SUSPENDED


def _limits(constraints: Constraints) -> Iterator[tuple[str, float]]:
    """Yield each bounded latency and its bound in seconds."""
    for statistic in ("average", "p50", "p90", "p95", "p99"):
        if bound := getattr(constraints, f"{statistic}_latency"):
            yield statistic, seconds(bound)


def _revision(key: Key, model: str, status: TritonDeploymentStatus) -> Iterator[Sample]:
    """Yield the samples of the active revision. ``model``: the name under which it serves."""
    active = status.active
    if active is None:
        return
    labels = (*key, model, active.revision)
    yield "triton_operator_active_revision", (*labels, active.candidate, active.format, active.precision), 1.0
    yield from _throughput("triton_operator_measured_throughput", labels, active.throughput)
    if active.p99_latency is not None:
        yield "triton_operator_measured_p99_latency_seconds", labels, seconds(active.p99_latency)
    for candidate in status.candidates:
        if candidate.revision == active.revision:
            yield from _throughput("triton_operator_replica_throughput", labels, candidate.throughput)
    rows = status.performance.online if status.performance is not None else ()
    # The last one, if a sweep has two of the same load: a series has one value.
    for load, row in {(str(row.batch_size), str(row.concurrency)): row for row in rows}.items():
        yield from _row((*labels, *load), row)


def _row(labels: tuple[str, ...], row: RowStatus) -> Iterator[Sample]:
    times = (row.queue_time, row.compute_input_time, row.compute_infer_time, row.compute_output_time)
    yield from _throughput("triton_operator_sweep_throughput", labels, row.throughput)
    yield "triton_operator_sweep_p99_latency_seconds", labels, seconds(row.p99_latency)
    yield "triton_operator_sweep_server_latency_seconds", labels, sum(map(seconds, times))


def _throughput(name: str, labels: tuple[str, ...], text: str) -> Iterator[Sample]:
    """Yield nothing for a text that is no number: anybody who may write a status can put one there."""
    with suppress(ValueError):
        yield name, labels, float(text)
