"""python3 reach.py PROTOCOL=HOST:PORT...: a JSON list of which of them answered; udp is asked as a name server.

It needs only Python, so that it also runs in a server's container.
"""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

SECONDS = 3
QUESTION = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06stolen\x07example\x00\x00\x01\x00\x01"


def reached(target):
    """Whether a connection was opened, or a question answered."""
    protocol, _, place = target.partition("=")
    host, _, port = place.rpartition(":")
    try:
        if protocol == "tcp":
            socket.create_connection((host, int(port)), SECONDS).close()
        else:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.settimeout(SECONDS)
                asking.sendto(QUESTION, (host, int(port)))
                asking.recv(512)
    except OSError:
        return False
    return True


with ThreadPoolExecutor() as pool:
    print(json.dumps(list(pool.map(reached, sys.argv[1:]))))
