"""What an API server stores of an object that is applied. Pure."""

import json
from typing import Any

from triton_operator.kube.drift import COMPLETED, MERGED, REPLACED
from triton_operator.kube.kinds import kind_of
from triton_operator.kube.managed_fields import FIELD_MANAGER
from triton_operator.names import Body


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


def _fields(value: Any, name: str = "") -> Body:
    """The fields below the value of a field of that name, as fieldsV1 writes them; what is replaced whole is one."""
    if isinstance(value, list | tuple) and name in MERGED:
        return {f"k:{_key(each, MERGED[name])}": _fields(each, "" if name not in REPLACED else name) for each in value}
    if isinstance(value, dict) and name not in REPLACED:
        return {f"f:{field}": _fields(each, field) for field, each in value.items()}
    return {}


def _key(item: Body, keys: tuple[str, ...]) -> str:
    """What tells an item from the others of its list; where the item says nothing, with the API server's default."""
    known = {key: item.get(key, COMPLETED.get(key, (None,))[0]) for key in keys}
    return json.dumps({key: value for key, value in known.items() if value is not None})
