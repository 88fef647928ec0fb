"""How candidates are converted, and how far their outputs may be off."""

from typing import Annotated, Literal

from pydantic import Field

from triton_operator.api.pod import Pod
from triton_operator.api.schema import ApiType, Decimal, list_map


class PrecisionTolerance(ApiType):
    """How far served outputs may be from the framework's: |a - b| <= absolute + relative * |b|."""

    precision: Literal["fp32", "fp16"]
    """Of the candidates it holds for."""
    absolute: Decimal
    """Decimal, in the output's unit."""
    relative: Decimal
    """Decimal, a fraction."""


class Conversion(ApiType):
    """How conversion Jobs run."""

    parallelism: Annotated[int, Field(ge=1, le=16)] = 2
    """Conversion Jobs at a time. Default 2."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Of each source, reference and conversion Job. Default 3600."""
    tolerances: Annotated[
        list[PrecisionTolerance],
        Field(
            max_length=2,
            json_schema_extra=list_map("precision"),
        ),
    ] = Field(default_factory=list)
    """By precision. Default: fp32 1e-4 and 1e-4, fp16 1e-2 and 1e-2."""
    pod: Pod = Field(default_factory=Pod)
    """Of the Jobs' own containers. The image is that of reference and conversion Jobs alone: it needs Python 3.11 or
    later, the framework and the packages your model and dataloader import; the converters are copied into it."""
