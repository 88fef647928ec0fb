"""Several models as one: Triton's ensemble, and the options of an embedding table's server."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.schema import ApiType, TensorName, TritonName, list_map, rules

Dim = Annotated[int, Field(ge=-1, le=2147483647)]
Connected = Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Za-z_][A-Za-z0-9_.:/-]*$")]
"""A tensor of the ensemble: shorter than TensorName, for the API server's cost of comparing every pair."""


class EnsembleTensor(ApiType):
    """An input or output of the ensemble."""

    name: Connected
    """Of the ensemble's tensor: the dataloader's name of an input."""
    data_type: Literal[
        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP32", "BYTES"
    ]
    """Triton's name of the type."""
    dims: Annotated[list[Dim], Field(min_length=1, max_length=8)]
    """Without the batch dimension where the ensemble has one; -1: varies."""


class InputConnection(ApiType):
    """Which tensor of the ensemble an input of a model is."""

    input: TensorName
    """The model's input."""
    tensor: Connected
    """An input of the ensemble, or an output of an earlier step."""


class OutputConnection(ApiType):
    """Which tensor of the ensemble an output of a model becomes."""

    output: TensorName
    """The model's output."""
    tensor: Connected
    """Free to choose; an output of the ensemble has its name."""


class EnsembleStep(ApiType):
    """One model and how its tensors are connected."""

    model: TritonName
    """A name of spec.models."""
    input_map: Annotated[
        list[InputConnection],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("input"),
        ),
    ]
    """Every input of the model."""
    output_map: Annotated[
        list[OutputConnection],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("output"),
        ),
    ]
    """The outputs that somebody uses."""


class Ensemble(ApiType):
    """Steps that together answer one request; source, dataloader, metrics and sweeps are of the whole."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "self.steps.all(s, s.inputMap.all(i, self.inputs.exists(t, t.name == i.tensor)"
                " || self.steps.exists(o, o.model != s.model && o.outputMap.exists(t, t.tensor == i.tensor))))",
                "every tensor of an inputMap is an input of the ensemble or in the outputMap of another step",
            ),
            (
                "self.outputs.all(t, self.steps.exists(s, s.outputMap.exists(o, o.tensor == t.name)))",
                "every output of the ensemble is a tensor of a step's outputMap",
            ),
            (
                "self.inputs.all(t, self.steps.exists(s, s.inputMap.exists(i, i.tensor == t.name)))",
                "every input of the ensemble is a tensor of a step's inputMap",
            ),
        )
    )
    name: TritonName
    """Triton's name of the ensemble: what clients ask for."""
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] = 0
    """Samples; 0: no batch dimension, and an item of the dataloader is one request. Default 0."""
    inputs: Annotated[
        list[EnsembleTensor],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("name"),
        ),
    ]
    """What the dataloader yields."""
    outputs: Annotated[
        list[EnsembleTensor],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("name"),
        ),
    ]
    """What is compared, judged and served."""
    steps: Annotated[
        list[EnsembleStep],
        Field(
            min_length=1,
            max_length=8,
            json_schema_extra=list_map("model"),
        ),
    ]
    """One a model, in the order of the flow: a step's tensors are the ensemble's inputs or come from earlier steps."""


MAX_BATCH_SIZE = (
    "(has(self.ensemble) ? (has(self.ensemble.maxBatchSize) ? self.ensemble.maxBatchSize : 0)"
    " : has(self.models[0].config) && has(self.models[0].config.maxBatchSize) ? self.models[0].config.maxBatchSize : 1)"
)
"""Of a spec, as CEL: samples of a request to what is served; 0: no batch dimension."""
MODELS = 8
COMBINATIONS = 16


def ensemble_rules() -> list[tuple[str, str]]:
    """Of a spec: models and ensemble belong together."""
    several = "(self.models.size() > 1 || self.models[0].format == 'hps')"
    count = " * ".join(
        f"(self.models.size() > {i} && has(self.models[{i}].candidates) ? self.models[{i}].candidates.size() : 1)"
        for i in range(MODELS)
    )
    batch = "(has(m.config) && has(m.config.maxBatchSize) ? m.config.maxBatchSize : 1)"
    return [
        (f"!{several} || has(self.ensemble)", "several models, and one of format hps, need spec.ensemble"),
        (
            "!has(self.ensemble) || (self.ensemble.steps.all(s, self.models.exists(m, m.name == s.model))"
            " && self.models.all(m, self.ensemble.steps.exists(s, s.model == m.name)))",
            "ensemble.steps has one step for each of spec.models",
        ),
        (
            "!has(self.ensemble) || !self.models.exists(m, m.name == self.ensemble.name)",
            "ensemble.name is not a model's name",
        ),
        (
            f"!has(self.ensemble) || self.models.all(m, {batch} == 0 || {batch} >= {MAX_BATCH_SIZE})",
            "config.maxBatchSize of an ensemble's model is 0 or at least ensemble.maxBatchSize",
        ),
        (
            f"{count} <= {COMBINATIONS}",
            f"the product of the models' candidates is at most {COMBINATIONS}",
        ),
    ]


class HpsOptions(ApiType):
    """How Merlin's Hierarchical Parameter Server keeps embedding tables."""

    gpu_cache_percent: Annotated[int, Field(ge=1, le=100)] = 25
    """Share of each table's vectors in the GPU's memory, where spec.gpu asks for one. Default 25."""
    keys_per_sample: Annotated[int, Field(ge=1, le=4096)] = 1
    """Most keys of a sample in one table; with config.maxBatchSize the size of the server's buffers. Default 1."""
