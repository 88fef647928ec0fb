"""How the store keeps an object: as compressed JSON, which takes a small part of the memory of its dicts."""

import zlib
from typing import Any, NamedTuple

from triton_operator.api.triton_deployment import bounded
from triton_operator.kube.kinds import CONFIG_MAP, TRITON_DEPLOYMENT, ApiKind
from triton_operator.kube.managed_fields import trimmed
from triton_operator.kube.nesting import dumps, loads
from triton_operator.runtime.store_facts import memory_of

LARGEST_BYTES = 512 * 1024
"""The longest body that is taken in, as JSON without others' managed fields: who may make objects may give them the
operator's labels. The operator's longest is a Deployment, whose template is there twice and follows from a spec of at
most 64 KiB. A TritonDeployment may be longer, because its conditions say that it is; a ConfigMap has at most 1 MiB."""


class PackedObject(NamedTuple):
    """The last known version of an object."""

    uid: str
    version: int
    packed: bytes
    unpacked: int
    """About how much memory the body takes, in bytes."""


class Packer:
    """Packs bodies. Objects of a kind look alike, so the first one of each kind is the others' dictionary."""

    def __init__(self) -> None:
        self._samples: dict[ApiKind, bytes] = {}
        """The compression's dictionary by kind; it never changes."""

    def pack(self, kind: ApiKind, body: dict[str, Any], uid: str, version: int) -> PackedObject | None:
        """Return the body as it is kept; None: the operator never made one of that size."""
        plain = dumps(trimmed(kind, bounded(body) if kind is TRITON_DEPLOYMENT else body))
        text = plain.encode()
        if len(text) > LARGEST_BYTES and kind not in (TRITON_DEPLOYMENT, CONFIG_MAP):
            return None
        packer = zlib.compressobj(level=1, zdict=self._samples.setdefault(kind, text))
        return PackedObject(uid, version, packer.compress(text) + packer.flush(), memory_of(plain))

    def unpack(self, kind: ApiKind, known: PackedObject) -> dict[str, Any]:
        """Return a body of its own of what was packed."""
        body: dict[str, Any] = loads(zlib.decompressobj(zdict=self._samples[kind]).decompress(known.packed))
        return body
