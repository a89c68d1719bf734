"""Follows this node's GPUShareNode."""

import asyncio
import logging

import msgspec

from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Changed, Collection, Listed, Versioned, follow
from gpushare_core.kube.paths import SHARE_NODES
from gpushare_core.process.log import change_level
from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import version_number
from gpushare_plugin.state import PluginState

_log = logging.getLogger(__name__)


class ShareNodeWatch:
    """Keeps ``state.share_node``, and the log at the level that it asks for."""

    def __init__(self, state: PluginState, client: KubeClient, *, level: str = "info") -> None:
        """``level``: the log's while there is no GPUShareNode."""
        self._state = state
        self._client = client
        self._level = level
        self.synced = asyncio.Event()

    async def run(self) -> None:
        share_node = Collection(SHARE_NODES, field_selector=f"metadata.name={self._state.name}")
        async for event in follow(self._client, share_node):
            self._handle(event)
            self.synced.set()

    def _handle(self, event: Listed[Json] | Changed[Json]) -> None:
        if isinstance(event, Listed):
            self._store(next(iter(event.items), None))
        elif event.kind == "DELETED":
            self._store(None)
        elif not self._is_older(event.item):
            self._store(event.item)

    def _is_older(self, item: Json) -> bool:
        """Whether the answer to one of our own writes was a newer version."""
        known, metadata = self._state.share_node, item["metadata"]
        if known is None or known.metadata.uid != metadata.get("uid"):
            return False
        version = version_number(str(metadata.get("resourceVersion")))
        return version < version_number(str(known.metadata.resource_version))

    def _store(self, item: Json | None) -> None:
        store_share_node(self._state, item)
        share_node = self._state.share_node
        level = share_node.spec.log_level.value if share_node else self._level
        if change_level(level):
            _log.info("the log level is now %s", level)


def store_share_node(state: PluginState, item: Json | None) -> None:
    """Stores ``item`` as the newest there is; None: there is none."""
    try:
        state.put_share_node(GPUShareNode.from_json(item) if item else None)
    except msgspec.ValidationError as error:
        state.put_unreadable(_version_of(item), str(error))
        _log.error("cannot read the GPUShareNode, the previous one stays in force: %s", error)


def _version_of(item: Json | None) -> str:
    """Returns an empty text where ``item`` says none, which no API server sends."""
    try:
        return msgspec.convert(item, Versioned).metadata.resource_version
    except msgspec.ValidationError:
        return ""
