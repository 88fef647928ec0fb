"""The reader of the API server's audit log, on lines that a real one wrote."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.audit import Right, granted, requests

USER = "system:serviceaccount:triton-operator:triton-operator"
TEMPLATE: dict[str, Any] = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "level": "Metadata",
    "stage": "ResponseComplete",
    "user": {"username": USER, "groups": ["system:serviceaccounts", "system:authenticated"]},
    "responseStatus": {"metadata": {}, "code": 200},
    "requestReceivedTimestamp": "2026-11-22T04:00:00.000000Z",
    "annotations": {"authorization.k8s.io/decision": "allow"},
}
FORBIDDEN = {"annotations": {"authorization.k8s.io/decision": "forbid"}, "responseStatus": {"code": 403}}


def log(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "audit.log"
    path.write_text("".join(json.dumps(TEMPLATE | event) + "\n" for event in events))
    return path


def reference(resource: str, group: str = "", subresource: str = "") -> dict[str, str]:
    fields = {"resource": resource, "apiGroup": group, "subresource": subresource, "apiVersion": "v1"}
    return {name: value for name, value in fields.items() if value}


def test_a_right_is_used_by_its_group_resource_and_verb(tmp_path: Path) -> None:
    status = reference("tritondeployments", "triton-operator.dev", "status")
    found = requests(
        log(
            tmp_path,
            {"verb": "watch", "objectRef": reference("pods"), "stage": "ResponseStarted"},
            {"verb": "patch", "objectRef": status},
            {"verb": "get", "requestURI": "/readyz"},
            {"verb": "delete", "objectRef": reference("secrets"), "user": {"username": "admin"}},
        ),
        USER,
    )
    assert found.used == {
        Right("", "pods", "watch"),
        Right("triton-operator.dev", "tritondeployments/status", "patch"),
    }
    assert found.refused == set()


def test_an_apply_that_creates_uses_two_rights(tmp_path: Path) -> None:
    created = {"verb": "patch", "objectRef": reference("services"), "responseStatus": {"code": 201}}
    assert {right.verb for right in requests(log(tmp_path, created), USER).used} == {"patch", "create"}
    assert {right.verb for right in requests(log(tmp_path, created | {"responseStatus": {}}), USER).used} == {"patch"}


def test_only_a_refusal_by_the_rules_is_one(tmp_path: Path) -> None:
    quota = {"verb": "create", "objectRef": reference("jobs", "batch"), "responseStatus": {"code": 403}}
    secret = {"verb": "list", "objectRef": reference("secrets"), **FORBIDDEN}
    found = requests(log(tmp_path, quota, secret), USER)
    assert found.refused == {Right("", "secrets", "list")}
    assert found.used == {Right("batch", "jobs", "create")}


def test_what_was_before_does_not_count(tmp_path: Path) -> None:
    path = log(tmp_path, {"verb": "list", "objectRef": reference("pods")})
    assert requests(path, USER, since=1_900_000_000).used == set()


def test_a_rule_grants_every_combination() -> None:
    rule = {"apiGroups": ["", "apps"], "resources": ["a", "b"], "verbs": ["get", "list"]}
    assert len(granted([rule])) == 8
    assert Right("apps", "b", "list") in granted([rule])
