"""An author who attacks, next to a neighbour that serves from the same claim; and what came of every attack."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hack.deploy.install import NAMESPACE
from tests.e2e import stepping
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.models import hostile
from tests.e2e.reach import Escapes, escapes
from tests.e2e.state import State
from tests.e2e.suite import Suite

NEIGHBOUR = "neighbour"
AT_A_TIME = 3
SCRIPTED = {"name": "script-fp32", "format": "ts-script", "precision": "fp32"}

PLANTS = {"model": {"entrypoint": "planting.py", "candidates": [SCRIPTED]}}
"""The change by which a server's model plants modules in its /tmp."""


@dataclass(frozen=True)
class Attacked:
    """What became of the attacks, and of everybody else."""

    groups: Mapping[str, State]
    """The objects whose code made a group of attempts and raised with what came of them."""
    left_behind: Mapping[str, State]
    """By attack: the object whose code left something for the publisher, or said something to it."""
    revision: Mapping[str, str]
    """Digest by file of the neighbour's revision, before."""
    revision_after: Mapping[str, str]
    planted: tuple[str, ...]
    """Files on the claim that only an attack could have written."""
    planting: str
    """What the /tmp of a server holds whose model plants modules there; it is measured and serves."""
    neighbour: State
    answered: int
    failures: tuple[str, ...]
    """Of requests to the neighbour meanwhile."""
    operator: tuple[Object, ...]
    """The operator's pods."""
    operator_bytes: int
    """Resident memory of the larger of them."""
    escapes: Escapes
    """What the neighbour's server could reach, had its model's code tried."""
    of_steps: Mapping[str, stepping.Came]
    """What came of the attacks of Python steps, by where they ran."""

    def came_of(self, group: str) -> Mapping[str, str]:
        """What came of the group's attempts: REACHED with what was got, or the error that stopped it."""
        message = str(self.groups[group].condition("Converted")["message"])
        found = json.loads(message[message.index("[") : message.rindex("]") + 1])
        return dict(zip(hostile.GROUPS[group], found, strict=True))


def run(suite: Suite) -> Attacked:
    """Let the neighbour become Ready, attack, and look at what is left."""
    neighbour = suite.new(NEIGHBOUR)
    ready = neighbour.wait_ready(neighbour.apply())
    before = digests(suite, ready.state.revision)
    places = addresses(suite)
    targets = json.dumps(places)
    planter = suite.new("planter")
    planting = planter.apply(PLANTS)
    escaped = escapes(suite.busy, server_pods(suite)[0]["metadata"]["name"], suite.workbench.pod, beyond(places))
    left = [each for each in hostile.LEFT_BEHIND if each in suite.cases]
    with ThreadPoolExecutor(AT_A_TIME) as executor:
        attempts = {
            attack: executor.submit(attempt, suite, f"hostile-{number}", attack, targets)
            for number, attack in enumerate((*hostile.GROUPS, *left))
        }
    states = {attack: each.result() for attack, each in attempts.items()}
    of_steps = stepping.attack(suite, places, AT_A_TIME)
    answers = suite.prober.answers(
        NEIGHBOUR, ready.time, suite.watch.history(suite.busy.namespace, "hostile-0")[-1].time
    )
    planter.wait_ready(planting)
    # A server writes as it answers, and nobody else asks this one.
    suite.compare("planter", "classifier", "classifier", 8)
    pods = suite.busy.within(NAMESPACE).items("pods", "--selector=app.kubernetes.io/name=triton-operator")
    return Attacked(
        groups={group: states[group] for group in hostile.GROUPS},
        left_behind={attack: states[attack] for attack in left},
        revision=before,
        revision_after=digests(suite, ready.state.revision),
        planted=tuple(suite.workbench.run("find", "/repository", "-name", "*planted*").split()),
        planting=suite.busy.execute(
            server_pods(suite, "planter")[0]["metadata"]["name"],
            *("ls", "/tmp"),
        ),
        neighbour=neighbour.state,
        answered=answers.answered,
        failures=answers.failures,
        operator=tuple(pods),
        operator_bytes=max(resident_bytes(suite.busy.within(NAMESPACE), pod["metadata"]["name"]) for pod in pods),
        escapes=escaped,
        of_steps=of_steps,
    )


def beyond(places: Mapping[str, str]) -> dict[str, str]:
    """The addresses that are not the server's own pod; the Services lead back to it, and a pod may reach itself."""
    own = ("neighbour-pod", "neighbour-http", "neighbour-grpc")
    return {name: place for name, place in places.items() if name not in own}


def attempt(suite: Suite, name: str, attack: str, targets: str) -> State:
    """Apply an object whose get_model attacks, on the neighbour's claim, and wait until it has failed."""
    attacker = suite.new(name)
    generation = attacker.apply(attacking(attack, targets))
    return attacker.wait(f"the end of: {attack}", lambda state: state.holds("Stalled"), generation=generation).state


def attacking(attack: str, targets: str) -> dict[str, Any]:
    """The change by which get_model attacks."""
    arguments = {"checkpoint": None, "attack": attack, "targets": targets}
    return {"model": {"entrypoint": "hostile.py", "arguments": arguments}}


def every_change(targets: str) -> Iterator[dict[str, Any]]:
    """Yield the change of each object that attacks from get_model or from its server."""
    yield PLANTS
    yield from (attacking(each, targets) for each in (*hostile.GROUPS, *hostile.LEFT_BEHIND))


def addresses(suite: Suite) -> dict[str, str]:
    """host:port of what user code must not reach, all in this cluster."""
    default = suite.busy.within("default")
    node = suite.busy.items("nodes")[0]
    address = next(each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP")
    slice_ = default.items("endpointslices", "--selector=kubernetes.io/service-name=kubernetes")[0]
    server = server_pods(suite)
    operator = suite.busy.within(NAMESPACE).items("pods", "--selector=app.kubernetes.io/name=triton-operator")
    service = suite.busy.get("service", NEIGHBOUR)["spec"]["clusterIP"]
    return {
        "apiserver": f"{default.get('service', 'kubernetes')['spec']['clusterIP']}:443",
        "node-apiserver": f"{slice_['endpoints'][0]['addresses'][0]}:{slice_['ports'][0]['port']}",
        "kubelet": f"{address}:{node['status']['daemonEndpoints']['kubeletEndpoint']['Port']}",
        "neighbour-http": f"{service}:8000",
        "neighbour-grpc": f"{service}:8001",
        "neighbour-pod": f"{server[0]['status']['podIP']}:8000",
        "operator": f"{operator[0]['status']['podIP']}:8080",
        "dns": f"{nameserver(suite)}:53",
    }


def server_pods(suite: Suite, name: str = NEIGHBOUR) -> list[Object]:
    """The pods that serve an object."""
    return suite.busy.items(
        "pods", f"--selector=triton-operator.dev/deployment={name},app.kubernetes.io/component=server"
    )


def nameserver(suite: Suite) -> str:
    """Address of the DNS server that pods ask."""
    lines = suite.workbench.run("cat", "/etc/resolv.conf").splitlines()
    return next(line.split()[1] for line in lines if line.startswith("nameserver"))


def digests(suite: Suite, revision: str) -> dict[str, str]:
    """SHA-256 by path of every file that a revision serves."""
    lines = suite.workbench.run(
        "find", f"/repository/.triton-operator/revisions/{revision}", "-type", "f", "-exec", "sha256sum", "{}", "+"
    )
    pairs = (line.split(maxsplit=1) for line in lines.splitlines())
    return {path: digest for digest, path in pairs}


RESIDENT = """
import pathlib
lines = [line for path in pathlib.Path("/proc").glob("[0-9]*/status") for line in path.read_text().splitlines()]
print(sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")))
"""


def resident_bytes(operators: Kubectl, pod: str) -> int:
    """Resident memory of the pod's processes."""
    return int(operators.execute(pod, "python3", "-c", RESIDENT)) * 1024
