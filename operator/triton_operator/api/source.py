"""Where the model comes from, and the user's Python files."""

from typing import Annotated

from pydantic import Field, StringConstraints

from triton_operator.api.schema import SEGMENT, ApiType, Arguments, PythonFile, Revision

SourceUri = Annotated[
    str,
    StringConstraints(
        max_length=1024,
        pattern=rf"^(pvc://[a-z0-9][-.a-z0-9]*(/{SEGMENT})*/?|configmap://[a-z0-9][-.a-z0-9]*)$",
    ),
]
DataUri = Annotated[str, StringConstraints(max_length=1024, pattern=rf"^pvc://[a-z0-9][-.a-z0-9]*(/{SEGMENT})*/?$")]


class Source(ApiType):
    """Where the model's code and checkpoint lie."""

    uri: SourceUri
    """`pvc://CLAIM/PATH` or `configmap://NAME`, in the object's own namespace."""
    revision: Revision = ""
    """Opaque: change it to have the URI read again."""
    sha256: Annotated[str, StringConstraints(max_length=64, pattern=r"^([0-9a-f]{64})?$")] = ""
    """Expected SHA-256: of the file, or of the sorted `sha256sum` lines of a directory's files (docs/source.md)."""


class Data(ApiType):
    """What the dataloader reads: mounted read-only at /data, never copied, never digested."""

    uri: DataUri
    """`pvc://CLAIM/PATH`."""
    revision: Revision = ""
    """Opaque: change it when the data changes, and the reference is computed anew."""


class UserEntrypoint(ApiType):
    """A Python file of the source and the arguments of its function or class."""

    entrypoint: PythonFile
    """Path below the source."""
    arguments: Arguments = Field(default_factory=dict)
    """By name; `$(DATA)` is replaced by the path of spec.data. Strings become the annotated or argparse type."""
