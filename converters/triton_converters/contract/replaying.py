"""What is asked of a replay, and what it answers: whether an image still answers as its signed report says.

Standard library only.
"""

from dataclasses import dataclass

from triton_converters.contract.document import Document

IMAGE, PREDICATE = "image", "predicate.json"
"""In INCOMING_MOUNT: the folder with the image's `models`, and the predicate that the key signed."""


@dataclass(frozen=True)
class ReplayRequest(Document):
    """Fetch an image that a key signed; or, once it is served, send its samples."""

    host: str
    """The registry's, with its port."""
    name: str
    digest: str
    """``sha256:HEX`` of the image's manifest."""
    grpc: str = ""
    """host:port of the server's gRPC; empty: nothing is sent, the image is fetched."""
    http: str = ""


@dataclass(frozen=True)
class ReplayResult(Document):
    """How the answers compare with those of the framework, by the report's tolerance."""

    repeats: bool
    message: str
    """What was compared, or what differs."""
    samples: int = 0
    max_absolute_error: float = 0.0
    server_version: str = ""
    cpu: str = ""
    """The processor, and the number of cores."""
    reports: int = 1
    """How many reports the key signed of the image; the newest one counts."""
