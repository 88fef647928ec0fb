"""A pod that keeps asking the servers under test, and what it reports."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import read

PATIENCE_SECONDS = 300.0
"""A request may take its whole timeout before its second is reported."""


@dataclass(frozen=True)
class Answers:
    """What came of the requests to one target within a time."""

    answered: int
    failures: tuple[str, ...]
    different: frozenset[str]
    """The different answers to the one fixed request."""


@dataclass(frozen=True)
class Prober:
    """The pod."""

    kubectl: Kubectl

    def answers(self, service: str, since: float, until: float) -> Answers:
        """What the Service answered between two times (seconds since the epoch), to both clients."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        reports = self._reports(service)
        while {each["keeps"] for each in reports if each["time"] > until} != {True, False}:
            if time.monotonic() > deadline:
                raise AssertionError(f"the prober is silent about {service}: {self.kubectl.logs('prober', tail=20)}")
            time.sleep(1)
            reports = self._reports(service)
        # A report tells of what came before it, late on a busy node: each client's first one after the end counts.
        after = [each for each in reports if each["time"] > until]
        ends = {keeps: min(each["time"] for each in after if each["keeps"] is keeps) for keeps in (True, False)}
        chosen = [each for each in reports if since <= each["time"] <= ends[each["keeps"]]]
        return Answers(
            answered=sum(each["answered"] for each in chosen),
            failures=tuple(failure for each in chosen for failure in each["failed"]),
            different=frozenset(answer for each in chosen for answer in each["answers"]),
        )

    def _reports(self, service: str) -> list[Object]:
        reports: list[Object] = [json.loads(line) for line in self.kubectl.run("logs", "prober").splitlines()]
        return [each for each in reports if each["url"] == url_of(service)]


def start(kubectl: Kubectl, image: str, models: Mapping[str, str]) -> Prober:
    """Start asking; ``models`` is the model's name by Service. The ConfigMap `scripts` is there already."""
    pod = read("workbench")
    pod["metadata"]["name"] = "prober"
    container = pod["spec"]["containers"][0]
    targets = [f"{model}={url_of(service)}" for service, model in models.items()]
    container |= {"image": image, "command": ["python3", "-u", "/scripts/probe.py", *targets]}
    container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] == "scripts"]
    pod["spec"]["volumes"] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "scripts"]
    kubectl.apply(pod)
    return Prober(kubectl)


def url_of(service: str) -> str:
    """Of the gRPC endpoint, as a pod of the same namespace knows it."""
    return f"{service}:8001"
