"""The machine of commands that run pods of their own: its runtime, its images, and its way to servers."""

import argparse
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import certifi

from triton_local.boxed import Box
from triton_local.install import CONVERTER, SERVER, TENSORFLOW, TREES, Installation
from triton_local.interpreter import Python, python
from triton_local.plain import Plain
from triton_local.runtime import Runtime
from triton_operator.settings import Settings, SettingsError
from triton_plugin.errors import CheckError
from triton_plugin.terminal import say

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "triton-operator"
OF_DOWNLOADS = {
    "HTTPS_PROXY": "SOURCES_PROXY",
    "NO_PROXY": "SOURCES_NO_PROXY",
    "HF_ENDPOINT": "SOURCES_HUB",
    "PIP_INDEX_URL": "SOURCES_PACKAGE_INDEX",
}
"""What an installation is told of the way to servers, by the variable that tells this machine's programs."""
AUTHORITIES = "SSL_CERT_FILE"
"""The variable that names a file with the authorities that this machine trusts."""
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")

ACCOUNT = "config.json of DOCKER_CONFIG (docker login)"
WORDS = {
    "name a Secret with credentials in spec.source.secretRef": f"put an account into {ACCOUNT}",
    "the Secret of spec.source.secretRef": ACCOUNT,
    "the Secret of spec.publish.secretRef": ACCOUNT,
    "the Secret of spec.publish.signing.secretRef": "the file of --signing-key",
    "correct the Secret": "correct the key or COSIGN_PASSWORD",
    "ask the administrator to add its authority to the Helm value sources.caBundle": f"name its own in {AUTHORITIES}",
    "the Helm values networkPolicy.sources and sources.proxy": "HTTPS_PROXY",
    "the Helm value sources.proxy": "HTTPS_PROXY",
    "kubectl triton retry NAME": "the same command again",
}
"""What a message about Secrets and an installation means for a command that has neither."""


def in_words_of_here(message: str) -> str:
    """Return the message of a Job for the user of a command on this machine."""
    for ours, theirs in WORDS.items():
        message = message.replace(ours, theirs)
    return message


def installation(own: Python, *, has_packages: bool = False) -> Installation:
    """Return what stands for the images. ``has_packages``: as of Installation."""
    return Installation(CACHE / "local", own, lambda words: say(words, sys.stderr), has_packages=has_packages)


def runtime(options: argparse.Namespace, own: Python) -> Runtime:
    """Return what runs pods. Raises CheckError if this machine refuses it."""
    executable = str(own.executable)
    if options.unboxed:
        return Plain(executable)
    box = Box(executable)
    if refusal := box.refusal():
        raise CheckError(
            f"this machine refuses namespaces to its users ({refusal}), so nothing was run. If you trust the model, its"
            " code and its packages with all that you may read and write here, pass --unboxed"
        )
    return box


def interpreter(program: str | None) -> Python:
    """Return the interpreter of a program, by default of this command; of the archive, which has none, the machine's.

    Raises InstallError.
    """
    return python(program or ("python3" if getattr(sys, "frozen", False) else sys.executable))


def settings(installation: Installation) -> Settings:
    """Return what an installation on this machine would be set to.

    Most checks download nothing, so a variable that an installation refuses is left out, and said to be.
    """
    images = {
        "CONVERTER_IMAGE": CONVERTER,
        "CONVERTER_TENSORFLOW_IMAGE": TENSORFLOW,
        "CONVERTER_TREES_IMAGE": TREES,
        "SERVER_IMAGE": SERVER,
    }
    environment = {name: installation.name(repository) for name, repository in images.items()}
    environment |= {"ALLOWED_PYTHON_STEPS": "true"}
    settings = Settings.from_environment(environment)
    given = {name: os.environ.get(name, "") for name in OF_DOWNLOADS} | {AUTHORITIES: _own_authorities()}
    for name, ours in (*OF_DOWNLOADS.items(), (AUTHORITIES, "SOURCES_CA_BUNDLE")):
        try:
            settings = Settings.from_environment(environment | {ours: given[name]})
        except SettingsError as error:
            say(f"Downloads of the check go without {name}: {str(error).replace(ours, name)}", sys.stderr)
        else:
            environment[ours] = given[name]
    return replace(settings, machine=os.uname().nodename)


def _own_authorities() -> str:
    """Return the certificates of the file that SSL_CERT_FILE names, but those that downloads trust anyway.

    Most such files are the system's, with all of these, which are too many for a variable.
    """
    try:
        own = CERTIFICATE.findall(Path(os.environ.get(AUTHORITIES, "")).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    usual = set(CERTIFICATE.findall(Path(certifi.where()).read_text(encoding="utf-8")))
    return "\n".join(each for each in own if each not in usual)
