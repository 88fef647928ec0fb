"""A TritonDeployment as one pass sees it."""

import itertools
import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from triton_converters.contract.document import DEPTH_LIMIT, is_deeper
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_operator.api.repository import Repository
from triton_operator.api.schema import ApiType
from triton_operator.api.serving import Serving
from triton_operator.api.source import FOLLOWS
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.names import (
    API_VERSION,
    KIND,
    REQUEST_ANNOTATION,
    RETRY_ANNOTATION,
    UPDATE_IMAGES_ANNOTATION,
    claim,
    digest,
    is_inherited,
)

FieldPath = tuple[int | str, ...]
"""Where a value is: the fields and the numbers of items on the way to it."""
LONGEST_SPEC_BYTES = 64 * 1024
"""A Job gets its request, which holds much of the spec, as one argument, and Linux takes no argument above 128 KiB.

The annotations of a Deployment, one of which holds its pods' template, may have 256 KiB together.
"""
CHANGES_NOTHING: dict[str, Any] = {
    "suspend": True,
    "revision_history_limit": True,
    "rollout": {"on_inconclusive"},
    "publish": True,
    "serving": {"replicas", "progress_deadline_seconds"},
}
"""Fields of the spec that do not change what serves: autoscalers write the replicas, and the others say how long is
waited, what is kept and where it is published."""
_APPROVES: Mapping[str, Any] = {"selection": {"approval", "approved_revision"}}
"""Fields of the spec by which a person approves, which change nothing of how candidates rank."""
_ROUNDS = 8
"""More than the status has levels: a value that is left out may be required by what holds it, and so on."""


class InvalidSpecError(ValueError):
    """The operator does not understand the spec; the message names the fields."""

    reason = Reason.INVALID_SPEC

    def __init__(self, message: str, faults: Mapping[FieldPath, str] | None = None) -> None:
        super().__init__(message)
        self.faults = faults or {}
        """What is wrong, by the place in the spec; empty: it is wrong as a whole."""


LONGEST_LABELS_BYTES = 16 * 1024
"""The most bytes of labels that children get from their object: each of some thirty has them, a server's pods too."""
LONGEST_STATUS_BYTES = 256 * 1024
"""The longest status that is read: eight times what this operator writes, in case a newer one writes more."""
_REFUSED = "refused"
"""Beside the spec in a body that is kept: why it is refused. It is not whole then. Users' objects have none."""
_WORDS = {
    "extra_forbidden": "there is no such field, or the operator sets it itself: correct or remove it",
    "model_type": "must be an object: correct it",
    "list_type": "must be a list: correct it",
}
"""What is said of a field that the CRD leaves open, by pydantic's type of the fault."""
_UNREAD = ("ownerReferences", "finalizers")
_READ_ANNOTATIONS = (RETRY_ANNOTATION, UPDATE_IMAGES_ANNOTATION, REQUEST_ANNOTATION)
LONGEST_REQUEST = 64
"""Characters of the annotation that asks for a look, which the status repeats: a time, or the id of a pipeline."""


@dataclass(frozen=True)
class TritonDeployment:
    """The identity, the spec and the last written status of an object."""

    namespace: str
    name: str
    uid: str
    generation: int
    retry: str
    """A digest of the retry annotation; empty: there is none."""
    update_images: str
    """A digest of the annotation that asks once for the images of the installation; empty: there is none."""
    goal_digest: str
    """A digest of what the spec says, without what changes nothing that serves."""
    ranking_digest: str
    """A digest of what the spec says, without that and without what a person approves."""
    spec: TritonDeploymentSpec
    status: TritonDeploymentStatus
    labels: Mapping[str, str] = field(default_factory=dict)
    """The object's own labels, as far as its children get them."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """The object's own annotations, as far as its children may get them; the installation says which of them do."""
    requested_at: str = ""
    """The annotation that asks for a look, without what a status cannot repeat; empty: there is none."""
    created_at: str = ""
    """When the object was made, as the API server writes it."""

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
    if why := body.get(_REFUSED):
        raise InvalidSpecError(why)
    _check_size(body.get("spec", {}))
    if _length(labels := _inherited(body["metadata"].get("labels"))) > LONGEST_LABELS_BYTES:
        raise InvalidSpecError(
            f"metadata.labels has more than {LONGEST_LABELS_BYTES} bytes, of {len(labels)} labels or more, and all that"
            " the operator makes for the object would have them: remove labels"
        )
    try:
        spec = TritonDeploymentSpec.model_validate(body.get("spec", {}))
    except ValidationError as error:
        faults = {fault["loc"]: _words(fault) for fault in error.errors()}
        told = (f"spec.{'.'.join(map(str, place))}: {words}" for place, words in faults.items())
        raise InvalidSpecError("; ".join(told), faults) from error
    return _with_spec(body, spec, (_goal_digest(spec), _goal_digest(spec, _APPROVES)))


def _words(fault: ErrorDetails) -> str:
    return _WORDS.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")


def parse_kept(body: dict[str, Any]) -> TritonDeployment:
    """Return an object whose spec `parse` refuses, with what of the spec says how an active revision is kept.

    Of `serving` and `repository` these are the fields that are valid by themselves. All other
    fields of the spec have their defaults, and those without one are missing. Never raises.
    """
    stored = body.get("spec") or {}
    parts: dict[str, type[ApiType]] = {"serving": Serving, "repository": Repository}
    said = {field: stored[field] for field in parts if field in stored and not is_deeper(stored[field])}
    understood: dict[str, Any] = {field: _understood(part, said.get(field)) for field, part in parts.items()}
    return _with_spec(body, TritonDeploymentSpec.model_construct(**understood), ("", ""))


def _understood(part: type[ApiType], said: Any) -> ApiType:
    """Return a part of a spec with those of its fields that are valid by themselves."""
    found = part()
    for name, value in said.items() if isinstance(said, dict) else ():
        try:
            alone = part.model_validate({name: value})
        except ValidationError:
            continue
        found = found.model_copy(update={each: getattr(alone, each) for each in alone.model_fields_set})
    return found


def _with_spec(body: dict[str, Any], spec: TritonDeploymentSpec, digests: tuple[str, str]) -> TritonDeployment:
    metadata = body["metadata"]
    return TritonDeployment(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        retry=_noted(metadata, RETRY_ANNOTATION),
        update_images=_noted(metadata, UPDATE_IMAGES_ANNOTATION),
        goal_digest=digests[0],
        ranking_digest=digests[1],
        spec=spec,
        status=parse_status(body),
        labels=labels if _length(labels := _inherited(metadata.get("labels"))) <= LONGEST_LABELS_BYTES else {},
        annotations=_inherited(metadata.get("annotations")),
        requested_at=_repeatable((metadata.get("annotations") or {}).get(REQUEST_ANNOTATION, "")),
        created_at=metadata.get("creationTimestamp", ""),
    )


def bounded(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with what is read of it, so that whoever may make objects cannot fill the operator's memory.

    Of too many labels one more is kept than are taken. Of a spec that is too long the short fields are kept, which say
    how an active revision is kept, and beside them what `parse` says of it.
    """
    metadata = {key: value for key, value in body["metadata"].items() if key not in _UNREAD}
    notes = metadata.get("annotations") or {}
    read = {key: notes[key] for key in _READ_ANNOTATIONS if key in notes}
    kept = {
        "labels": _shortest(_inherited(metadata.get("labels")), LONGEST_LABELS_BYTES, 1),
        "annotations": read | _shortest(_inherited(notes), LONGEST_LABELS_BYTES),
    }
    taken = {**body, "metadata": metadata | {key: value for key, value in kept.items() if key in metadata}}
    status = body.get("status", {})
    if is_deeper(status) or len(json.dumps(status)) > LONGEST_STATUS_BYTES:
        taken |= {"status": {}}
    try:
        _check_size(body.get("spec", {}))
    except InvalidSpecError as error:
        texts = {key: json.dumps(value) for key, value in body["spec"].items() if not is_deeper(value)}
        fields = _shortest(texts, LONGEST_SPEC_BYTES)
        taken |= {"spec": {key: body["spec"][key] for key in fields}, _REFUSED: str(error)}
    return taken


def _shortest(given: Mapping[str, str], most: int, more: int = 0) -> dict[str, str]:
    """Return the shortest entries, as many as have at most so many characters together, and some more."""
    by_length = dict(sorted(given.items(), key=lambda entry: len(entry[1])))
    lengths = itertools.accumulate(len(key) + len(value) for key, value in by_length.items())
    count = sum(length <= most for length in lengths) + more
    return dict(itertools.islice(by_length.items(), count))


def _length(labels: Mapping[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in labels.items())


def _inherited(given: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (given or {}).items() if is_inherited(key)}


def _noted(metadata: dict[str, Any], annotation: str) -> str:
    """Return a digest of an annotation, whose text is anybody's; empty: there is none."""
    text = (metadata.get("annotations") or {}).get(annotation)
    return digest(text, 10) if text else ""


def _repeatable(text: str) -> str:
    return printable(text).strip()[:LONGEST_REQUEST]


def _goal_digest(spec: TritonDeploymentSpec, others: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the digest. What the user left out is left out, so that a newer operator's defaults do not change it.

    ``others``: further fields that are left out of it.
    """
    sources = (("source", spec.source), ("weights", spec.weights), ("dataset", spec.dataset))
    looks_again = {field for field, files in sources if files is not None and not files.version_names_files}
    without: dict[str, Any] = {**CHANGES_NOTHING, **others} | {field: {"version"} for field in looks_again}
    without["source"] = without.get("source", set()) | FOLLOWS
    if not spec.serving.serves:
        # The image is all that such an object is for.
        del without["publish"]
    said = spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=without)
    return digest({field: value for field, value in said.items() if value != {}}, 16)


def _check_size(spec: dict[str, Any]) -> None:
    """Raise InvalidSpecError for a spec that is too long or too deep, whatever makes it so."""
    if deep := [field for field, value in spec.items() if is_deeper(value)]:
        raise InvalidSpecError(f"spec.{deep[0]} is nested more than {DEPTH_LIMIT} levels deep: correct it")
    # As in a request: characters that are not ASCII are escaped.
    sizes = {field: len(json.dumps(value)) for field, value in spec.items()}
    if (size := sum(sizes.values())) > LONGEST_SPEC_BYTES:
        largest = max(sizes, key=lambda field: sizes[field])
        raise InvalidSpecError(
            f"the spec has {size} bytes as JSON, more than {LONGEST_SPEC_BYTES}: shorten it; most are in spec.{largest}"
        )


def parse_status(body: dict[str, Any]) -> TritonDeploymentStatus:
    """Return the last written status without what this operator does not understand; never raises.

    A newer operator may have written it. The rest is kept, above all the pinned images: without them everything would
    be converted anew.
    """
    status = body.get("status", {})
    for _ in range(_ROUNDS):
        try:
            return TritonDeploymentStatus.model_validate(status, by_alias=True, by_name=False)
        except ValidationError as error:
            if not isinstance(status, dict):
                break
            status = _without(status, [fault["loc"] for fault in error.errors()])
    return TritonDeploymentStatus()


def _without(status: dict[str, Any], places: Iterable[FieldPath]) -> dict[str, Any]:
    """Return a copy without these places. For a place that is missing, that which should hold it is left out."""
    copy = deepcopy(status)
    # Backwards, because the items after one that is deleted get other numbers.
    for *way, last in sorted({_existing(copy, place) for place in places}, reverse=True):
        holder: Any = copy
        for step in way:
            holder = holder[step]
        del holder[last]
    return copy


def _existing(status: dict[str, Any], place: FieldPath) -> FieldPath:
    """Return a place as far as the status has it."""
    holder: Any = status
    for depth, step in enumerate(place):
        if not (step in holder if isinstance(holder, dict) else isinstance(holder, list)):
            return place[:depth]
        holder = holder[step]
    return place
