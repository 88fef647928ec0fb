"""A TritonDeployment as one pass sees it."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.names import API_VERSION, KIND, RETRY_ANNOTATION, claim, digest


class InvalidSpecError(ValueError):
    """The operator does not understand the spec; the message names the fields."""


@dataclass(frozen=True)
class TritonDeployment:
    """The identity, the spec and the last written status of an object."""

    namespace: str
    name: str
    uid: str
    generation: int
    retry: str
    """A digest of the retry annotation; empty: there is none."""
    spec: TritonDeploymentSpec
    status: TritonDeploymentStatus

    @property
    def claim_name(self) -> str:
        """Name of the repository claim: the spec's, or that of the claim the operator makes."""
        return self.spec.repository.claim_name or claim(self.name)

    @property
    def owner_reference(self) -> dict[str, Any]:
        """The owner reference that lets the garbage collector delete a child with this object."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            # Not blockOwnerDeletion: where that is enforced it takes a right to the object's finalizers.
            "controller": True,
        }


def parse(body: dict[str, Any]) -> TritonDeployment:
    """Return the object that a body of the API describes. Raises InvalidSpecError."""
    metadata = body["metadata"]
    try:
        spec = TritonDeploymentSpec.model_validate(body.get("spec", {}))
    except ValidationError as error:
        faults = (f"spec.{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise InvalidSpecError("; ".join(faults)) from error
    return TritonDeployment(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        retry=digest(retry, 10) if (retry := (metadata.get("annotations") or {}).get(RETRY_ANNOTATION)) else "",
        spec=spec,
        status=parse_status(body),
    )


def parse_status(body: dict[str, Any]) -> TritonDeploymentStatus:
    """Return the last written status, or an empty one if this operator does not understand it."""
    try:
        return TritonDeploymentStatus.model_validate(body.get("status", {}))
    except ValidationError:
        return TritonDeploymentStatus()
