"""How candidates are converted, and how far their outputs may differ from the reference."""

from typing import Annotated, Literal

from pydantic import Field

from triton_operator.api.pod import Pod
from triton_operator.api.schema import ApiType, Decimal, list_map


class PrecisionTolerance(ApiType):
    """A tolerance of the agreement gate: |served - framework| <= absolute + relative * |framework| for each element."""

    precision: Literal["fp32", "fp16"]
    """Precision of the candidates that the tolerance applies to."""
    absolute: Decimal
    """Absolute tolerance in the unit of the output, as a decimal string."""
    relative: Decimal
    """Relative tolerance as a fraction of the framework's value, as a decimal string."""


class Conversion(ApiType):
    """Settings of the conversion Jobs and of the agreement gate."""

    parallelism: Annotated[int, Field(ge=1, le=16)] = 2
    """Largest number of conversion Jobs that run at the same time. Default: 2."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Time limit of each source, reference and conversion Job, in seconds. Default: 3600."""
    tolerances: Annotated[
        list[PrecisionTolerance],
        Field(
            max_length=2,
            json_schema_extra=list_map("precision"),
        ),
    ] = Field(default_factory=list)
    """Tolerances of the agreement gate by precision: |served - framework| <= absolute + relative * |framework|.
    Default: 1e-4 absolute and relative for fp32, 1e-2 absolute and relative for fp16."""
    pod: Pod = Field(default_factory=Pod)
    """Settings of the Jobs' pods. `image` applies to reference and conversion Jobs only; it needs Python 3.11 or later,
    the framework, and the packages that your model and dataloader import. The operator copies its converters into that
    image. `resources` applies to the Jobs' main containers. Pods that also run a server are placed by `serving.pod`
    instead."""
