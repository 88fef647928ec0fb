"""Objects and their children as the operator of 2bb6dae5 left them; README.md says how the file was made."""

import json
import lzma
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.simulation.api_server import owned
from tests.simulation.cluster import Cluster
from triton_operator.api.renamed import rewritten
from triton_operator.settings import Settings

Body = dict[str, Any]
HERE = Path(__file__).parent
STORED: Mapping[str, Body] = {
    name: each
    for file in ("stored-2bb6dae5.json.xz", "late-2bb6dae5.json.xz")
    for name, each in json.loads(lzma.decompress((HERE / file).read_bytes())).items()
}
"""By the name of the state."""


@dataclass(frozen=True)
class State:
    """A TritonDeployment of 2bb6dae5 after a pass that had nothing left to do, and where it is."""

    now: datetime
    settings: Settings
    gpu_product_exists: bool | None
    has_keda: bool
    has_gateway_api: bool
    body: Body
    children: list[Body]

    @property
    def renamed(self) -> "State":
        """The state after its user wrote the new names, and nothing else."""
        metadata = {**self.body["metadata"], "generation": self.body["metadata"]["generation"] + 1}
        return replace(self, body={**self.body, "metadata": metadata, "spec": rewritten(self.body["spec"])})

    def cluster(self) -> Cluster:
        """A cluster of the simulation that holds it, run by the operator of this tree with newer images."""
        return Cluster(
            deepcopy(self.body["spec"]),
            settings=replace(self.settings, converter_image="example/converter:2", server_image="example/server:2"),
            gpu_product_exists=self.gpu_product_exists,
            has_keda=self.has_keda,
            has_gateway_api=self.has_gateway_api,
            now=self.now,
            generation=self.body["metadata"]["generation"],
            status=deepcopy(self.body["status"]),
            objects={
                (body["kind"], body["metadata"]["name"]): owned(body, body, 1) for body in deepcopy(self.children)
            },
            serial=1000,
        )


def state(name: str) -> State:
    """The state of that name."""
    found = STORED[name]
    settings: Any = {
        field: tuple(value) if isinstance(value, list) else value for field, value in found["settings"].items()
    }
    return State(
        now=datetime.fromisoformat(found["now"]),
        settings=Settings(**settings),
        gpu_product_exists=found["gpuProductExists"],
        has_keda=found["hasKeda"],
        has_gateway_api=found["hasGatewayApi"],
        body=found["body"],
        children=found["children"],
    )
