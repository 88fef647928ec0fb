"""Reaches a Service from this machine: by its own address, or through the API server where that leads nowhere."""

import re
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hack.deploy.command import CommandError, TargetCluster, executable

CONNECT_SECONDS = 3
FORWARD_SECONDS = 20
FORWARDING = re.compile(r"Forwarding from (127\.0\.0\.1:\d+)")


@contextmanager
def address(cluster: TargetCluster, namespace: str, service: str, port: int) -> Iterator[str]:
    """host:port of the Service's port, valid inside the block.

    Raises CommandError where it is reached neither way.
    """
    host = cluster.get("service", service, "--namespace", namespace)["spec"]["clusterIP"]
    if _connects(host, port):
        yield f"{host}:{port}"
        return
    with _forwarded(cluster, namespace, service, port) as local:
        yield local


def _connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def _forwarded(cluster: TargetCluster, namespace: str, service: str, port: int) -> Iterator[str]:
    argv = [executable("kubectl"), "port-forward", "--namespace", namespace, f"service/{service}", f":{port}"]
    with subprocess.Popen(argv, env=cluster.environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _local_address(process, service)
        finally:
            process.terminate()


def _local_address(process: "subprocess.Popen[str]", service: str) -> str:
    assert process.stdout is not None
    deadline = time.monotonic() + FORWARD_SECONDS
    while select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
        line = process.stdout.readline()
        if found := FORWARDING.match(line):
            return found.group(1)
        if not line:
            break
    raise CommandError(f"service {service} is reached neither at its cluster address nor by kubectl port-forward")
