"""What a revision is published as: the request and the result of the stage ``publish``, and where an image may go.

Standard library only.
"""

import re
from dataclasses import dataclass

from triton_converters.contract import uris
from triton_converters.contract.document import Document

KEY, PASSWORD = "cosign.key", "cosign.password"
"""The keys of a Secret with a signing key, as `cosign generate-key-pair k8s://NAMESPACE/NAME` makes it."""


@dataclass(frozen=True)
class PublishRequest(Document):
    """Push a revision as an image, and sign it."""

    key: str
    uri: str
    """``oci://REGISTRY/NAME[:TAG]``; without a tag, it is the revision's key."""
    revision: str
    """Key of the revision."""
    predicate: str
    """A ``predicate.Predicate`` in JSON, which says what the revision's files must be. It is published if it is
    signed."""
    signs: bool
    """Whether SIGNING_MOUNT holds a key that signs the image and the predicate."""
    samples: bool
    """Whether the reference's samples are published too, in the same image; they are the user's data."""


@dataclass(frozen=True)
class PublishResult(Document):
    """The image that the registry has, read back."""

    digest: str
    """``sha256:HEX`` of its manifest."""
    tag: str
    bytes: int
    """Size of the image's layers together."""
    signer: str
    """SHA-256 of the public key in DER; empty: it is not signed."""


@dataclass(frozen=True)
class PublishTarget:
    """Where an image is pushed."""

    host: str
    """The registry's host, with its port if the URI has one."""
    name: str
    tag: str
    """Empty: the URI has none."""


def target(uri: str) -> PublishTarget:
    """Return the parts of ``oci://REGISTRY/NAME[:TAG]``. Raises ValueError, without quoting it."""
    if not re.fullmatch(uris.PUBLISHED, uri):
        raise ValueError("the URI to publish at must be oci://REGISTRY/REPOSITORY or oci://REGISTRY/REPOSITORY:TAG")
    host, _, path = uri.removeprefix("oci://").partition("/")
    name, _, tag = path.partition(":")
    return PublishTarget(host, name, tag)


def is_loop(uri: str, source: str, *, followed: bool) -> bool:
    """Whether what is published at ``uri`` would become a newer version of the source that it was made from.

    ``source``: the URI of ``spec.source``; ``followed``: whether it is looked at again. One that is not is still
    overwritten by its own tag. Raises ValueError for a URI that is none.
    """
    into, read = target(uri), uris.split(source)
    if read.scheme != "oci":
        return False
    name, _, tag = read.path.partition("@")[0].partition(":")
    is_same_place = (_address(into.host), into.name) == (_address(read.host), name)
    return is_same_place and (followed or (tag != "" and tag == into.tag))


def _address(host: str) -> str:
    return host.lower().removesuffix(":443")
