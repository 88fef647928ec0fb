"""Whose an object is."""

from typing import Any

import pytest

from triton_operator.kube.ownership import Control, control, ours

JSON = dict[str, Any]
OWNER: JSON = {
    "kind": "TritonDeployment",
    "metadata": {"name": "digits", "uid": "new", "creationTimestamp": "2026-11-21T10:00:00Z"},
}
OUR_LABELS = {"triton-operator.dev/deployment": "digits", "app.kubernetes.io/managed-by": "triton-operator"}


def a_body(
    kind: str, uid: str, controller: tuple[str, str, str] | None, labels: JSON | None = None, created: str = "10:00:01"
) -> JSON:
    references: list[JSON] = [{"kind": "Other", "name": "x", "uid": "x"}]
    if controller is not None:
        references.append(dict(zip(("kind", "name", "uid"), controller, strict=True)) | {"controller": True})
    metadata = {"name": uid, "uid": uid, "labels": labels or {}, "creationTimestamp": f"2026-11-21T{created}Z"}
    return {"kind": kind, "metadata": {**metadata, "ownerReferences": references}}


@pytest.mark.parametrize(
    ("controller", "labels", "expected"),
    [
        (("TritonDeployment", "digits", "new"), {}, Control.OURS),
        (("TritonDeployment", "digits", "old"), OUR_LABELS, Control.PREDECESSOR),
        (("TritonDeployment", "other", "old"), OUR_LABELS, Control.FOREIGN),
        (("CronJob", "digits", "old"), OUR_LABELS, Control.FOREIGN),
        (None, OUR_LABELS, Control.OURS),
        (None, {**OUR_LABELS, "triton-operator.dev/deployment": "other"}, Control.FOREIGN),
        (None, {"triton-operator.dev/deployment": "digits"}, Control.FOREIGN),
        (None, {}, Control.FOREIGN),
    ],
)
def test_control(controller: tuple[str, str, str] | None, labels: JSON, expected: Control) -> None:
    assert control(OWNER, a_body("Job", "j", controller, labels)) is expected


def test_an_object_without_any_metadata_is_somebody_elses() -> None:
    assert control(OWNER, {"kind": "Service", "metadata": {"name": "digits"}}) is Control.FOREIGN


def test_pods_belong_to_whom_their_job_or_deployment_belongs() -> None:
    ours_by = ("TritonDeployment", "digits", "new")
    children = [
        a_body("Pod", "pod-of-our-job", ("Job", "a", "job")),
        a_body("Pod", "pod-of-an-old-job", ("Job", "a", "old-job")),
        a_body("Pod", "server", ("ReplicaSet", "r", "r")),
        a_body("Pod", "old-server", ("ReplicaSet", "r", "r"), created="09:59:59"),
        a_body("Pod", "bare", None, OUR_LABELS),
        a_body("Job", "job", ours_by),
        a_body("Job", "old-job", ("TritonDeployment", "digits", "old"), OUR_LABELS),
        a_body("ConfigMap", "results", ours_by),
    ]
    assert {body["metadata"]["uid"] for body in ours(OWNER, children)} == {"pod-of-our-job", "server", "job", "results"}
