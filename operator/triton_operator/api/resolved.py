"""What the operator fills in for fields that a spec leaves out."""

from pathlib import PurePosixPath
from typing import Annotated, Any, Self

from pydantic import Field

from triton_converters.contract.document import given
from triton_converters.contract.formats import MLMODEL
from triton_converters.contract.results import RepositoryModel, Signature, Tensor
from triton_operator.api.duration import written
from triton_operator.api.model import DynamicBatching, Model, ModelCandidate, ModelConfiguration, SourceFormat
from triton_operator.api.schema import ApiType, SourcePath, list_map
from triton_operator.api.spec import TritonDeploymentSpec


class DeclaredTensor(ApiType):
    """An input or output that config.pbtxt of a Triton repository declares."""

    name: Annotated[str, Field(max_length=128)]
    """Name of the tensor."""
    data_type: Annotated[str, Field(max_length=16)]
    """Triton's data type."""
    dims: Annotated[list[int], Field(max_length=16)]
    """Dimensions of the model's own tensor without the batch dimension. -1 means any size."""
    request_dims: Annotated[list[int], Field(max_length=16)] = Field(default_factory=list)
    """Dimensions in requests and answers, if config.pbtxt reshapes them."""


class FromRepository(ApiType):
    """What is taken of a Triton repository: the model's file, and what config.pbtxt sets; of an MLmodel, the file."""

    file: SourcePath
    """Path of the model's file or directory, relative to the root of the source."""
    inputs: Annotated[list[DeclaredTensor], Field(max_length=64)] = Field(default_factory=list)
    """Inputs that config.pbtxt declares."""
    outputs: Annotated[list[DeclaredTensor], Field(max_length=64)] = Field(default_factory=list)
    """Outputs that config.pbtxt declares."""
    config: ModelConfiguration = Field(default_factory=ModelConfiguration)
    """Settings that config.pbtxt has. Those in the spec come first."""
    left_out: Annotated[list[Annotated[str, Field(max_length=1024)]], Field(max_length=16)] = Field(
        default_factory=list
    )
    """Fields of config.pbtxt that are left out, each with the reason."""

    @classmethod
    def of(cls, found: RepositoryModel) -> Self:
        """Return what the source Job told. Raises ValidationError if a spec could not say the same."""
        config: dict[str, Any] = {
            "maxBatchSize": found.max_batch_size,
            "instances": found.instances,
            "cudaGraphs": found.cuda_graphs or None,
            "parameters": found.parameters or None,
            "overrides": found.overrides or None,
        }
        if found.dynamic_batching:
            config["dynamicBatching"] = {
                "preferredBatchSizes": list(found.preferred_batch_sizes),
                "maxQueueDelay": written(found.max_queue_delay_microseconds, "us"),
            }
        inputs, outputs = ([given(each) for each in side] for side in (found.inputs, found.outputs))
        values: dict[str, Any] = {"file": found.file, "inputs": inputs, "outputs": outputs}
        if found.left_out:
            values["leftOut"] = found.left_out
        said = {name: value for name, value in config.items() if value is not None}
        return cls.model_validate({**values, "config": said})

    def signature(self, max_batch_size: int) -> Signature | None:
        """Return the declared inputs and outputs; None: there are none."""
        inputs, outputs = (
            tuple(Tensor(each.name, each.data_type, tuple(each.dims), tuple(each.request_dims)) for each in side)
            for side in (self.inputs, self.outputs)
        )
        return Signature(inputs, outputs, max_batch_size) if inputs else None


class ModelOfRepository(Model):
    """A model of a Triton repository whose format is known; ``path`` is still its folder. Or of MLflow: its MLmodel."""

    repository: FromRepository

    @property
    def is_of_mlflow(self) -> bool:
        """Whether an MLmodel names the model's file, so that there is no config.pbtxt."""
        return PurePosixPath(self.path or "").name == MLMODEL

    @property
    def declared(self) -> Signature | None:
        """The inputs and outputs that config.pbtxt declares; None: none."""
        return self.repository.signature(self.config.largest_batch)

    @property
    def code(self) -> str:
        """The path of the model's file or directory, relative to the root of the source."""
        return self.repository.file


class ResolvedModel(ApiType):
    """What the operator found out or chose for one model."""

    name: str
    """Name of the model."""
    format: SourceFormat | None = None
    """Format, if the spec leaves it out or says `triton-repository`."""
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] | None = None
    """`config.maxBatchSize`, if the spec leaves it out. Above 1 the dynamic batcher is on, unless the spec sets it."""
    candidates: Annotated[list[ModelCandidate], Field(max_length=16, json_schema_extra=list_map("name"))] = Field(
        default_factory=list
    )
    """Candidates of a model whose spec lists none."""
    repository: FromRepository | None = None
    """What a model's folder of a Triton repository says, or an MLmodel, if the spec names such a folder or file."""


class Resolved(ApiType):
    """What the operator fills in for fields that the spec leaves out. It is kept when the operator is upgraded."""

    models: Annotated[list[ResolvedModel], Field(max_length=8, json_schema_extra=list_map("name"))]
    """Models with fields that the spec leaves out."""
    spec_digest: str = ""
    """Digest of what candidates and batch sizes were chosen for. While it stays, so do they."""

    def applied_to(self, spec: TritonDeploymentSpec) -> TritonDeploymentSpec:
        """Return the spec with what it leaves out, as far as that is known."""
        known = {each.name: each for each in self.models}
        models = [_filled(each, known[each.name]) if each.name in known else each for each in spec.models]
        return spec.model_copy(update={"models": models})


def _filled(model: Model, known: ResolvedModel) -> Model:
    given = known.repository
    config = model.config if given is None else _merged(model.config, given.config)
    filled = model.model_copy(
        update={
            "format": known.format or model.format if model.is_sought else model.format,
            "config": _batching(config, known.max_batch_size),
            "candidates": model.candidates or known.candidates,
        }
    )
    if given is None:
        return filled
    fields = {name: getattr(filled, name) for name in Model.model_fields}
    return ModelOfRepository.model_construct(**fields, repository=given)


def _merged(spec: ModelConfiguration, file: ModelConfiguration) -> ModelConfiguration:
    """Return the settings of config.pbtxt with those that the spec has laid over them; parameters by name."""
    said = {name: getattr(spec, name) for name in spec.model_fields_set}
    if "parameters" in said:
        said["parameters"] = file.parameters | spec.parameters
    return file.model_copy(update=said)


def _batching(config: ModelConfiguration, known: int | None) -> ModelConfiguration:
    if config.max_batch_size is not None or known is None:
        return config
    batching = config.dynamic_batching or (DynamicBatching() if known > 1 else None)
    return config.model_copy(update={"max_batch_size": known, "dynamic_batching": batching})
