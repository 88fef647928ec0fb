"""The schema of a pod's affinity, with the fields that Kubernetes has.

The API server keeps no other field, so the object has the depth of its schema. It checks values with the pod.
"""

from typing import Any

Schema = dict[str, Any]


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_TEXTS = _list(_TEXT)
_WEIGHT: Schema = {"type": "integer"}
_REQUIREMENTS = _list(_object(key=_TEXT, operator=_TEXT, values=_TEXTS))
_NODES = _object(matchExpressions=_REQUIREMENTS, matchFields=_REQUIREMENTS)
_LABELS = _object(matchExpressions=_REQUIREMENTS, matchLabels={"type": "object", "additionalProperties": _TEXT})
_PODS = _object(
    labelSelector=_LABELS,
    namespaceSelector=_LABELS,
    namespaces=_TEXTS,
    topologyKey=_TEXT,
    matchLabelKeys=_TEXTS,
    mismatchLabelKeys=_TEXTS,
)
_BETWEEN_PODS = _object(
    requiredDuringSchedulingIgnoredDuringExecution=_list(_PODS),
    preferredDuringSchedulingIgnoredDuringExecution=_list(_object(weight=_WEIGHT, podAffinityTerm=_PODS)),
)
AFFINITY: Schema = {
    "properties": {
        "nodeAffinity": _object(
            requiredDuringSchedulingIgnoredDuringExecution=_object(nodeSelectorTerms=_list(_NODES)),
            preferredDuringSchedulingIgnoredDuringExecution=_list(_object(weight=_WEIGHT, preference=_NODES)),
        ),
        "podAffinity": _BETWEEN_PODS,
        "podAntiAffinity": _BETWEEN_PODS,
    }
}
"""What the schema of the field `affinity` has besides its type."""
