"""The certificate of the servers next to the examples, and what lets the operator's Jobs reach and believe them."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.deploy.command import ROOT
from hack.deploy.install import CHART
from hack.devcluster.addresses import NODE_ADDRESS
from tests.converters.https_server import make_authority


@dataclass(frozen=True)
class Trust:
    """An authority of our own, and the certificate of the servers."""

    authority: Path
    certificate: Path

    @property
    def values(self) -> Mapping[str, object]:
        """Values of the chart: Jobs that download trust the authority, and may reach this machine as well."""
        usual = yaml.safe_load((ROOT / CHART / "values.yaml").read_text(encoding="utf-8"))["networkPolicy"]["sources"]
        here = {"to": [{"ipBlock": {"cidr": f"{NODE_ADDRESS}/32"}}]}
        return {
            "sources": {"caBundle": self.authority.read_text(encoding="utf-8")},
            "networkPolicy": {"sources": {"egress": [*usual["egress"], here]}},
        }


@contextmanager
def trusted() -> Iterator[Trust]:
    """Make an authority for as long as the block runs."""
    with tempfile.TemporaryDirectory() as name:
        yield Trust(*make_authority(Path(name), f"DNS:index,IP:{NODE_ADDRESS}"))
