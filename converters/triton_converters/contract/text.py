"""Safe handling of text that people read and that anybody may have written. Standard library only."""

from datetime import datetime


def printable(text: str, replacement: str = " ") -> str:
    """Return the text without what a terminal obeys or hides; tabs and line ends stay.

    That is ESC and all other control characters, C1 controls and NUL among them, marks that change the direction of
    writing, characters without a width, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else replacement for each in text)


QUOTED_CHARACTERS = 60
"""Longest name that a sentence quotes whole: eight of them fit into an entry of the status."""


def quoted(name: str) -> str:
    """Return a name that anybody may have given, such as a file's, in quotation marks, in ASCII and bounded.

    Without them a name can be a sentence, which its reader takes for the operator's.
    """
    text = ascii(name)
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[: QUOTED_CHARACTERS - 4]}...{text[-1]}"


def is_time(text: str) -> bool:
    """Return whether the text is a time with its zone, as RFC 3339 has it, of a year that one can compute with."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return False
    return time.tzinfo is not None and 2000 <= time.year < 2200


_CUT = " ... "


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` bytes of UTF-8, cut in the middle: what happened comes first, what to do comes last.

    What happened, the words before the first "; ", stays whole where it fits.
    """
    # A lone surrogate has no encoding, and the API server refuses it.
    plain = text.encode(errors="replace")
    if len(plain) <= limit:
        return plain.decode()
    happened = len(plain.partition(b"; ")[0])
    head = happened if limit // 3 < happened <= limit - len(_CUT) else limit // 3
    tail = plain[len(plain) - (limit - head - len(_CUT)) :]
    return f"{plain[:head].decode(errors='ignore')}{_CUT}{tail.decode(errors='ignore')}"
