"""What must hold before anything is pushed."""

import re
import tomllib
from pathlib import Path

import yaml

from hack.devcluster.commands import run
from hack.release.error import ReleaseError

VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
"""Semantic versions without build metadata, whose + a tag of an image cannot have."""
REGISTRY = re.compile(r"[a-z0-9][a-z0-9.-]*(:\d+)?(/[a-z0-9._-]+)*")


def versions(root: Path) -> dict[str, str]:
    """Every place of the tree that names the project's version, and what it says."""
    chart = yaml.safe_load((root / "charts/triton-operator/Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "version in pyproject.toml": project["version"],
        "version in charts/triton-operator/Chart.yaml": chart["version"],
        "appVersion in charts/triton-operator/Chart.yaml": chart["appVersion"],
    }


def check(root: Path, registry: str, version: str) -> None:
    """Refuse what cannot become a release of the tree at `root`. Raises ReleaseError."""
    if not REGISTRY.fullmatch(registry):
        raise ReleaseError(f"REGISTRY is {registry!r}: write HOST/PATH without a scheme, as in registry.example/team")
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"VERSION is {version!r}: write MAJOR.MINOR.PATCH, as in 1.2.3 or 1.2.3-rc.1")
    wrong = [f"{place} is {found}" for place, found in versions(root).items() if found != version]
    if wrong:
        raise ReleaseError(f"VERSION is {version}, but {', '.join(wrong)}: set and commit them first")
    changed = run(["git", "status", "--porcelain"], folder=root).splitlines()
    if changed:
        raise ReleaseError(f"the working tree has changes: commit them, or remove them ({changed[0].strip()})")
    fragments = sorted(path.name for path in (root / "changelog.d").glob("*") if path.name != "README.md")
    if fragments:
        raise ReleaseError(
            f"changelog.d still has {', '.join(fragments)}: run `make changelog VERSION={version}`, and commit"
        )
    tagged = run(["git", "tag", "--list", f"v{version}", "--format", "%(*objectname)%(objectname)"], folder=root)
    if tagged and run(["git", "rev-parse", "HEAD"], folder=root).strip() not in tagged:
        raise ReleaseError(f"the tag v{version} names another commit: check it out, or choose another VERSION")
