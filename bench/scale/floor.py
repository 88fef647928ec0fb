"""The floor of a burst: a bare client that sends the operator's requests and thinks of nothing.

`python3 -m bench.scale.floor KUBECONFIG NAMESPACE` holds the operator's watches open and sends, for each new
TritonDeployment, the requests that the operator sends: first those up to the Job, and once no new object waits, the
others. It prints a line when it watches, and ends when it is told to stop.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import aiohttp

from bench.first_job import deployment
from triton_operator.kube.cluster import WATCH_SECONDS, Cluster
from triton_operator.kube.connection import Connection, configuration
from triton_operator.kube.kinds import ALL, TRITON_DEPLOYMENT, ApiKind
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store
from triton_operator.settings import Settings

CONNECTIONS = 20
NAME = "name-of-the-recorded-object"
UID = "00000000-0000-4000-8000-000000000000"
VERSION = "424242424242"
CREATED = "2026-01-01T00:00:00Z"
WATCHING = "watching"
PASSES = 20
"""More passes than an object needs until nothing is written."""


class Seen(NamedTuple):
    """A new TritonDeployment."""

    name: str
    uid: str
    version: str


class Request(NamedTuple):
    """A request about the recorded object."""

    method: str
    path: str
    """Path and query."""
    content_type: str
    body: str

    def about(self, seen: Seen) -> Self:
        """Return the same request about another object."""
        body = self.body.replace(NAME, seen.name).replace(UID, seen.uid).replace(VERSION, seen.version)
        return self._replace(path=self.path.replace(NAME, seen.name), body=body)


class Recording(Connection):
    """Records the requests about one object, and answers as an API server that accepts each."""

    def __init__(self, recorded_object: dict[str, Any]) -> None:
        self.requests: list[Request] = []
        self._object = recorded_object
        self._versions = count(int(VERSION) + 1)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
        seconds: float,
        longest: int | None = None,
    ) -> dict[str, Any]:
        """Record one request; return its body as the new object."""
        assert body is not None, f"the operator reads in a burst: {method} {path}"
        self.requests.append(Request(method, f"{path}?{urlencode(query)}", content_type, json.dumps(body)))
        version = {"resourceVersion": str(next(self._versions))}
        if path.endswith("/status"):
            return {**self._object, **body, "metadata": self._object["metadata"] | version}
        made = {"uid": f"made-{len(self.requests)}", "creationTimestamp": CREATED}
        return {**body, "metadata": {**body["metadata"], **made, **version}}


def recorded(namespace: str, settings: Settings) -> tuple[list[Request], list[Request]]:
    """Return the operator's requests about one new object: those until its Job, and those after it."""
    given = {"uid": UID, "generation": 1, "resourceVersion": VERSION, "creationTimestamp": CREATED}
    body = {**deployment(NAME), "metadata": {"name": NAME, "namespace": namespace, **given}}
    connection, store = Recording(body), Store()
    store.seen(TRITON_DEPLOYMENT, "ADDED", body)
    reconciler = Reconciler(Cluster(connection), store, settings, Metrics())
    for _ in range(PASSES):
        reconciler.reconcile(Key(namespace, NAME))
    requests = connection.requests
    until_job = 1 + next(index for index, each in enumerate(requests) if "/jobs?" in each.path)
    return requests[:until_job], requests[until_job:]


class Client:
    """Sends the recorded requests for each TritonDeployment that it sees."""

    def __init__(self, kubeconfig: str, namespace: str, settings: Settings) -> None:
        self._settings = configuration(kubeconfig)
        self._namespace = namespace
        self._phases = recorded(namespace, settings)
        self._waiting: asyncio.PriorityQueue[tuple[int, int, Seen]] = asyncio.PriorityQueue()
        self._order = count()

    async def run(self) -> None:
        """Work until cancelled. Raises aiohttp.ClientError."""
        headers = {"Authorization": self._settings.get_api_key_with_prefix("BearerToken") or ""}
        tls = ssl.create_default_context(cafile=self._settings.ssl_ca_cert)
        # One connection for each watch, and those for writes.
        connector = aiohttp.TCPConnector(ssl=tls, limit=CONNECTIONS + len(ALL))
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(
                self._settings.host,
                connector=connector,
                headers=headers,
                timeout=timeout,
                raise_for_status=True,
                read_bufsize=1 << 20,
            ) as self._session,
            asyncio.TaskGroup() as group,
        ):
            started = [asyncio.Event() for _ in ALL]
            for kind, event in zip(ALL, started, strict=True):
                group.create_task(self._watch(kind, event))
            for event in started:
                await event.wait()
            print(WATCHING, flush=True)
            for _ in range(CONNECTIONS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            phase, order, seen = await self._waiting.get()
            await self._send(each.about(seen) for each in self._phases[phase])
            if phase == 0:
                self._waiting.put_nowait((1, order, seen))

    async def _send(self, requests: Iterable[Request]) -> None:
        for request in requests:
            headers = {"Content-Type": request.content_type}
            async with self._session.request(
                request.method, request.path, data=request.body, headers=headers
            ) as answer:
                await answer.read()

    async def _watch(self, kind: ApiKind, started: asyncio.Event) -> None:
        """Read every event; look only into those of new TritonDeployments."""
        path = f"/{'apis' if kind.group else 'api'}/{kind.api_version}/{kind.plural}"
        selectors = {"labelSelector": kind.labels, "fieldSelector": kind.fields}
        async with self._session.get(path, params=selectors | {"limit": "1"}) as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_SECONDS)}
        async with self._session.get(path, params=query | selectors | {"resourceVersion": version}) as answer:
            started.set()
            rest = b""
            async for chunk in answer.content.iter_any():
                if kind is not TRITON_DEPLOYMENT:
                    continue
                *lines, rest = (rest + chunk).split(b"\n")
                for event in map(json.loads, lines):
                    if event["type"] == "ADDED":
                        metadata = event["object"]["metadata"]
                        seen = Seen(*(metadata[field] for field in ("name", "uid", "resourceVersion")))
                        self._waiting.put_nowait((0, next(self._order), seen))
        raise ConnectionError(f"the watch of {kind.plural} ended")


def main() -> int:
    """Run until a signal ends the process."""
    kubeconfig, namespace = sys.argv[1:]
    # The images' names are as long as those in the benchmark of the operator.
    images = {"CONVERTER_IMAGE": "converter:test", "SERVER_IMAGE": "server:test"}
    settings = Settings.from_environment({**images, "CONVERTER_TENSORFLOW_IMAGE": "converter-tensorflow:test"})
    asyncio.run(Client(str(Path(kubeconfig)), namespace, settings).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
