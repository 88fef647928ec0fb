"""A TritonDeployment as its user reads it: conditions, candidates, what serves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.kubectl import Object


@dataclass(frozen=True)
class State:
    """One observed version of the object."""

    object: Object

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.object["metadata"]["namespace"])

    @property
    def generation(self) -> int:
        """Of the spec."""
        return int(self.object["metadata"]["generation"])

    @property
    def status(self) -> Mapping[str, Any]:
        """As it is."""
        status: Mapping[str, Any] = self.object.get("status", {})
        return status

    def condition(self, kind: str) -> Mapping[str, Any]:
        """The condition of the present generation; empty where there is none yet."""
        if self.status.get("observedGeneration") != self.generation:
            return {}
        found = (each for each in self.status.get("conditions", []) if each["type"] == kind)
        return next((each for each in found if each["observedGeneration"] == self.generation), {})

    def holds(self, kind: str) -> bool:
        """Whether the condition is True for the present generation."""
        return self.condition(kind).get("status") == "True"

    def says(self, kind: str, reason: str) -> bool:
        """Whether the condition is not True, for this reason."""
        condition = self.condition(kind)
        return condition.get("status") in ("False", "Unknown") and condition["reason"] == reason

    @property
    def candidates(self) -> Mapping[str, Mapping[str, Any]]:
        """By name."""
        return {each["name"]: each for each in self.status.get("candidates", [])}

    @property
    def revision(self) -> str:
        """Key of the revision that serves; empty: none."""
        serving: Mapping[str, Any] = self.status.get("serving") or {}
        return str(serving.get("revision", ""))

    def summary(self) -> str:
        """Conditions and candidates, a line each, for a failed assertion."""
        lines = [
            f"{self.namespace}/{self.name} generation {self.generation}, observed "
            f"{self.status.get('observedGeneration')}, serves {self.revision or 'nothing'}"
        ]
        conditions = self.status.get("conditions", [])
        lines += [f"  {each['type']}={each['status']} {each['reason']}: {each['message']}" for each in conditions]
        for name, each in self.candidates.items():
            lines.append(f"  candidate {name}: {each['state']} {each.get('reason', '')}: {each.get('message', '')}")
        return "\n".join(lines)
