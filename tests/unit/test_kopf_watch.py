"""kopf goes on hearing of all objects, whatever one of them looks like. It runs against a server of this file."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kopf
import pytest
from aiohttp import web

from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.runtime.handlers import registry

JSON = dict[str, Any]
GROUP_VERSION = TRITON_DEPLOYMENT.api_version
PATH = f"/apis/{GROUP_VERSION}"
DEPTHS = (300, 980, 9_990)


def body_text(name: str, levels: int) -> str:
    """An object whose author has written managed fields of so many levels."""
    deep = '{"f:a":' * levels + "{}" + "}" * levels
    metadata = f'"name":"{name}","namespace":"t","uid":"{name}","resourceVersion":"7"'
    fields = f'{{"manager":"somebody","fieldsV1":{deep}}}'
    return f'{{"apiVersion":"{GROUP_VERSION}","kind":"X","metadata":{{{metadata},"managedFields":[{fields}]}}}}'


def resources(kind: str, plural: str, *, namespaced: bool) -> JSON:
    """What the API server says of a group that has one kind."""
    named = {"kind": kind, "name": plural, "singularName": kind.lower(), "namespaced": namespaced}
    return {"resources": [named | {"verbs": ["get", "list", "patch", "watch"]}]}


class Heard:
    """A controller that notes which objects it is told of, until it knows of all that are wanted."""

    def __init__(self, wanted: set[str], done: asyncio.Event) -> None:
        self.names: set[str] = set()
        self._wanted = wanted
        self._done = done

    async def start(self) -> None:
        """Start nothing."""

    async def stop(self) -> None:
        """Stop nothing."""

    def seen(self, event_type: str | None, body: JSON) -> None:
        self.names.add(body["metadata"]["name"])
        if self.names == self._wanted:
            self._done.set()


def api_server(listed: list[str], told: list[str]) -> web.Application:
    """An API server with these objects in its list, and these events in its watch."""

    async def objects(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            page = f'{{"metadata":{{"resourceVersion":"9"}},"items":[{",".join(listed)}]}}'
            return web.Response(text=page, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for each in told:
            await response.write(f'{{"type":"ADDED","object":{each}}}\n'.encode())
        await asyncio.sleep(60)
        return response

    def answers(body: JSON) -> Any:
        async def answer(_: web.Request) -> web.Response:
            return web.json_response(body)

        return answer

    version = {"groupVersion": GROUP_VERSION, "version": TRITON_DEPLOYMENT.version}
    group = {"name": TRITON_DEPLOYMENT.group, "versions": [version], "preferredVersion": version}
    app = web.Application()
    app.router.add_get("/api", answers({"versions": ["v1"]}))
    # kopf watches nothing before it has seen the kind of namespaces.
    app.router.add_get("/api/v1", answers(resources("Namespace", "namespaces", namespaced=False)))
    app.router.add_get("/apis", answers({"groups": [group]}))
    app.router.add_get(PATH, answers(resources(TRITON_DEPLOYMENT.kind, TRITON_DEPLOYMENT.plural, namespaced=True)))
    app.router.add_get(f"{PATH}/{TRITON_DEPLOYMENT.plural}", objects)
    return app


@contextmanager
def kubeconfig(folder: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of an operator of that API server."""
    path = folder / "kubeconfig"
    named = [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}]
    users, contexts = [{"name": "x", "user": {}}], [{"name": "x", "context": {"cluster": "x", "user": "x"}}]
    path.write_text(json.dumps({"clusters": named, "users": users, "contexts": contexts, "current-context": "x"}))
    with monkeypatch.context() as environment:
        environment.setenv("KUBECONFIG", str(path))
        yield


async def heard_names(
    app: web.Application, wanted: set[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """The names of the objects that a controller is told of, by a kopf that runs until it has told of all."""
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    done = asyncio.Event()
    controller = Heard(wanted, done)
    try:
        with kubeconfig(folder, runner.addresses[0][1], monkeypatch):
            given = registry(controller)  # type: ignore[arg-type]  # a stand-in
            await asyncio.wait_for(kopf.operator(registry=given, standalone=True, clusterwide=True, stop_flag=done), 30)
    finally:
        await runner.cleanup()
    return controller.names


@pytest.mark.parametrize("levels", DEPTHS)
def test_a_deep_object_keeps_none_of_the_others_away(
    levels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = api_server([body_text("listed", levels)], [body_text("told", levels), body_text("other", 1)])
    wanted = {"listed", "told", "other"}
    assert asyncio.run(heard_names(app, wanted, tmp_path, monkeypatch)) == wanted
