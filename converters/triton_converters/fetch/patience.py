"""Another try, after a pause, for what may pass by itself."""

import time
from collections.abc import Callable
from typing import TypeVar

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_converters.fetch.progress import STALL_BYTES

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try. After one that brought at least STALL_BYTES they begin anew."""
_T = TypeVar("_T")


def patiently(attempt: Callable[[], _T], count: Callable[[], int] = lambda: 0) -> _T:
    """Return what an attempt returns, which another one may follow after a pause.

    ``count``: the bytes that came so far. Raises the last attempt's StageError, and at once one that is final.
    """
    most = 0
    pauses = list(PAUSES)
    while True:
        try:
            return attempt()
        except StageError as error:
            have = count()
            if have - most >= STALL_BYTES:
                most = have
                pauses = list(PAUSES)
            if error.final or error.reason is Reason.STORAGE_FULL or not pauses:
                raise
            pause = pauses.pop(0)
            print(f"{error.reason}: {printable(error.message)}; trying again in {pause:g} s", flush=True)
            time.sleep(pause)
