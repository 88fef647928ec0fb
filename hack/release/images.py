"""The container images of a release: pushed by tag, named by digest ever after."""

import re
from dataclasses import dataclass

from hack.deploy.install import CHART_IMAGES
from hack.imagebuild.store import Store

LOOPBACK = re.compile(r"127(\.\d{1,3}){3}")


@dataclass(frozen=True)
class Published:
    """An image or a chart in the registry."""

    name: str
    repository: str
    tag: str
    digest: str
    """Digest of the manifest, `sha256:...`, as it was computed on this machine, not as the registry reports it."""

    @property
    def reference(self) -> str:
        """The name that a signature is made for: without the tag, which could move."""
        return f"{self.repository}@{self.digest}"

    @property
    def line(self) -> str:
        """The name for readers, with tag and digest."""
        return f"{self.repository}:{self.tag}@{self.digest}"


def publish(store: Store, name: str, registry: str, version: str) -> Published:
    """Build the image if it is not in the cache, and push it. Raises imagebuild.store.BuildError."""
    repository = f"{registry}/{name}"
    digest = store.push(name, f"{repository}:{version}", plain_http=is_local(registry))
    return Published(name, repository, version, digest)


def is_local(registry: str) -> bool:
    """Whether the registry is on this machine's loopback: it alone gets plain HTTP, as by docker and containerd."""
    host = registry.partition("/")[0].partition(":")[0]
    return host == "localhost" or LOOPBACK.fullmatch(host) is not None


def chart_values(images: list[Published]) -> dict[str, dict[str, str]]:
    """The chart's value `images`; images that the chart does not name, such as the examples' trainer, are left out."""
    return {
        CHART_IMAGES[each.name]: {"repository": each.repository, "tag": each.tag, "digest": each.digest}
        for each in images
        if each.name in CHART_IMAGES
    }
