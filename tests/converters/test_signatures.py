"""What is signed of an image, and what of it is believed."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.conftest import Attack
from tests.converters.https_server import Server
from tests.converters.published import REVISION, new_key, pem, predicate, public_pem, request, with_key
from tests.converters.test_hostile_registry import Registry as InMemory
from tests.converters.test_hostile_registry import registry
from triton_converters.contract import layout
from triton_converters.contract.predicate import PREDICATE_TYPE
from triton_converters.contract.publishing import PublishResult
from triton_converters.fetch.registry import Repository
from triton_converters.publish import signatures
from triton_converters.publish.keys import KeyUnusableError, fingerprint, private_key, public_key
from triton_converters.publish.push import Registry, digest_of
from triton_converters.stages import publish

ENCRYPTED = Path(__file__).with_name("cosign.key.json")
PASSWORD = "a-password"
__all__ = ["registry"]


def run(server: Server, key: ec.EllipticCurvePrivateKey, tag: str = ":v1", **fields: Any) -> PublishResult:
    with_key(pem(key))
    told = predicate(**fields)
    return publish.run(request(f"oci://{server.host}/team/digits{tag}", told, signs=True))


def believed(server: Server, key: ec.EllipticCurvePrivateKey, digest: str) -> list[Any]:
    return signatures.predicates(Registry(Repository(server.host, "team/digits", "")), key.public_key(), digest)


def test_what_the_key_signed_is_believed(server: Server, registry: InMemory) -> None:
    key = new_key()
    result = run(server, key)
    assert result.signer == fingerprint(key.public_key()).hex()
    assert believed(server, key, result.digest) == [json.loads(predicate().to_json())]


def test_to_publish_again_changes_nothing(server: Server, registry: InMemory) -> None:
    key = new_key()
    first = run(server, key)
    before = dict(registry.manifests)
    assert run(server, key) == first
    assert registry.manifests == before


def test_a_newer_report_of_the_same_image_is_added(server: Server, registry: InMemory) -> None:
    key = new_key()
    result = run(server, key)
    newer = replace(predicate().figures, measured_at="2026-12-01T21:00:00Z")
    assert run(server, key, figures=newer).digest == result.digest
    found = believed(server, key, result.digest)
    assert [each["figures"]["measured_at"] for each in found] == ["2026-11-30T21:00:00Z", newer.measured_at]


def test_signatures_of_others_stay(server: Server, registry: InMemory) -> None:
    one, other = new_key(), new_key()
    result = run(server, one)
    run(server, other, tag=":v2")
    assert believed(server, one, result.digest) == believed(server, other, result.digest) != []


def test_a_strangers_key_proves_nothing(server: Server, registry: InMemory, attack: Attack) -> None:
    result = run(server, new_key())
    assert believed(server, new_key(), result.digest) == []
    attack("who may push to the registry", "an image that another key has signed", "no report of it is believed")


def test_a_signature_of_another_image_proves_nothing(server: Server, registry: InMemory, attack: Attack) -> None:
    key = new_key()
    result = run(server, key)
    other = digest_of(b"another image")
    for suffix in ("", ".sig", ".att"):
        registry.manifests[f"{other}{suffix}".replace(":", "-")] = registry.manifests[
            f"{result.digest}{suffix}".replace(":", "-")
        ]
    assert believed(server, key, other) == []
    attack("who may push to the registry", "signatures, put beside another image", "no report of it is believed")


def test_a_report_alone_is_not_believed(server: Server, registry: InMemory) -> None:
    key = new_key()
    result = run(server, key)
    tag = result.digest.replace(":", "-")
    del registry.manifests[f"{tag}.sig"]
    index = json.loads(registry.manifests[tag])
    index["manifests"] = [
        each
        for each in index["manifests"]
        if each["annotations"]["dev.sigstore.bundle.predicateType"] != signatures.SIGNED
    ]
    registry.manifests[tag] = json.dumps(index).encode()
    assert believed(server, key, result.digest) == []


def test_a_changed_report_is_not_believed(server: Server, registry: InMemory, attack: Attack) -> None:
    key = new_key()
    result = run(server, key)
    for digest, content in list(registry.blobs.items()):
        if b"payload" not in content:
            continue
        document = json.loads(content)
        envelope = document.get("dsseEnvelope", document)
        statement = base64.b64decode(envelope["payload"]).replace(b'"samples":4', b'"samples":9')
        envelope["payload"] = base64.b64encode(statement).decode()
        changed = json.dumps(document).encode()
        registry.blobs[digest_of(changed)] = changed
        for name, manifest in registry.manifests.items():
            registry.manifests[name] = manifest.replace(digest.encode(), digest_of(changed).encode())
    assert believed(server, key, result.digest) == []
    attack("who may push to the registry", "a report with another figure", "it is not believed")


@pytest.mark.parametrize("entry", [1, None, {}, {"digest": 1}, {"digest": "sha256:../../../token"}, {"digest": "x"}])
def test_what_strangers_put_beside_the_signatures_hides_none(server: Server, registry: InMemory, entry: Any) -> None:
    key = new_key()
    result = run(server, key)
    tag = result.digest.replace(":", "-")
    more = {**entry, "artifactType": signatures.BUNDLE} if isinstance(entry, dict) else entry
    for name, member in ((tag, "manifests"), (f"{tag}.att", "layers"), (f"{tag}.sig", "layers")):
        document = json.loads(registry.manifests[name])
        document[member].insert(0, more)
        registry.manifests[name] = json.dumps(document).encode()
    assert len(believed(server, key, result.digest)) == 1
    assert not [path for _, path in registry.asked if "token" in path]


def test_a_registry_with_a_list_of_its_own_gets_no_tag(server: Server, registry: InMemory) -> None:
    key, listed = new_key(), []

    def lists(method: str, path: str, body: bytes) -> Any:
        if method == "PUT" and b'"subject"' in body:
            registry.manifests[digest_of(body)] = body
            listed.append({"digest": digest_of(body), "artifactType": signatures.BUNDLE})
            return 201, {"OCI-Subject": "sha256:0"}, b""
        if "/referrers/" in path:
            return 200, {}, json.dumps({"manifests": listed}).encode()
        return None

    registry.first = lists
    result = run(server, key)
    assert len(listed) == 2
    assert result.digest.replace(":", "-") not in registry.manifests
    assert len(believed(server, key, result.digest)) == 1


def test_the_predicate_is_in_the_statement_as_it_was_given(server: Server, registry: InMemory) -> None:
    result = run(server, new_key())
    (layer,) = json.loads(registry.manifests[f"{result.digest}.att".replace(":", "-")])["layers"]
    statement = json.loads(base64.b64decode(json.loads(registry.blobs[layer["digest"]])["payload"]))
    assert statement["predicateType"] == PREDICATE_TYPE
    assert statement["subject"] == [{"name": "", "digest": {"sha256": result.digest.removeprefix("sha256:")}}]
    assert statement["predicate"]["revision"]["key"] == REVISION


def test_the_key_is_nowhere_in_what_was_pushed_or_said(
    server: Server, registry: InMemory, capfd: pytest.CaptureFixture[str]
) -> None:
    key = new_key()
    run(server, key)
    secret = key.private_numbers().private_value.to_bytes(32, "big")
    secrets = (secret, base64.b64encode(secret), pem(key).splitlines()[1])
    places = [*registry.blobs.values(), *registry.manifests.values(), "".join(capfd.readouterr()).encode()]
    places += [path.read_bytes() for path in layout.MOUNT.rglob("*") if path.is_file()]
    assert not [each for each in secrets for place in places if each in place]


def test_a_key_of_cosign_is_read_with_its_password() -> None:
    told = json.loads(ENCRYPTED.read_text())
    key = private_key(told["key"].encode(), told["password"].encode())
    assert public_pem(key) == told["public"].encode()
    with pytest.raises(KeyUnusableError):
        private_key(told["key"].encode(), b"another")


def test_a_key_of_openssl_is_read_with_its_password() -> None:
    key = new_key()
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    assert public_pem(private_key(encrypted, PASSWORD.encode())) == public_pem(key)
    assert public_pem(private_key(pem(key), PASSWORD.encode())) == public_pem(key)
    assert fingerprint(public_key(public_pem(key))) == fingerprint(key.public_key())


def test_a_key_of_another_kind_is_refused() -> None:
    for other in (ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)):
        none = serialization.NoEncryption()
        written = other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none)
        shown = other.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        with pytest.raises(KeyUnusableError, match="P-256"):
            private_key(written, b"")
        with pytest.raises(KeyUnusableError, match="P-256"):
            public_key(shown)
    with pytest.raises(KeyUnusableError):
        public_key(b"no key")


@pytest.mark.parametrize("change", ["scrypt", "nacl/secretbox", "N", "ciphertext"])
def test_a_key_of_cosign_that_is_not_whole_is_refused(change: str) -> None:
    told = json.loads(ENCRYPTED.read_text())
    lines = told["key"].splitlines()
    envelope = base64.b64decode("".join(lines[1:-1])).decode().replace(change, f"{change}x")
    text = "\n".join((lines[0], base64.b64encode(envelope.encode()).decode(), lines[-1]))
    with pytest.raises(KeyUnusableError):
        private_key(text.encode(), told["password"].encode())
