"""Several models that process a request together (Triton's ensemble), and the options of embedding tables."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_converters.contract.formats import AS_GIVEN, DECLARING, TRITON_PYTHON
from triton_operator.api.schema import LARGEST_BATCH, ApiType, TensorName, TritonName, cel_list, list_map, rules

Dim = Annotated[int, Field(ge=-1, le=2147483647)]
Connected = Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Za-z_][A-Za-z0-9_.:/-]*$")]
"""Name of a tensor of the ensemble. It is shorter than TensorName, because the API server's cost estimate of the rules
multiplies it by every pair of tensors."""


DataType = Literal[
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "BYTES"
]


class StepTensor(ApiType):
    """An input or output of a Python step."""

    name: TensorName
    """Name of the tensor."""
    data_type: DataType
    """Triton's data type."""
    dims: Annotated[list[Dim], Field(min_length=1, max_length=8)]
    """Dimensions, without that of the batch; -1 means any size."""


class EnsembleTensor(ApiType):
    """A tensor that clients send to the ensemble or receive from it."""

    name: Connected
    """Name of the tensor."""
    data_type: DataType
    """Triton's data type."""
    dims: Annotated[list[Dim], Field(min_length=1, max_length=8)]
    """Dimensions, without that of the batch; -1 means any size."""


class InputConnection(ApiType):
    """The connection of a model's input to a tensor of the ensemble."""

    input: TensorName
    """Name of the model's input."""
    tensor: Connected
    """An input of the ensemble, or a tensor of an earlier step's `outputMap`."""


class OutputConnection(ApiType):
    """The connection of a model's output to a tensor of the ensemble."""

    output: TensorName
    """Name of the model's output."""
    tensor: Connected
    """One of the ensemble's `outputs`, or any other name."""


class EnsembleStep(ApiType):
    """One model of the ensemble and the connections of its tensors."""

    model: TritonName
    """Name of the model, one of `spec.models`."""
    input_map: Annotated[
        list[InputConnection],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("input"),
        ),
    ]
    """Where each input of the model comes from."""
    output_map: Annotated[
        list[OutputConnection],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("output"),
        ),
    ]
    """Where the model's outputs that something uses go."""


MODELS = 8
"""The most models of a spec. Two rules name each of them: CEL has no product over a list, and an index in one costs too
much for the API server."""


def _fed(step: int) -> str:
    """Return the CEL expression on an ensemble that the inputs of a step are there before it; ``step``: from 0."""
    sources = ["self.inputs.exists(t, t.name == i.tensor)"]
    sources += (f"self.steps[{earlier}].outputMap.exists(t, t.tensor == i.tensor)" for earlier in range(step))
    return f"(self.steps.size() <= {step} || self.steps[{step}].inputMap.all(i, {' || '.join(sources)}))"


class Ensemble(ApiType):
    """Several models that process a request together; source, dataloader, metrics and sweeps belong to the whole."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                " && ".join(map(_fed, range(MODELS))),
                "every tensor of an inputMap must be an input of the ensemble or in the outputMap of an earlier step:"
                " correct its name, or reorder the steps",
            ),
            (
                "self.outputs.all(t, self.steps.exists(s, s.outputMap.exists(o, o.tensor == t.name)))",
                "every output of the ensemble must be a tensor of a step's outputMap: correct its name",
            ),
            (
                "self.inputs.all(t, self.steps.exists(s, s.inputMap.exists(i, i.tensor == t.name)))",
                "every input of the ensemble must be a tensor of a step's inputMap: connect or remove it",
            ),
            (
                "self.steps.all(s, s.outputMap.all(o, !self.inputs.exists(t, t.name == o.tensor)"
                " && self.steps.exists_one(r, r.outputMap.exists_one(p, p.tensor == o.tensor))))",
                "a tensor may be in an outputMap only once, and must be no input of the ensemble: choose another name",
            ),
            (
                "self.steps.all(s, s.outputMap.all(o, self.outputs.exists(t, t.name == o.tensor)"
                " || self.steps.exists(r, r.inputMap.exists(i, i.tensor == o.tensor))))",
                "every tensor of an outputMap must be an output of the ensemble or in a step's inputMap, because Triton"
                " loads no other ensemble: leave out an output that nothing uses",
            ),
        )
    )
    name: TritonName
    """Name of the ensemble in Triton, other than those of the models."""
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] = 0
    """Maximum number of samples in a request; 0: no batch dimension, and each item of the dataloader is one request.
    Default: 0."""
    inputs: Annotated[
        list[EnsembleTensor],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("name"),
        ),
    ]
    """Inputs of the ensemble, which the dataloader yields."""
    outputs: Annotated[
        list[EnsembleTensor],
        Field(
            min_length=1,
            max_length=12,
            json_schema_extra=list_map("name"),
        ),
    ]
    """Outputs of the ensemble."""
    steps: Annotated[
        list[EnsembleStep],
        Field(
            min_length=1,
            max_length=8,
            json_schema_extra=list_map("model"),
        ),
    ]
    """One step for each of `spec.models`, in the order of the data. A model in `calls` of another needs none."""


MAX_BATCH_SIZE = (
    "(has(self.ensemble) ? (has(self.ensemble.maxBatchSize) ? self.ensemble.maxBatchSize : 0)"
    " : has(self.models[0].config) && has(self.models[0].config.maxBatchSize) ? self.models[0].config.maxBatchSize"
    " : has(self.models[0].path)"
    f" && (!has(self.models[0].format) || self.models[0].format in {cel_list(DECLARING)}) ? {LARGEST_BATCH} : 1)"
)
"""CEL expression on a spec: the largest number of samples in a client's request; 0 means no batch dimension. If the
graph shows it, that is the largest of all, and `stages.fitting` judges."""
COMBINATIONS = 16
"""The most combinations of candidates: each takes Jobs of its own, and `status.candidates` has to hold them all."""


def ensemble_rules() -> list[tuple[str, str]]:
    """Return the rules of a spec that keep `models` and `ensemble` consistent."""
    several = (
        f"(self.models.size() > 1 || (has(self.models[0].format) && self.models[0].format in {cel_list(AS_GIVEN)}))"
    )
    count = " * ".join(
        f"(self.models.size() > {i} && has(self.models[{i}].candidates) && self.models[{i}].candidates.size() > 0"
        f" ? self.models[{i}].candidates.size() : 1)"
        for i in range(MODELS)
    )
    batch = "(has(m.config) && has(m.config.maxBatchSize) ? m.config.maxBatchSize : 1)"
    is_step = "self.ensemble.steps.exists(s, s.model == m.name)"
    is_called = "self.models.exists(c, has(c.calls) && m.name in c.calls)"
    return [
        (
            f"!{several} || has(self.ensemble)",
            "several models, or a model of format hps or triton-python, need an ensemble: set spec.ensemble",
        ),
        (
            "!has(self.ensemble) || (self.ensemble.steps.all(s, self.models.exists(m, m.name == s.model))"
            f" && self.models.all(m, {is_step} || {is_called}))",
            "ensemble.steps must have one step for each of spec.models: add or correct the steps, or name a model that"
            " a Python step asks in calls of that step's model",
        ),
        (
            "!has(self.ensemble) || self.ensemble.steps.all(s, self.models.all(m, m.name != s.model"
            " || ((!has(m.inputs) || (s.inputMap.all(i, m.inputs.exists(t, t.name == i.input))"
            " && m.inputs.all(t, s.inputMap.exists(i, i.input == t.name))))"
            " && (!has(m.outputs) || s.outputMap.all(o, m.outputs.exists(t, t.name == o.output))))))",
            "a step must connect every input that its model declares, and only inputs and outputs that it declares:"
            " correct the names in inputMap and outputMap",
        ),
        (
            "self.models.all(m, !has(m.calls) || m.calls.all(c, self.models.exists(o, o.name == c)))",
            "calls must name entries of spec.models: correct the name, or add the model",
        ),
        (
            f"self.models.all(m, !has(m.format) || m.format != '{TRITON_PYTHON}' || !{is_called})",
            f"calls must not name a model of format {TRITON_PYTHON}, because models that ask each other may wait for"
            " ever: connect them by steps of the ensemble",
        ),
        (
            "!has(self.ensemble) || !self.models.exists(m, m.name == self.ensemble.name)",
            "ensemble.name must differ from the models' names: choose another",
        ),
        (
            f"!has(self.ensemble) || self.models.all(m, {batch} == 0 || {batch} >= {MAX_BATCH_SIZE} || !{is_step})",
            "config.maxBatchSize of an ensemble's model must be 0 or at least ensemble.maxBatchSize: raise it",
        ),
        (
            f"{count} <= {COMBINATIONS}",
            f"the models' candidates may have at most {COMBINATIONS} combinations: remove some of the candidates",
        ),
    ]


class Hps(ApiType):
    """Options of Merlin's Hierarchical Parameter Server (HPS), which serves embedding tables."""

    gpu_cache_percent: Annotated[int, Field(ge=1, le=100)] = 25
    """Share of each table that is cached in GPU memory, in percent. Default: 25."""
    keys_per_sample: Annotated[int, Field(ge=1, le=4096)] = 1
    """Maximum number of keys that a sample has in one table. Default: 1."""
