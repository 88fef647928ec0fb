"""How kopf reads what the API server answers: an object that is nested too deeply ends neither its lists nor its watch.

kopf reads JSON with Python's reader, and an error of that ends the process, for all objects.
"""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import kopf

from triton_operator.kube.nesting import loads, shallow


def with_shallow_answers(info: kopf.ConnectionInfo) -> kopf.AiohttpSession:
    """Return the same login for kopf, whose answers have null for each value that is too deep.

    Called on the event loop. kopf closes the session, and asks for another login if the API server refuses this one.
    """
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        proxy=info.proxy_url,
        trust_env=info.trust_env,
        response_class=_Response,
    )
    return kopf.AiohttpSession(
        server=info.server, default_namespace=info.default_namespace, priority=info.priority, aiohttp_session=session
    )


class _Response(aiohttp.ClientResponse):
    """An answer as kopf reads it: a list by `json`, a watch by the chunks of `content`."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        await super().start(connection)
        self.content: Any = _Lines(self.content)
        return self

    async def json(self, **arguments: Any) -> Any:
        return await super().json(**arguments, loads=lambda text: loads(text.encode()))


class _Lines:
    """The stream of an answer, whose chunks are whole lines."""

    def __init__(self, stream: aiohttp.StreamReader) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Yield line after line; what comes after the last end of a line is none, because the answer was cut off."""
        rest = b""
        async for chunk in self._stream.iter_chunked(size):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield shallow(line) + b"\n"
