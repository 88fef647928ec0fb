"""A pod spec that every kubelet runs, and what of the specs is the same for all of them."""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.local import pods

Body = dict[str, Any]
CONVERTER, SERVER, SYSTEM = "converter", "server", "system"
"""What stands for images in specs: each kubelet has its own for them. The last one has a shell."""
SCHEDULED = ("affinity", "nodeSelector", "tolerations", "runtimeClassName", "topologySpreadConstraints")
"""What only a scheduler or another node reads."""
USER = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}
CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


SYSTEM_IMAGE = replace(
    pods.SYSTEM,
    directory="/tmp",
    environment={
        **pods.SYSTEM.environment,
        **dict.fromkeys(("OMP_WAIT_POLICY", "ORT_DISABLE_TELEMETRY", "PYTHONPATH", "USER"), ""),
        **dict.fromkeys(("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"), "1"),
    },
)
"""This machine's own programs, with the folder and the variables of the converter's image."""


@dataclass(frozen=True)
class Case:
    """One pod."""

    name: str
    """The pod's, so that it may be a label of DNS."""
    spec: Body
    labels: Body = field(default_factory=dict)
    stays: bool = False
    """Whether it does not end by itself: what it then says counts once nothing changes any more."""
    plain: bool = True
    """Whether Plain may run it: it keeps a program from nothing, so what this one sees or writes is the machine's."""

    @property
    def kind(self) -> str:
        """Of the object that has such pods."""
        return "Job" if self.spec.get("restartPolicy") == "Never" else "Deployment"

    @property
    def containers(self) -> list[Body]:
        """All containers, in the order of their start."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    def with_own_claims(self) -> Body:
        """The spec with claims that no other pod has, so that each begins with empty ones."""
        spec: Body = deepcopy(self.spec)
        for each in spec.get("volumes", []):
            if "persistentVolumeClaim" in each:
                source = each["persistentVolumeClaim"]
                source["claimName"] = f"{self.name}.{source['claimName']}"
        return spec


def claims(spec: Body) -> set[str]:
    """The names of the claims that the volumes of a spec are."""
    volumes = spec.get("volumes", [])
    return {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}


def runnable(template: Body) -> Body:
    """The spec of a template of the operator's, without what is a scheduler's, and with images by their roles."""
    spec: Body = deepcopy(template["spec"])
    for name in SCHEDULED:
        spec.pop(name, None)
    for each in (*spec.get("initContainers", []), *spec["containers"]):
        each["image"] = CONVERTER if "converter" in each["image"] else SERVER
        each["resources"] = {}
    return spec
