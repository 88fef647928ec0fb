"""One object that uses everything, alone in its namespace, applied twice and then left alone."""

from dataclasses import dataclass

from tests.e2e.applied import Applied
from tests.e2e.manifests import read
from tests.e2e.suite import Suite
from tests.e2e.watching import Sighting
from tests.e2e.workbench import Workbench, start


@dataclass(frozen=True)
class Happy:
    """The object once it is Ready."""

    applied: Applied
    ready: Sighting
    workbench: Workbench
    """Of its namespace; /repository is the object's own claim."""
    applied_again: str
    """What the second `kubectl apply` of the same manifest said."""


def run(suite: Suite) -> Happy:
    """Fill the claim, apply, wait until Ready, apply again."""
    kubectl = suite.quiet
    filled = start(kubectl, suite.image)
    filled.fill()
    kubectl.delete("pod", "workbench")
    applied = Applied(kubectl, suite.watch, read("happy"), "happy")
    generation = applied.apply()
    ready = applied.wait_ready(generation)
    said = kubectl.apply(applied.manifest)
    return Happy(applied, ready, start(kubectl, suite.image, repository="happy-repository"), said)
