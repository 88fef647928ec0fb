"""The claim that holds everything the Jobs make."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.schema import ApiType, DnsName, Quantity, rules


class ClaimTemplate(ApiType):
    """The PersistentVolumeClaim the operator makes."""

    size: Quantity = "20Gi"
    """Default 20Gi."""
    storage_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Default: the cluster's default StorageClass."""
    access_modes: tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...] = Field(
        default=("ReadWriteOnce",), min_length=1, max_length=1
    )
    """ReadWriteOnce: the object's pods are kept on one node. Default ReadWriteOnce."""


class RetentionPolicy(ApiType):
    """What becomes of the claim the operator made."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """When the object is deleted. Default Delete."""


class Repository(ApiType):
    """The claim that holds sources, references, candidates, revisions and measurements."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("!(has(self.claimName) && has(self.claimTemplate))", "claimName or claimTemplate, not both"),
        )
    )
    claim_name: DnsName | None = None
    """An existing claim; it is not deleted with the object."""
    claim_template: ClaimTemplate | None = None
    """Default: a claim of 20Gi."""
    retention_policy: RetentionPolicy = Field(default_factory=RetentionPolicy)
    """Only for the claim the operator made."""
    revision_history_limit: int = Field(default=3, ge=0, le=20)
    """Revisions that served before and stay on the claim with all that was measured of them, so that going back to one
    is a matter of seconds. Default 3."""
