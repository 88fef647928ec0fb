"""The pages of a list, each short enough for the operator's memory, whoever made the objects. Pure."""

from collections.abc import Callable, Iterator
from typing import Any

LONGEST_PAGE = 4 * 1024 * 1024
"""The longest page of more than one object, in bytes: parsed, JSON takes up to 24 times as much memory, all that the
API server takes as one object has up to 3 MiB, and who may make objects may give them the operator's labels."""


def pages(ask: Callable[[int, str], dict[str, Any] | None], most: int) -> Iterator[dict[str, Any]]:
    """Yield all pages of a list, with fewer objects each where objects are long.

    ``ask`` takes how many objects the page may have and the token of the one before (empty: it is the first). It
    returns None for a page above LONGEST_PAGE, but always one of a single object. ``most``: objects in a page.
    """
    size, token = most, ""
    while True:
        page = ask(size, token)
        if page is None:
            size = max(1, size // 4)
            continue
        token = page["metadata"].get("continue") or ""
        yield page
        if not token:
            return
        # Not at once to the most: next to long objects lie others.
        size = min(most, size * 2)
