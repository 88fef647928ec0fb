"""What an API server stores of an object that is applied. Pure."""

import json
from typing import Any

from triton_operator.kube.kinds import kind_of
from triton_operator.kube.managed_fields import FIELD_MANAGER
from triton_operator.names import Body

MERGED_BY = (("mountPath",), ("uid",), ("port", "protocol"), ("containerPort", "protocol"), ("name",))
"""What the items of a list go by, in the lists that the API server merges; the first that all items have."""


def as_stored(body: Body, applied: Body, version: int) -> Body:
    """The object as it is stored: with its version, and with the fields that the apply of ``applied`` owns.

    A Job is created, and owned by nobody's apply.
    """
    metadata = body["metadata"] | {"resourceVersion": str(version)}
    if not kind_of(body).created:
        ours = {name: applied["metadata"][name] for name in ("labels", "annotations") if name in applied["metadata"]}
        wanted = {name: value for name, value in applied.items() if name not in ("apiVersion", "kind", "status")}
        fields = _fields(wanted | {"metadata": ours})
        metadata["managedFields"] = [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}]
    return body | {"metadata": metadata}


def _fields(value: Any) -> Body:
    """The fields below a value, as fieldsV1 writes them; lists whose items have no key of their own are one field."""
    if isinstance(value, dict):
        return {f"f:{name}": _fields(each) for name, each in value.items()}
    items = [each for each in value if isinstance(each, dict)] if isinstance(value, list | tuple) else []
    for keys in MERGED_BY:
        found = {json.dumps({key: each.get(key, "TCP") for key in keys}): each for each in items if keys[0] in each}
        if items and len(found) == len(items):
            return {f"k:{key}": _fields(each) for key, each in found.items()}
    return {}
