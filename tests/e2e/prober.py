"""A pod that keeps asking the servers under test, and what it reports."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import read


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
        """What the targets of that Service answered between two times (seconds since the epoch), by both clients."""
        reports = [json.loads(line) for line in self.kubectl.run("logs", "prober").splitlines()]
        chosen = [each for each in reports if each["url"] == url_of(service) and since <= each["time"] <= until + 1]
        return Answers(
            answered=sum(each["answered"] for each in chosen),
            failures=tuple(failure for each in chosen for failure in each["failed"]),
            different=frozenset(answer for each in chosen for answer in each["answers"]),
        )


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
