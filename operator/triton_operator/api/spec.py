"""The spec of a TritonDeployment, parsed here, and the source of the CRD's schema.

Every field's docstring becomes its text in `kubectl explain`. Defaults exist only here: none but that of the replicas
is written into the object, so a GitOps tool sees no drift.
"""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from triton_converters.contract.formats import DECLARING, OF_TABLES
from triton_converters.contract.publishing import is_loop
from triton_operator.api.accuracy import AccuracyGate
from triton_operator.api.conversion import Conversion
from triton_operator.api.ensemble import MAX_BATCH_SIZE, Ensemble, ensemble_rules
from triton_operator.api.fixed_paths import apart_rule
from triton_operator.api.format_rules import (
    HAS_GPU,
    image_rule,
    inputs_rule,
    product_rule,
    quantized_rules,
    requirements_rules,
)
from triton_operator.api.model import Model
from triton_operator.api.performance import Performance
from triton_operator.api.pod import CommonPod, Gpu, Pod
from triton_operator.api.publish import Publish
from triton_operator.api.repository import Repository
from triton_operator.api.rollout import Rollout
from triton_operator.api.schema import ApiType, list_map, rules
from triton_operator.api.selection import Selection
from triton_operator.api.serving import Serving
from triton_operator.api.source import Dataset, FollowedSource, Source, UserEntrypoint

SAMPLES, TABLE_SAMPLES = 256, 4096
"""`accuracy.maxSamples` where it is left out. Rows of a table cost next to nothing, and with 256 a model that lost five
points of accuracy in a night is no worse than chance allows: it served (`python3 -m tests.following`, 2026-11-30)."""

HELD = "rollout.revision is served, and serving.mode is None: remove one of them"
LOOP = (
    "publish.uri would overwrite spec.source, or make a newer version of it: name another repository or, of a source"
    " without interval, another tag"
)


class TritonDeploymentSpec(ApiType):
    """The model to serve, and the requirements that it must meet."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.accuracy) || !has(self.accuracy.thresholds) || self.accuracy.thresholds.size() == 0"
                " || has(self.metrics)",
                "accuracy.thresholds need a MetricsCalculator: set spec.metrics",
            ),
            (
                "has(self.dataloader) || !has(self.metrics)",
                "metrics judge the answers to real inputs: set spec.dataloader",
            ),
            inputs_rule(),
            (
                "!self.models.exists(m, has(m.candidates)"
                " && m.candidates.exists(c, has(c.accelerator) && c.accelerator != 'none'))"
                f" || {HAS_GPU}",
                "accelerators cuda, trt and amp need a GPU: set spec.gpu, with a count of at least 1",
            ),
            product_rule(),
            (
                "!has(self.performance) || !has(self.performance.offline)"
                f" || self.performance.offline.batchSizes.all(b, b <= {MAX_BATCH_SIZE} || {MAX_BATCH_SIZE} == 0)",
                "performance.offline.batchSizes must not exceed maxBatchSize of the model or ensemble: lower them",
            ),
            (
                "!has(self.performance) || !has(self.performance.online) || !has(self.performance.online.batchSize)"
                f" || self.performance.online.batchSize <= {MAX_BATCH_SIZE} || {MAX_BATCH_SIZE} == 0",
                "performance.online.batchSize must not exceed maxBatchSize of the model or ensemble: lower it",
            ),
            (
                "!has(self.performance) || !has(self.performance.sharedMemory)"
                " || !('Online' in self.performance.sharedMemory)"
                " || !has(self.serving) || !has(self.serving.autoscaling)",
                "serving.autoscaling needs what a replica does over the network: take Online out of"
                " performance.sharedMemory, or remove autoscaling",
            ),
            (
                "!has(self.selection) || !has(self.selection.scenario) || self.selection.scenario != 'RequestRate'"
                " || (has(self.performance) && has(self.performance.online)"
                " && has(self.performance.online.requestRate))",
                "scenario RequestRate has nothing to rank: set performance.online.requestRate",
            ),
            (
                "!has(self.ensemble) || !has(self.selection) || !has(self.selection.search)"
                " || self.selection.search.mode == 'None'",
                "search does not support ensembles: set selection.search.mode to None",
            ),
            *ensemble_rules(),
            (
                "!has(self.rollout) || !has(self.rollout.revision) || !has(self.serving) || !has(self.serving.mode)"
                " || self.serving.mode == 'Serve'",
                HELD,
            ),
            image_rule(),
            *quantized_rules(),
            *requirements_rules(),
            apart_rule(),
        )
    )
    suspend: bool = False
    """If true, the operator starts no new Jobs. The active revision keeps serving. Default: false."""
    source: FollowedSource
    """Where the model's code and checkpoint are."""
    weights: Source | None = None
    """Where the weights are, if not in the source. They are published like it, and mounted read-only at `$(WEIGHTS)` in
    the Jobs that run your code. Default: none."""
    dataset: Dataset | None = None
    """The data that the dataloader reads, mounted read-only at `$(DATASET)` in the Jobs that run your code. Default:
    none."""
    dataloader: UserEntrypoint | None = None
    """Python file with `get_dataloader_fn(**arguments)`, which returns a generator function of batches `(ids, inputs,
    labels)`: sample ids, and dicts of arrays by name. Default: none; inputs are generated, and accuracy is not
    judged."""
    metrics: UserEntrypoint | None = None
    """Python file with `class MetricsCalculator`, which computes the metrics of `accuracy.thresholds`. Default: none;
    outputs are only compared with the reference."""
    models: Annotated[
        list[Model],
        Field(
            min_length=1,
            max_length=8,
            json_schema_extra=list_map("name"),
        ),
    ]
    """The models to serve. If there are several, `ensemble` must connect them."""
    ensemble: Ensemble | None = None
    """How several models process a request together. Default: none; the single model is served."""
    gpu: Gpu | None = None
    """The GPU that conversion, profiling and serving use. Default: none; everything runs on the CPU."""
    pod: CommonPod = Field(default_factory=CommonPod)
    """Settings of all pods of the object."""
    conversion: Conversion = Field(default_factory=Conversion)
    """Settings of the conversion Jobs and of the agreement gate."""
    accuracy: AccuracyGate = Field(default_factory=AccuracyGate)
    """The accuracy gate, which a candidate must pass before it can serve."""
    performance: Performance = Field(default_factory=Performance)
    """How the performance of each candidate is measured, and how that of a new source is compared."""
    selection: Selection = Field(default_factory=Selection)
    """How the candidate to serve is chosen."""
    repository: Repository = Field(default_factory=Repository)
    """The PersistentVolumeClaim with sources, references, model files and records."""
    revision_history_limit: Annotated[int, Field(ge=0, le=20)] = 3
    """Number of previously active revisions that stay on the claim. Default: 3."""
    serving: Serving = Field(default_factory=Serving)
    """The Deployment that serves the active revision."""
    rollout: Rollout = Field(default_factory=Rollout)
    """How a new revision takes over from the active one."""
    publish: Publish | None = None
    """The image that what passed is published as, once no trial may undo it (docs/publish.md). Default: none."""

    @model_validator(mode="after")
    def _check_loop(self) -> Self:
        """Refuse an image that would become a newer version of the source that it is made from."""
        source = self.source
        if self.publish is not None and is_loop(self.publish.uri, source.uri, followed=source.interval is not None):
            raise ValueError(LOOP)
        return self

    @model_validator(mode="after")
    def _check_held(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if self.rollout.revision is not None and not self.serving.serves:
            raise ValueError(HELD)
        return self

    @property
    def served_name(self) -> str:
        """Triton's name of the ensemble, or of the one model, which clients send their requests to."""
        return self.ensemble.name if self.ensemble else self.models[0].name

    @property
    def has_steps(self) -> bool:
        """Whether an author's Python code runs inside the server."""
        return any(model.is_step for model in self.models)

    @property
    def step_requirements(self) -> tuple[str, ...]:
        """The requirements files of Python steps, each once."""
        return tuple(dict.fromkeys(model.requirements for model in self.models if model.requirements))

    @property
    def other_requirements(self) -> tuple[str, ...]:
        """The requirements files of Python steps other than `conversion.requirements`."""
        return tuple(each for each in self.step_requirements if each != self.conversion.requirements)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements files whose packages the framework's image gets, each once.

        An image of the user's gets none: it has them, those of the steps too.
        """
        named = () if self.conversion.image else (self.conversion.requirements, *self.step_requirements)
        return tuple(dict.fromkeys(filter(None, named)))

    @property
    def installs_packages(self) -> bool:
        """Whether any Job installs Python packages."""
        return bool(self.requirements or self.step_requirements)

    @property
    def max_batch_size(self) -> int:
        """Maximum number of samples in a client's request; 0 means no batch dimension."""
        return self.ensemble.max_batch_size if self.ensemble else self.models[0].config.largest_batch

    @property
    def max_samples(self) -> int:
        """The most samples that are taken from the dataloader, or generated."""
        if self.accuracy.max_samples is not None:
            return self.accuracy.max_samples
        is_table = self.ensemble is None and self.models[0].format in OF_TABLES
        return TABLE_SAMPLES if is_table and self.dataloader is not None else SAMPLES

    @property
    def calibration_samples(self) -> int:
        """The most samples by which any candidate is calibrated; 0: none is, because none is quantized."""
        calibrations = (each.calibration for model in self.models for each in model.candidates)
        return max((each.calibration_samples for each in calibrations if each is not None), default=0)

    @property
    def mounted_dataset(self) -> Dataset | None:
        """The data if it is on a claim, from which it is mounted: it may be too much to copy."""
        return self.dataset if self.dataset is not None and self.dataset.is_mounted else None

    @property
    def published_dataset(self) -> Dataset | None:
        """The data if it is published like the source."""
        return self.dataset if self.dataset is not None and not self.dataset.is_mounted else None

    def follows_graph(self, model: Model) -> bool:
        """Whether `maxBatchSize` of the model is what its graph shows, as far as the spec tells."""
        left_out = self.ensemble is None and model.config.max_batch_size is None
        return left_out and model.path is not None and model.format in (None, *DECLARING)

    @property
    def gpu_count(self) -> int:
        """Number of GPUs in a pod; 0 means that everything runs on the CPU."""
        return self.gpu.count if self.gpu else 0

    @property
    def device(self) -> tuple[str, ...]:
        """The parts of `gpu` that can change a converted file or the framework's outputs; the count cannot."""
        return (self.gpu.product, self.gpu.resource_name) if self.gpu is not None and self.gpu.count > 0 else ()

    @property
    def job_pod(self) -> Pod:
        """Settings of the Jobs' pods: `conversion.pod` over `pod`."""
        return self.conversion.pod.over(self.pod)

    @property
    def server_pod(self) -> Pod:
        """Settings of the servers' pods: `serving.pod` over `pod`."""
        return self.serving.pod.over(self.pod)

    @property
    def follower_pod(self) -> Pod:
        """Settings of the pods of Jobs that have to run where the servers do: of `serving.pod`, the choice of nodes."""
        servers = self.server_pod
        nodes = {name: getattr(servers, name) for name in ("node_selector", "tolerations", "affinity")}
        return self.conversion.pod.over(self.pod.model_copy(update=nodes))
