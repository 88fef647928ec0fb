"""The fields that a log line in JSON has besides its message: which object it is about.

Whatever a pass calls need not know them.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FIELDS: ContextVar[dict[str, object] | None] = ContextVar("fields", default=None)


@contextmanager
def fields(**known: object) -> Iterator[None]:
    """Give all log lines of the block these fields, and those that `add` names inside it."""
    token = _FIELDS.set(known)
    try:
        yield
    finally:
        _FIELDS.reset(token)


def add(**known: object) -> None:
    """Give the log lines of the rest of the block further fields."""
    found = _FIELDS.get()
    if found is not None:
        found.update(known)


class FieldsFilter(logging.Filter):
    """Lets every record pass, with the block's fields. A record that has a field of its own keeps it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True."""
        for name, value in (_FIELDS.get() or {}).items():
            vars(record).setdefault(name, value)
        return True
