"""What is in an image, as a CycloneDX document: its Debian packages, and the Python packages of its lock file.

Libraries that a wheel carries inside are part of the wheel and have no entry.
"""

import re
from collections.abc import Iterator

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement

from hack.release.images import Published

FORMAT = r"${Package}\t${Version}\t${Architecture}\n"
DPKG_LIST = ("sh", "-ec", f". /etc/os-release; echo $ID $VERSION_ID; dpkg-query --show --showformat '{FORMAT}'")
"""The command inside the image whose output `document` reads: the distribution, then its packages."""
PYTHON = {
    "python_version": "3.13",
    "python_full_version": "3.13.0",
    "implementation_name": "cpython",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
}
"""The image's Python, for the markers of the lock files."""


def document(image: Published, lock: str, packages: str) -> str:
    """Return the document as JSON, from the text of the image's lock file and what DPKG_LIST printed in it."""
    bom = Bom()
    itself = Component(
        type=ComponentType.CONTAINER,
        name=image.repository,
        version=image.tag,
        purl=PackageURL("oci", None, image.name, image.digest, {"repository_url": image.repository}),
    )
    bom.metadata.component = itself
    bom.components.update([*python_packages(lock), *debian_packages(packages)])
    bom.register_dependency(itself, bom.components)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)


def python_packages(lock: str) -> Iterator[Component]:
    """Yield the packages of a lock file, `NAME==VERSION ; MARKER --hash=...`, that the image's Python installs."""
    for line in re.sub(r"\\\n", " ", lock).splitlines():
        words = line.partition("#")[0].partition("--hash")[0].strip()
        if not words:
            continue
        requirement = Requirement(words)
        if requirement.marker is None or requirement.marker.evaluate(PYTHON):
            version = str(requirement.specifier).removeprefix("==")
            yield _component(PackageURL("pypi", None, requirement.name, version))


def debian_packages(listing: str) -> Iterator[Component]:
    """Yield the packages of what DPKG_LIST printed."""
    distribution, *lines = listing.splitlines()
    for line in lines:
        name, version, architecture = line.split("\t")
        where = {"arch": architecture, "distro": distribution.replace(" ", "-")}
        yield _component(PackageURL("deb", distribution.split()[0], name, version, where))


def _component(purl: PackageURL) -> Component:
    return Component(name=purl.name, version=purl.version, purl=purl, bom_ref=purl.to_string())
