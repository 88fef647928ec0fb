"""The PersistentVolumeClaim that holds the model repository."""

from typing import Any

from triton_operator import names
from triton_operator.api.repository import ClaimTemplate
from triton_operator.context import Context


def claim(context: Context) -> dict[str, Any] | None:
    """The claim that the operator makes; None if the spec names an existing one."""
    repository = context.spec.repository
    if repository.claim_name is not None:
        return None
    template = repository.claim_template or ClaimTemplate()
    metadata = context.metadata(names.claim(context.name), "repository")
    if repository.retention_policy.when_deleted == "Retain":
        del metadata["ownerReferences"]
    spec: dict[str, Any] = {
        "accessModes": list(template.access_modes),
        "resources": {"requests": {"storage": template.size}},
    }
    if template.storage_class_name:
        spec["storageClassName"] = template.storage_class_name
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def shared_by_nodes(context: Context) -> bool | None:
    """Whether pods on several nodes may use the claim; None, not known, if the claim is the user's."""
    repository = context.spec.repository
    if repository.claim_name is not None:
        return None
    return (repository.claim_template or ClaimTemplate()).access_modes == ("ReadWriteMany",)
