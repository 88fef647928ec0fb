"""An object for which the operator uses the rights that only an accident makes it use.

An object that lost its label is not watched any more, and in the way of the one that the operator then misses.
"""

from functools import partial

from tests.e2e.kubectl import Kubectl, KubectlError, Object
from tests.e2e.last_words import eventually
from tests.e2e.suite import Suite
from triton_operator.names import snapshot_policy

CHILDREN = "poddisruptionbudgets,jobs,deployments,services,configmaps,persistentvolumeclaims,networkpolicies"
"""The budget comes first: without servers that it knows, the operator deletes it."""
NAME = "unlabelled"
NOT_FOUND = "(NotFound)"
NO_SUCH_PRODUCT = "NVIDIA-None"


def run(suite: Suite) -> None:
    """Take labels away, twice; then ask for a GPU that no node has."""
    applied = suite.new(NAME)
    # Of several servers that may run on different nodes, there is a PodDisruptionBudget.
    storage = {"requests": {"storage": "64Mi"}}
    shared = {"resources": storage, "storageClassName": "local-path-shared", "accessModes": ["ReadWriteMany"]}
    claim = {"repository": {"claimName": None, "volumeClaimTemplate": {"spec": shared}}}
    # A soak has a NetworkPolicy of its own, which goes with it.
    generation = applied.apply({**claim, "serving": {"replicas": 2, "soak": {"duration": "1m"}}})
    applied.wait("its first Job", lambda state: bool(applied.jobs()), generation=generation)
    eventually("objects without their label", partial(unlabelled, suite.busy))
    applied.wait_ready(generation)
    # The budget is of the revision that the status names: a later pass than the one that says Ready makes it.
    relabelled(suite.busy)
    eventually("objects without their label", partial(unlabelled, suite.busy))
    relabelled(suite.busy)
    # Without nodes of that product, the candidate of one format is skipped; nodes are listed for it.
    spec = {**claim, "gpu": {"product": NO_SUCH_PRODUCT}}
    candidates = [{"name": "trt-fp16", "format": "trt", "precision": "fp16"}]
    generation = applied.apply({**spec, "model": {"candidates": candidates}})
    applied.wait("no node for the engine", lambda state: state.holds("Stalled"), generation=generation)
    eventually("an end of the budget", lambda: None if labelled(suite.busy, "poddisruptionbudgets") else {})
    policy = snapshot_policy(NAME)
    eventually("an end of the soak's policy", lambda: None if suite.busy.exists("networkpolicy", policy) else {})


def relabelled(kubectl: Kubectl) -> None:
    """Wait until the operator watches the servers and their budget."""
    for kind in ("deployments", "poddisruptionbudgets"):
        eventually(f"{kind} with their label", partial(labelled, kubectl, kind))


def labelled(kubectl: Kubectl, kind: str) -> Object | None:
    """The one object's child of that kind, if the operator watches it."""
    selector = f"--selector=triton-operator.dev/deployment={NAME},app.kubernetes.io/managed-by=triton-operator"
    return next(iter(kubectl.items(kind, selector)), None)


def unlabelled(kubectl: Kubectl) -> str | None:
    """Take the label by which the operator watches its objects from those of the one object; None if one went away.

    kubectl lists them first. One that the operator deletes before kubectl comes to it ends the command.
    """
    selector = f"--selector=triton-operator.dev/deployment={NAME}"
    try:
        return kubectl.run("label", CHILDREN, selector, "app.kubernetes.io/managed-by-")
    except KubectlError as error:
        if NOT_FOUND in str(error):
            return None
        raise
