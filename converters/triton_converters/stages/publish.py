"""Stage ``publish``: push a revision as an image, sign it, and read it back. See docs/publish.md.

Only a predicate of what passed comes here. The files are hashed again, and what is sent later is bound to these hashes.
The tag moves last: until then the registry shows nobody an image that is not whole, or not signed.
"""

import json

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from triton_converters.contract import layout, publishing
from triton_converters.contract.failure import StageError
from triton_converters.contract.predicate import LARGEST, Predicate
from triton_converters.contract.publishing import KEY, PASSWORD, PublishRequest, PublishResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import credentials, field
from triton_converters.fetch.docker_config import account
from triton_converters.fetch.registry import Repository
from triton_converters.publish import signatures
from triton_converters.publish.image import PackedImage, image
from triton_converters.publish.keys import KeyUnusableError, fingerprint, private_key
from triton_converters.publish.push import MANIFEST, Blob, Registry, digest_of, invalid, told


def run(request: PublishRequest) -> PublishResult:
    """Publish a revision.

    Raises StageError: InvalidSpec (the URI or the predicate), SigningKeyInvalid, what ``image`` raises, and the reasons
    of a registry.
    """
    predicate = _predicate(request)
    key = _key() if request.signs else None
    packed = image(predicate, with_samples=request.samples)
    with told():
        target = _target(request)
        secret = credentials.read()
        repository = Repository(target.host, target.name, account(secret, target.host, target.name), "pull,push")
        registry, tag = Registry(repository), target.tag or request.revision
        digest = _push(registry, packed)
        if key is not None:
            _sign(registry, key, packed, request)
        registry.put_manifest(packed.manifest, MANIFEST, tag)
        for each in (digest, tag):
            if registry.manifest(each) != packed.manifest:
                raise invalid(registry.place, f"does not have the image at {each} that was pushed there")
    print(f"push {registry.place}:{tag}: {digest}", flush=True)
    signer = fingerprint(key.public_key()).hex() if key is not None else ""
    return PublishResult(digest, tag, packed.length, signer)


def _predicate(request: PublishRequest) -> Predicate:
    """Return the predicate, which must be of the request's revision."""
    try:
        publishing.target(request.uri)
        predicate = Predicate.from_json(request.predicate)
    except ValueError as error:
        raise StageError(Reason.INVALID_SPEC, f"nothing can be published: {error}") from error
    if predicate.revision.key != request.revision or len(request.predicate.encode()) > LARGEST:
        message = f"the predicate is of another revision, or has more than {LARGEST} bytes"
        raise StageError(Reason.INVALID_SPEC, message)
    return predicate


def _target(request: PublishRequest) -> publishing.PublishTarget:
    field.FIELD.set("spec.publish")
    return publishing.target(request.uri)


def _key() -> EllipticCurvePrivateKey:
    """Return the key of the mounted Secret."""
    field.FIELD.set("spec.publish.signing")
    try:
        secret = credentials.read(layout.SIGNING_MOUNT)
        return private_key(secret.get(KEY, "").encode(), secret.get(PASSWORD, "").encode())
    except (KeyUnusableError, credentials.UnusableError) as error:
        why = error.what if isinstance(error, credentials.UnusableError) else f"cannot be used under {KEY}: {error}"
        message = (
            f"the Secret of {field.of('secretRef')} {why}; correct the Secret, then type: kubectl triton retry NAME"
        )
        raise StageError(Reason.SIGNING_KEY_INVALID, message) from None


def _push(registry: Registry, packed: PackedImage) -> str:
    """Push all but the tag; return the manifest's digest."""
    blobs: tuple[Blob, ...] = (*packed.layers, packed.config)
    for each in blobs:
        registry.put(each)
    digest = digest_of(packed.manifest)
    registry.put_manifest(packed.manifest, MANIFEST, digest)
    return digest


def _sign(registry: Registry, key: EllipticCurvePrivateKey, packed: PackedImage, request: PublishRequest) -> None:
    """Sign and attest the image, and see whether the registry gives both back."""
    signatures.attach(registry, key, packed.manifest, request.predicate.encode())
    told = signatures.predicates(registry, key.public_key(), digest_of(packed.manifest))
    if json.loads(request.predicate) not in told:
        raise invalid(registry.place, "does not give back the signature that was pushed")
