"""The parts that every type of the API is made of: a base, CEL rules, and bounded strings and numbers.

Strings, lists and maps are bounded: an unbounded one exceeds the API server's cost budget for CEL. Kubernetes' API
conventions advise against floating-point numbers. Metrics and tolerances are such numbers all the same, because that is
what they are in Python; a spec has one key however they are written, as 1 or 1.0.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from triton_converters.contract.backend_parameters import LONGEST_VALUE, VALUE
from triton_converters.contract.uris import SEGMENT


def rules(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Return the part of a schema that holds CEL rules, from pairs of expression and message."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}


def cel_list(texts: Iterable[str]) -> str:
    """Return a CEL list of strings, none of which holds a quote or a backslash."""
    return "[" + ", ".join(f"'{each}'" for each in texts) + "]"


def list_map(key: str) -> dict[str, Any]:
    """Return the part of a schema that makes a list a map: a field tells its items apart and merges them."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class ApiType(BaseModel):
    """The base of every type of the API: camelCase on the wire, immutable, described by its docstrings."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, use_attribute_docstrings=True, extra="ignore"
    )


DnsLabel = Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
DnsName = Annotated[str, StringConstraints(max_length=253, pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
TensorName = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_.:/-]*$")]
TritonName = Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
PythonFile = Annotated[str, StringConstraints(max_length=255, pattern=rf"^({SEGMENT}/)*{SEGMENT}\.py$")]
RequirementsPath = Annotated[str, StringConstraints(max_length=255, pattern=rf"^(({SEGMENT}/)*{SEGMENT}\.txt)?$")]
SourcePath = Annotated[str, StringConstraints(max_length=255, pattern=rf"^({SEGMENT}/)*{SEGMENT}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
PositiveOrZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Text = Annotated[str, StringConstraints(max_length=1024)]
"""A message."""
ResultKey = Annotated[str, StringConstraints(max_length=16, pattern=r"^[0-9a-f]{16}$")]
RevisionName = Annotated[str, StringConstraints(max_length=27, pattern=r"^[0-9a-f]{16}(\.[0-9a-f]{10})?$")]
"""A revision's key and, if it is said, the hash in the name of the Deployment that served it."""
Image = Annotated[str, StringConstraints(max_length=512, pattern=r"^([a-zA-Z0-9][a-zA-Z0-9._:/@-]*)?$")]
Version = Annotated[str, StringConstraints(max_length=128, pattern=r"^([A-Za-z0-9][A-Za-z0-9._+-]*)?$")]
Argument = Annotated[str, StringConstraints(max_length=1024)]
BackendValue = Annotated[str, StringConstraints(max_length=LONGEST_VALUE, pattern=VALUE)]
"""A backend's number, flag or word, but never a path or a program."""
Arguments = Annotated[
    dict[str, Argument],
    Field(
        max_length=64,
        json_schema_extra=rules(
            (
                "self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_-]{0,62}$'))",
                "argument names must begin with a letter or _, have only letters, digits, _ and -,"
                " and be at most 63 characters long: rename the argument",
            )
        ),
    ),
]
KEYS = (
    "self.all(k, k.matches('^([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
    "keys must be names as Kubernetes takes them, such as team or example.com/team: at most 63 characters after a"
    " prefix of at most 253: correct the key",
)
"""The CEL rule of a map whose keys are names of labels, annotations or resources: it also bounds their length."""
LabelKey = Annotated[str, StringConstraints(min_length=1, max_length=317)]
LabelValue = Annotated[str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]
LARGEST_BATCH = 65536
"""The largest batch, in samples: that of NVIDIA's own example of a recommender, whose samples are small."""
BatchSize = Annotated[int, Field(ge=1, le=LARGEST_BATCH)]
