"""The credentials of a download, from the Secret that the kubelet mounts."""

import os
from collections.abc import Mapping
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import field

LARGEST_BYTES = 64 * 1024
"""A key of a Secret that is longer is not read; a service account's JSON file has about 2 KiB."""

Credentials = Mapping[str, str]
"""The Secret's values by key; empty: the spec names no Secret."""


def read(folder: Path | None = None) -> Credentials:
    """Return the Secret's values without white space at their ends. Raises UnusableError."""
    folder = folder or layout.CREDENTIALS_MOUNT
    # Names that begin with `..` are the kubelet's.
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: _value(path) for path in found if not path.name.startswith("..")}


def known(credentials: Credentials, *keys: str) -> dict[str, str]:
    """Return what the Secret has of these keys; empty: there are no credentials at all.

    Raises UnusableError if there are credentials, but under none of the keys.
    """
    found = {key: credentials[key] for key in keys if credentials.get(key)}
    # They become headers, and Python would quote a header that cannot be.
    if unfit := [key for key, value in found.items() if not (value.isascii() and value.isprintable())]:
        raise UnusableError(f"has something else than printable ASCII under {' or '.join(unfit)}")
    if credentials and not found:
        raise UnusableError(f"lacks the keys of this scheme: {', '.join(keys)}")
    return found


def choose(credentials: Credentials, *ways: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of the first way whose keys are all there; empty: there are no credentials at all.

    Raises UnusableError if there are credentials, but of none of the ways.
    """
    for keys in ways:
        if all(map(credentials.get, keys)):
            return tuple(known(credentials, *keys).values())
    if not credentials:
        return ()
    wanted = ", or ".join(" and ".join(keys) for keys in ways)
    raise UnusableError(f"lacks the keys of this scheme: {wanted}")


def https_url(secret: Mapping[str, str], key: str) -> str | None:
    """Return the URL under a key of the chosen ones; None: there is none. Raises UnusableError: it is no https URL."""
    url = secret.get(key)
    if url is not None and not url.startswith("https://"):
        raise UnusableError(f"has no https URL under {key}")
    return url


def identified(service_account: str, *variables: str) -> bool:
    """Whether the cloud knows the pod by its ServiceAccount, instead of by a Secret.

    ``variables``: one of them is set in a pod that the cloud has given an identity. Without it the library would ask
    the node for its own. Raises StageError(SourceAccessDenied).
    """
    if service_account and not any(map(os.environ.get, variables)):
        message = (
            f"the cloud gave the pod no identity of ServiceAccount {service_account}; ask the administrator to bind it"
            f" to a role, or remove {field.of('serviceAccountName')}; then type: kubectl triton retry NAME"
        )
        raise StageError(Reason.SOURCE_ACCESS_DENIED, message)
    return bool(service_account)


def _value(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise UnusableError(f"has more than {LARGEST_BYTES} bytes under the key {path.name}")
        return content.decode().strip()
    except UnicodeDecodeError:
        # The exception quotes the bytes.
        raise UnusableError(f"has bytes under the key {path.name} that are no UTF-8 text") from None


class UnusableError(StageError):
    """A Secret that does not fit. ``what``: what is wrong with it; ``secret``: the field that names it."""

    def __init__(self, what: str, reason: Reason = Reason.SOURCE_ACCESS_DENIED, secret: str = "") -> None:
        named = f"the Secret of {secret or field.of('secretRef')}"
        super().__init__(reason, f"{named} {what}; correct the Secret, then type: kubectl triton retry NAME")
        self.what = what
