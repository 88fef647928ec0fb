"""A client of a server whose Service is new: for about a second, the node's proxy refuses connections to it."""

import time

from tritonclient import grpc
from tritonclient.utils import InferenceServerException

SECONDS = 60


def reached(url):
    """Return a client that has been answered once. ``url``: HOST:PORT of gRPC."""
    client, end = grpc.InferenceServerClient(url), time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            if client.is_server_ready(client_timeout=5):
                return client
        except InferenceServerException:
            pass
        time.sleep(0.2)
    raise SystemExit(f"{url} has not answered for {SECONDS} s")
