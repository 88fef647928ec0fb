"""`kubectl triton` as an archive that needs no Python, by PyInstaller, and the manifest by which krew installs it."""

import hashlib
import shutil
import sys
import tarfile
from pathlib import Path

import yaml

from hack.devcluster.commands import run
from hack.release import archive_entry

PROGRAM = "kubectl-triton"
FOLDER = PROGRAM
"""The one folder of the archive."""
LOCK = "requirements/plugin-archive.txt"
BUILD_SECONDS = 1200
"""Bound of each step: the virtual environment, the download of its packages, and the work of what is in it."""
ONLY_INSTALLED = {"PYTHONPATH": ""}
"""The variables of the builder's programs: what is packed is the wheel, not the tree that make runs from."""
COMPLETION = f"""\
#!/bin/sh
# kubectl calls this for a Tab after `kubectl triton`, if it is on the PATH.
exec "$(dirname "$(readlink -f "$0")")/{PROGRAM}" {archive_entry.COMPLETE} "$@"
"""
COLLECTED = (
    # Its commands are imported by name, and a push sends the text of its receiver.
    "--collect-all=triton_plugin",
    # `check` runs the converters from their files, and installs by the recipe.
    "--collect-all=triton_converters",
    "--collect-all=triton_local",
    "--copy-metadata=triton-operator",
    "--collect-data=celpy",
    # savefig imports it by name.
    "--hidden-import=matplotlib.backends.backend_svg",
    "--exclude-module=tkinter",
)
LICENSES = ("LICEN[CS]E*", "COPYING*", "NOTICE*", "licenses/**/*")
"""Where a package's dist-info has its license."""


def name(version: str) -> str:
    """Return the name of the archive."""
    return f"{PROGRAM}-{version}-linux-amd64.tar.gz"


def build(tree: Path, wheel: Path, work: Path, output: Path, version: str) -> Path:
    """Build the archive of a wheel into the folder ``output``; return the file. ``work``: a folder for what is between.

    Raises devcluster.paths.ClusterError.
    """
    lock = ["--require-hashes", f"--requirement={tree / LOCK}"]
    environment = virtual_environment(work / "archive-venv", lock, [str(wheel)])
    places = [f"--{kind}path={work / kind}" for kind in ("dist", "work", "spec")]
    how = ["--onedir", f"--name={PROGRAM}", "--noconfirm", "--log-level=ERROR", *places, *COLLECTED]
    script = tree / "hack/release/archive_entry.py"
    run([environment / "bin/pyinstaller", *how, script], timeout=BUILD_SECONDS, environment=ONLY_INSTALLED)
    folder = work / "dist" / FOLDER
    slim(folder)
    (site_packages,) = (environment / "lib").glob("python*/site-packages")
    complete(folder, tree / "LICENSE", site_packages)
    return pack(folder, output / name(version), FOLDER)


def virtual_environment(folder: Path, *installed: list[str]) -> Path:
    """Make a virtual environment and return its folder. ``installed``: what pip gets, one call each.

    Raises devcluster.paths.ClusterError.
    """
    run([sys.executable, "-m", "venv", folder], timeout=BUILD_SECONDS)
    install = [str(folder / "bin/pip"), "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    for what in installed:
        run([*install, *what], timeout=BUILD_SECONDS, environment=ONLY_INSTALLED)
    return folder


def slim(folder: Path) -> None:
    """Remove debugging symbols, and links to libraries of wheels, which these find without.

    Libraries in a wheel's folder NAME.libs stay as they are, because their layout is made by hand. Raises
    devcluster.paths.ClusterError.
    """
    for path in sorted(folder.rglob("*.so*")):
        if path.is_symlink() and path.resolve().parent.name.endswith(".libs"):
            path.unlink()
    stripped = [
        path
        for path in sorted(folder.rglob("*.so*"))
        if path.is_file() and not path.is_symlink() and not path.parent.name.endswith(".libs")
    ]
    run(["strip", "--strip-unneeded", *stripped])


def complete(folder: Path, license_file: Path, site_packages: Path) -> None:
    """Add the completion, our license, and the licenses of the packages, which the archive passes on."""
    script = folder / "kubectl_complete-triton"
    script.write_text(COMPLETION, encoding="utf-8")
    script.chmod(0o755)
    shutil.copyfile(license_file, folder / "LICENSE")
    for metadata in sorted(site_packages.glob("*.dist-info")):
        package = metadata.name.removesuffix(".dist-info")
        for path in sorted({each for pattern in LICENSES for each in metadata.glob(pattern) if each.is_file()}):
            copy = folder / "licenses" / package / path.relative_to(metadata)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def pack(folder: Path, archive: Path, top: str) -> Path:
    """Write a folder as an archive without links, which krew refuses, and without the builder's names; return it.

    ``top``: the name of the one folder of the archive.
    """

    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:gz", dereference=True) as tar:
        tar.add(folder, top, filter=anonymous)
    return archive


def krew_manifest(archive: Path, version: str, downloads: str) -> str:
    """Return krew's manifest of the plugin `triton`. ``downloads``: the URL below which the release's files are."""
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "triton"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Serve models with Triton, verified and measured",
            "description": (
                "Puts a model on a cluster with triton-operator, shows the progress of its conversion and measurement,"
                " and says why a candidate was selected, as text or as a report."
            ),
            "caveats": (
                "It needs triton-operator in the cluster. For completion, link kubectl_complete-triton of the plugin's"
                " folder into a folder of the PATH."
            ),
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux", "arch": "amd64"}},
                    "uri": f"{downloads.rstrip('/')}/{archive.name}",
                    "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                    "bin": f"{FOLDER}/{PROGRAM}",
                }
            ],
        },
    }
    return yaml.safe_dump(manifest, sort_keys=False, width=100)
