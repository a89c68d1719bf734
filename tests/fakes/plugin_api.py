"""The API server as a plugin sees it: it also patches pods and the status of its GPUShareNode."""

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import LEASES, PODS, SHARE_NODES, FakeApi, status

from gpushare_core.text.json_object import Json


class PluginApi(FakeApi):
    """``patched``: the paths of all writes, in order. ``kept``: the fields that are stored of a status, as by
    a CRD of another version."""

    def __init__(self) -> None:
        super().__init__()
        self.patched: list[str] = []
        self.kept: Callable[[Json], Json] = lambda status: status

    async def _missing(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST" and request.path == LEASES:
            return web.json_response(self.put(LEASES, await request.json()), status=201)
        collection, key = _target(request.path)
        found = self.objects[collection].get(key)
        if request.method != "PATCH" or found is None:
            return await super()._missing(request)
        body = await request.json()
        known, asked = found["metadata"], body["metadata"]
        if any(asked.get(name, known[name]) != known[name] for name in ("uid", "resourceVersion")):
            refusal = await status(409, "the object has been modified")(request)
            assert refusal
            return refusal
        written = merged(found, body)
        if collection == SHARE_NODES:
            written["status"] = self.kept(written["status"])
        if "dryRun" in request.query:
            return web.json_response(written)
        self.patched.append(request.path)
        if written == found:  # then no watch hears of it
            return web.json_response(found)
        return web.json_response(self.put(collection, written))

    async def _patch_lease(self, request: web.Request) -> web.StreamResponse:
        present = self.objects[LEASES].get(("", request.match_info["name"]))
        if present is None:
            return await super()._missing(request)
        return web.json_response(self.put(LEASES, merged(present, await request.json())))


def _target(path: str) -> tuple[str, tuple[str, str]]:
    words = path.removesuffix("/status").split("/")
    if path.startswith(SHARE_NODES):
        return SHARE_NODES, ("", words[-1])
    return PODS, (words[4], words[-1]) if len(words) == 7 else ("", "")


def merged(into: Json, patch: Json) -> Json:
    """JSON merge patch (RFC 7396), without removals."""
    result = copy.deepcopy(into)
    for key, value in patch.items():
        known = result.get(key)
        both = isinstance(value, dict) and isinstance(known, dict)
        result[key] = merged(result[key], value) if both else value
    return result


@asynccontextmanager
async def plugin_api() -> AsyncIterator[PluginApi]:
    fake = PluginApi()
    fake.server = TestServer(fake.application())
    await fake.server.start_server(shutdown_timeout=0.1)
    try:
        yield fake
    finally:
        await fake.server.close()
