"""Which Deployment is active, as recorded in the results ConfigMap before the Service moves to it. Pure.

The Service's selector alone does not tell: somebody may have edited it by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract.document import Document
from triton_operator.observed.revision import check_names


@dataclass(frozen=True)
class ActiveRecord(Document):
    """The active revision's Deployment."""

    server: str
    """Name of the active revision's Deployment."""
    uid: str
    revision: str
    """Key of the active revision."""
    model: str
    """The name under which it serves the model, which an edit of the spec may change before it is replaced."""
    deployment: Mapping[str, Any]
    """What the Deployment was made as, without replicas, for the case that somebody deletes it; empty: nothing was to
    serve, so there is none."""
    met: str = ""
    """A digest of the spec that is met while it serves; empty: none is yet."""
    previous: str = ""
    """Name of the Deployment that was active before. As long as the Service points to it, the move was not made. Empty:
    there was none."""
    held: str = ""
    """A digest of the spec whose `rollout.revision` it is; empty: the field is not set."""
    status: Mapping[str, Any] | None = None
    """What the status is to tell of the revision; None: it tells of it."""

    def __post_init__(self) -> None:
        """Raise DocumentError for names that are none: whoever may edit the ConfigMap may have written them."""
        check_names(self.server, self.model, self.revision)

    @property
    def has_server(self) -> bool:
        """Whether the revision serves, or did; else it passed while nothing was to serve."""
        return bool(self.deployment)

    @property
    def template(self) -> dict[str, Any]:
        """The template of the Deployment's pods; empty if the record has none."""
        spec = self.deployment.get("spec")
        template = spec.get("template") if isinstance(spec, dict) else None
        return template if isinstance(template, dict) else {}
