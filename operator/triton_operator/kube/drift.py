"""Whether an object must be applied: it must if a field that the operator sets, or once set, is observed to differ.

Pure. An apply that changes nothing is still a write in the audit log, so a pass applies only what drifts. Fields that
others set (the API server's defaults, a service mesh's labels) are not drift, because an apply would not change them.

What an apply merges and what it replaces is in the tables below and not read from the API server: its schemas are four
megabytes of JSON, every pass would wait for them, and they leave out most defaults. A test of tests/apiserver
(test_drift_schemas.py) holds the tables to the schemas of a real API server, over all objects that the operator makes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from triton_operator import names
from triton_operator.api.quantity import amount
from triton_operator.kube.managed_fields import owned
from triton_operator.kube.nesting import loads

MERGED = {
    "containers": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Lists by name whose items an apply merges, and the fields that tell the items apart; an item has some of them. All
other lists belong to one manager."""
REPLACED = frozenset(
    {
        "backendRefs",
        "egress",
        "fieldRef",
        "ingress",
        "labelSelector",
        "nodeSelector",
        "ownerReferences",
        "parentRefs",
        "podSelector",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "rules",
        "selector",
        "tolerations",
        "triggers",
    }
)
"""Fields by name whose value, or whose items, an apply replaces as a whole: a field more below them is drift, because
it lets others in, keeps them out, or leads requests elsewhere."""
COMPLETED = {
    "apiVersion": ("v1",),
    "group": ("", names.GATEWAY_API_GROUP),
    "kind": ("Service", "Gateway"),
    "protocol": ("TCP",),
}
"""What the API server puts below them where the operator says nothing, by the name of the field."""
_EMPTY_MEANS_NONE = {"ownerReferences"}
"""Lists merged by key of which an empty one says that no item may be there."""


def drift(desired: Mapping[str, Any], observed: Mapping[str, Any]) -> str | None:
    """The path of the first field of `desired` that differs in `observed`; None if nothing needs an apply.

    A field that the operator owns according to `metadata.managedFields` and no longer desires counts too, because an
    apply removes it.
    """
    return _difference(desired, observed, ()) or _abandoned(owned(observed), desired, ())


def _difference(desired: Any, observed: Any, path: tuple[str, ...]) -> str | None:
    """Return the path of the first desired value that is not observed, its parts joined by dots; None: there is none.

    `path` is where both values stand in the object: it tells which maps and lists an apply replaces as a whole.
    """
    # JSON and the builders have concrete types; a check for Mapping would take a third of the whole time.
    if isinstance(desired, dict):
        if not isinstance(observed, dict):
            return ".".join(path)
        more = observed.keys() - desired.keys()
        if more and not REPLACED.isdisjoint(path) and any(observed[key] not in COMPLETED.get(key, ()) for key in more):
            return ".".join(path)
        for key, value in desired.items():
            # The API server leaves out what is empty.
            if key not in observed and value not in (None, "", [], {}):
                return ".".join((*path, key))
            if key in observed and (found := _difference(value, observed[key], (*path, key))):
                return found
        return None
    if isinstance(desired, list | tuple):
        return _list_difference(desired, observed, path)
    if desired is None or _equal(desired, observed, path):
        return None
    return ".".join(path)


def _list_difference(desired: Sequence[Any], observed: Any, path: tuple[str, ...]) -> str | None:
    if not isinstance(observed, list):
        return ".".join(path)
    keys = MERGED.get(path[-1]) if path and REPLACED.isdisjoint(path[:-1]) else None
    if keys is None:
        if len(desired) != len(observed):
            return ".".join(path)
        pairs = [(f"[{index}]", item, observed[index]) for index, item in enumerate(desired)]
    elif path[-1] in _EMPTY_MEANS_NONE and not desired and observed:
        return ".".join(path)
    else:
        by_key = {_key(item, keys): item for item in observed}
        pairs = [(f"[{_key(item, keys)[0]}]", item, by_key.get(_key(item, keys))) for item in desired]
    for name, item, found in pairs:
        if difference := _difference(item, found, (*path, name)):
            return difference
    return None


def _key(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    values = (item.get(key, COMPLETED.get(key, (None,))[0]) for key in keys)
    return tuple(value for value in values if value is not None)


def _equal(desired: Any, observed: Any, path: tuple[str, ...]) -> bool:
    if desired == observed:
        return isinstance(desired, bool) == isinstance(observed, bool)
    if path[-1] == "sizeLimit" or path[-3:-1] in {("resources", "limits"), ("resources", "requests")}:
        value = amount(desired)
        return value is not None and value == amount(observed)
    return False


def _abandoned(fields: Mapping[str, Any], desired: Any, path: tuple[str, ...]) -> str | None:
    """The path of the first field that is owned and not desired.

    ``fields``: the owned ones. Their steps are `f:FIELD`, `k:{KEYS}`, `v:VALUE` and `.`, the field itself.
    """
    for step, below in fields.items():
        kind, _, name = step.partition(":")
        if kind == ".":
            continue
        here = (*path, name)
        if kind == "f" and isinstance(desired, dict) and name in desired:
            value = desired[name]
        elif kind == "k" and (item := _matching(loads(name.encode()), desired)) is not None:
            value = item
        elif kind == "v" and isinstance(desired, list | tuple) and loads(name.encode()) in desired:
            continue
        else:
            return ".".join(here)
        if found := _abandoned(below, value, here):
            return found
    return None


def _matching(keys: Mapping[str, Any], items: Any) -> Mapping[str, Any] | None:
    """The item with those keys; a key that the item lacks has its default."""
    for item in items if isinstance(items, list | tuple) else ():
        if all(item.get(key, value) == value for key, value in keys.items()):
            found: Mapping[str, Any] = item
            return found
    return None
