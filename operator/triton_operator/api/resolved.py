"""What the operator fills in for fields that a spec leaves out."""

from typing import Annotated

from pydantic import Field

from triton_operator.api.model import Candidate, DynamicBatching, Model, ModelConfiguration, SourceFormat
from triton_operator.api.schema import ApiType, list_map
from triton_operator.api.spec import TritonDeploymentSpec


class ResolvedModel(ApiType):
    """What the operator found out or chose for one model."""

    name: str
    """Name of the model."""
    format: SourceFormat | None = None
    """Format of a model whose spec leaves it out, as the source's content shows it."""
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] | None = None
    """`config.maxBatchSize` of a model whose spec leaves it out, by what the model's graph shows; 1 if the reference
    found that samples must not share a batch. If it is above 1 and the spec leaves `dynamicBatching` out too, the
    dynamic batcher is on."""
    candidates: Annotated[list[Candidate], Field(max_length=16, json_schema_extra=list_map("name"))] = Field(
        default_factory=list
    )
    """Candidates of a model whose spec lists none."""


class Resolved(ApiType):
    """What the operator fills in for fields that the spec leaves out. It is kept when the operator is upgraded."""

    models: Annotated[list[ResolvedModel], Field(max_length=8, json_schema_extra=list_map("name"))]
    """Models with fields that the spec leaves out."""
    spec_digest: str = ""
    """Digest of what candidates and batch sizes were chosen for: `images.specDigest` and the server's image. While both
    stay the same, so do they."""

    def applied_to(self, spec: TritonDeploymentSpec) -> TritonDeploymentSpec:
        """Return the spec with what it leaves out, as far as that is known."""
        known = {each.name: each for each in self.models}
        models = [_filled(each, known[each.name]) if each.name in known else each for each in spec.models]
        return spec.model_copy(update={"models": models})


def _filled(model: Model, known: ResolvedModel) -> Model:
    return model.model_copy(
        update={
            "format": model.format or known.format,
            "config": _batching(model.config, known.max_batch_size),
            "candidates": model.candidates or known.candidates,
        }
    )


def _batching(config: ModelConfiguration, known: int | None) -> ModelConfiguration:
    if config.max_batch_size is not None or known is None:
        return config
    batching = config.dynamic_batching or (DynamicBatching() if known > 1 else None)
    return config.model_copy(update={"max_batch_size": known, "dynamic_batching": batching})
