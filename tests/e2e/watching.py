"""One watch over all TritonDeployments: tests wait on it instead of asking again and again."""

import json
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.state import State

KIND = "tritondeployments.triton-operator.dev"


@dataclass(frozen=True)
class Sighting:
    """A version of an object and when it arrived (seconds since the epoch)."""

    time: float
    state: State


class Watch:
    """Every version of every TritonDeployment since it was started."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._changed = threading.Condition()
        self._history: dict[tuple[str, str], list[Sighting]] = defaultdict(list)
        self._gone: set[tuple[str, str]] = set()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        """End the watch, and all waiting on it."""
        self._stopped = True
        if self._process:
            self._process.terminate()
        with self._changed:
            self._changed.notify_all()

    def history(self, namespace: str, name: str) -> list[Sighting]:
        """All versions seen, oldest first."""
        with self._changed:
            return list(self._history[namespace, name])

    def wait(self, namespace: str, name: str, until: Callable[[State], bool], seconds: float) -> Sighting | None:
        """The newest version once ``until`` holds for it; None where it did not hold in time or the watch has ended."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                seen = self._history[namespace, name]
                if seen and until(seen[-1].state):
                    return seen[-1]
                left = deadline - time.monotonic()
                if left <= 0 or self._stopped:
                    return None
                self._changed.wait(left)

    def wait_gone(self, namespace: str, name: str, seconds: float) -> bool:
        """Whether the object was deleted in time."""
        with self._changed:
            return self._changed.wait_for(lambda: (namespace, name) in self._gone, seconds)

    def _follow(self) -> None:
        """The API server ends a watch now and then: start again, which lists everything anew."""
        while not self._stopped:
            self._process = self._kubectl.stream(
                "get", KIND, "--all-namespaces", "--watch", "--output=json", "--output-watch-events"
            )
            assert self._process.stdout is not None
            for line in self._process.stdout:
                event = json.loads(line)
                self._record(event["type"], event["object"])
            self._process.wait()
            time.sleep(0.5)

    def _record(self, kind: str, body: Object) -> None:
        state = State(body)
        key = state.namespace, state.name
        with self._changed:
            if kind == "DELETED":
                self._gone.add(key)
            else:
                self._gone.discard(key)
                self._history[key].append(Sighting(time.time(), state))
            self._changed.notify_all()
