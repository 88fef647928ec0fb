"""The chart of a release: the source tree's, with the digests of the images in its values."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hack.deploy.command import executable
from hack.deploy.install import CHART, NAMESPACE, RELEASE
from hack.devcluster.commands import run
from hack.devcluster.paths import ClusterError
from hack.release.error import ReleaseError
from hack.release.images import Published, is_local

SECONDS = 300
NO_SUCH = ("not found", "name unknown", "manifest unknown")
"""What helm says, in the words of different registries, of a chart that is not there."""
HEADER = f"""\
# triton-operator {{version}}, the chart with its default values: kubectl apply --server-side -f install.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""


def with_images(values: str, images: Mapping[str, Mapping[str, str]]) -> str:
    """Fill images into the text of values.yaml, whose comments stay. Raises ReleaseError if one has no place there."""
    for name, image in images.items():
        fields = ", ".join(f"{field}: {json.dumps(text)}" for field, text in image.items())
        empty = f'\n  {name}: {{repository: "", tag: "", digest: ""}}\n'
        if (count := values.count(empty)) != 1:
            raise ReleaseError(f"values.yaml has {count} empty places for images.{name}: it must have one")
        values = values.replace(empty, f"\n  {name}: {{{fields}}}\n")
    return values


def package(tree: Path, images: Mapping[str, Mapping[str, str]], output: Path) -> Path:
    """Write the images into the chart of `tree` and package it into the folder `output`; return the file."""
    chart = tree / CHART
    values = chart / "values.yaml"
    values.write_text(with_images(values.read_text(encoding="utf-8"), images), encoding="utf-8")
    said = run([executable("helm"), "package", chart, "--destination", output])
    return Path(said.rpartition(": ")[2].strip())


def manifest(package: Path, version: str) -> str:
    """Return the namespace and all objects of a packaged chart, for an installation with kubectl alone.

    Those of `helm test` are left out: only Helm removes them.
    """
    objects = run([executable("helm"), "template", RELEASE, package, f"--namespace={NAMESPACE}", "--skip-tests"])
    return HEADER.format(version=version) + objects


def refuse_existing(registry: str, version: str) -> None:
    """Refuse a version whose chart the registry has. Raises ReleaseError."""
    argv = [executable("helm"), "show", "chart", f"{_url(registry)}/{RELEASE}", "--version", version]
    try:
        run([*argv, *_plain(registry)])
    except ClusterError as error:
        if any(words in str(error) for words in NO_SUCH):
            return
        raise
    raise ReleaseError(f"{_url(registry)}/{RELEASE} has version {version} already: choose another VERSION")


def push(package: Path, registry: str, version: str) -> Published:
    """Push a packaged chart as an OCI artifact. Raises ReleaseError."""
    argv = [executable("helm"), "push", str(package), _url(registry), *_plain(registry)]
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False
    )
    digest = re.search(r"^Digest: (sha256:[0-9a-f]{64})$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or digest is None:
        raise ReleaseError(f"helm could not push {package.name}: {done.stdout.strip()[-2000:]}")
    return Published("chart", f"{registry}/charts/{RELEASE}", version, digest.group(1))


def _url(registry: str) -> str:
    return f"oci://{registry}/charts"


def _plain(registry: str) -> list[str]:
    return ["--plain-http"] if is_local(registry) else []
