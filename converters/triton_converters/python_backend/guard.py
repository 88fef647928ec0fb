"""Ends the server once the process of a model instance dies: `guard.py SERVER INSTANCE NAME`.

tritonserver 2.51 goes on without that process: it stays live and ready, and each request to the instance fails for ever
with "Stub process is not healthy". Once the server ends, the kubelet starts it again. A byte from standard input, which
is a pipe from the instance's process, says that this process is about to end as it should.

It runs in a process of its own, without site packages, and takes 9 MB. Standard library only.
"""

import os
import select
import signal
import sys
from contextlib import suppress

INIT = 1
"""The first process of a container. From inside it cannot be killed, only asked to end, which takes it 30 seconds."""


def has_died(instance: int, server: int, pipe: int) -> bool:
    """Wait until one of the two processes ends; whether that is the instance's, without a byte from the pipe before.

    ``instance``, ``server``: descriptors of the processes, from pidfd_open.
    """
    poll = select.poll()
    for each in (instance, server, pipe):
        poll.register(each, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if pipe in ready:
            if os.read(pipe, 1):
                return False
            # It was closed. The process may be about to die, or it goes on without the pipe.
            poll.unregister(pipe)
        elif server in ready:
            return False
        elif instance in ready:
            return True


def main(arguments: list[str]) -> None:
    """Wait for the end of the instance's process, and end the server if nobody announced that."""
    server, instance, name = int(arguments[0]), int(arguments[1]), arguments[2]
    try:
        descriptors = [os.pidfd_open(instance), os.pidfd_open(server)]
    except ProcessLookupError:
        descriptors = []
    if descriptors and not has_died(*descriptors, sys.stdin.fileno()):
        return
    words = f"the process of model instance '{name}' died; the server ends, so that it is started again"
    print(words, file=sys.stderr, flush=True)
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGTERM if server == INIT else signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
