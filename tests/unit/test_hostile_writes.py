"""Whatever a plan holds, a pass writes only what is its TritonDeployment's."""

from typing import Any

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec
from triton_operator import names
from triton_operator.kube.kinds import TRITON_DEPLOYMENT, kind_of
from triton_operator.runtime.bounds import OutOfBoundsError, check_bounds

OWNER = Cluster(a_spec()).body()
REFERENCE = {
    "apiVersion": names.API_VERSION,
    "kind": names.KIND,
    "name": "digits",
    "uid": OWNER["metadata"]["uid"],
    "controller": True,
}


def a_body(api_version: str = "apps/v1", kind: str = "Deployment", **metadata: Any) -> dict[str, Any]:
    own = {"name": "digits-0", "namespace": "vision", "ownerReferences": [REFERENCE]}
    return {"apiVersion": api_version, "kind": kind, "metadata": own | metadata}


def test_the_objects_own_are_written() -> None:
    cluster = Cluster(a_spec())
    cluster.run(3)
    bodies = [each for each in cluster.intent().objects if kind_of(each) is not TRITON_DEPLOYMENT]
    assert bodies
    for body in bodies:
        check_bounds(cluster.body(), body)


def test_a_claim_that_is_retained_has_no_owner() -> None:
    check_bounds(OWNER, a_body("v1", "PersistentVolumeClaim", ownerReferences=[]))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (a_body(namespace="victim"), "is in namespace victim"),
        (a_body(namespace=None), "is in namespace None"),
        (a_body(ownerReferences=[]), "is not owned by it alone"),
        (a_body(ownerReferences=[REFERENCE | {"uid": "other"}]), "is not owned by it alone"),
        (a_body(ownerReferences=[REFERENCE | {"controller": False}]), "is not owned by it alone"),
        (a_body(ownerReferences=[REFERENCE, REFERENCE | {"uid": "other"}]), "is not owned by it alone"),
        (a_body("v1", "Pod"), "is of a kind that no pass writes"),
        (a_body("v1", "Secret"), "is of a kind that no pass writes"),
        (a_body("rbac.authorization.k8s.io/v1", "RoleBinding"), "is of a kind that no pass writes"),
        (a_body(names.API_VERSION, names.KIND), "is of a kind that no pass writes"),
    ],
)
def test_another_object_is_not_written(body: dict[str, Any], words: str) -> None:
    with pytest.raises(OutOfBoundsError, match=f"TritonDeployment vision/digits wants to write .* {words}"):
        check_bounds(OWNER, body)
