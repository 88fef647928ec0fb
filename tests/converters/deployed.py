"""A folder of a Triton repository on a claim, and an object of it that is settled by the Jobs' own programs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from tests.converters.test_smallest_object import Ran
from tests.simulation.cluster import Cluster
from triton_converters.contract import layout

Deploy = Callable[..., tuple[Cluster, Ran]]


def settled(files: dict[str, bytes | str], **model: Any) -> tuple[Cluster, Ran]:
    """Settle an object of the folder ``models/ocr``; needs the fixture ``mount``."""
    for name, content in files.items():
        place = layout.SOURCE_MOUNT / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = Ran()
    given = {"name": "reader", "path": "models/ocr"} | model
    cluster = Cluster({"source": {"uri": "pvc://claim"}, "models": [given]}, ran)
    cluster.settle()
    return cluster, ran


def served(ran: Ran) -> tuple[Path, Any]:
    """The folder that the server is given, and its config.pbtxt."""
    folder = layout.model_repository(ran.requests["convert"].key) / "reader"
    return folder, text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def stalled(cluster: Cluster) -> tuple[str, str]:
    """Why it does not go on."""
    found = cluster.condition("Stalled")
    assert found["status"] == "True", cluster.condition("Ready")
    return found["reason"], found["message"]
