"""What the status says of searches."""

from typing import Annotated

from pydantic import Field

from triton_converters.contract.results import Tuning
from triton_operator.api.fitting import StatusType
from triton_operator.api.schema import Text


class ConfigurationStatus(StatusType):
    """What a search varies of a model's configuration."""

    max_batch_size: int
    """Samples; 0: no batch dimension."""
    instances: int
    """Model instances on each GPU (or on the CPU)."""
    dynamic_batching: bool
    """Whether requests are put together."""
    preferred_batch_sizes: Annotated[list[int], Field(max_length=16)] = Field(default_factory=list)
    """Sizes that are sent without waiting for more."""
    max_queue_delay_microseconds: int = 0
    """How long a request may wait for others."""
    cuda_graphs: bool = False
    """Whether CUDA graphs are captured."""

    def __str__(self) -> str:
        """In words."""
        words = [f"max batch {self.max_batch_size}", f"{self.instances} instance{'s' * (self.instances > 1)}"]
        if self.dynamic_batching:
            words.append(f"queue delay {self.max_queue_delay_microseconds} us")
        if self.dynamic_batching and self.preferred_batch_sizes:
            words.append(f"preferred {' '.join(map(str, self.preferred_batch_sizes))}")
        if not self.dynamic_batching:
            words.append("no dynamic batching")
        return ", ".join([*words, *["CUDA graphs"] * self.cuda_graphs])


class SearchStatus(StatusType):
    """The search for a better configuration of one candidate."""

    candidate: str
    """Its name."""
    measurements: int
    """Points tried so far, and the best of them once more at the end; the candidate's own rows are not among them."""
    size: int = 0
    """Points of the whole space; 0: not known yet."""
    ended: str = ""
    """Converged, Complete, MeasurementsSpent, TimeSpent or Failed; empty: it goes on."""
    message: Text = ""
    """Of a search that failed: how."""
    configuration: ConfigurationStatus | None = None
    """Of the best point."""
    throughput: str = ""
    """Decimal: inferences per second of the best point."""
    p99_latency_microseconds: int | None = None
    """Of the best point."""
    load: str = ""
    """Of the best point: "batch 1, concurrency 16"."""
    records: Annotated[list[str], Field(max_length=64)] = Field(default_factory=list)
    """All points are entries `search.RECORD` of the ConfigMap NAME-results."""


def configuration_status(tuning: Tuning) -> ConfigurationStatus:
    """A configuration of a search."""
    return ConfigurationStatus(**{**vars(tuning), "preferred_batch_sizes": list(tuning.preferred_batch_sizes)})
