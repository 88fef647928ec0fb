"""What a signed image says of itself: the predicate of its attestation. Standard library only.

Whoever checks an image reads this, so a field keeps its meaning as long as PREDICATE_TYPE stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract.document import Document
from triton_converters.contract.measurement_requests import ServedModel, Tolerance
from triton_converters.contract.results import Environment, Row, Signature

PREDICATE_TYPE = "https://triton-operator.dev/verified-model/v1"
"""The predicateType of the in-toto statement."""
LARGEST = 48 * 1024
"""Most bytes of a predicate. It is a part of a Job's argument, where each of its quotation marks takes two bytes more,
and Linux takes none of more than 128 KiB (MAX_ARG_STRLEN)."""


@dataclass(frozen=True)
class Origin:
    """Files that a revision was made from."""

    uri: str
    version: str = ""
    """What their server called the version that was read: a commit, a digest, an entity tag; empty: nothing."""
    digest: str = ""
    """SHA-256 as docs/source.md defines it, 64 hexadecimal digits; empty: the data was mounted, and has none."""


@dataclass(frozen=True)
class Identity:
    """What was asked for, and of which files."""

    namespace: str
    name: str
    source: Origin
    spec_digest: str
    """SHA-256 of the spec in canonical JSON."""
    weights: Origin | None = None
    data: Origin | None = None
    spec: Mapping[str, Any] | None = None
    """The spec without its defaults, without the values of variables, and without what changes nothing that serves,
    such as replicas; None: it is too long."""


@dataclass(frozen=True)
class AttestedRevision:
    """What was published."""

    key: str
    content: str
    """SHA-256 of all its files (``claim_store.revision.content_digest``)."""
    candidate: str
    model: str
    """The name under which it is served."""
    models: tuple[ServedModel, ...]
    """The models that compute; of an ensemble its members."""
    data_types: tuple[str, ...]
    """Floating point types of the converted files' weights."""
    configuration: str
    """SHA-256 of the models' settings in canonical JSON."""


@dataclass(frozen=True)
class AttestedImage:
    """An image that something ran in."""

    name: str
    digest: str = ""
    """The digest that the kubelet reported; empty: none."""


@dataclass(frozen=True)
class AttestedGates:
    """The comparison with the framework's answers, which the revision passed."""

    signature: Signature
    """With the largest batch of the candidate."""
    precision: str
    tolerance: Tolerance
    max_absolute_error: float
    """The worst value: the largest absolute error of all floating point outputs."""
    samples: int
    reference: str
    """Key of the reference."""
    samples_digest: str
    """SHA-256 of the reference's samples and the framework's answers (``claim_store.samples.digest``)."""
    message: str
    """What was compared, in words."""


@dataclass(frozen=True)
class AttestedMetric:
    """A metric that the user's code computed."""

    name: str
    framework: str
    served: str
    threshold: str = ""
    """In words; empty: none."""


@dataclass(frozen=True)
class AttestedFigures:
    """What was measured on a private server of the revision."""

    measured_at: str
    """RFC 3339, UTC; empty: not recorded."""
    environment: Environment
    offline: tuple[Row, ...]
    online: tuple[Row, ...]
    request_rate: tuple[Row, ...]


@dataclass(frozen=True)
class Predicate(Document):
    """Why a revision was let through."""

    identity: Identity
    revision: AttestedRevision
    images: tuple[AttestedImage, ...]
    """The images of the server and of the converters."""
    gates: AttestedGates
    metrics: tuple[AttestedMetric, ...]
    figures: AttestedFigures
    local: bool
    """Whether processes of one machine did all this, without a cluster."""
