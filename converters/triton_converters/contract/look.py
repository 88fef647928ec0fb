"""A look: which version of a source its server has now. Nothing of the source is downloaded. Standard library only."""

from dataclasses import dataclass

from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.document import Document, DocumentError

LONGEST = 256
"""Most characters of a version and of its label: both stand in the status."""


@dataclass(frozen=True)
class LookRequest(Document):
    """Ask the server of a source which version it has now."""

    key: str
    source: SourceRequest
    """The request by which the source is downloaded; its ``key`` and ``version`` do not matter here."""


@dataclass(frozen=True)
class LookResult(Document):
    """The version that the server has now."""

    version: str
    """What identifies the content; as ``SourceRequest.version`` it asks for just that."""
    exact: bool
    """Whether a version is whole as soon as it is there, as commits and digests are. A folder or a file may be half
    written: two looks must find the same."""
    label: str
    """What a person reads, such as ``version 7 (champion)``."""

    def __post_init__(self) -> None:
        """Raise DocumentError for a text that is empty, too long, or not printable."""
        for name in ("version", "label"):
            text = getattr(self, name)
            if not text or len(text) > LONGEST or not text.isprintable():
                raise DocumentError(f"the {name} of the source is not a text of 1 to {LONGEST} printable characters")
