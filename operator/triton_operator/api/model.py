"""The source model, the configuration to serve it with, and the candidates to try."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from triton_converters.contract import overrides
from triton_converters.contract.formats import FORMATS, REPOSITORY, SOURCE_FORMATS, TRITON_PYTHON
from triton_converters.contract.results import Signature, Tensor
from triton_operator.api.backend_settings import parameter_rule, refused_parameters
from triton_operator.api.duration import Span, Within
from triton_operator.api.ensemble import Hps, StepTensor
from triton_operator.api.fixed_paths import FixedPath
from triton_operator.api.format_rules import (
    accelerator_rules,
    conversion_rules,
    entrypoint_rules,
    hps_rules,
    int8_rules,
    step_faults,
    step_rules,
)
from triton_operator.api.quantity import Quantity, between
from triton_operator.api.schema import (
    ApiType,
    Arguments,
    BackendValue,
    BatchSize,
    PythonFile,
    RequirementsPath,
    SourcePath,
    TritonName,
    list_map,
    rules,
)

SourceFormat = Literal[
    "pyt",
    "tf-keras",
    "tf-estimator",
    "tf-savedmodel",
    "onnx",
    "ts-trace",
    "ts-script",
    "xgboost",
    "lightgbm",
    "sklearn",
    "triton-repository",
    "hps",
    "triton-python",
]
CandidateName = Annotated[str, StringConstraints(max_length=30, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class DynamicBatching(ApiType):
    """Settings of Triton's dynamic batcher."""

    preferred_batch_sizes: Annotated[list[BatchSize], Field(max_length=16)] = Field(default_factory=list)
    """Batch sizes that are sent without waiting for more requests, each at most `maxBatchSize`. Default: `maxBatchSize`
    if a queue delay is set, otherwise none."""
    max_queue_delay: Annotated[Span, Within("0s", "60s")] = "0s"
    """Maximum time that a request waits for others to form a preferred batch, such as 100us, at most 60s. Default:
    0s."""


class ModelConfiguration(ApiType):
    """Settings of the model's config.pbtxt."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.dynamicBatching) || !has(self.maxBatchSize) || self.maxBatchSize > 0",
                "dynamicBatching needs a batch dimension: set maxBatchSize to at least 1",
            ),
            (
                "!has(self.dynamicBatching) || !has(self.dynamicBatching.preferredBatchSizes)"
                " || !has(self.maxBatchSize)"
                " || self.dynamicBatching.preferredBatchSizes.all(b, b <= self.maxBatchSize)",
                "dynamicBatching.preferredBatchSizes must not exceed maxBatchSize: lower them, or raise maxBatchSize",
            ),
        )
    )
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] | None = None
    """Maximum number of samples in a batch; 0 means no batch dimension. Default: for a single model of format `onnx`,
    `tf-savedmodel`, `xgboost`, `lightgbm` or `sklearn`, what its graph and run show (`status.resolved`); for all
    others 1."""
    instances: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of model instances on each GPU, or on the CPU if there is none. Default: 1."""
    dynamic_batching: DynamicBatching | None = None
    """Settings of Triton's dynamic batcher; `{}` turns it on. Default: on if `maxBatchSize` is left out and the graph
    shows a batch dimension; otherwise none."""
    cuda_graphs: bool = False
    """Whether TensorRT captures CUDA graphs, for the preferred batch sizes, 1 and `maxBatchSize`. Default: false."""
    warmup: bool = True
    """Whether the server runs a sample when it loads the model. With accelerator `trt` it always does. Default:
    true."""
    parameters: Annotated[dict[str, BackendValue], Field(max_length=32)] = Field(default_factory=dict)
    """Parameters of the backends, of those in docs/formats.md. Every candidate gets all; a backend ignores those of
    others. Default: none."""
    overrides: Annotated[str, StringConstraints(max_length=4096)] = ""
    """Piece of config.pbtxt with settings that no other field has, of those in docs/formats.md. It overrides what the
    operator writes. Default: none."""

    @property
    def largest_batch(self) -> int:
        """Maximum number of samples in a batch; 1 if nothing tells another."""
        return 1 if self.max_batch_size is None else self.max_batch_size

    @model_validator(mode="after")
    def _check_overrides(self) -> Self:
        """Refuse what the Jobs would refuse later; the API server cannot read config.pbtxt."""
        try:
            fields = overrides.checked(self.overrides)
        except ValueError as error:
            raise ValueError(f"overrides: {error}") from error
        if overrides.BATCHING in fields and self.dynamic_batching is None:
            raise ValueError("overrides: dynamic_batching needs the dynamic batcher: set dynamicBatching, or remove it")
        return self


OperatorType = Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]


class PostTrainingQuantization(ApiType):
    """How ONNX Runtime's quantizer makes an INT8 graph."""

    calibration_samples: Annotated[int, Field(ge=1, le=4096)] = 64
    """Number of samples that show the range of each tensor, at most half of the dataloader's. The metrics leave them
    out. Default: 64."""
    excluded_operators: Annotated[list[OperatorType], Field(max_length=32)] = Field(default_factory=list)
    """Types of ONNX operators that stay in fp32, such as `Gemm`. Default: none."""


class ModelCandidate(ApiType):
    """One way to serve the model: a format, a precision and an accelerator."""

    model_config = ConfigDict(json_schema_extra=rules(*accelerator_rules(), *int8_rules()))
    name: CandidateName
    """Name of the candidate, unique within the model."""
    format: Literal["ts-trace", "ts-script", "onnx", "trt", "tf-savedmodel", "tf-trt"]
    """Format to convert to: TorchScript (`ts-trace`, `ts-script`), TensorRT (`trt`), SavedModel, or that with TensorRT
    (`tf-trt`). What the GPU or the server image cannot serve is skipped."""
    precision: Literal["fp32", "fp16", "int8"]
    """Precision of the weights and of the computation. `int8` is for format `onnx` on a CPU, and needs
    `accuracy.thresholds`."""
    quantization: PostTrainingQuantization | None = None
    """How the graph of a candidate with precision `int8` is quantized. Default: by 64 samples, with all operators."""
    accelerator: Literal["none", "cuda", "trt", "amp"] = "none"
    """Accelerator of the backend: `cuda` or `trt` of ONNX Runtime, or `amp`, TensorFlow's automatic mixed precision.
    All but `none` need `spec.gpu`; `none` runs on the GPU too if there is one. Default: none."""

    @property
    def calibration(self) -> PostTrainingQuantization | None:
        """How the candidate is quantized, with the defaults of a spec that does not say; None: it is not."""
        return (self.quantization or PostTrainingQuantization()) if self.precision == "int8" else None


class OnnxOptions(ApiType):
    """How ONNX graphs are exported."""

    opset: Annotated[int, Field(ge=11, le=23)] | None = None
    """ONNX operator set. A candidate is skipped if the server image does not read it. A model that is already ONNX
    keeps its own, unless you set this field. Default: 17, or of PyTorch models the next one with their operators."""
    exporter: Literal["Dynamo", "TorchScript"] = "TorchScript"
    """Exporter of PyTorch models that is tried first: by torch.export (`Dynamo`) or by tracing; where it fails, the
    other one is tried. Default: TorchScript."""
    optimized: bool = False
    """Whether the graph is simplified before it is served or given to TensorRT. Default: false."""


class TensorRt(ApiType):
    """How TensorRT builds an engine, both in a conversion to `trt` and in ONNX Runtime with accelerator `trt`."""

    workspace: Annotated[Quantity, between("1Mi", "1Ti")] = "1Gi"
    """Memory that layers may use besides their weights, from 1Mi to 1Ti. Default: 1Gi."""
    builder_optimization_level: Annotated[int, Field(ge=0, le=5)] = 3
    """TensorRT's builder optimization level: higher ones find faster kernels, slowly. Default: 3."""


class Model(ApiType):
    """A source model, the configuration to serve it with, and its candidates."""

    model_config = ConfigDict(
        json_schema_extra=rules(*entrypoint_rules(), *conversion_rules(), *hps_rules(), *step_rules(), parameter_rule())
    )
    name: TritonName
    """Name of the model in Triton."""
    format: SourceFormat | None = None
    """Format of the source model. `pyt`, `tf-keras`, `tf-estimator`, `hps` and `triton-python` are a Python file in
    `entrypoint`, all others a file or directory in `path`. `triton-python` needs the Helm value `allowed.pythonSteps`.
    Default: for a `path`, what its content shows."""
    entrypoint: PythonFile | None = None
    """Path of the Python file with `get_model` (docs/user-files.md) or, for format `triton-python`, `class
    TritonPythonModel`, relative to the root of the source."""
    path: SourcePath | None = None
    """Path of the model's file (or directory: tf-savedmodel, triton-repository), relative to the root of the source.
    That of an `MLmodel` stands for the file that it names."""
    arguments: Arguments = Field(default_factory=dict)
    """Arguments of `get_model`, as those of the dataloader. For format `triton-python`, they are parameters of
    config.pbtxt. Default: none."""
    requirements: RequirementsPath = ""
    """Path of a requirements file in the source, of a model of format `triton-python`. Not together with
    `serving.image`. Default: none."""
    inputs: (
        Annotated[list[StepTensor], Field(min_length=1, max_length=12, json_schema_extra=list_map("name"))] | None
    ) = None
    """Inputs of a model of format `triton-python`. Default: what `auto_complete_config` of its class declares."""
    outputs: (
        Annotated[list[StepTensor], Field(min_length=1, max_length=12, json_schema_extra=list_map("name"))] | None
    ) = None
    """Outputs of a model of format `triton-python`, set together with `inputs`. Default: what `auto_complete_config` of
    its class declares."""
    calls: Annotated[list[TritonName], Field(max_length=7, json_schema_extra={"x-kubernetes-list-type": "set"})] = (
        Field(default_factory=list)
    )
    """Names of models that code of format `triton-python` asks by `pb_utils.InferenceRequest`. They need no step, and
    may not be of that format. Default: none."""
    mount_path: FixedPath | None = None
    """Absolute path at which code of format `triton-python` finds its folder too, read-only. Default: none; the code
    finds its folder by `__file__`."""
    scratch_paths: Annotated[
        list[FixedPath], Field(max_length=4, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = Field(default_factory=list)
    """Absolute paths of directories that code of format `triton-python` may write to, empty at each start: in all up to
    1Gi in a server, and 10Gi in the reference. Default: none."""
    config: ModelConfiguration = Field(default_factory=ModelConfiguration)
    """Settings of the model's config.pbtxt."""
    candidates: Annotated[
        list[ModelCandidate],
        Field(
            max_length=16,
            json_schema_extra=list_map("name"),
        ),
    ] = Field(default_factory=list)
    """Candidates to convert, verify and measure. Formats `hps` and `triton-python` take none. Default: of a Triton
    repository, its file as it is; of others, up to three (in an ensemble, one, and another if it fails) that the
    operator chooses (`status.resolved`)."""
    onnx: OnnxOptions = Field(default_factory=OnnxOptions)
    """How ONNX graphs are exported, also those that `trt` is built from."""
    tensorrt: TensorRt = Field(default_factory=TensorRt)
    """How TensorRT builds an engine, for candidates with format `trt` or accelerator `trt`."""
    hps: Hps = Field(default_factory=Hps)
    """Options of embedding tables, for format `hps` alone."""

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        """Refuse what the CRD's rules refuse, in objects that are older than a rule too."""
        possible = SOURCE_FORMATS[self.format].converters if self.format else FORMATS
        formats: Iterable[str] = [each.format for each in self.candidates] or possible
        if refused := refused_parameters(self.config.parameters, formats):
            raise ValueError(
                f"config.parameters must not have {', '.join(refused)}: docs/formats.md lists what may be set"
            )
        if self.is_step and (faults := step_faults(self.code, self.arguments)):
            raise ValueError("; ".join(faults))
        return self

    @property
    def is_sought(self) -> bool:
        """Whether the source's content shows the model's format: the spec names none, or names a repository."""
        return self.format in (None, REPOSITORY)

    @property
    def declared(self) -> Signature | None:
        """The inputs and outputs that the spec or the user's config.pbtxt declares; None: neither declares any."""
        if self.inputs is None or self.outputs is None:
            return None
        inputs, outputs = (
            tuple(Tensor(each.name, each.data_type, tuple(each.dims)) for each in tensors)
            for tensors in (self.inputs, self.outputs)
        )
        return Signature(inputs, outputs, self.config.largest_batch)

    @property
    def is_step(self) -> bool:
        """Whether the model is its author's Python code, which runs inside the server."""
        return self.format == TRITON_PYTHON

    @property
    def code(self) -> str:
        """The path of the Python file, or of the model's file or directory, relative to the root of the source."""
        return self.entrypoint or self.path or ""
