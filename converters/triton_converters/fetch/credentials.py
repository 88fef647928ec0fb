"""The credentials of a download, from the Secret that the kubelet mounts."""

from collections.abc import Mapping
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

LARGEST_BYTES = 64 * 1024
"""A key of a Secret that is longer is not read; a service account's JSON file has about 2 KiB."""

Credentials = Mapping[str, str]
"""The Secret's values by key; empty: the spec names no Secret."""


def read(folder: Path | None = None) -> Credentials:
    """Return the Secret's values without white space at their ends. Raises StageError(SourceAccessDenied)."""
    folder = folder or layout.CREDENTIALS_MOUNT
    # Names that begin with `..` are the kubelet's.
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: _value(path) for path in found if not path.name.startswith("..")}


def choose(credentials: Credentials, *ways: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of the first way whose keys are all there; empty: there are no credentials at all.

    Raises StageError(SourceAccessDenied) if there are credentials, but of none of the ways.
    """
    for keys in ways:
        values = tuple(credentials.get(key, "") for key in keys)
        if all(values):
            # They become headers, and Python would quote a header that cannot be.
            if not all(value.isascii() and value.isprintable() for value in values):
                raise _refused(f"has something else than printable ASCII under {' or '.join(keys)}")
            return values
    if not credentials:
        return ()
    wanted = ", or ".join(" and ".join(keys) for keys in ways)
    raise _refused(f"lacks the keys of this scheme: {wanted}")


def _value(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise _refused(f"has more than {LARGEST_BYTES} bytes under the key {path.name}")
        return content.decode().strip()
    except UnicodeDecodeError:
        # The exception quotes the bytes.
        raise _refused(f"has bytes under the key {path.name} that are no UTF-8 text") from None


def _refused(what: str) -> StageError:
    message = f"the Secret of spec.source.secretRef {what}; correct the Secret, then type: kubectl triton retry NAME"
    return StageError(Reason.SOURCE_ACCESS_DENIED, message)
