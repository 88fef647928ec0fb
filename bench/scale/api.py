"""A small asynchronous client that costs little compared with what is measured."""

import asyncio
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from triton_operator.kube.connection import configuration

JSON = dict[str, Any]
_ONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
DEPLOYMENTS = "apis/triton-operator.dev/v1alpha1", "tritondeployments"
JOBS = "apis/batch/v1", "jobs"
CLAIMS = "api/v1", "persistentvolumeclaims"
CONFIG_MAPS = "api/v1", "configmaps"
NETWORK_POLICIES = "apis/networking.k8s.io/v1", "networkpolicies"
EVENTS = "api/v1", "events"
Resource = tuple[str, str]
"""The path of a group version, and a plural."""


class Api:
    """An API server, as its administrator, in one namespace. Raises aiohttp.ClientError."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._settings = configuration(str(kubeconfig))
        self._namespace = namespace

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls(), limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=1 << 20,
            raise_for_status=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def create(self, resource: Resource, body: str) -> JSON:
        """Create an object and return its metadata."""
        headers = {"Content-Type": "application/json", "Accept": _ONE}
        async with self._session.post(self._url(resource), data=body, headers=headers) as answer:
            return await _json(answer)

    async def names(self, resource: Resource) -> list[str]:
        """Return the names of all objects."""
        return [each["metadata"]["name"] for each in (await self._list(resource)).get("items") or []]

    async def delete_all(self, resource: Resource) -> None:
        """Delete every object, without dependents (there is no garbage collector here) and without a grace period."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        async with self._session.delete(self._url(resource), json=options | {"gracePeriodSeconds": 0}) as answer:
            await answer.read()

    async def merge(self, resource: Resource, name: str, body: JSON) -> None:
        """Apply a merge patch."""
        headers = {"Content-Type": "application/merge-patch+json"}
        url = f"{self._url(resource)}/{name}"
        async with self._session.patch(url, data=json.dumps(body), headers=headers) as answer:
            await answer.read()

    async def watch(self, resource: Resource, added: Callable[[JSON], None], started: asyncio.Event) -> None:
        """Call `added` with the metadata of every object that is created from `started` on; never returns."""
        version = (await self._list(resource))["metadata"]["resourceVersion"]
        started.set()
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
        async with self._session.get(self._url(resource), params=query, headers={"Accept": _ONE}) as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ADDED":
                        added(event["object"]["metadata"])
        raise ConnectionError(f"the watch of {resource[1]} ended")

    async def _list(self, resource: Resource) -> JSON:
        query = {"resourceVersion": "0"}
        async with self._session.get(self._url(resource), params=query, headers={"Accept": _LIST}) as answer:
            return await _json(answer)

    def _tls(self) -> ssl.SSLContext:
        assert self._settings.cert_file is not None
        tls = ssl.create_default_context(cafile=self._settings.ssl_ca_cert)
        tls.load_cert_chain(self._settings.cert_file, self._settings.key_file)
        return tls

    def _url(self, resource: Resource) -> str:
        group, plural = resource
        return f"{self._settings.host}/{group}/namespaces/{self._namespace}/{plural}"


async def _json(answer: aiohttp.ClientResponse) -> JSON:
    body: JSON = await answer.json()
    return body
