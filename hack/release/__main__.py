"""`python3 -m hack.release --registry HOST/PATH --version X.Y.Z (--key FILE | --keyless)`: one release, a line a step.

The chart comes last into the registry. Until it is there nobody can install the version, and a run that broke may be
repeated; from then on the version is taken.
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from hack.deploy.command import ROOT
from hack.devcluster.commands import run
from hack.devcluster.paths import ClusterError, cache_home
from hack.imagebuild import engine, inputs
from hack.imagebuild.store import BuildError, Store
from hack.release import archive, chart, images, sample, sbom, site
from hack.release.checks import check
from hack.release.error import ReleaseError
from hack.release.signing import Signer
from hack.release.tree import checksums, export, python_packages

GPU = "converter-gpu"
"""The image that NVIDIA's registry and license are needed for."""
CACHE = cache_home() / "images"
"""The cache of hack.imagebuild."""


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="python3 -m hack.release", description="Make a release of the committed tree.")
    top.add_argument("--registry", required=True, metavar="HOST/PATH", help="images go here, the chart below charts/")
    top.add_argument("--version", required=True, metavar="X.Y.Z", help="the version that the tree names")
    how = top.add_mutually_exclusive_group(required=True)
    how.add_argument("--key", metavar="KEY", help="the private key of cosign; COSIGN_PASSWORD is its password")
    how.add_argument("--keyless", action="store_true", help="sign by the identity of the workflow that runs this")
    top.add_argument(
        "--downloads", metavar="URL", type=https, help="where the files will be; writes krew's triton.yaml"
    )
    top.add_argument("--gpu", action="store_true", help=f"build, push and name {GPU} too, which starts from NVIDIA's")
    return top


def https(url: str) -> str:
    """Take the URL of a folder, as krew downloads from it. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"https://[!-~]+", url):
        raise argparse.ArgumentTypeError(f"{url!r} is no https URL: name the folder that the files will be in")
    return url


def release(options: argparse.Namespace, work: Path) -> None:
    """Make the release. Raises ReleaseError, BuildError, ClusterError, FileNotFoundError."""
    registry, version = options.registry, options.version
    signer = Signer(None if options.keyless else options.key, work)
    check(ROOT, registry, version)
    public_key = signer.public_key()
    chart.refuse_existing(registry, version)
    say(f"version {version} of {run(['git', 'rev-parse', '--short', 'HEAD'], folder=ROOT).strip()} is free")

    output = ROOT / "dist" / version
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    if public_key is not None:
        (output / "cosign.pub").write_text(public_key, encoding="utf-8")
    tree = export(ROOT, work)
    packages = python_packages(tree, output)
    for file in packages:
        say(f"{file.name} built")
    (wheel,) = (file for file in packages if file.suffix == ".whl")
    program = archive.build(tree, wheel, work, output, version)
    say(f"{program.name} built")
    if options.downloads:
        manifest = archive.krew_manifest(program, version, options.downloads)
        (output / "triton.yaml").write_text(manifest, encoding="utf-8")
        say(f"triton.yaml written, for {options.downloads}")
    documentation = site.build(tree, work, output, version)
    say(f"{documentation.name} built")

    store, published = Store(engine.find(CACHE), CACHE), []
    for name in image_names(options.gpu):
        image = images.publish(store, name, registry, version)
        published.append(image)
        sign(signer, image)
        (output / f"{name}.cdx.json").write_text(sbom.document(image, lock(name), installed(name)), encoding="utf-8")
        say(f"{name}.cdx.json written")
    published.append(sample.push(tree, registry, version))
    sign(signer, published[-1])

    package = chart.package(tree, images.chart_values(published), output)
    (output / "install.yaml").write_text(chart.manifest(package, version), encoding="utf-8")
    say(f"{package.name} and install.yaml rendered with the digests")
    published.append(chart.push(package, registry, version))
    sign(signer, published[-1])

    (output / "digests.txt").write_text("".join(f"{each.line}\n" for each in published), encoding="utf-8")
    sums = output / "checksums.txt"
    sums.write_text(checksums(output), encoding="utf-8")
    say(f"{signer.file(sums).name} signs the checksums")
    say(f"{output} has the files of the release")


def sign(signer: Signer, pushed: images.Published) -> None:
    """Sign what is in the registry now, and say both. Raises ClusterError."""
    say(f"{pushed.line} pushed")
    signer.image(pushed.reference)
    say(f"{pushed.reference} signed")


def image_names(gpu: bool) -> list[str]:
    """The images of a release. ``gpu``: with the one for GPUs."""
    return [*inputs.names(), *([GPU] if gpu else [])]


def lock(name: str) -> str:
    """The text of the lock file that the image's Dockerfile copies; empty: it copies none."""
    copied = inputs.copied((ROOT / inputs.dockerfile(name)).read_text(encoding="utf-8"))
    return "".join((ROOT / path).read_text(encoding="utf-8") for path in copied if path.startswith("requirements/"))


def installed(name: str) -> str:
    """The Debian packages of an image that is built. Raises ClusterError."""
    return run([sys.executable, "-m", "hack.imagebuild", "run", name, "--", *sbom.DPKG_LIST], folder=ROOT)


def say(line: str) -> None:
    """Print the line of a step that is done."""
    print(line, flush=True)


def main(argv: list[str]) -> int:
    """Make a release and return the exit status."""
    try:
        with tempfile.TemporaryDirectory(prefix="release-") as work:
            release(parser().parse_args(argv), Path(work))
    except (ReleaseError, BuildError, ClusterError, FileNotFoundError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
