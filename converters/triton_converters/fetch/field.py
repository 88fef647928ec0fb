"""The field of the spec that a Job reads, for messages: the user corrects what they wrote there."""

from contextvars import ContextVar

FIELD = ContextVar("FIELD", default="spec.source")
"""Set once, from the Job's request. All that a download may fail for names it, down to the last redirect."""


def of(name: str) -> str:
    """Return the path of a field below it, such as ``spec.weights.secretRef``."""
    return f"{FIELD.get()}.{name}"
