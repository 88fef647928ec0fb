"""Signing keys: ECDSA with P-256, in PEM or as `cosign generate-key-pair` encrypts them.

No message and no exception holds a part of a key or a password.
"""

import base64
import hashlib
import json

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from nacl.secret import SecretBox

COSIGN = ("ENCRYPTED COSIGN PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY")
"""What the PEM of cosign's own keys is called, by its version."""
MOST_MEMORY = 2**28
"""Most bytes that scrypt may take for a password; cosign's parameters take 64 MiB."""


class KeyUnusableError(ValueError):
    """A key that cannot be used; the message says why in words of its own."""


def private_key(pem: bytes, password: bytes) -> ec.EllipticCurvePrivateKey:
    """Return the key in a PEM file. Raises KeyUnusableError."""
    try:
        words = pem.decode()
        own = next((each for each in COSIGN if f"-----BEGIN {each}-----" in words), "")
        if own:
            key = serialization.load_der_private_key(_opened(words, own, password), None)
        else:
            is_encrypted = "ENCRYPTED" in words
            key = serialization.load_pem_private_key(pem, password if is_encrypted else None)
    except Exception:
        # Whatever the libraries say may quote what they read.
        raise KeyUnusableError("it is no private key in PEM, or its password is another one") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyUnusableError("it is no ECDSA key of the curve P-256")
    return key


def public_key(pem: bytes) -> ec.EllipticCurvePublicKey:
    """Return the public key in a PEM file. Raises KeyUnusableError."""
    try:
        key = serialization.load_pem_public_key(pem)
    except Exception:
        raise KeyUnusableError("it is no public key in PEM") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyUnusableError("it is no ECDSA key of the curve P-256")
    return key


def fingerprint(key: ec.EllipticCurvePublicKey) -> bytes:
    """Return the SHA-256 of a public key in DER."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).digest()


def sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    """Return the signature of data in DER, which is the same each time (RFC 6979): to publish again changes nothing."""
    return key.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def is_signed(key: ec.EllipticCurvePublicKey, signature: bytes, data: bytes) -> bool:
    """Whether the key has signed the data."""
    try:
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _opened(pem: str, name: str, password: bytes) -> bytes:
    """Return a key of cosign's in PKCS #8: scrypt makes the password a key of NaCl's secretbox."""
    text = pem.partition(f"-----BEGIN {name}-----")[2].partition(f"-----END {name}-----")[0]
    envelope = json.loads(base64.b64decode("".join(text.split()), validate=True))
    kdf, cipher = envelope["kdf"], envelope["cipher"]
    if (kdf["name"], cipher["name"]) != ("scrypt", "nacl/secretbox"):
        raise ValueError
    salt, nonce, box = (base64.b64decode(each) for each in (kdf["salt"], cipher["nonce"], envelope["ciphertext"]))
    cost = {name.lower(): kdf["params"][name] for name in ("N", "r", "p")}
    key = hashlib.scrypt(password, salt=salt, dklen=32, maxmem=MOST_MEMORY, **cost)
    return SecretBox(key).decrypt(box, nonce)
