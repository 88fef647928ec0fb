"""How candidates are converted, and how far their outputs may differ from the reference."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_operator.api.pod import LocalReference, Pod
from triton_operator.api.schema import ApiType, Image, PositiveOrZero, RequirementsPath, list_map, rules


class IntegerDifference(ApiType):
    """A tolerance for integer outputs, which must else be equal but for a few near ties (docs/measuring.md)."""

    steps: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Largest difference by which two elements agree, for amounts, not class numbers. Default: 0."""
    share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Largest share of elements that may differ by more, without background. Default: 0.00001 for fp32, 0.01 for
    fp16."""


class PrecisionTolerance(ApiType):
    """A tolerance of the agreement gate: |served - reference| <= absolute + relative * |reference| for each element."""

    precision: Literal["fp32", "fp16"]
    """Precision of the candidates that the tolerance applies to."""
    absolute: PositiveOrZero
    """Absolute tolerance, in the output's unit."""
    relative: PositiveOrZero
    """Relative tolerance, a fraction of the reference's value."""
    integers: IntegerDifference = Field(default_factory=IntegerDifference)
    """How far integer outputs may differ. Default: they are equal, but for near ties."""


class Conversion(ApiType):
    """Settings of the conversion Jobs and of the agreement gate."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.requirements) || self.requirements == '' || !has(self.image) || self.image == ''",
                "requirements are installed for the operator's own images: install them in the image that image names,"
                " and remove requirements; or remove image",
            ),
        )
    )
    parallelism: Annotated[int, Field(ge=1, le=16)] = 2
    """Maximum number of conversion Jobs that run at the same time. Default: 2."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Time limit, in seconds, of a pod of a source, packages, reference, conversion, metrics or comparison Job, once a
    node took it. Default: 3600."""
    tolerances: Annotated[
        list[PrecisionTolerance],
        Field(
            max_length=2,
            json_schema_extra=list_map("precision"),
        ),
    ] = Field(default_factory=list)
    """How far a served element may differ from the reference: |served - reference| <= absolute + relative *
    |reference|. Default: 1e-4 for fp32 and 1e-2 for fp16, both absolute and relative; the absolute part follows the
    scale of the output (docs/measuring.md)."""
    image: Image = ""
    """Image of the containers that run your code; docs/user-files.md says what it needs. Default: the Helm value
    `images.converter`, `images.converterTensorflow` for TensorFlow, or `images.converterGpu` with `spec.gpu` if it is
    set."""
    requirements: RequirementsPath = ""
    """Path of a requirements file in the source: packages that your code imports, as wheels. Not together with `image`.
    Default: none."""
    index_secret_ref: LocalReference | None = None
    """Secret with `PIP_INDEX_URL`, another package index, or `PIP_EXTRA_INDEX_URL`, a second one, or both. Only the
    packages Job mounts it. Default: none."""
    pod: Pod = Field(default_factory=Pod)
    """Settings of the pods of all Jobs, laid over `spec.pod`: maps and `env` are merged by key, any other field is
    replaced. `resources` is of each container but a server's. `serving.pod` decides where profile and search Jobs
    run."""
