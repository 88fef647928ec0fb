"""The log's border: what users' programs and the cluster say reaches no terminal and forges no line."""

import copy
import logging

from triton_converters.contract.text import printable


class PrintableFormatter(logging.Formatter):
    """Formats records as another formatter does, printable, and with each message on one line; tracebacks have many."""

    def __init__(self, formatter: logging.Formatter) -> None:
        """Wrap the formatter of a handler."""
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, which is left as it is for other handlers."""
        safe = copy.copy(record)
        safe.msg, safe.args = " | ".join(record.getMessage().splitlines()), ()
        return printable(self._formatter.format(safe))


def protect(logger: logging.Logger) -> None:
    """Make everything printable that the logger's handlers write."""
    for handler in logger.handlers:
        handler.setFormatter(PrintableFormatter(handler.formatter or logging.Formatter()))
