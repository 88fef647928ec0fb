"""What lies outside the cluster: servers of files on the node's address, and the one proxy that leads to them.

Their certificate is of an authority that nobody else trusts. Jobs that download may reach the proxy and the index of
packages in their own namespace, and nothing else.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.converters import registry_server, s3_server
from tests.converters.https_server import Behaviour, Server, make_authority, proxying, serving

INDEX = "index"
"""Name of the Service of packages, and label of its pod; see manifests/index.yaml."""


@dataclass(frozen=True)
class Outside:
    """The servers; they hold nothing yet."""

    authority: Path
    registry: registry_server.Registry
    bucket: s3_server.Bucket
    web: Server
    hub: Server
    proxy: str
    connected: list[str]
    """HOST:PORT of every connection that the proxy made."""

    @property
    def hosts(self) -> set[str]:
        """HOST:PORT of all servers."""
        return {self.registry.host, self.bucket.url.removeprefix("https://"), self.web.host, self.hub.host}

    def values(self, authority: str) -> Mapping[str, Any]:
        """The chart's values for an installation whose Jobs download from here; ``authority``: of the index, in PEM."""
        host, _, port = self.proxy.removeprefix("http://").rpartition(":")
        peers: list[Mapping[str, Any]] = [
            {"to": [{"ipBlock": {"cidr": f"{host}/32"}}], "ports": [{"protocol": "TCP", "port": int(port)}]},
            {"to": [{"podSelector": {"matchLabels": {"app": INDEX}}}], "ports": [{"protocol": "TCP", "port": 443}]},
            {"ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]},
        ]
        return {
            "sources": {
                "proxy": self.proxy,
                "noProxy": [INDEX],
                "caBundle": authority + self.authority.read_text(),
                "hub": f"https://{self.hub.host}",
            },
            "networkPolicy": {"sources": {"egress": peers}},
        }


@contextmanager
def outside(folder: Path, address: str) -> Iterator[Outside]:
    """Serve on the address until the end of the block."""
    authority, certificate = make_authority(folder, f"IP:{address}")
    for name in ("registry", "s3"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        proxy, connected = stack.enter_context(proxying((), address))
        yield Outside(
            authority,
            stack.enter_context(registry_server.serving(folder / "registry", certificate, authority, address)),
            stack.enter_context(s3_server.serving(folder / "s3", certificate, address)),
            stack.enter_context(serving(certificate, Behaviour(), address)),
            stack.enter_context(serving(certificate, Behaviour(), address)),
            proxy,
            connected,
        )
