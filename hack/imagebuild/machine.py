"""How this machine reaches package registries: pip's and apt's own settings and the CA bundle.

They are handed to a build as secrets, so that they are in no layer, no history and no committed file.
"""

import ast
import os
import shutil
import ssl
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

SECRETS = "/run/secrets"
CA_BUNDLE = "ca.crt"
APT_KEYS = (
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
    "Acquire::Check-Date",
    "Acquire::Check-Valid-Until",
    "Acquire::Retries",
)


def ca_bundle(environ: dict[str, str] | None = None) -> Path | None:
    """Find the certificates this machine trusts: pip's variable, OpenSSL's, else the distribution's file."""
    environ = dict(os.environ) if environ is None else environ
    default = ssl.get_default_verify_paths().cafile
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        if environ.get(name) and Path(environ[name]).is_file():
            return Path(environ[name])
    for path in (default, "/etc/ssl/certs/ca-certificates.crt"):
        if path and Path(path).is_file():
            return Path(path)
    return None


def pip_conf(listing: str, has_ca_bundle: bool) -> RawConfigParser:
    """Merge pip's settings, given as `pip config list` prints them, into one file for use inside a build.

    Environment settings come last, as pip ranks them. Paths of this machine mean nothing inside: the
    certificates move to the secret, and other local paths are left out.
    """
    parser = RawConfigParser()
    parser.add_section("global")
    lines = [line.split("=", 1) for line in listing.splitlines() if "=" in line]
    for key, literal in sorted(lines, key=lambda pair: pair[0].startswith(":env:")):
        section, option = key.split(".", 1)
        section = "global" if section == ":env:" else section
        value = str(ast.literal_eval(literal))
        if option in ("cert", "client-cert", "cache-dir") or Path(value).is_absolute():
            continue
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, option, value)
    if has_ca_bundle:
        parser.set("global", "cert", f"{SECRETS}/{CA_BUNDLE}")
    return parser


def apt_conf(dump: str) -> str:
    """Keep the lines of `apt-config dump` that say how to reach a mirror, and what to believe of its dates."""
    lines = [line for line in dump.splitlines() if line.split(" ", 1)[0] in APT_KEYS]
    return "".join(f"{line}\n" for line in lines)


def write_secrets(folder: Path) -> dict[str, Path]:
    """Write the secrets of a build into `folder` and return the files by secret id."""
    secrets = {"pip.conf": folder / "pip.conf", "apt.conf": folder / "apt.conf"}
    bundle = ca_bundle()
    if bundle:
        secrets[CA_BUNDLE] = folder / CA_BUNDLE
        shutil.copyfile(bundle, secrets[CA_BUNDLE])
    with secrets["pip.conf"].open("w", encoding="utf-8") as file:
        pip_conf(output(sys.executable, "-m", "pip", "config", "list"), bundle is not None).write(file)
    dump = output("apt-config", "dump") if shutil.which("apt-config") else ""
    secrets["apt.conf"].write_text(apt_conf(dump), encoding="utf-8")
    return secrets


def output(*argv: str) -> str:
    """Run a command and return what it prints, or nothing if it fails."""
    return subprocess.run(argv, check=False, capture_output=True, text=True).stdout
