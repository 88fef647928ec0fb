"""`python3 -m bench.undo.soak`: two bad revisions become active under real load, and the soak undoes them.

One is slower by half. The other lost the last words of its table, and so answers 5 of 100 requests with an error; its
generated inputs do not show it. Printed and written: seconds until the undo, requests that saw the bad revision, what
the status said, and when the chart's alerts fired and cleared.
"""

import json
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
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
from hack.devcluster.paths import ClusterError
from tests.observe.prometheus import Prometheus

NAMESPACE = "undo"
RESULTS = ROOT / "bench/results"
RATE = 6.0
"""Requests a second, by a Poisson process: less than a tenth of a core."""
SOAK = {"duration": "1m", "minRequests": 100, "maxErrorPercent": 1, "maxLatencyPercent": 25}
BEFORE_SECONDS = 300
"""Load on the good revision before the first bad one: what it is compared with. While the bad one is profiled on the
same two cores, the good one is slower; the longer the time before, the less that counts."""
ALERTED_SECONDS = 30
"""Load after the last undo, and after the revert to the good revision: alerts fire, and clear."""
EVERY_SECONDS = 0.5


@dataclass(frozen=True)
class Undone:
    """What became of a bad revision."""

    revision: str
    seconds: float
    """From the Service's move to it until the Service moved back."""
    requests: int
    """Requests that arrived in between."""
    failed: int
    mean_milliseconds: float
    """Their mean latency, as the client saw it."""
    message: str
    """What `Soaked` said."""


def main() -> int:
    """Serve the good revision, try the bad ones, and print and write what happened; return the exit status."""
    try:
        cluster = set_up()
        with (
            tempfile.TemporaryDirectory() as folder,
            Prometheus(Path(folder), scrapes(cluster.kubeconfig), rules()) as prometheus,
        ):
            found = run(cluster, Path(folder), prometheus)
    except (CommandError, ClusterError, AssertionError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    path = RESULTS / f"undo-soak-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps({"cpu": cpu_model(), "soak": SOAK, "rate": RATE, **found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    print(f"raw figures: {path.relative_to(ROOT)}")
    return 0


def run(cluster: TargetCluster, folder: Path, prometheus: Prometheus) -> Body:
    """Return what became of each revision, of the requests to the good one, and of alerts. Raises CommandError."""
    place = Place.fresh(cluster, NAMESPACE)
    push(place, folder)
    apply(place, 0)
    place.wait(f"td/{NAME}", "condition=Ready", READY_SECONDS)
    times = arrivals([Leg(READY_SECONDS * (len(REVISIONS) + 1), RATE, RATE)])
    load = Load(place.http_address(NAME), INFER, requests(len(times)))
    began, start, stop = time.time(), time.monotonic(), threading.Event()
    sender = threading.Thread(target=load.send, args=(times, stop))
    sender.start()
    try:
        time.sleep(BEFORE_SECONDS)
        spans = [(name, undone(place, number, start)) for number, name in enumerate(REVISIONS) if number]
        time.sleep(ALERTED_SECONDS)
        apply(place, 0)
        place.wait(f"td/{NAME}", "condition=Stalled=false", READY_SECONDS)
        time.sleep(ALERTED_SECONDS)
    finally:
        stop.set()
        sender.join()
    answered = load.answered
    bad = [result(name, answered, *span) for name, span in spans]
    others = [each for each in answered if not any(begin <= each.at <= end for _, (begin, end, _) in spans)]
    return {
        "undone": [asdict(each) for each in bad],
        "requestsToTheGoodRevision": len(others),
        "ofTheseFailed": [asdict(each) for each in others if not each.ok],
        "alerts": fired(prometheus, began, time.time()),
    }


def apply(place: Place, number: int) -> None:
    """Apply the object with the revision of this number."""
    place.apply(deployment(number, {"soak": SOAK}))


def undone(place: Place, number: int, start: float) -> tuple[float, float, str]:
    """Apply a bad revision, and return when the Service moved to it and back, and what Soaked said."""
    good = selected(place, NAME)
    apply(place, number)
    deadline = time.monotonic() + READY_SECONDS
    moved = None
    while True:
        assert time.monotonic() < deadline, f"revision {number} was not undone: {place.get('td', NAME)['status']}"
        now, current = time.monotonic() - start, selected(place, NAME)
        if moved is None and current != good:
            moved = now
            print(f"{now:.0f} s: the Service moved to revision {number}", flush=True)
        if moved is not None and current == good:
            print(f"{now:.0f} s: the Service moved back", flush=True)
            break
        soaked = condition(place, "Soaked")
        assert soaked["reason"] != "SoakPassed" or moved is None, f"revision {number} was kept: {soaked['message']}"
        time.sleep(EVERY_SECONDS)
    while True:
        soaked = condition(place, "Soaked")
        if soaked["reason"] == "SoakFailed":
            return moved, now, str(soaked["message"])
        assert time.monotonic() < deadline, f"revision {number} was undone, and Soaked is {soaked}"
        time.sleep(EVERY_SECONDS)


def result(name: str, answered: list[Answered], begin: float, end: float, message: str) -> Undone:
    """Return what the requests between two times saw."""
    saw = [each for each in answered if begin <= each.at <= end]
    mean = sum(each.seconds for each in saw) / max(len(saw), 1)
    failed = sum(not each.ok for each in saw)
    return Undone(name, round(end - begin, 1), len(saw), failed, round(mean * 1000, 1), message)


if __name__ == "__main__":
    sys.exit(main())
