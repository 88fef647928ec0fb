"""The PersistentVolumeClaim that holds the model repository."""

from collections.abc import Mapping
from typing import Any

from triton_operator import names
from triton_operator.api.quantity import amount
from triton_operator.api.repository import ClaimSpec, VolumeClaimTemplate
from triton_operator.context import Context

UNKNOWN_SIZE = "100Gi"
"""Stands for the size of a claim of the user's, which is known only while the claim exists."""


def claim(context: Context) -> dict[str, Any] | None:
    """The claim that the operator makes; None if the spec names an existing one."""
    repository = context.spec.repository
    if repository.claim_name is not None:
        return None
    metadata = context.metadata(names.claim(context.name), "repository")
    if repository.retention_policy.when_deleted == "Retain" or _is_retained(context):
        # A deployer that knows its objects by a label of the user's prunes what has that label and no owner.
        own = {"labels": names.labels(context.name, "repository"), "ownerReferences": []}
        metadata = {"name": metadata["name"], "namespace": context.namespace, **own}
    existing = context.observed.claim
    spec = _new(_template(context)) if existing is None else _enlarged(existing["spec"], _template(context).storage)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _is_retained(context: Context) -> bool:
    """Whether the claim has outlived an object of this name, or was to: it is nobody's to delete until it is released.

    Whoever retained it may be somebody else than the author of this object.
    """
    metadata = (context.observed.claim or {}).get("metadata", {})
    uid = context.triton_deployment.uid
    owned = any(each["uid"] == uid for each in metadata.get("ownerReferences", ()))
    released = (metadata.get("annotations") or {}).get(names.RELEASE_ANNOTATION) == uid
    return bool(metadata) and not owned and not released


def has_files_to_keep(context: Context) -> bool:
    """Whether the claim holds what an earlier object of this name left, and is not released: nothing there is cleaned.

    The spec may name that claim too.
    """
    metadata = (context.observed.claim or {}).get("metadata", {})
    is_older = metadata.get("creationTimestamp", "") < context.triton_deployment.created_at
    return made_for(context) == context.name and is_older and _is_retained(context)


def other_owner(context: Context) -> str:
    """Name of the other TritonDeployment whose claim alone it is that the spec names; empty: it is nobody else's.

    A name by which the operator makes the claim of another one is that one's before the claim is there.
    """
    named = context.spec.repository.claim_name
    if named is None:
        return ""
    owner = names.claim_owner(named) if context.observed.claim is None else made_for(context)
    return owner if owner != context.name else ""


def is_permitted(context: Context) -> bool:
    """Whether the claim is the object's own, or one that the installation lets it name and that is nobody else's."""
    named = context.spec.repository.claim_name
    return named is None or (context.settings.allows_claim(named) and not other_owner(context))


def made_for(context: Context) -> str:
    """Name of the TritonDeployment that the operator made the claim for; empty: none, it is the user's."""
    labels = (context.observed.claim or {}).get("metadata", {}).get("labels") or {}
    is_made = labels.get(names.MANAGED_BY_LABEL) == names.MANAGED_BY
    return str(labels.get(names.TRITON_DEPLOYMENT_LABEL, "")) if is_made else ""


def kept(context: Context) -> str:
    """What the claim keeps although the spec differs, in words; empty if nothing that a user must know."""
    existing = context.observed.claim
    is_made = context.spec.repository.claim_name is None
    fields = _kept_fields(context, existing) if existing is not None and is_made else ""
    return "; ".join(filter(None, (fields, _kept_for_good(context))))


def _kept_for_good(context: Context) -> str:
    """The words that the claim, or an earlier object's files on it, stay although the spec differs, and the release."""
    repository = context.spec.repository
    goes = repository.claim_name is None and repository.retention_policy.when_deleted != "Retain"
    if not (has_files_to_keep(context) or (goes and _is_retained(context))):
        return ""
    name, uid = context.claim_name, context.triton_deployment.uid
    return (
        f"PersistentVolumeClaim {name} was retained: it stays when this object is deleted, and nothing that an earlier"
        f" object left on it is cleaned away; to release it, type: kubectl annotate pvc {name} --namespace"
        f" {context.namespace} --overwrite {names.RELEASE_ANNOTATION}={uid}"
    )


def _kept_fields(context: Context, existing: Mapping[str, Any]) -> str:
    """What the claim keeps although the spec's template differs."""
    template = _template(context)
    spec = existing["spec"]
    fields = []
    if template.storage_class_name not in ("", spec.get("storageClassName", "")):
        fields.append(f"storageClassName {spec.get('storageClassName') or '(none)'}")
    if list(template.access_modes) != spec["accessModes"]:
        fields.append(f"accessModes {', '.join(spec['accessModes'])}")
    if not fields:
        return ""
    return (
        f"PersistentVolumeClaim {existing['metadata']['name']} keeps {' and '.join(fields)}, because Kubernetes changes"
        " neither; set spec.repository.volumeClaimTemplate back, or make another TritonDeployment"
    )


def shared_by_nodes(context: Context) -> bool | None:
    """Whether pods on several nodes may use the claim; None if it is the user's, on which no template depends."""
    return spans_nodes(context) if context.spec.repository.claim_name is None else None


def spans_nodes(context: Context) -> bool:
    """Whether pods on several nodes may use the claim, whoever's it is; False if it is the user's and is not there."""
    existing = context.observed.claim
    if existing is None and context.spec.repository.claim_name is not None:
        return False
    modes = _template(context).access_modes if existing is None else existing["spec"].get("accessModes", ())
    return list(modes) == ["ReadWriteMany"]


def claim_size(context: Context) -> str:
    """The size of the claim, as far as the spec says; of a claim of the user's, a size that few have."""
    return UNKNOWN_SIZE if context.spec.repository.claim_name is not None else _template(context).storage


def _template(context: Context) -> ClaimSpec:
    return (context.spec.repository.volume_claim_template or VolumeClaimTemplate()).spec


def _new(template: ClaimSpec) -> dict[str, Any]:
    spec: dict[str, Any] = {"accessModes": list(template.access_modes), "resources": _request(template.storage)}
    if template.storage_class_name:
        spec["storageClassName"] = template.storage_class_name
    return spec


def _enlarged(existing: Mapping[str, Any], size: str) -> dict[str, Any]:
    """The spec of a claim that exists: the API server lets only its request change, and only grow."""
    has = existing["resources"]["requests"]["storage"]
    asked, held = amount(size), amount(has)
    grows = asked is not None and held is not None and asked > held
    fixed = {field: existing[field] for field in ("accessModes", "storageClassName") if field in existing}
    return fixed | {"resources": _request(size if grows else has)}


def _request(size: str) -> dict[str, Any]:
    return {"requests": {"storage": size}}
