"""Whether an object must be applied: it must if a field that the operator sets, or once set, is observed to differ.

Pure. An apply that changes nothing is still a write in the audit log, so a pass applies only what drifts. Fields that
others set (the API server's defaults, a service mesh's labels) are not drift, because an apply would not change them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from triton_operator.api.quantity import amount
from triton_operator.kube.managed_fields import owned
from triton_operator.kube.nesting import loads

_MERGE_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port", "protocol"),
}
"""Lists that the API server merges by key; all others belong to one manager and are compared whole."""
_MERGE_KEY_DEFAULTS = {"protocol": "TCP"}
_EMPTY_MEANS_NONE = {"ownerReferences"}
"""Lists merged by key of which an empty one says that no item may be there."""
_ATOMIC_MAPS = {"selector", "matchLabels", "nodeSelector"}
"""Maps that belong to one manager, so that an additional entry is drift."""
_WHOLE = {"podSelector", "ingress", "egress"}
"""Fields of a NetworkPolicy below which an additional field is drift, because it lets others in or keeps them out."""
_NOT_KEPT_AT_ZERO = {"readOnly", "initialDelaySeconds", "minReadySeconds", "publishNotReadyAddresses", "hostNetwork"}
"""Fields that the API server leaves out if they are false or 0. For other fields, absent does not mean false or 0."""
_KEPT_EMPTY = {"emptyDir"}
"""Fields whose presence matters even if they are empty."""


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
        if path and path[-1] in _ATOMIC_MAPS and "matchLabels" not in desired and set(observed) - set(desired):
            return ".".join(path)
        if observed.keys() - desired.keys() and not _WHOLE.isdisjoint(path):
            return ".".join(path)
        for key, value in desired.items():
            if key not in observed:
                if _says_nothing(key, value):
                    continue
                return ".".join((*path, key))
            if found := _difference(value, observed[key], (*path, key)):
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
    keys = _MERGE_KEYS.get(path[-1]) if path else None
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
    values = (item.get(key, _MERGE_KEY_DEFAULTS.get(key)) for key in keys)
    return tuple(value for value in values if value is not None)


def _equal(desired: Any, observed: Any, path: tuple[str, ...]) -> bool:
    if desired == observed:
        return isinstance(desired, bool) == isinstance(observed, bool)
    if path[-1] == "sizeLimit" or path[-3:-1] in {("resources", "limits"), ("resources", "requests")}:
        value = amount(desired)
        return value is not None and value == amount(observed)
    return False


def _says_nothing(key: str, value: Any) -> bool:
    """Whether the API server leaves out a field with this value."""
    if value is None or value == "" or (value in ([], {}) and key not in _KEPT_EMPTY):
        return True
    return key in _NOT_KEPT_AT_ZERO and value in (0, False)


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
