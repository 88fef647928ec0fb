"""A revision on the claim that passed, with its reference and its predicate; and what a publish Job is asked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from triton_converters.claim_store import samples
from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.revision import content_digest
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import ServedModel, Tolerance
from triton_converters.contract.predicate import (
    AttestedFigures,
    AttestedGates,
    AttestedImage,
    AttestedRevision,
    Identity,
    Origin,
    Predicate,
)
from triton_converters.contract.publishing import PublishRequest
from triton_converters.contract.results import Environment, Signature, Tensor

REVISION, REFERENCE = "00112233aabbccdd", "ffeeddcc99887766"
FILES = {
    "digits/config.pbtxt": b'name: "digits"\nplatform: "ensemble"\n',
    "net/config.pbtxt": b'name: "net"\n',
    "net/1/model.onnx": bytes(range(256)) * 8192,
    "net/1/" + "a" * 150: b"a name that a plain tar header has no room for",
    "net/warmup/x": b"",
}
"""Files below `models/`; one of them is large."""
EMPTY = "digits/1"
"""The version directory of an ensemble."""
ENVIRONMENT = Environment("2.51.0", "cpu", "", "", "a processor, 2 cores", ("perf_analyzer -m digits",))


def revision(files: dict[str, bytes] | None = None) -> Path:
    """Write a revision to the claim, and return its directory."""
    directory = layout.revision_directory(REVISION)
    for name, content in (FILES if files is None else files).items():
        path = directory / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (directory / "models" / EMPTY).mkdir(parents=True, exist_ok=True)
    (directory / "result.json").write_text("{}")
    return directory


def reference() -> Path:
    """Write a reference with two batches to the claim, and return its directory."""
    directory = layout.reference_directory(REFERENCE)
    for number in range(2):
        rows = numpy.arange(4, dtype=numpy.float32).reshape(2, 2) + number
        write_batch(directory, number, Batch(numpy.arange(2), {"x": rows}, {}, {"y": 2 * rows}))
    return directory


def predicate(**fields: Any) -> Predicate:
    """The predicate of what lies on the claim."""
    directory = layout.revision_directory(REVISION)
    tensors = tuple((Tensor(name, "FP32", (2,)),) for name in ("x", "y"))
    found = Predicate(
        identity=Identity("default", "digits", Origin("pvc://models/digits", digest="a" * 64), "b" * 64),
        revision=AttestedRevision(
            REVISION,
            content_digest(directory),
            "onnx-fp32",
            "digits",
            (ServedModel("net", "onnx", "fp32"),),
            (),
            "c" * 64,
        ),
        images=(AttestedImage("registry.example/tritonserver:24.10"),),
        gates=AttestedGates(
            signature=Signature(*tensors, max_batch_size=4),
            precision="fp32",
            tolerance=Tolerance(1e-4, 1e-4),
            max_absolute_error=0.0,
            samples=4,
            reference=REFERENCE,
            samples_digest=samples.digest(layout.reference_directory(REFERENCE)),
            message="4 samples agree",
        ),
        metrics=(),
        figures=AttestedFigures("2026-11-30T21:00:00Z", ENVIRONMENT, (), (), ()),
        local=True,
    )
    return replace(found, **fields)


def request(uri: str, told: Predicate | None = None, *, signs: bool = False, samples: bool = False) -> PublishRequest:
    """What a publish Job is asked."""
    return PublishRequest("0123456789abcdef", uri, REVISION, (told or predicate()).to_json(), signs, samples)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A key that nobody else has."""
    return ec.generate_private_key(ec.SECP256R1())


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key as `openssl genpkey` writes it."""
    none = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none)


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public key of it."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def with_key(content: bytes, password: str = "") -> None:
    """Mount a Secret with a signing key."""
    layout.SIGNING_MOUNT.mkdir(exist_ok=True)
    (layout.SIGNING_MOUNT / "cosign.key").write_bytes(content)
    (layout.SIGNING_MOUNT / "cosign.password").write_text(password)


def document(content: bytes | None) -> Any:
    """A manifest that is there, decoded."""
    assert content is not None
    return json.loads(content)
