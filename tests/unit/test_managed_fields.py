"""Which managed fields the operator keeps, and what makes those that it created removable by an apply."""

from typing import Any

from triton_operator.kube.kinds import JOB, NETWORK_POLICY
from triton_operator.kube.managed_fields import as_applied, is_applied, owned, trimmed

JSON = dict[str, Any]
TIME = "2026-11-21T10:00:00Z"
CREATED: JSON = {
    "manager": "triton-operator",
    "operation": "Update",
    "apiVersion": "networking.k8s.io/v1",
    "time": TIME,
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:old": {}}}, "f:spec": {"f:podSelector": {}}},
}
APPLIED: JSON = {
    **CREATED,
    "operation": "Apply",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}, "f:new": {}}}, "f:spec": {"f:egress": {}}},
}
BOTH: JSON = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:old": {}, "f:new": {}}},
    "f:spec": {"f:podSelector": {}, "f:egress": {}},
}
MESH: JSON = {**CREATED, "manager": "mesh"}
STATUS: JSON = {**CREATED, "subresource": "status"}


def a_policy(*entries: JSON) -> JSON:
    return {"metadata": {"name": "digits-jobs", "managedFields": list(entries)}}


def test_what_was_created_counts_as_applied_from_then_on() -> None:
    assert as_applied(a_policy(MESH, CREATED, STATUS)) == [MESH, STATUS, {**CREATED, "operation": "Apply"}]
    assert as_applied(a_policy(CREATED, APPLIED)) == [{**APPLIED, "fieldsV1": BOTH}]
    assert as_applied(a_policy(APPLIED)) == [APPLIED]
    assert as_applied(a_policy(MESH)) == [MESH]


def test_only_what_was_created_has_to_become_applied() -> None:
    assert [is_applied(a_policy(*each)) for each in ((), (APPLIED,), (MESH, STATUS), (CREATED, APPLIED))] == [
        True,
        True,
        True,
        False,
    ]


def test_created_and_applied_fields_are_owned_together() -> None:
    assert owned(a_policy(MESH, CREATED, APPLIED)) == BOTH
    assert owned(a_policy(MESH, STATUS)) == owned({}) == {}


def test_what_the_operator_created_is_kept_only_of_a_kind_that_it_applies() -> None:
    body = a_policy(MESH, CREATED, STATUS, APPLIED)
    assert trimmed(NETWORK_POLICY, body)["metadata"]["managedFields"] == [CREATED, APPLIED]
    assert trimmed(JOB, body)["metadata"]["managedFields"] == [APPLIED]
    assert len(body["metadata"]["managedFields"]) == 4
