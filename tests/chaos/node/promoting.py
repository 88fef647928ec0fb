"""An object goes back and forth between two revisions that it knows, while perf_analyzer asks its Service."""

import time
from dataclasses import dataclass

from tests.chaos.node.place import Place, delayed, server_pods
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import read

NAME = "promoting"
CONNECTIONS = 4
WINDOW_MILLISECONDS = 30_000
"""perf_analyzer looks three times 1.2 windows, so for 108 s; nothing ends it before but a request that fails."""
LOAD_SECONDS = 200
VERSION = "1"
"""Without it perf_analyzer looks for the version whose counts have grown, and another server's are smaller."""


@dataclass(frozen=True)
class Promoted:
    """What became of the load, and of the revisions meanwhile."""

    promotions: int
    """That began and were Ready while the load ran."""
    exit_code: int
    said: str
    """perf_analyzer's last lines."""
    exit_code_without_server: int
    """Of another run, whose server is killed: perf_analyzer does tell."""


def run(place: Place) -> Promoted:
    """Make both revisions, then change between them until perf_analyzer has ended."""
    applied = place.new(NAME)
    applied.wait_ready(applied.apply())
    applied.wait_ready(applied.apply(delayed(100)))
    load = Load(place.kubectl, place.image, "load")
    load.start()
    promotions = 0
    while load.ended() is None:
        applied.wait_ready(applied.apply(delayed(100) if promotions % 2 else {}))
        promotions += load.ended() is None
    end, said = load.ended(), place.kubectl.logs("load", tail=25)
    assert end is not None
    control = Load(place.kubectl, place.image, "load-control")
    control.start()
    time.sleep(5)
    (pod,) = server_pods(applied)
    place.kubectl.run("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    while control.ended() is None:
        time.sleep(1)
    without = control.ended()
    assert without is not None
    place.kubectl.delete("td", NAME)
    return Promoted(promotions, int(end["exitCode"]), said, int(without["exitCode"]))


@dataclass(frozen=True)
class Load:
    """A pod with perf_analyzer, whose connections last as long as it does."""

    kubectl: Kubectl
    image: str
    name: str

    def start(self) -> None:
        """Returns once requests are on their way."""
        pod: Object = read("workbench")
        pod["metadata"]["name"] = self.name
        (container,) = pod["spec"]["containers"]
        container |= {"image": self.image, "command": self._command(), "volumeMounts": []}
        pod["spec"]["volumes"] = []
        container["workingDir"] = "/tmp"
        self.kubectl.apply(pod)
        self.kubectl.run("wait", "--for=condition=Ready", f"pod/{self.name}", "--timeout=60s", timeout=70)
        time.sleep(2)

    def ended(self) -> Object | None:
        """How its container ended; None while it runs."""
        (status,) = self.kubectl.get("pod", self.name)["status"]["containerStatuses"]
        terminated: Object | None = status["state"].get("terminated")
        return terminated

    def _command(self) -> list[str]:
        return [
            "timeout", str(LOAD_SECONDS), "perf_analyzer", "-m", "classifier", "-x", VERSION, "-u", f"{NAME}:8001",
            "-i", "grpc", "--concurrency-range", str(CONNECTIONS), "--measurement-mode", "time_windows",
            "--measurement-interval", str(WINDOW_MILLISECONDS), "--stability-percentage", "1000000",
            "--max-trials", "5",
        ]  # fmt: skip
