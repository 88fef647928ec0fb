"""Which fields of an object are the operator's, by `metadata.managedFields`. Pure.

An apply removes the fields that its manager applied before and applies no more. What a manager has created or updated
is not removed, although the manager has the same name. What is restored from a backup is such an object.
"""

from collections.abc import Mapping
from typing import Any

from triton_converters.contract.document import is_deeper
from triton_operator.kube.kinds import ApiKind
from triton_operator.kube.nesting import LEVELS
from triton_operator.names import Body

FIELD_MANAGER = "triton-operator"
"""The name under which the API server records the fields that the operator sets."""

Entry = Mapping[str, Any]
Fields = Mapping[str, Any]
"""A tree of fields (fieldsV1)."""


def trimmed(kind: ApiKind, body: Body) -> Body:
    """The body of a kind with its type, and without others' managed fields, which are half of its size.

    Of a kind that is not applied, what the operator created and updated goes too: an apply never removes it.
    """
    ours = (each for each in _ours(body) if _is_applied(each) or not kind.created)
    # Anybody may write the operator's name, and fields that are deeper than it ever sets one.
    kept = [each for each in ours if not is_deeper(each, LEVELS)]
    typed = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**typed, **body, "metadata": {**body["metadata"], "managedFields": kept}}


def owned(body: Mapping[str, Any]) -> Fields:
    """The tree of fields that the operator owns; empty if none is known."""
    found: Fields = {}
    for entry in _ours(body):
        fields = entry.get("fieldsV1", {})
        found = _together(found, fields) if found else fields
    return found


def is_applied(body: Mapping[str, Any]) -> bool:
    """Whether an apply removes all that the operator owns and wants no more."""
    return all(map(_is_applied, _ours(body)))


def as_applied(body: Mapping[str, Any]) -> list[Entry]:
    """The managed fields of an object, with all that the operator owns as if it had applied it.

    ``body``: with the managed fields of others, which stay as they are.
    """
    others = [each for each in body["metadata"].get("managedFields", []) if not _is_ours(each)]
    ours = sorted(_ours(body), key=_is_applied)
    return [*others, {**ours[-1], "operation": "Apply", "fieldsV1": owned(body)}] if ours else others


def _ours(body: Mapping[str, Any]) -> list[Entry]:
    found = body.get("metadata", {}).get("managedFields", [])
    return [each for each in found if _is_ours(each)]


def _is_ours(entry: Entry) -> bool:
    return entry.get("manager") == FIELD_MANAGER and not entry.get("subresource")


def _is_applied(entry: Entry) -> bool:
    return entry.get("operation") == "Apply"


def _together(one: Fields, other: Fields) -> Fields:
    return {step: _together(one.get(step, {}), other.get(step, {})) for step in {**one, **other}}
