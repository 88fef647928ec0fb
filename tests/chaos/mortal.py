"""An operator that dies right after its N-th write to the API server; as a program, by SIGKILL and as a whole.

`python -m tests.chaos.mortal N` is `python -m triton_operator` until then.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triton_operator.kube.cluster import Cluster

WRITES = ("apply", "apply_status", "create", "delete")


@contextmanager
def counted(wrote: Callable[[], None]) -> Iterator[None]:
    """Within the block every Cluster calls `wrote` after each write that was answered."""
    whole = {name: getattr(Cluster, name) for name in WRITES}

    def then_told(write: Callable[..., Any]) -> Callable[..., Any]:
        def told(*arguments: Any) -> Any:
            answer = write(*arguments)
            wrote()
            return answer

        return told

    for name, write in whole.items():
        setattr(Cluster, name, then_told(write))
    try:
        yield
    finally:
        for name, write in whole.items():
            setattr(Cluster, name, write)


def main() -> None:
    from triton_operator.__main__ import main as operator

    left = int(sys.argv[1])
    lock = threading.Lock()

    def wrote() -> None:
        nonlocal left
        with lock:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    with counted(wrote):
        operator()


if __name__ == "__main__":
    main()
