"""How candidates are converted, and how far their outputs may differ from the reference."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_operator.api.pod import LocalReference, Pod
from triton_operator.api.schema import ApiType, Image, PositiveOrZero, RequirementsFile, list_map, rules


class IntegerTolerance(ApiType):
    """A tolerance for integer outputs, which must else be equal but for a few near ties (docs/measuring.md)."""

    steps: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Largest difference by which two elements agree, for outputs that hold amounts, as a picture does, and no class
    numbers. Default: 0."""
    share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Largest share of elements that may differ by more, without background. Default: 0.00001 for fp32, 0.01 for
    fp16."""


class PrecisionTolerance(ApiType):
    """A tolerance of the agreement gate: |served - reference| <= absolute + relative * |reference| for each element."""

    precision: Literal["fp32", "fp16"]
    """Precision of the candidates that the tolerance applies to."""
    absolute: PositiveOrZero
    """Absolute tolerance in the unit of the output, whatever its scale."""
    relative: PositiveOrZero
    """Relative tolerance as a fraction of the reference's value."""
    integers: IntegerTolerance = Field(default_factory=IntegerTolerance)
    """How far integer outputs may differ. Default: they are equal, but for near ties."""


class Conversion(ApiType):
    """Settings of the conversion Jobs and of the agreement gate, which compares served outputs with the reference."""

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
    """Time limit of each pod of a source, packages, reference, conversion or metrics Job, in seconds, from when a node
    takes the pod. Pulling images counts; waiting for a node does not. Default: 3600."""
    tolerances: Annotated[
        list[PrecisionTolerance],
        Field(
            max_length=2,
            json_schema_extra=list_map("precision"),
        ),
    ] = Field(default_factory=list)
    """How far each element of a served output may differ from the reference (the agreement gate): |served - reference|
    <= absolute + relative * |reference|. A floating point output that is constant where the reference's is not fails by
    any tolerance. A precision that is not listed keeps its default. Default: 1e-4 absolute and relative for fp32, 1e-2
    absolute and relative for fp16; the absolute part of these follows the scale of the output (docs/measuring.md)."""
    image: Image = ""
    """Image of the containers that run your code, in reference, conversion and metrics Jobs. docs/user-files.md says
    what it needs; the operator copies its converters into the container when it starts. Default: the image in the
    operator's Helm values, `images.converter`, `images.converterTensorflow` for models of TensorFlow, or
    `images.converterGpu` for other models with `spec.gpu`, if it is set."""
    requirements: RequirementsFile = ""
    """Path of a requirements file in the source, such as `requirements.txt`: Python packages that your code imports. A
    Job installs those that the operator's image lacks, as wheels, from the package index of the Helm value
    `sources.packageIndex`. Default: none."""
    index_secret_ref: LocalReference | None = None
    """Secret with the key `PIP_INDEX_URL`, the URL of another package index, or `PIP_EXTRA_INDEX_URL`, that of a second
    one, or both; each may hold a user name and a password. It is in the namespace of the object, and only the packages
    Job mounts it. Default: none."""
    pod: Pod = Field(default_factory=Pod)
    """Settings of the pods of all Jobs, laid over `spec.pod`: maps and `env` are merged by key, and any other field
    replaces that of `spec.pod` whole. `resources` applies to each container of a Job except a server's. The pods of
    profile and search Jobs also run a server, so `serving.pod` decides where they are scheduled."""
