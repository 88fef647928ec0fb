"""The place of a generated part in a page that is otherwise written by hand."""

from pathlib import Path

END = "<!-- end -->\n"


def filled(page: Path, begin: str, part: str) -> str:
    """Return the page with the part between the line ``begin`` and END; raises ValueError if it has no such place."""
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise ValueError(f"{page} has no place for the table: put it between {begin!r} and {END!r}")
    return f"{before}{begin}{part}{END}{after}"
