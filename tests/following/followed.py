"""An object that follows its source: ask for looks, wait, and see which version answers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.kubectl import Kubectl
from tests.e2e.state import State
from tests.following.models import NETWORK, TEST_ROWS, TREES, Answers, Trained
from tests.following.probe import ASKED, Prober

PATIENCE_SECONDS = 1800.0
"""For a night; a busy machine takes minutes."""
PROXY_SECONDS = 15.0
"""In which the node's proxy has to lead to the server of a Service's new selector."""
AT_WORK = ("Running", "Queued", "Waiting", "RollingOut")
"""Reasons of UpToDate while a version is worked on."""
REQUEST = "triton-operator.dev/requestedAt"


@dataclass
class Followed:
    """One object, and what may serve of it."""

    kubectl: Kubectl
    name: str
    file: str
    prober: Prober = field(init=False)
    served: str = ""
    """The version that has to serve."""
    served_before: str = ""
    looks: int = 0
    seconds: list[float] = field(default_factory=list)
    """From the look that found a version to its answer, good or bad."""
    surprises: list[str] = field(default_factory=list)
    """Versions that were refused for another reason than theirs."""

    @property
    def state(self) -> State:
        """As the API server has it."""
        return State(self.kubectl.get("tritondeployment", self.name))

    def wait(self, what: str, until: Callable[[State], bool]) -> State:
        """The first state for which it holds."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while not until(state := self.state):
            assert time.monotonic() < ends, f"{self.name}: waited in vain for {what}\n{state.summary()}"
            time.sleep(1)
        return state

    def look(self) -> State:
        """Ask for a look, and wait for its answer."""
        self.looks += 1
        asked = f"{time.time():.0f}-{self.looks}"
        self.kubectl.run("annotate", "tritondeployment", self.name, "--overwrite", f"{REQUEST}={asked}")
        return self.wait("a look", lambda state: state.status.get("lastHandledRequestAt") == asked)

    def first(self, source: Mapping[str, Any], answers: Answers, *, judged: bool = True) -> None:
        """Apply the object, whose first version is there, and wait until it answers."""
        self.kubectl.apply(body(self.name, self.file, source, judged=judged))
        self.served = version(self.wait("Ready", lambda state: state.holds("Ready")), "serving")
        address = self.kubectl.get("service", self.name)["spec"]["clusterIP"]
        self.prober = Prober(f"{address}:8001", self.name, [answers])
        self.prober.reach()
        self.check("first")

    def check(self, when: str) -> None:
        """What answers is the newest version that has to serve, as soon as the node's proxy knows of it."""
        ends = time.monotonic() + PROXY_SECONDS
        while (place := self.prober.serves()) != len(self.prober.good) - 1:
            assert time.monotonic() < ends, f"{self.name}, {when}: version {place} of those that may serve answers"
            time.sleep(0.5)

    def serves(self, trained: Trained) -> str:
        """Wait until the newest version serves, and nothing newer is wanted; return what is told."""
        self.prober.good.append(trained.answers(ASKED))
        newest, start = version(self.state, "latest"), time.monotonic()
        assert newest not in ("", self.served), newest
        self.wait(newest, lambda state: version(state, "serving") == newest and state.holds("UpToDate"))
        self.seconds.append(time.monotonic() - start)
        self.served_before, self.served = self.served, newest
        return f"version {newest[:12]} serves"

    def refuses(self, reasons: frozenset[str]) -> str:
        """Wait until nothing is done for the newest version, for one of the reasons; return what is told."""
        newest, start = version(self.state, "latest"), time.monotonic()
        assert newest not in ("", self.served), newest

        def is_over(state: State) -> bool:
            is_told = version(state, "latest") == newest
            return is_told and state.holds("Ready") and reason(state) not in ("", *AT_WORK)

        state = self.wait(f"a refusal of {newest}", is_over)
        self.seconds.append(time.monotonic() - start)
        if reason(state) not in reasons:
            self.surprises.append(f"not one of {', '.join(sorted(reasons))}: {told(state)}")
        return told(state)


def body(name: str, file: str, source: Mapping[str, Any], *, judged: bool) -> Mapping[str, Any]:
    """The object. ``judged``: with samples, a metric and its threshold, which come with the source."""
    budget = {"constraints": {"p99Latency": "250ms"}} if file == NETWORK and judged else {}
    # Those of a table are as many by themselves.
    samples = {} if file == TREES else {"maxSamples": TEST_ROWS}
    judging = {
        "dataloader": {"entrypoint": "dataloader.py"},
        "metrics": {"entrypoint": "metrics.py"},
        "accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.75}], **samples},
    }
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": name},
        "spec": {
            "source": {**source, "interval": "1h"},
            **(judging if judged else {}),
            "models": [{"name": name, "path": file, "config": {"maxBatchSize": 64, "dynamicBatching": {}}}],
            "selection": {"objectives": [{"metric": "throughput"}], **budget},
        },
    }


def version(state: State, of: str) -> str:
    """The version in `status.source`, ``of``: `serving` or `latest`; empty: none is known."""
    return str((state.status.get("source", {}).get(of) or {}).get("version", ""))


def reason(state: State) -> str:
    """Why a newer version does not serve; empty: none is wanted."""
    condition = state.condition("UpToDate")
    return "" if condition.get("status") == "True" else str(condition.get("reason", ""))


def told(state: State) -> str:
    """What is told of that."""
    condition = state.condition("UpToDate")
    return f"{condition['status']} {condition['reason']}: {condition['message']}"


def looks_fail(state: State) -> bool:
    """Whether it is told that looks have failed."""
    return "looks have failed since" in told(state)
