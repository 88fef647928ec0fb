"""`python3 -m bench.undo.canary`: two bad revisions get 5 % of a real load through the real Traefik, and no more.

One is slower by half, the other answers 5 of 100 requests with an error. Printed and written: seconds until the undo,
the highest share that the route gave, requests and failures meanwhile, what the status said, and what alerts fired.
"""

import json
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench.alerting import fired, rules, scrapes
from bench.machine import cpu_model
from bench.place import Place
from bench.ramp.load import Answered, Leg, Load, arrivals
from bench.undo.revisions import (
    INFER,
    NAME,
    READY_SECONDS,
    REVISIONS,
    Body,
    condition,
    deployment,
    push,
    requests,
    selected,
)
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.deploy.install import install
from hack.devcluster.binaries import program
from hack.devcluster.paths import ClusterError
from tests.e2e.kubectl import Kubectl
from tests.integrations.traefik import NAME as GATEWAY
from tests.integrations.traefik import Traefik
from tests.observe.prometheus import Prometheus
from triton_operator.observed.routes import route_view

NAMESPACE, HOST = "undo-canary", "words.example"
RESULTS = ROOT / "bench/results"
RATE = 20.0
"""Requests a second, by a Poisson process. The first share of them is one a second."""
SHARES = [5, 50]
SOAK = {"duration": "150s", "minRequests": 100, "maxErrorPercent": 1, "maxLatencyPercent": 25}
AFTER_SECONDS = 30
"""Load after each undo, in which another try would be seen, and alerts fire."""
EVERY_SECONDS = 0.5


@dataclass(frozen=True)
class Canary:
    """What became of a bad revision."""

    revision: str
    begin: float
    """When it had its first share, in seconds since the start of the load."""
    end: float
    """When it had none any more."""
    highest_share_percent: int
    """The largest that the route gave it."""
    message: str
    """What `Soaked` said, with the requests that the revision itself answered."""
    requests: int = 0
    """Requests that arrived in between, at both revisions."""
    failed: int = 0

    def among(self, answered: list[Answered]) -> "Canary":
        """With the counts of the requests that arrived in between."""
        meanwhile = [each for each in answered if self.begin <= each.at <= self.end]
        return replace(self, requests=len(meanwhile), failed=sum(not each.ok for each in meanwhile))


def main() -> int:
    """Serve the good revision, try the bad ones, and print and write what happened; return the exit status."""
    try:
        cluster = set_up()
        with tempfile.TemporaryDirectory() as folder:
            found = run(cluster, Path(folder))
    except (CommandError, ClusterError, AssertionError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    path = RESULTS / f"undo-canary-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    settings = {"cpu": cpu_model(), "canary": SHARES, "soak": SOAK, "rate": RATE}
    path.write_text(json.dumps({**settings, **found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    print(f"raw figures: {path.relative_to(ROOT)}")
    return 0


def run(cluster: TargetCluster, folder: Path) -> Body:
    """Return what became of each revision, of all requests, and of alerts. Raises CommandError or AssertionError."""
    place = Place.fresh(cluster, NAMESPACE)
    push(place, folder)
    kubectl = Kubectl(str(program("kubectl")), cluster.kubeconfig).within(NAMESPACE)
    for each in ("traefik", "prometheus"):
        (folder / each).mkdir()
    with ExitStack() as stack:
        traefik = stack.enter_context(Traefik(kubectl, folder / "traefik"))
        # The operator looks for the Gateway API when it starts.
        install(cluster.kubeconfig, {"gatewayApi": {"enabled": True}})
        stack.callback(install, cluster.kubeconfig)
        stack.callback(kubectl.run, "delete", "tritondeployment", NAME, "--wait=true", timeout=180)
        prometheus = stack.enter_context(Prometheus(folder / "prometheus", scrapes(cluster.kubeconfig), rules()))
        apply(place, 0)
        for each in ("Ready", "Routed"):
            place.wait(f"td/{NAME}", f"condition={each}", READY_SECONDS)
        times = arrivals([Leg(READY_SECONDS * (len(REVISIONS) + 1), RATE, RATE)])
        load = Load(f"127.0.0.1:{traefik.port}", INFER, requests(len(times)), {"Host": HOST})
        began, start, stop = time.time(), time.monotonic(), threading.Event()
        sender = threading.Thread(target=load.send, args=(times, stop))
        sender.start()
        try:
            canaries = [undone(place, number, start) for number in range(1, len(REVISIONS))]
        finally:
            stop.set()
            sender.join()
        answered = load.answered
        return {
            "undone": [asdict(each.among(answered)) for each in canaries],
            "requests": len(answered),
            "failed": sum(not each.ok for each in answered),
            "alerts": fired(prometheus, began, time.time()),
        }


def apply(place: Place, number: int) -> None:
    """Apply the object with the revision of this number."""
    route = {"parentRefs": [{"name": GATEWAY}], "hostnames": [HOST], "canary": SHARES}
    place.apply(deployment(number, {"soak": SOAK, "route": route}))


def undone(place: Place, number: int, start: float) -> Canary:
    """Apply a bad revision, and return what became of it. Raises AssertionError if the Service moves to it."""
    good = selected(place, NAME)
    apply(place, number)
    deadline = time.monotonic() + READY_SECONDS
    begin, highest = 0.0, 0
    while True:
        now, share = time.monotonic() - start, route_view(place.get("httproute", NAME)).share
        if share and not highest:
            begin = now
            print(f"{now:.0f} s: revision {number} gets {share} %", flush=True)
        highest = max(highest, share)
        if highest and not share:
            break
        assert time.monotonic() < deadline, f"revision {number} was not undone: {place.get('td', NAME)['status']}"
        assert selected(place, NAME) == good, f"revision {number} became active: {place.get('td', NAME)['status']}"
        time.sleep(EVERY_SECONDS)
    print(f"{now:.0f} s: revision {number} gets nothing", flush=True)
    time.sleep(AFTER_SECONDS)
    soaked = condition(place, "Soaked")
    assert soaked["reason"] == "SoakFailed", soaked
    assert selected(place, NAME) == good
    return Canary(list(REVISIONS)[number], round(begin, 1), round(now, 1), highest, str(soaked["message"]))


if __name__ == "__main__":
    sys.exit(main())
