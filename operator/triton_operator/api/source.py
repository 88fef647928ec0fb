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
    """Expected digest of the source, in hexadecimal: the SHA-256 of a single file. For a directory or a ConfigMap, it
    is the SHA-256 of the lines that `sha256sum` prints for its files, sorted by path; docs/source.md has the command.
    Default: not checked."""


class Data(ApiType):
    """The data that the dataloader reads. It is mounted read-only at /data; it is not copied and has no digest."""

    uri: DataUri
    """URI of the data: `pvc://CLAIM/PATH`, in the namespace of the object."""
    revision: Revision = ""
    """Any text. Change it when the data changes, so that the reference outputs are computed again. Default: empty."""


class UserEntrypoint(ApiType):
    """A Python file in the source, and the arguments of its function or class."""

    entrypoint: PythonFile
    """Path of the Python file, relative to the root of the source."""
    arguments: Arguments = Field(default_factory=dict)
    """Arguments by name, as strings. The operator replaces `$(DATA)` with the path at which `spec.data` is mounted, and
    converts each string to the type that the function's annotation, its default value or the file's `update_argparser`
    declares. Default: none."""
