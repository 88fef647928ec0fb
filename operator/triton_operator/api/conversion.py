"""How candidates are converted, and how far their outputs may differ from the reference."""

from typing import Annotated, Literal

from pydantic import Field

from triton_operator.api.pod import Pod
from triton_operator.api.schema import ApiType, Image, PositiveOrZero, list_map


class PrecisionTolerance(ApiType):
    """A tolerance of the agreement gate: |served - reference| <= absolute + relative * |reference| for each element."""

    precision: Literal["fp32", "fp16"]
    """Precision of the candidates that the tolerance applies to."""
    absolute: PositiveOrZero
    """Absolute tolerance in the unit of the output."""
    relative: PositiveOrZero
    """Relative tolerance as a fraction of the reference's value."""


class Conversion(ApiType):
    """Settings of the conversion Jobs and of the agreement gate, which compares served outputs with the reference."""

    parallelism: Annotated[int, Field(ge=1, le=16)] = 2
    """Maximum number of conversion Jobs that run at the same time. Default: 2."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Time limit of each pod of a source, reference, conversion or metrics Job, in seconds, from when a node takes the
    pod. Pulling images counts; waiting for a node does not. Default: 3600."""
    tolerances: Annotated[
        list[PrecisionTolerance],
        Field(
            max_length=2,
            json_schema_extra=list_map("precision"),
        ),
    ] = Field(default_factory=list)
    """How far each element of a served output may differ from the reference (the agreement gate): |served - reference|
    <= absolute + relative * |reference|. A precision that is not listed keeps its default. Default: 1e-4 absolute and
    relative for fp32, 1e-2 absolute and relative for fp16."""
    image: Image = ""
    """Image of the containers that run your code, in reference, conversion and metrics Jobs. It needs Python 3.11 or
    later, the framework, and the packages that your code imports; the operator copies its converters into the container
    when it starts. Default: the image in the operator's Helm values, `images.converter` or
    `images.converterTensorflow`."""
    pod: Pod = Field(default_factory=Pod)
    """Settings of the pods of all Jobs, laid over `spec.pod`: maps and `env` are merged by key, and any other field
    replaces that of `spec.pod` whole. `resources` applies to each container of a Job except a server's. The pods of
    profile and search Jobs also run a server, so `serving.pod` decides where they are scheduled."""
