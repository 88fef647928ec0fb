"""The base image, where `debian:trixie-slim` cannot be pulled: the same thing made by debootstrap."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from hack.imagebuild.engine import Buildah, Engine
from hack.imagebuild.inputs import DIGEST_LENGTH, REPOSITORY

PULLED = "docker.io/library/debian:trixie-slim"
SUITE = "trixie"
# What debian:trixie-slim leaves out: documentation and translations, but for the copyrights.
LEFT_OUT = ("doc", "groff", "info", "linda", "lintian", "locale", "man")
DPKG_CONF = "".join(f"path-exclude /usr/share/{name}/*\n" for name in LEFT_OUT) + (
    "path-include /usr/share/doc/*/copyright\n"
)
APT_CONF = 'Acquire::Languages "none";\nApt::AutoRemove::SuggestsImportant "false";\n'
SCRIPT = f"""
set -eu
rootfs=$1
debootstrap --variant=minbase {SUITE} "$rootfs"
find "$rootfs"/usr/share/doc -type f ! -name copyright -delete
find "$rootfs"/usr/share/doc -type d -empty -delete
cd "$rootfs"
for name in {" ".join(name for name in LEFT_OUT if name != "doc")}; do rm -rf usr/share/$name/*; done
rm -rf var/cache/apt/archives/*.deb var/cache/apt/*.bin var/lib/apt/lists/* var/log/*.log var/log/apt/*
rm -f etc/resolv.conf etc/hostname
"""


def is_made_here(engine: Engine) -> bool:
    """Whether this machine makes the base itself: as root, with buildah and debootstrap."""
    return isinstance(engine, Buildah) and os.geteuid() == 0 and shutil.which("debootstrap") is not None


def reference(engine: Engine) -> str:
    """Name the base image for this machine; the one made here is tagged by the hash of how it is made."""
    if not is_made_here(engine):
        return PULLED
    recipe = f"{SCRIPT}\x00{DPKG_CONF}\x00{APT_CONF}"
    return f"{REPOSITORY}/base:{hashlib.sha256(recipe.encode()).hexdigest()[:DIGEST_LENGTH]}"


def make(engine: Engine, tag: str, work: Path, log: int) -> None:
    """Make the base image `tag` from packages, in the empty folder `work`; what is printed goes to `log`.

    Raises subprocess.CalledProcessError.
    """

    def run(*argv: str) -> str:
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=log, text=True)
        os.write(log, done.stdout.encode())
        return done.stdout.strip()

    rootfs = work / "rootfs"
    tar = work / "rootfs.tar"
    run("sh", "-c", SCRIPT, "sh", str(rootfs))
    (rootfs / "etc/dpkg/dpkg.cfg.d/slim").write_text(DPKG_CONF, encoding="utf-8")
    (rootfs / "etc/apt/apt.conf.d/slim").write_text(APT_CONF, encoding="utf-8")
    run("tar", "--numeric-owner", "--directory", str(rootfs), "--create", "--file", str(tar), ".")
    container = run(*engine.command, "from", "scratch")
    run(*engine.command, "add", "--quiet", container, str(tar), "/")
    run(*engine.command, "config", "--cmd", "bash", container)
    run(*engine.command, "commit", "--quiet", "--rm", "--format", "docker", container, tag)
