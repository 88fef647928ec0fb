"""The status of searches."""

from typing import Annotated

from pydantic import Field

from triton_converters.contract.results import SearchEnd, Tuning
from triton_operator.api.duration import MeasuredDuration, Span, written
from triton_operator.api.fitting import StatusType
from triton_operator.api.schema import Text


class BatchingStatus(StatusType):
    """The settings of the dynamic batcher that a search varies."""

    preferred_batch_sizes: Annotated[list[int], Field(max_length=16)] = Field(default_factory=list)
    """Batch sizes that are sent without waiting for more requests."""
    max_queue_delay: Span = "0s"
    """Maximum time that a request waits for others."""


class ConfigStatus(StatusType):
    """The settings of a model's configuration that a search varies, as `spec.models[].config` has them."""

    max_batch_size: int
    """Maximum number of samples in a batch; 0 means no batch dimension."""
    instances: int
    """Number of model instances on each GPU, or on the CPU if there is none."""
    dynamic_batching: BatchingStatus | None = None
    """Settings of the dynamic batcher. Absent if it is off."""
    cuda_graphs: bool = False
    """Whether Triton captures CUDA graphs."""

    def __str__(self) -> str:
        """Return the configuration in words."""
        words = [f"max batch {self.max_batch_size}", f"{self.instances} instance{'s' * (self.instances > 1)}"]
        batching = self.dynamic_batching
        words.append("no dynamic batching" if batching is None else f"queue delay {batching.max_queue_delay}")
        if batching is not None and batching.preferred_batch_sizes:
            words.append(f"preferred {' '.join(map(str, batching.preferred_batch_sizes))}")
        return ", ".join([*words, *["CUDA graphs"] * self.cuda_graphs])


class SearchStatus(StatusType):
    """The search for a better configuration of one candidate."""

    candidate: str
    """Name of the candidate."""
    measurements: int
    """Number of measurements so far."""
    size: int = 0
    """Number of combinations in the search space; 0 means not known yet."""
    ended: SearchEnd = SearchEnd.GOES_ON
    """Why the search ended. Empty while it runs."""
    message: Text = ""
    """What went wrong, if the search failed."""
    config: ConfigStatus | None = None
    """Best configuration found so far, as `spec.models[].config` has it."""
    throughput: str = ""
    """Throughput of the best configuration, in inferences per second."""
    p99_latency: MeasuredDuration | None = None
    """P99 latency of the best configuration, such as 18.3ms."""
    load: str = ""
    """Load at which it was measured, such as "batch 1, concurrency 16"."""
    records: Annotated[list[str], Field(max_length=64)] = Field(default_factory=list)
    """The search's records: entries `search.<record>` of the ConfigMap `NAME-results`."""


def config_status(tuning: Tuning) -> ConfigStatus:
    """Return the status of a configuration that a search found."""
    batching = BatchingStatus(
        preferred_batch_sizes=list(tuning.preferred_batch_sizes),
        max_queue_delay=written(tuning.max_queue_delay_microseconds, "us"),
    )
    return ConfigStatus(
        max_batch_size=tuning.max_batch_size,
        instances=tuning.instances,
        dynamic_batching=batching if tuning.dynamic_batching else None,
        cuda_graphs=tuning.cuda_graphs,
    )
