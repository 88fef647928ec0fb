"""The repository claim, which holds everything that the Jobs make."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.quantity import Quantity
from triton_operator.api.schema import ApiType, DnsName, rules


class ClaimRequests(ApiType):
    """What the claim requests."""

    storage: Quantity = "20Gi"
    """Size of the claim. A larger one enlarges an existing claim, if its StorageClass can. Default: 20Gi."""


class ClaimResources(ApiType):
    """The resources of the claim."""

    requests: ClaimRequests = Field(default_factory=ClaimRequests)
    """What the claim requests."""


class ClaimSpec(ApiType):
    """The spec of the PersistentVolumeClaim that the operator creates."""

    resources: ClaimResources = Field(default_factory=ClaimResources)
    """The resources of the claim."""
    storage_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Name of the claim's StorageClass. Default: that of the cluster."""
    access_modes: tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...] = Field(
        default=("ReadWriteOnce",), min_length=1, max_length=1
    )
    """Access mode of a new claim. With `ReadWriteOnce` all pods of the object run on one node. Default:
    ReadWriteOnce."""

    @property
    def storage(self) -> str:
        """Storage that the claim requests."""
        return self.resources.requests.storage


class VolumeClaimTemplate(ApiType):
    """The PersistentVolumeClaim that the operator creates, as the template of a StatefulSet has it."""

    spec: ClaimSpec = Field(default_factory=ClaimSpec)
    """The spec of the claim."""


class RetentionPolicy(ApiType):
    """Whether the claim that the operator created outlives the object."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """Whether the claim goes with the object. A retained one stays until its annotation `triton-operator.dev/release`
    has a later object's uid. Default: Delete."""


class Repository(ApiType):
    """The PersistentVolumeClaim with the sources, the references, the model repository and the records."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!(has(self.claimName) && has(self.volumeClaimTemplate))",
                "claimName and volumeClaimTemplate must not be set together: remove one of them",
            ),
        )
    )
    claim_name: DnsName | None = None
    """Name of an existing claim to use, which the operator never deletes. Default: none; the operator creates a
    claim."""
    volume_claim_template: VolumeClaimTemplate | None = None
    """The claim that the operator creates. Not together with `claimName`. Default: a claim of 20Gi."""
    retention_policy: RetentionPolicy = Field(default_factory=RetentionPolicy)
    """Whether the claim that the operator created outlives the object."""
