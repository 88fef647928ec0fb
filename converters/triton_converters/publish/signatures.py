"""What is signed of an image, in the forms of cosign 2 and 3, and what of it a registry gives back.

cosign 2 looks at tags: `.sig` has payloads of simple signing, `.att` envelopes (DSSE) of in-toto statements. cosign 3
looks at bundles, which refer to the image, and at those tags if there is no bundle. A registry that keeps no list of
what refers to an image has it at a tag of its own, as the OCI distribution specification says. All are written, and
what others wrote there stays.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

from triton_converters.contract.predicate import PREDICATE_TYPE
from triton_converters.publish.image import CONFIG
from triton_converters.publish.keys import fingerprint, is_signed, sign
from triton_converters.publish.push import (
    INDEX,
    MANIFEST,
    Blob,
    Bytes,
    Registry,
    canonical,
    described,
    digest_of,
    invalid,
)

SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
DSSE = "application/vnd.dsse.envelope.v1+json"
IN_TOTO = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
"""Media types of what is signed."""
SIGNATURE = "dev.cosignproject.cosign/signature"
"""The annotation with the signature of a payload of simple signing."""
SIGNED = "https://sigstore.dev/cosign/sign/v1"
"""The predicateType of cosign 3 for a signature without a predicate."""
EMPTY = "application/vnd.oci.empty.v1+json"
MOST = 64
"""Entries of a list that are read: anybody who may push there may add some."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def attach(registry: Registry, key: EllipticCurvePrivateKey, image: bytes, predicate: bytes) -> None:
    """Sign an image, and attest the predicate of it. Raises StageError.

    ``image``: its manifest. ``predicate``: JSON.
    """
    digest, told = digest_of(image), json.loads(predicate)
    tag, place = digest.replace(":", "-"), f"{registry.repository.host}/{registry.repository.name}"
    payload = canonical(
        {
            "critical": {
                "identity": {"docker-reference": place},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            },
            "optional": None,
        }
    )
    signature = base64.b64encode(sign(key, payload)).decode()
    _add(registry, f"{tag}.sig", Bytes(payload), SIMPLE, {SIGNATURE: signature})
    attestation = Bytes(canonical(_envelope(key, digest, PREDICATE_TYPE, told)))
    _add(registry, f"{tag}.att", attestation, DSSE, {SIGNATURE: "", "predicateType": PREDICATE_TYPE})
    for kind, content in ((SIGNED, {}), (PREDICATE_TYPE, told)):
        _refer(registry, key, image, kind, content)


def predicates(registry: Registry, key: EllipticCurvePublicKey, digest: str) -> list[Any]:
    """Return what the key attests of an image by PREDICATE_TYPE, each once; none: it does not, or has not signed it.

    Only what is signed is looked at: it names the digest and the type. Raises StageError if the registry fails.
    """
    statements = list(_statements(registry, key, digest))
    if not any(each["predicateType"] == SIGNED for each in statements) and not _is_signed(registry, key, digest):
        return []
    found = [each["predicate"] for each in statements if each["predicateType"] == PREDICATE_TYPE]
    return [each for number, each in enumerate(found) if each not in found[:number]]


def _envelope(key: EllipticCurvePrivateKey, digest: str, kind: str, predicate: Any) -> dict[str, Any]:
    """Return a signed in-toto statement about an image."""
    subject = {"name": "", "digest": {"sha256": digest.removeprefix("sha256:")}}
    statement = canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [subject],
            "predicateType": kind,
            "predicate": predicate,
        }
    )
    signature = base64.b64encode(sign(key, _encoded(statement))).decode()
    return {
        "payloadType": IN_TOTO,
        "payload": base64.b64encode(statement).decode(),
        "signatures": [{"sig": signature}],
    }


def _encoded(payload: bytes) -> bytes:
    """Return what a signature of DSSE is of (github.com/secure-systems-lab/dsse, protocol.md)."""
    return b"DSSEv1 %d %s %d %s" % (len(IN_TOTO), IN_TOTO.encode(), len(payload), payload)


def _add(registry: Registry, tag: str, blob: Blob, media: str, notes: Mapping[str, str]) -> None:
    """Add a layer to the manifest of a tag, unless it has it."""
    registry.put(blob)
    layers = _entries(registry, registry.manifest(tag), "layers", tag)
    mine = described(blob, media, notes)
    if mine in layers:
        return
    layers.append(mine)
    told = {"type": "layers", "diff_ids": [each.get("digest") for each in layers]}
    config = Bytes(canonical({"architecture": "", "os": "", "config": {}, "rootfs": told}))
    registry.put(config)
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described(config, CONFIG), "layers": layers}
    registry.put_manifest(canonical(manifest), MANIFEST, tag)


def _refer(registry: Registry, key: EllipticCurvePrivateKey, image: bytes, kind: str, predicate: Any) -> None:
    """Push a bundle that refers to the image, and list it if the registry does not."""
    digest = digest_of(image)
    material = {"publicKey": {"hint": base64.b64encode(fingerprint(key.public_key())).decode()}}
    envelope = _envelope(key, digest, kind, predicate)
    bundle = Bytes(canonical({"mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": envelope}))
    nothing = Bytes(b"{}")
    for each in (bundle, nothing):
        registry.put(each)
    notes = {"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": kind}
    body = canonical(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": BUNDLE,
            "config": described(nothing, EMPTY),
            "layers": [described(bundle, BUNDLE)],
            "subject": described(Bytes(image), MANIFEST),
            "annotations": notes,
        }
    )
    headers = registry.put_manifest(body, MANIFEST, digest_of(body))
    if headers.get("OCI-Subject"):
        return
    tag = digest.replace(":", "-")
    listed = _entries(registry, registry.manifest(tag), "manifests", tag)
    mine = described(Bytes(body), MANIFEST, notes) | {"artifactType": BUNDLE}
    if mine not in listed:
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*listed, mine]}
        registry.put_manifest(canonical(index), INDEX, tag)


def _entries(registry: Registry, document: bytes | None, name: str, tag: str) -> list[dict[str, Any]]:
    """Return the list of that name in a manifest; empty: there is no manifest. Raises StageError for another one."""
    try:
        found = json.loads(document)[name] if document is not None else []
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return found
    except (KeyError, RecursionError, TypeError, ValueError):
        pass
    raise invalid(registry.place, f"has something else than signatures at the tag {tag}")


def _statements(registry: Registry, key: EllipticCurvePublicKey, digest: str) -> Iterator[dict[str, Any]]:
    """Yield the statements about an image that the key has signed."""
    for each in _envelopes(registry, digest):
        try:
            payload = base64.b64decode(each["payload"], validate=True)
            signatures = [base64.b64decode(one["sig"], validate=True) for one in each["signatures"][:MOST]]
            is_ours = any(is_signed(key, one, _encoded(payload)) for one in signatures)
            if each["payloadType"] != IN_TOTO or not is_ours:
                continue
            statement = json.loads(payload)
            subjects = [one["digest"]["sha256"] for one in statement["subject"]]
            if subjects == [digest.removeprefix("sha256:")] and {"predicateType", "predicate"} <= statement.keys():
                yield statement
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            # Anybody's, and nothing of ours.
            continue


def _envelopes(registry: Registry, digest: str) -> Iterator[Any]:
    """Yield what a registry has of envelopes about an image: in bundles, and at its tag. Nothing of it is trusted."""
    tag = digest.replace(":", "-")
    listed = registry.referrers(digest)
    for entry in _listed(listed if listed is not None else registry.manifest(tag), "manifests"):
        if entry.get("artifactType") == BUNDLE:
            for layer in _listed(_small(registry.manifest, entry), "layers"):
                yield _member(_json(_small(registry.get, layer)), "dsseEnvelope")
    for layer in _listed(registry.manifest(f"{tag}.att"), "layers"):
        yield _json(_small(registry.get, layer))


def _is_signed(registry: Registry, key: EllipticCurvePublicKey, digest: str) -> bool:
    """Whether the key has signed the image, by simple signing."""
    for layer in _listed(registry.manifest(f"{digest.replace(':', '-')}.sig"), "layers"):
        payload = _small(registry.get, layer)
        try:
            signature = base64.b64decode(layer["annotations"][SIGNATURE], validate=True)
            if payload is None or not is_signed(key, signature, payload):
                continue
            if json.loads(payload)["critical"]["image"]["docker-manifest-digest"] == digest:
                return True
        except (KeyError, RecursionError, TypeError, ValueError):
            continue
    return False


def _listed(document: bytes | None, name: str) -> list[dict[str, Any]]:
    """Return the first entries of a list in a manifest, whatever that is."""
    found = _member(_json(document), name)
    return [each for each in found if isinstance(each, dict)][:MOST] if isinstance(found, list) else []


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _json(document: bytes | None) -> Any:
    try:
        return json.loads(document) if document is not None else None
    except (RecursionError, ValueError):
        return None


def _small(read: Callable[[str], bytes | None], entry: Mapping[str, Any]) -> bytes | None:
    """Return what an entry names; None: nothing that is there."""
    digest = entry.get("digest")
    return read(digest) if isinstance(digest, str) and _DIGEST.fullmatch(digest) else None
