"""Certificates by openssl: one authority, one certificate a process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.devcluster.commands import run

DAYS = "365"


@dataclass(frozen=True)
class Identity:
    """Whom a certificate names: CN is the Kubernetes user, O its group."""

    name: str
    user: str
    group: str = ""
    alternative_names: Sequence[str] = ()
    """`IP:...` and `DNS:...` entries for a server."""


def create_authority(folder: Path) -> None:
    """Write ca.crt and ca.key, and service-account.key which signs service-account tokens.

    Raises:
        ClusterError: openssl failed.

    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _certificate(
        folder,
        "ca",
        "/CN=triton-devcluster",
        ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"],
        [],
    )
    # SEC1, not PKCS #8: the API server reads its public half from the same file only in that form.
    key = folder / "service-account.key"
    run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key])


def create_certificate(folder: Path, identity: Identity) -> None:
    """Write NAME.crt and NAME.key, signed by the folder's authority.

    Raises:
        ClusterError: openssl failed.

    """
    group = f"/O={identity.group}" if identity.group else ""
    extensions = [
        "basicConstraints=critical,CA:FALSE",
        "keyUsage=critical,digitalSignature",
        "extendedKeyUsage=clientAuth,serverAuth",
    ]
    if identity.alternative_names:
        extensions.append(f"subjectAltName={','.join(identity.alternative_names)}")
    issuer = ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")]
    _certificate(folder, identity.name, f"{group}/CN={identity.user}", extensions, issuer)


def _certificate(folder: Path, name: str, subject: str, extensions: Sequence[str], issuer: Sequence[str]) -> None:
    # A configuration of our own: the system's adds extensions that differ between distributions.
    sections = ["[req]", "distinguished_name=dn", "x509_extensions=ext", "[dn]", "[ext]", *extensions]
    settings = folder / f"{name}.cnf"
    settings.write_text("\n".join([*sections, ""]))
    files: list[str | Path] = ["-config", settings, "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run(["openssl", "req", "-x509", *key, *files, *issuer, "-days", DAYS, "-subj", subject])
