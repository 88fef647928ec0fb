"""A proxy between an operator and the API server that does what networks and busy servers do."""

import asyncio
import json
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True)
class Request:
    """What the operator asks for."""

    number: int
    """Counts from 0 since the rule was set."""
    method: str
    path: str
    watch: bool


@dataclass(frozen=True)
class Fault:
    """What becomes of a request; all at its default: nothing."""

    seconds: float = 0.0
    """It waits so long first."""
    code: int = 0
    """It is answered with this HTTP code and never reaches the API server."""
    retry_after: str = ""
    lost: bool = False
    """The API server gets it, the operator gets no answer."""
    cut: bool = False
    """The connection is cut before anything is sent."""
    gone: bool = False
    """A watch that begins with the event 410 Gone."""
    lasts: float = 0.0
    """A watch that ends after so many seconds."""


FINE = Fault()
Rule = Callable[[Request], Fault]


def all_fine(request: Request) -> Fault:
    """No fault."""
    return FINE


class Proxy:
    """Between entry and exit of the block it answers on a port of its own, in a thread of its own."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._content = json.loads(kubeconfig.read_text())
        self._server = self._content["clusters"][0]["cluster"]["server"]
        self.kubeconfig = folder / "proxy-kubeconfig"
        self.requests: list[float] = []
        """When they came, in seconds of the monotonic clock."""
        self._rule: Rule = all_fine
        self._number = 0
        self._silent = False
        self._open: set[asyncio.Transport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        self._content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
        self.kubeconfig.write_text(json.dumps(self._content))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def rule(self, rule: Rule) -> None:
        """From now on."""
        self._number, self._rule = 0, rule

    def silence(self, silent: bool) -> None:
        """Whether running watches say nothing more, for ever, while their connections stay open."""
        self._silent = silent

    def cut_everything(self) -> None:
        """Every open connection."""

        def cut() -> None:
            for transport in list(self._open):
                transport.abort()

        self._loop.call_soon_threadsafe(cut)

    def since(self, moment: float) -> int:
        """How many requests came since a time of the monotonic clock."""
        return sum(each >= moment for each in self.requests)

    async def _start(self) -> int:
        authority = self._content["clusters"][0]["cluster"]["certificate-authority-data"]
        self._session = ClientSession(
            connector=TCPConnector(ssl=ssl.create_default_context(cadata=b64decode(authority).decode()), limit=0),
            timeout=ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=0)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port: int = self._runner.addresses[0][1]
        return port

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = Request(self._number, request.method, request.path, "watch" in request.query)
        self._number += 1
        self.requests.append(time.monotonic())
        fault = self._rule(seen)
        await asyncio.sleep(fault.seconds)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        if fault.cut:
            transport.abort()
        if fault.code:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            status = {"kind": "Status", "status": "Failure", "code": fault.code, "message": "injected"}
            return web.json_response(status, status=fault.code, headers=headers)
        if fault.gone:
            status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "injected"}
            return web.json_response({"type": "ERROR", "object": status})
        self._open.add(transport)
        try:
            return await self._pass_on(request, fault, seen)
        except (ClientError, ConnectionError, TimeoutError):
            transport.abort()
            raise
        finally:
            self._open.discard(transport)

    async def _pass_on(self, request: web.Request, fault: Fault, seen: Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        url, body = f"{self._server}{request.path_qs}", await request.read()
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            if fault.lost:
                await answer.read()
                raise ConnectionError
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async with asyncio.timeout(fault.lasts or None):
                async for chunk in answer.content.iter_any():
                    while seen.watch and self._silent:
                        # Also after the silence: what was said meanwhile is lost to this watch.
                        await asyncio.sleep(3600)
                    await response.write(chunk)
            await response.write_eof()
            return response
