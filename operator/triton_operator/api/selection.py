"""How the candidate is chosen."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_converters.contract import measurement_requests as requests
from triton_converters.contract.scoring import THROUGHPUT
from triton_operator.api.duration import Duration, microseconds
from triton_operator.api.quantity import Quantity, whole
from triton_operator.api.schema import ApiType, PositiveOrZero, ResultKey, list_map, rules

ObjectiveMetric = Literal[
    "Throughput",
    "P50LatencyMicroseconds",
    "P90LatencyMicroseconds",
    "P95LatencyMicroseconds",
    "P99LatencyMicroseconds",
    "AverageLatencyMicroseconds",
    "UsedMemoryBytes",
]


class Objective(ApiType):
    """A metric to improve: higher throughput, lower latency or lower memory use."""

    metric: ObjectiveMetric
    """Metric to improve: Throughput, P50LatencyMicroseconds, P90LatencyMicroseconds, P95LatencyMicroseconds,
    P99LatencyMicroseconds, AverageLatencyMicroseconds or UsedMemoryBytes."""
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    """Weight of the objective relative to the other objectives. Default: 1."""

    def asked(self) -> requests.Objective:
        """Return the objective as the ranking and a search's request take it."""
        return requests.Objective(self.metric, self.weight)


class Constraints(ApiType):
    """Bounds on the figures of a measurement: the highest latencies and memory use, and the lowest throughput."""

    p50_latency: Duration | None = None
    """Highest median latency, such as 5ms. Default: no bound."""
    p90_latency: Duration | None = None
    """Highest 90th percentile of the latency, such as 10ms. Default: no bound."""
    p95_latency: Duration | None = None
    """Highest 95th percentile of the latency, such as 15ms. Default: no bound."""
    p99_latency: Duration | None = None
    """Highest 99th percentile of the latency, such as 20ms. Default: no bound."""
    average_latency: Duration | None = None
    """Highest mean latency, such as 800us. Default: no bound."""
    throughput: PositiveOrZero | None = None
    """Lowest throughput, in inferences (samples) per second. Default: no bound."""
    memory: Quantity | None = None
    """Highest memory use, such as 8Gi. It is GPU memory, or the node's memory if there is no GPU. Default: no bound."""

    def words(self) -> list[str]:
        """Return each bound in words, such as "p99Latency at most 20ms"."""
        bounds = self.model_dump(by_alias=True, exclude_none=True)
        return [
            f"{name} at least {bound:g}" if name == "throughput" else f"{name} at most {bound}"
            for name, bound in bounds.items()
        ]

    def asked(self) -> tuple[requests.Constraint, ...]:
        """Return the bounds as the ranking and a search's request take them: in microseconds, samples/s and bytes."""
        latencies = {
            "P50LatencyMicroseconds": self.p50_latency,
            "P90LatencyMicroseconds": self.p90_latency,
            "P95LatencyMicroseconds": self.p95_latency,
            "P99LatencyMicroseconds": self.p99_latency,
            "AverageLatencyMicroseconds": self.average_latency,
        }
        bounds = [
            *(requests.Constraint(metric, None, microseconds(most)) for metric, most in latencies.items() if most),
            *([] if self.throughput is None else [requests.Constraint(THROUGHPUT, self.throughput, None)]),
            *([] if self.memory is None else [requests.Constraint("UsedMemoryBytes", None, float(whole(self.memory)))]),
        ]
        return tuple(bounds)


class Search(ApiType):
    """A search for better configurations of the two best candidates: batching, instances, queue delay, CUDA graphs."""

    mode: Literal["None", "Quick", "Exhaustive"]
    """`None` turns the search off. `Quick` starts from the spec's configuration and changes one setting at a time, as
    long as the measurements improve. `Exhaustive` measures every combination of settings."""
    measurements: Annotated[int, Field(ge=8, le=480)] = 48
    """Maximum number of measurements, for both candidates together. Default: 48."""
    duration_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """Maximum time spent measuring, for both candidates together, in seconds. When it is spent, the best configuration
    found so far is used. Default: 3600."""


class Selection(ApiType):
    """How the candidate to serve is chosen from those that passed every gate."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.approvedRevision) || (has(self.approval) && self.approval == 'Manual')",
                "approvedRevision needs manual approval: set approval to Manual, or remove approvedRevision",
            ),
            (
                "!has(self.scenario) || self.scenario != 'RequestRate' || !has(self.search)"
                " || self.search.mode == 'None'",
                "a search measures no request rates: set search.mode to None, or scenario to Online",
            ),
        )
    )
    scenario: Literal["Online", "Offline", "RequestRate"] = "Online"
    """The sweep whose measurements are ranked: `Online`, `Offline`, or `RequestRate` for those of
    `performance.online.requestRate`. Default: Online."""
    objectives: Annotated[
        list[Objective],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Metrics to improve. Default: Throughput."""
    constraints: Constraints = Field(default_factory=Constraints)
    """Bounds, all of which a measurement must meet. Default: none."""
    search: Search = Field(default_factory=lambda: Search(mode="None"))
    """Search for better configurations (batching, instances, queue delay, CUDA graphs) of the two best candidates. Not
    available for an ensemble. Default: mode None."""
    approval: Literal["Automatic", "Manual"] = "Automatic"
    """Whether a rollout needs your approval. With `Automatic`, the operator rolls out the best candidate. With
    `Manual`, it rolls out only the revision that `approvedRevision` names, and the active revision keeps serving until
    then. Default: Automatic."""
    approved_revision: ResultKey | None = None
    """Key of the revision that may be rolled out, copied from `key` of the candidate in `status.candidates`. Only
    allowed with `approval: Manual`. Default: none; no new revision is rolled out."""
    fallback: Literal["None", "Closest"] = "None"
    """What happens if no candidate meets every constraint. `None` rolls out nothing. `Closest` rolls out the candidate
    that misses the constraints by the smallest margin. Default: None."""
    minimum_improvement_percent: Annotated[int, Field(ge=0, le=1000)] = 20
    """Minimum improvement in the objectives, in percent, for which another candidate replaces the active one, also
    where a new source brings new figures. Both must have been measured in the same environment. If 0, the best
    candidate always replaces the active one. Default: 20, which two stable measurements may differ by without a cause:
    the windows of each lie within 10 %."""
