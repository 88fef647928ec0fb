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
    """Triton's dynamic batcher."""

    preferred_batch_sizes: Annotated[list[BatchSize], Field(max_length=16)] = Field(default_factory=list)
    """Batch sizes the batcher tries to form. Default: the maximum batch size, where a delay is set."""
    max_queue_delay_microseconds: Annotated[int, Field(ge=0, le=60_000_000)] = 0
    """How long a request may wait for a preferred size. Default 0: send what is there."""


class ModelConfiguration(ApiType):
    """What config.pbtxt says beyond the signature."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.dynamicBatching) || !has(self.maxBatchSize) || self.maxBatchSize > 0",
                "dynamicBatching needs maxBatchSize of at least 1",
            ),
            (
                "!has(self.dynamicBatching) || !has(self.dynamicBatching.preferredBatchSizes)"
                " || self.dynamicBatching.preferredBatchSizes.all(b,"
                " b <= (has(self.maxBatchSize) ? self.maxBatchSize : 1))",
                "dynamicBatching.preferredBatchSizes are at most maxBatchSize",
            ),
        )
    )
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] = 1
    """Samples; 0: the model has no batch dimension. Default 1."""
    instances: Annotated[int, Field(ge=1, le=64)] = 1
    """Model instances on each GPU (or on the CPU). Default 1."""
    dynamic_batching: DynamicBatching | None = None
    """Absent: requests run as they come."""
    cuda_graphs: bool = False
    """Capture CUDA graphs; only where the server has a GPU. Default false."""
    warmup: bool = True
    """Run a real sample at every load, before the model is ready. Default true: no slow first request."""
    parameters: Annotated[dict[str, Argument], Field(max_length=32)] = Field(default_factory=dict)
    """Passed to the backend as they are."""


class Candidate(ApiType):
    """One way to serve the model: a format in a precision with an accelerator."""

    model_config = ConfigDict(json_schema_extra=rules(*accelerator_rules()))
    name: CandidateName
    """Unique among the candidates."""
    format: Literal["ts-trace", "ts-script", "onnx", "trt", "tf-savedmodel", "tf-trt"]
    """What the model is converted to. `trt` and `tf-trt` are skipped where spec.gpu asks for no GPU or no node has its
    product; `tf-savedmodel` and `tf-trt` where the server's release is newer than 25.02."""
    precision: Literal["fp32", "fp16"]
    """Of the weights and the computation; inputs and outputs stay fp32."""
    accelerator: Literal["none", "cuda", "trt", "amp"] = "none"
    """`trt`: ONNX Runtime's TensorRT execution provider; `cuda`: its CUDA provider, for other formats the plain GPU;
    `amp`: TensorFlow's automatic mixed precision. Default none."""


class OnnxOptions(ApiType):
    """How ONNX graphs are made."""

    opset: Annotated[int, Field(ge=11, le=23)] | None = None
    """Operator set. Default 17, known to every onnxruntime since 1.12 and to TensorRT since 8.6; for a model that comes
    as ONNX, its own."""
    exporter: Literal["Dynamo", "TorchScript"] = "TorchScript"
    """Of PyTorch models. `Dynamo`: torch.export; `TorchScript`: tracing. Chosen explicitly because torch's own default
    changed in 2.9."""
    optimized: bool = False
    """Simplify the graph before it is served or given to TensorRT. Default false."""


class TensorRtOptions(ApiType):
    """How TensorRT builds an engine, in a conversion to trt and inside ONNX Runtime."""

    workspace_bytes: Annotated[int, Field(ge=2**20, le=2**40)] = 2**30
    """Limit of the memory that layers may use beside their weights. Default 1 GiB."""
    builder_optimization_level: Annotated[int, Field(ge=0, le=5)] = 3
    """More finds faster kernels and takes longer. Default 3, TensorRT's own."""


class Model(ApiType):
    """The model as it comes, its served configuration and what to try."""

    model_config = ConfigDict(json_schema_extra=rules(*entrypoint_rules(), *conversion_rules(), *hps_rules()))
    name: TritonName
    """Triton's model name."""
    format: Literal["pyt", "tf-keras", "tf-estimator", "tf-savedmodel", "onnx", "ts-trace", "ts-script", "hps"]
    """`pyt`, `tf-keras`, `tf-estimator`, `hps`: a Python file whose get_model returns a torch.nn.Module, a Keras model,
    an Estimator or embedding tables. The others: the model itself, a file or directory of the source."""
    entrypoint: PythonFile | None = None
    """File with `get_model(**arguments) -> (model, {"inputs": [names], "outputs": [names]})`, where format is pyt,
    tf-keras, tf-estimator or hps."""
    path: SourcePath | None = None
    """The model's file (a directory for tf-savedmodel) below the source, where format is any other."""
    arguments: Arguments = Field(default_factory=dict)
    """Of get_model."""
    io_precision: Literal["fp32"] = "fp32"
    """Of the served inputs and outputs: every candidate has one signature, casts are inside the graph."""
    config: ModelConfiguration = Field(default_factory=ModelConfiguration)
    """The served configuration."""
    candidates: Annotated[
        list[Candidate],
        Field(
            min_length=1,
            max_length=16,
            json_schema_extra=list_map("name"),
        ),
    ] = Field(default_factory=list)
    """What to convert, verify and measure; at least one. None of format hps, which is served in one way."""
    onnx: OnnxOptions = Field(default_factory=OnnxOptions)
    """For candidates of format onnx, and of trt, which is made from ONNX."""
    tensorrt: TensorRtOptions = Field(default_factory=TensorRtOptions)
    """For candidates of format trt or accelerator trt."""
    hps: HpsOptions = Field(default_factory=HpsOptions)
    """For format hps."""

    @property
    def code(self) -> str:
        """The Python file, or the model's own file or directory, below the source."""
        return self.entrypoint or self.path or ""
