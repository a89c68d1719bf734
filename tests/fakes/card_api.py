"""The small API server with what commands use besides: nodes, policies by dry run, cordons, evictions that a
plugin follows at once."""

import copy
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, status

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json


@dataclass(slots=True)
class CardApi(FakeApi):
    nodes: dict[str, Json] = field(default_factory=dict)
    policies: dict[str, Json] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    """Names of pods that a PodDisruptionBudget does not let go."""
    has_plugins: bool = True
    """Whether plugins follow what people ask for."""
    stored: list[str] = field(default_factory=list)
    """Every write that was no dry run."""

    def add_node(self, name: str, **spec: object) -> None:
        labels = {"kubernetes.io/hostname": name}
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        self.nodes[name] = {
            "metadata": {"name": name, "labels": labels, "resourceVersion": "1"},
            "spec": spec,
            "status": {"allocatable": allocatable},
        }

    def annotations(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.objects[SHARE_NODES]["", name]["metadata"].get("annotations") or {}
        return found

    async def _missing(self, request: web.Request) -> web.StreamResponse:
        if request.path == paths.NODES:
            return _listed(self.nodes.values())
        if request.path == paths.POLICIES and request.method == "GET":
            return _listed(self.policies.values())
        if request.path.startswith(paths.POLICIES):
            return await self._dry_run(request)
        collection, _, name = request.path.rpartition("/")
        share_node = self.objects[SHARE_NODES].get(("", name))
        if collection != SHARE_NODES or share_node is None:
            answer = await status(404, f"{name} not found")(request)
            assert answer is not None
            return answer
        if request.method == "PATCH":
            return await self._patch(request, share_node)
        return web.json_response(share_node)

    async def _dry_run(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("dryRun") != "All":
            self.stored.append(f"{request.method} {request.path}")
        return web.json_response(await request.json())

    async def _patch(self, request: web.Request, share_node: Json) -> web.StreamResponse:
        body = await request.json()
        present = share_node["metadata"]
        if body["metadata"]["resourceVersion"] != present["resourceVersion"]:
            answer = await status(409, "the object has been modified")(request)
            assert answer is not None
            return answer
        if request.query.get("dryRun"):
            return web.json_response(share_node)
        self.stored.append(f"{request.method} {request.path}")
        merged = {**(present.get("annotations") or {}), **body["metadata"]["annotations"]}
        annotations = {key: text for key, text in merged.items() if text is not None}
        changed = copy.deepcopy(share_node)
        changed["metadata"]["annotations"] = annotations
        if self.has_plugins:
            words = annotations.get(CORDON_ANNOTATION, "").split(",")
            for card in changed["status"]["cards"]:
                card["cordoned"] = card["uuid"] in words or str(card["index"]) in words
        return web.json_response(self.put(SHARE_NODES, changed))

    async def _evict(self, request: web.Request) -> web.StreamResponse:
        """The pod is gone at once, and its plugin has reported that."""
        name = request.match_info["name"]
        if name in self.protected:
            answer = await status(429, "Cannot evict pod as it would violate its disruption budget.")(request)
            assert answer is not None
            return answer
        self.stored.append(f"{request.method} {request.path}")
        pod = self.objects[PODS].pop((request.match_info["namespace"], name))
        for share_node in [*self.objects[SHARE_NODES].values()]:
            self.put(SHARE_NODES, _without(share_node, pod["metadata"]["uid"]))
        return web.json_response({}, status=201)


def _without(share_node: Json, uid: str) -> Json:
    changed = copy.deepcopy(share_node)
    for card in changed["status"]["cards"]:
        card["pods"] = [pod for pod in card.get("pods") or () if pod["uid"] != uid]
        card["allocatedUnits"] = sum(pod["units"] for pod in card["pods"])
    return changed


def _listed(items: Iterable[Json]) -> web.Response:
    return web.json_response({"metadata": {"resourceVersion": "7"}, "items": [*items]})


@asynccontextmanager
async def card_api(*objects: Json) -> AsyncIterator[CardApi]:
    """``objects``: GPUShareNodes, each with its node, and pods."""
    api = CardApi()
    for body in objects:
        if "containers" in body["spec"]:
            api.put(PODS, body)
        else:
            api.put(SHARE_NODES, body)
            api.add_node(body["metadata"]["name"])
    api.server = TestServer(api.application())
    await api.server.start_server(shutdown_timeout=0.1)
    try:
        yield api
    finally:
        await api.server.close()
