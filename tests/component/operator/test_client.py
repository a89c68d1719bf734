"""Calls of the operator as they go over the wire, and what comes of bad answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.operator_server import ScriptedServer, kubeconfig_for

from gpushare_core.api.names import FIELD_MANAGER
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.response import Page
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.kinds import PAGE
from gpushare_operator.process.login import login


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
async def api(server: ScriptedServer, tmp_path: Path) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with TestServer(app) as running:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(kubeconfig_for(str(running.make_url("")).rstrip("/"))))
        async with KubeClient(await login(kubeconfig), field_manager=FIELD_MANAGER) as client:
            yield client


async def test_a_list_is_read_page_by_page_and_knows_its_version(
    server: ScriptedServer, api: KubeClient
) -> None:
    server.answers = [
        {"items": [{"a": 1}], "metadata": {"resourceVersion": "5", "continue": "more"}},
        {"items": [{"a": 2}], "metadata": {"resourceVersion": "5"}},
    ]
    pages = [page async for page in api.pages("/api/v1/pods", limit=PAGE, label_selector="a=b")]
    assert pages == [Page([{"a": 1}], "5"), Page([{"a": 2}], "5")]
    queries = [query for _, _, query, _, _ in server.requests]
    assert queries == [
        {"limit": "100", "labelSelector": "a=b"},
        {"limit": "100", "labelSelector": "a=b", "continue": "more"},
    ]


WRITES: list[Any] = [
    pytest.param(
        lambda api: api.apply("/x", {"a": 1}),
        (
            "PATCH",
            {"fieldManager": "gpushare-operator", "force": "true"},
            "application/apply-patch+yaml",
            {"a": 1},
        ),
        id="server-side apply",
    ),
    pytest.param(
        lambda api: api.merge("/x", {"a": None}),
        ("PATCH", {"fieldManager": "gpushare-operator"}, "application/merge-patch+json", {"a": None}),
        id="merge patch keeps nulls",
    ),
    pytest.param(
        lambda api: api.create("/x", {"a": 1}),
        ("POST", {"fieldManager": "gpushare-operator"}, "application/json", {"a": 1}),
        id="create",
    ),
    pytest.param(
        lambda api: api.delete("/x", uid="u"),
        (
            "DELETE",
            {},
            "application/json",
            {"preconditions": {"uid": "u"}, "propagationPolicy": "Background"},
        ),
        id="delete of the very object",
    ),
]


@pytest.mark.parametrize(("write", "expected"), WRITES)
async def test_a_write_goes_out_as(
    server: ScriptedServer, api: KubeClient, write: Callable[[KubeClient], Awaitable[Json]], expected: Any
) -> None:
    server.answers = [{"metadata": {"name": "x"}}]
    assert await write(api) == {"metadata": {"name": "x"}}
    ((method, path, query, kind, body),) = server.requests
    assert (method, query, kind, body) == expected
    assert path == "/x"
    assert server.authorization == "Bearer secret"


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        pytest.param(
            web.json_response({"reason": "Conflict", "message": "changed"}, status=409),
            409,
            "changed",
            id="the API server",
        ),
        pytest.param(web.Response(text="<html>busy", status=503), 503, "<html>busy", id="a proxy's page"),
    ],
)
async def test_a_refusal_says_why(
    server: ScriptedServer, api: KubeClient, answer: web.Response, status: int, message: str
) -> None:
    server.answers = [answer]
    with pytest.raises(ApiError, match=message) as refusal:
        await api.merge("/x", {})
    assert refusal.value.status == status


async def test_no_answer_is_not_a_refusal(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(kubeconfig_for("http://127.0.0.1:1")))
    async with KubeClient(await login(kubeconfig)) as api:
        with pytest.raises(UnreachableError, match="GET /x"):
            await anext(api.pages("/x", limit=PAGE))
