"""The model as it comes, its served configuration, and the candidates to try."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.ensemble import HpsOptions
from triton_operator.api.routes import accelerator_rules, conversion_rules, entrypoint_rules, hps_rules
from triton_operator.api.schema import (
    ApiType,
    Argument,
    Arguments,
    BatchSize,
    PythonFile,
    SourcePath,
    TritonName,
    list_map,
    rules,
)

DEFAULT_OPSET = 17
CandidateName = Annotated[str, StringConstraints(max_length=30, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class DynamicBatching(ApiType):
    """Settings of Triton's dynamic batcher."""

    preferred_batch_sizes: Annotated[list[BatchSize], Field(max_length=16)] = Field(default_factory=list)
    """Batch sizes that the batcher tries to form, each at most `maxBatchSize`. Default: `maxBatchSize` if a queue delay
    is set, otherwise none."""
    max_queue_delay_microseconds: Annotated[int, Field(ge=0, le=60_000_000)] = 0
    """Longest time that a request waits for others to form a preferred batch, in microseconds. With 0 the batcher sends
    at once what is in the queue. Default: 0."""


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
                " || self.dynamicBatching.preferredBatchSizes.all(b,"
                " b <= (has(self.maxBatchSize) ? self.maxBatchSize : 1))",
                "dynamicBatching.preferredBatchSizes must not exceed maxBatchSize: lower them, or raise maxBatchSize",
            ),
        )
    )
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] = 1
    """Largest number of samples in a batch. With 0 the model has no batch dimension. Default: 1."""
    instances: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of model instances on each GPU, or on the CPU if there is none. Default: 1."""
    dynamic_batching: DynamicBatching | None = None
    """Settings of Triton's dynamic batcher; `{}` turns it on with its defaults. It needs `maxBatchSize` of at least 1.
    Default: no dynamic batching."""
    cuda_graphs: bool = False
    """Whether Triton captures CUDA graphs. It has an effect only on a GPU. Default: false."""
    warmup: bool = True
    """Whether the server runs a real sample at every load, before the model is ready, so that the first request is not
    slow. Default: true."""
    parameters: Annotated[dict[str, Argument], Field(max_length=32)] = Field(default_factory=dict)
    """Parameters that are passed to the backend unchanged. Default: none."""


class Candidate(ApiType):
    """One way to serve the model: a format, a precision and an accelerator."""

    model_config = ConfigDict(json_schema_extra=rules(*accelerator_rules()))
    name: CandidateName
    """Name of the candidate, unique within the model."""
    format: Literal["ts-trace", "ts-script", "onnx", "trt", "tf-savedmodel", "tf-trt"]
    """Format that the model is converted to. `trt` and `tf-trt` are skipped if `spec.gpu` asks for no GPU or no node
    has its product. `tf-savedmodel` and `tf-trt` are skipped if the server's release is later than 25.02."""
    precision: Literal["fp32", "fp16"]
    """Precision of the weights and of the computation. Inputs and outputs are fp32 in either case."""
    accelerator: Literal["none", "cuda", "trt", "amp"] = "none"
    """Accelerator of the backend. `cuda` is ONNX Runtime's CUDA execution provider, and the plain GPU for other
    formats. `trt` is ONNX Runtime's TensorRT execution provider. `amp` is TensorFlow's automatic mixed precision. All
    but `none` need `spec.gpu`. Default: none."""


class OnnxOptions(ApiType):
    """How ONNX graphs are made."""

    opset: Annotated[int, Field(ge=11, le=23)] | None = None
    """ONNX operator set. Default: 17, which ONNX Runtime since 1.12 and TensorRT since 8.6 know; a model that comes as
    ONNX keeps its operator set."""
    exporter: Literal["Dynamo", "TorchScript"] = "TorchScript"
    """Exporter of PyTorch models. `Dynamo` uses torch.export, `TorchScript` uses tracing. Default: TorchScript; torch's
    own default changed in 2.9."""
    optimized: bool = False
    """Whether the graph is simplified before it is served or given to TensorRT. Default: false."""


class TensorRtOptions(ApiType):
    """How TensorRT builds an engine, both in a conversion to `trt` and in ONNX Runtime with accelerator `trt`."""

    workspace_bytes: Annotated[int, Field(ge=2**20, le=2**40)] = 2**30
    """Largest amount of memory that layers may use in addition to their weights, in bytes. Default: 1073741824 (1
    GiB)."""
    builder_optimization_level: Annotated[int, Field(ge=0, le=5)] = 3
    """TensorRT's builder optimization level. A higher level finds faster kernels and takes longer. Default: 3, as in
    TensorRT."""


class Model(ApiType):
    """A model as it comes, its served configuration and its candidates."""

    model_config = ConfigDict(json_schema_extra=rules(*entrypoint_rules(), *conversion_rules(), *hps_rules()))
    name: TritonName
    """Triton's name of the model."""
    format: Literal["pyt", "tf-keras", "tf-estimator", "tf-savedmodel", "onnx", "ts-trace", "ts-script", "hps"]
    """Format that the model comes in. `pyt`, `tf-keras`, `tf-estimator` and `hps` are Python files whose `get_model`
    returns a torch.nn.Module, a Keras model, an Estimator or embedding tables; they need `entrypoint`. The other
    formats are a file or directory of the source; they need `path`."""
    entrypoint: PythonFile | None = None
    """Path of the Python file below the source, with `get_model(**arguments) -> (model, {"inputs": [names], "outputs":
    [names]})`. Required for the formats pyt, tf-keras, tf-estimator and hps, and excluded for the others."""
    path: SourcePath | None = None
    """Path of the model's file below the source (a directory for tf-savedmodel). Required for the formats that need no
    `entrypoint`, and excluded with `entrypoint`."""
    arguments: Arguments = Field(default_factory=dict)
    """Arguments of `get_model` by name. They are excluded with `path`. Default: none."""
    io_precision: Literal["fp32"] = "fp32"
    """Precision of the served inputs and outputs. Every candidate has the same signature; casts are inside the graph.
    Default: fp32."""
    config: ModelConfiguration = Field(default_factory=ModelConfiguration)
    """Settings of the model's config.pbtxt."""
    candidates: Annotated[
        list[Candidate],
        Field(
            min_length=1,
            max_length=16,
            json_schema_extra=list_map("name"),
        ),
    ] = Field(default_factory=list)
    """Candidates to convert, verify and measure. At least one is required, except that format hps takes none: it is
    served in one way."""
    onnx: OnnxOptions = Field(default_factory=OnnxOptions)
    """How ONNX graphs are made, for candidates of format onnx and of format trt, which is made from ONNX."""
    tensorrt: TensorRtOptions = Field(default_factory=TensorRtOptions)
    """How TensorRT builds an engine, for candidates with format trt or accelerator trt."""
    hps: HpsOptions = Field(default_factory=HpsOptions)
    """Options of embedding tables. They are excluded for every format except hps."""

    @property
    def code(self) -> str:
        """The path below the source of the Python file, or of the model's file or directory."""
        return self.entrypoint or self.path or ""
