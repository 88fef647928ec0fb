"""Says which images of the installation an object does not have yet, and what an update to them does. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from triton_operator.api.status import Images
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.tables import Grid

HEADINGS = ("Object", "Field", "Keeps", "The installation has")


def table(subjects: Sequence[Subject]) -> Grid:
    """Return what differs, a row for each field of each object."""
    return Grid("Images", HEADINGS, [row for each in subjects for row in _rows(each)])


def with_other_images(subjects: Sequence[Subject]) -> list[Subject]:
    """Return the objects that keep other images than the installation has."""
    return [each for each in subjects if each.status.new_images is not None]


def refusal(subject: Subject) -> str:
    """Return why to ask for the images would do nothing, in words; empty: it does something."""
    return "takes no images while spec.rollout.revision is set" if subject.rollback_condition else _pending(subject)


def _pending(subject: Subject) -> str:
    """Return the state of an update that was asked for already; empty: none was."""
    if _image_fields(subject.status.new_images) != _image_fields(subject.status.images):
        return ""
    condition = subject.newer_condition or subject.condition("Ready")
    return f"asked for already, not active yet ({condition.reason if condition else 'Pending'})"


def _rows(subject: Subject) -> Iterator[tuple[str, str, str, str]]:
    if pending := _pending(subject):
        yield subject.name, "all", pending, "see status.newImages"
    new_fields, own_fields = _image_fields(subject.status.new_images), _image_fields(subject.status.images)
    for field, value in new_fields.items():
        if value != own_fields.get(field):
            yield subject.name, field, _value_text(own_fields.get(field)), _value_text(value)


def _image_fields(images: Images | None) -> dict[str, Any]:
    return images.model_dump(by_alias=True, exclude={"spec_digest", "request_digest"}) if images is not None else {}


def _value_text(value: Any) -> str:
    """Return a field's value in words; most are an image, some are flags or say what the images can do."""
    if isinstance(value, list):
        return " ".join(value) or "none"
    return "none" if value in (None, "") else str(value)
