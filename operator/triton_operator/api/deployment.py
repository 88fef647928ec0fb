"""A TritonDeployment as one pass sees it."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.names import API_VERSION, KIND


class InvalidSpecError(ValueError):
    """The spec is not one this operator understands; the message names the fields."""


@dataclass(frozen=True)
class TritonDeployment:
    """Identity, spec and last written status."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: TritonDeploymentSpec
    status: TritonDeploymentStatus

    @property
    def owner_reference(self) -> dict[str, Any]:
        """Puts a child under the garbage collector's care."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            # Not blockOwnerDeletion: where that is enforced it takes a right to the object's finalizers.
            "controller": True,
        }


def parse(body: dict[str, Any]) -> TritonDeployment:
    """Read an object of the API; raises InvalidSpecError."""
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
        spec=spec,
        status=parse_status(body),
    )


def parse_status(body: dict[str, Any]) -> TritonDeploymentStatus:
    """The last written status; one that this operator does not understand counts as none."""
    try:
        return TritonDeploymentStatus.model_validate(body.get("status", {}))
    except ValidationError:
        return TritonDeploymentStatus()
