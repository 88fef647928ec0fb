"""The spec of a TritonDeployment: parsed here, and the source of the CRD's schema.

Every field's docstring becomes `kubectl explain`. Defaults live here alone: none is written into the object, so a
GitOps tool sees no drift.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from triton_operator.api.accuracy import AccuracyGate
from triton_operator.api.conversion import Conversion
from triton_operator.api.ensemble import MAX_BATCH_SIZE, Ensemble, ensemble_rules
from triton_operator.api.model import Model
from triton_operator.api.performance import Performance
from triton_operator.api.pod import Gpu
from triton_operator.api.repository import Repository
from triton_operator.api.routes import HAS_GPU, image_rule, product_rule
from triton_operator.api.schema import ApiType, list_map, rules
from triton_operator.api.selection import Selection
from triton_operator.api.serving import Serving
from triton_operator.api.source import Data, Source, UserEntrypoint


class TritonDeploymentSpec(ApiType):
    """What to serve and how well."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.accuracy) || !has(self.accuracy.thresholds) || self.accuracy.thresholds.size() == 0"
                " || has(self.metrics)",
                "accuracy.thresholds need metrics.entrypoint",
            ),
            (
                "!self.models.exists(m, has(m.candidates)"
                " && m.candidates.exists(c, has(c.accelerator) && c.accelerator != 'none'))"
                f" || {HAS_GPU}",
                "accelerators cuda, trt and amp need a GPU: set spec.gpu",
            ),
            product_rule(),
            (
                "!has(self.performance) || !has(self.performance.offline)"
                f" || self.performance.offline.batchSizes.all(b, b <= {MAX_BATCH_SIZE} || {MAX_BATCH_SIZE} == 0)",
                "performance.offline.batchSizes are at most config.maxBatchSize",
            ),
            (
                "!has(self.performance) || !has(self.performance.online) || !has(self.performance.online.batchSize)"
                f" || self.performance.online.batchSize <= {MAX_BATCH_SIZE} || {MAX_BATCH_SIZE} == 0",
                "performance.online.batchSize is at most config.maxBatchSize",
            ),
            (
                "!has(self.ensemble) || !has(self.selection) || !has(self.selection.search)"
                " || self.selection.search.mode == 'None'",
                "selection.search is not for an ensemble: set mode None",
            ),
            *ensemble_rules(),
            image_rule(),
        )
    )
    suspend: bool = False
    """True: start no new Job; what serves stays up. Default false."""
    source: Source
    """Code and checkpoint."""
    data: Data | None = None
    """What the dataloader reads."""
    dataloader: UserEntrypoint
    """File with `get_dataloader_fn(**arguments)` -> a function that yields (ids, {input: array}, {output: array})."""
    metrics: UserEntrypoint | None = None
    """File with `class MetricsCalculator`. Default: outputs are compared numerically only."""
    models: Annotated[
        list[Model],
        Field(
            min_length=1,
            max_length=8,
            json_schema_extra=list_map("name"),
        ),
    ]
    """The model; several are connected by `ensemble`."""
    ensemble: Ensemble | None = None
    """How several models answer one request together. Default: the one model is served."""
    gpu: Gpu | None = None
    """Default: none, everything runs on CPU."""
    conversion: Conversion = Field(default_factory=Conversion)
    """Conversion Jobs."""
    accuracy: AccuracyGate = Field(default_factory=AccuracyGate)
    """Gates."""
    performance: Performance = Field(default_factory=Performance)
    """Sweeps."""
    selection: Selection = Field(default_factory=Selection)
    """Choice."""
    repository: Repository = Field(default_factory=Repository)
    """The claim."""
    serving: Serving = Field(default_factory=Serving)
    """The server."""

    @property
    def served_name(self) -> str:
        """Triton's name of what clients ask for: the ensemble, or the one model."""
        return self.ensemble.name if self.ensemble else self.models[0].name

    @property
    def max_batch_size(self) -> int:
        """Samples, of what clients ask for; 0: no batch dimension."""
        return self.ensemble.max_batch_size if self.ensemble else self.models[0].config.max_batch_size

    @property
    def gpu_count(self) -> int:
        """GPUs of a pod; 0: CPU."""
        return self.gpu.count if self.gpu else 0
