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
    """Where the model's code and checkpoint are."""

    uri: SourceUri
    """URI of the source: `pvc://CLAIM/PATH` or `configmap://NAME`, in the namespace of the object."""
    revision: Revision = ""
    """Any text. Change it to make the operator read the URI again. Default: empty."""
    sha256: Annotated[str, StringConstraints(max_length=64, pattern=r"^([0-9a-f]{64})?$")] = ""
    """Expected SHA-256 in hexadecimal: of the file, or of the sorted `sha256sum` lines of a directory's files (see
    docs/source.md). Default: not checked."""


class Data(ApiType):
    """The data that the dataloader reads. It is mounted read-only at /data; it is not copied and has no digest."""

    uri: DataUri
    """URI of the data: `pvc://CLAIM/PATH`, in the namespace of the object."""
    revision: Revision = ""
    """Any text. Change it when the data changes, so that the reference is computed again. Default: empty."""


class UserEntrypoint(ApiType):
    """A Python file of the source, and the arguments of its function or class."""

    entrypoint: PythonFile
    """Path of the Python file below the source."""
    arguments: Arguments = Field(default_factory=dict)
    """Arguments by name. The operator replaces `$(DATA)` by the path of `spec.data`, and strings are converted to the
    annotated or argparse type. Default: none."""
