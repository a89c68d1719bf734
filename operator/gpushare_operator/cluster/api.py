"""Calls to the API server through kubernetes-asyncio: JSON in, JSON out, errors as in ``gpushare_core``."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, ApiException, Configuration

from gpushare_core.api.names import FIELD_MANAGER
from gpushare_core.kube.errors import ApiError, UnreachableError

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"

TIMEOUT = 20.0
"""Seconds for one call."""
PAGE = 100
"""Objects read at once: a node is some 15 kB, and ten times that in memory."""


class Api:
    """All writes are made in the name of one field manager."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def pages(self, path: str, *, label_selector: str = "") -> AsyncIterator[tuple[list[Json], str]]:
        """Every object of a collection, some at a time, and the resource version that all of them are of."""
        query = {"limit": str(PAGE), **({"labelSelector": label_selector} if label_selector else {})}
        while True:
            page = await self._call("GET", path, query=query)
            yield page.get("items") or [], page["metadata"]["resourceVersion"]
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token

    async def apply(self, path: str, body: Mapping[str, Any]) -> Json:
        """Server-side apply: creates the object if it is not there."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._call("PATCH", path, body=body, kind=APPLY_PATCH, query=query)

    async def merge(self, path: str, body: Mapping[str, Any]) -> Json:
        """JSON merge patch (RFC 7396) of an object that is there."""
        return await self._call("PATCH", path, body=body, kind=MERGE_PATCH, query=_MANAGED)

    async def create(self, path: str, body: Mapping[str, Any]) -> Json:
        return await self._call("POST", path, body=body, query=_MANAGED)

    async def delete(self, path: str, *, uid: str) -> Json:
        """Delete the very object with ``uid``, and what belongs to it in the background."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        return await self._call("DELETE", path, body=options)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        kind: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """Raises ``ApiError`` for a refusal, ``UnreachableError`` when no answer came."""
        try:
            answer = await self._client.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": JSON, "Content-Type": kind},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=TIMEOUT,
            )
            content = await answer.read()
        except ApiException as error:
            raise ApiError(error.status or 0, error.reason or "", str(error.body)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"{method} {path}: {error!r}") from error
        return _decoded(answer.status, content)


_MANAGED = {"fieldManager": FIELD_MANAGER}


def _decoded(status: int, content: bytes) -> Json:
    """Source: ``metav1.Status``. Proxies between answer with other bodies."""
    try:
        told = json.loads(content)
    except ValueError:
        told = {"message": content[:300].decode(errors="replace")}
    if status >= 300:
        raise ApiError(status, str(told.get("reason", "")), str(told.get("message", "")))
    return dict(told)


@asynccontextmanager
async def connect(kubeconfig: Path | None) -> AsyncIterator[Api]:
    """Log in with ``kubeconfig``, or as the pod that this is.

    Raises:
        kubernetes_asyncio.config.ConfigException: neither works.
    """
    configuration = Configuration()
    if kubeconfig:
        await config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    else:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    async with ApiClient(configuration) as client:
        yield Api(client)
