"""The Python packages that this image has, which are never installed a second time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.packages.requirements_file import Line

ADVICE = ", or build an image with the versions that you need, and name it in spec.conversion.image"
"""What else to do about versions that do not fit those of the framework's image; nobody chooses the server's."""
SERVERS_OWN = "numpy"
"""The package that a Python step shares with the server: arrays pass between them."""


@dataclass(frozen=True)
class Package:
    """A package of the image."""

    version: Version
    extras: tuple[str, ...]
    """The lines of the package's metadata about its extras: their names, and what they require."""


def installed() -> Mapping[str, Package]:
    """Return the packages by their normalized names, as they are imported."""
    found: dict[str, Package] = {}
    for each in distributions():
        try:
            # The first one on the import path hides the others.
            name = str(canonicalize_name(each.metadata["Name"] or ""))
            found.setdefault(name, Package(Version(each.version), tuple(_extras(each))))
        except (InvalidVersion, TypeError):
            continue
    return found


def of_server(image: Mapping[str, Package]) -> Mapping[str, Package]:
    """Return what a Python step sees of the packages that a server's image has."""
    return {name: each for name, each in image.items() if name == SERVERS_OWN}


def check(lines: Iterable[Line], image: Mapping[str, Package], advice: str = ADVICE) -> None:
    """Raise StageError for the first line that the image's own version does not meet, or whose marker has no sense.

    ``advice``: what else to do than to change the line; empty: nothing, because the image is the server's. The reasons
    are PackageNotFound and RequirementsInvalid.
    """
    whose = "converters need" if advice else "server needs"
    for line in lines:
        requirement = line.requirement
        there = image.get(line.name)
        if _applies(line) and there is not None and not requirement.specifier.contains(there.version, prereleases=True):
            message = (
                f"{line.place} asks for {requirement.name}{requirement.specifier}, but the image has {line.name}"
                f" {there.version}, which the {whose}: change the line{advice}"
            )
            raise StageError(Reason.PACKAGE_NOT_FOUND, message)


def _applies(line: Line) -> bool:
    """Whether the line asks for anything in this image; raises StageError(RequirementsInvalid) if that is undefined."""
    try:
        return line.requirement.marker is None or line.requirement.marker.evaluate()
    except (UndefinedComparison, UndefinedEnvironmentName) as error:
        message = f"{line.place}: the marker cannot be judged: {error}; correct it"
        raise StageError(Reason.REQUIREMENTS_INVALID, message) from error


def constraints(image: Mapping[str, Package]) -> str:
    """Return pip's constraints by which the image's own packages stay the only ones of their names."""
    return "".join(f"{name}=={each.version}\n" for name, each in sorted(image.items()))


def describe(image: Mapping[str, Package], folder: Path) -> None:
    """Write the metadata of the image's packages for pip, without what they require.

    The image is complete as it is. Its metadata need not say so: Debian's PyTorch names another version of sympy than
    Debian has, and pip would then find no solution for anything that requires PyTorch.
    """
    for name, each in image.items():
        directory = folder / f"{name.replace('-', '_')}-{each.version}.dist-info"
        directory.mkdir(parents=True)
        lines = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {each.version}", *each.extras)
        (directory / "METADATA").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _extras(distribution: Distribution) -> Iterable[str]:
    yield from (f"Provides-Extra: {each}" for each in distribution.metadata.get_all("Provides-Extra") or ())
    yield from (f"Requires-Dist: {each}" for each in distribution.requires or () if "extra ==" in each)
