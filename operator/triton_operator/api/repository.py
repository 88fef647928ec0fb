"""The repository claim, which holds everything that the Jobs make."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.schema import ApiType, DnsName, Quantity, rules


class ClaimTemplate(ApiType):
    """The PersistentVolumeClaim that the operator creates."""

    size: Quantity = "20Gi"
    """Storage that the claim requests. Default: 20Gi."""
    storage_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Name of the claim's StorageClass. Default: the default StorageClass of the cluster."""
    access_modes: tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...] = Field(
        default=("ReadWriteOnce",), min_length=1, max_length=1
    )
    """Access mode of the claim. With ReadWriteOnce the operator keeps all pods of the object on one node. Default:
    ReadWriteOnce."""


class RetentionPolicy(ApiType):
    """What happens to the claim that the operator created."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """What happens to the claim when the object is deleted. Default: Delete."""


class Repository(ApiType):
    """The claim with the sources, the references, the model repository and the measurements."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!(has(self.claimName) && has(self.claimTemplate))",
                "claimName and claimTemplate exclude each other: set one of them",
            ),
        )
    )
    claim_name: DnsName | None = None
    """Name of an existing claim. The operator does not delete it with the object. It excludes `claimTemplate`. Default:
    none; the operator creates a claim."""
    claim_template: ClaimTemplate | None = None
    """The claim that the operator creates. It excludes `claimName`. Default: a claim of 20Gi."""
    retention_policy: RetentionPolicy = Field(default_factory=RetentionPolicy)
    """What happens to the claim that the operator created. It does not apply to `claimName`."""
    revision_history_limit: int = Field(default=3, ge=0, le=20)
    """Number of earlier active revisions that stay on the claim with their records, so that going back to one takes
    seconds. Default: 3."""
