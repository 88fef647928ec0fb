"""Who reaches whom: connections from a pod of the cluster, as many at a time as are asked for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.kubectl import Kubectl
from tests.e2e.workbench import HERE

METADATA = "169.254.169.254:80"
"""Where clouds answer credentials. The development cluster has nothing there, so a refusal says something only on a
cloud; tests/devcluster gives the address to a pod."""
SCRIPT = (HERE / "in_pod" / "reach.py").read_text()


@dataclass(frozen=True)
class Escapes:
    """What a server's own processes reached, and what a pod without a policy reached at the same addresses."""

    server: Mapping[str, bool]
    unbounded: Mapping[str, bool]


def reached(kubectl: Kubectl, pod: str, targets: Sequence[str]) -> dict[str, bool]:
    """Whether the pod's first container reaches each target, PROTOCOL=HOST:PORT."""
    found = json.loads(kubectl.execute(pod, "python3", "-c", SCRIPT, *targets))
    return dict(zip(targets, found, strict=True))


def escapes(kubectl: Kubectl, server: str, workbench: str, addresses: Mapping[str, str]) -> Escapes:
    """Let a server's pod, and one that nothing bounds, try the addresses by TCP, the metadata and a name server."""
    named = {name: f"tcp={address}" for name, address in addresses.items()}
    named |= {"DNS over UDP": f"udp={addresses['dns']}", "a cloud's metadata": f"tcp={METADATA}"}
    found = [reached(kubectl, pod, tuple(named.values())) for pod in (server, workbench)]
    server_found, unbounded = ({name: each[target] for name, target in named.items()} for each in found)
    return Escapes(server_found, unbounded)
