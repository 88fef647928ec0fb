"""Objects that serve, or are about to, are deleted."""

import time
from dataclasses import dataclass

from tests.e2e.kubectl import Kubectl
from tests.e2e.suite import Suite

KINDS = "jobs,pods,deployments,replicasets,services,configmaps,networkpolicies"
RETAINED, DROPPED = "retained", "dropped"


@dataclass(frozen=True)
class Deleted:
    """What there was before, and what was left after."""

    children: tuple[str, ...]
    left: tuple[str, ...]
    claims_left: tuple[str, ...]
    prompt: bool
    """Whether the object itself went at once: nothing held it."""


def run(suite: Suite) -> Deleted:
    """Delete two objects with claims of their own, one of which is to be kept."""
    kubectl, names = suite.busy, (RETAINED, DROPPED)
    for name in names:
        applied = suite.new(name)
        policy = {"whenDeleted": "Retain" if name == RETAINED else "Delete"}
        repository = {
            "claimName": None,
            "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "64Mi"}}}},
            "retentionPolicy": policy,
        }
        generation = applied.apply({"repository": repository})
        applied.wait("the source", lambda state: state.holds("SourceResolved"), generation=generation)
    children = objects(kubectl, *names)
    kubectl.delete("td", *names, wait=False)
    prompt = all(suite.watch.wait_gone(kubectl.namespace, name, 10) for name in names)
    deadline = time.monotonic() + 90
    while objects(kubectl, *names) and time.monotonic() < deadline:
        time.sleep(1)
    left = objects(kubectl, *names)
    claims = [claim["metadata"] for claim in kubectl.items("pvc")]
    # A claim goes once its last pod has gone.
    return Deleted(
        children,
        left,
        tuple(
            claim["name"] for claim in claims if claim["name"].startswith(names) and "deletionTimestamp" not in claim
        ),
        prompt,
    )


def objects(kubectl: Kubectl, *names: str) -> tuple[str, ...]:
    """Children of those TritonDeployments, as kind/name."""
    selector = f"triton-operator.dev/deployment in ({','.join(names)})"
    return tuple(kubectl.run("get", KINDS, f"--selector={selector}", "--output=name").split())
