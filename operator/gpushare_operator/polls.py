"""What the operator reads now and then into the cache, because no watch follows it."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpushare_core.api.names import COMPONENT_LABEL, DEDICATED_SCHEDULER
from gpushare_core.api.plugin_heartbeat import COMPONENT
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.kubernetes_minors import RANGE, KubernetesSupport, support_of
from gpushare_core.text.json_object import Json
from gpushare_operator.backends.kube_scheduler.engine import needs_scheduler_rights
from gpushare_operator.backends.volcano.connection import locations
from gpushare_operator.cluster.api_reader import ApiReader
from gpushare_operator.cluster.cache import Cache, Change, Listing
from gpushare_operator.cluster.heartbeats import (
    Heartbeats,
    isolation_files_by_node,
    written_by_running_plugins,
)
from gpushare_operator.cluster.kinds import (
    KINDS,
    PAGE,
    SCHEDULER_PODS,
    SCHEDULER_SELECTOR,
    SHARE_NODES,
    Kind,
)
from gpushare_operator.cluster.objects import (
    ReadResult,
    SchedulerObject,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.readers.pods import is_static
from gpushare_operator.cluster.readers.schedulers import read_scheduler
from gpushare_operator.cluster.readers.volcano import read_volcano_config
from gpushare_operator.cluster.refusals import read_refusals
from gpushare_operator.cluster.server import (
    ServerVersions,
    read_kubernetes,
    read_scheduler_rights,
    read_server_facts,
    version_in_force,
)
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.status.pods_without_scheduler import absent_scheduler

HEARTBEATS_PAGE = 500
"""Leases that are read at once: each has half a kB."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Polls:
    """``now``: the clock of the host."""

    api: ApiReader
    cache: Cache
    namespace: str
    now: Callable[[], datetime]
    heartbeats: Heartbeats
    server_versions: ServerVersions = field(default_factory=ServerVersions)

    async def read_all(self) -> None:
        """Reads all kinds: a watch that was cut off does not say what vanished meanwhile."""
        for listing, version in [await self._list(kind) for kind in KINDS]:
            self.cache.replace(listing, version)

    async def _list(self, kind: Kind[Any]) -> tuple[Listing[Any], str]:
        """Returns all objects of ``kind`` and the list's resource version."""
        listing, version = self.cache.listing(kind), ""
        async for page in self.api.pages(
            kind.path(self.namespace), limit=PAGE, label_selector=kind.label_selector
        ):
            listing.add(page.items)
            version = page.resource_version
        return listing, version

    async def read_schedulers(self) -> None:
        """Reads the API server's version, kube-schedulers, Volcano's configuration, and what our own
        kube-scheduler depends on."""
        self.cache.replace_schedulers(await self._schedulers())
        in_force = _version_in_force(self.cache.snapshot())
        reported = await read_kubernetes(self.api)
        version = self.server_versions.lowest(reported, self.now(), in_force=in_force)
        if self.cache.replace_kubernetes(version):
            _log_support(version)
        volcano = {at: await self._volcano_config(at) for at in locations(self.cache.snapshot())}
        self.cache.replace_volcano_configs(volcano)
        scheduler = absent_scheduler(self.cache.snapshot())
        facts = await read_server_facts(self.api, scheduler) if scheduler else None
        self.cache.replace_server_facts(facts)
        asks = needs_scheduler_rights(self.cache.snapshot())
        self.cache.replace_scheduler_rights(
            await read_scheduler_rights(self.api, self.namespace) if asks else None
        )

    async def _schedulers(self) -> list[SchedulerObject]:
        """Returns the kube-schedulers that kubelets show; none without the right to read their pods."""
        seen = self.now()
        schedulers: list[SchedulerObject] = []
        try:
            async for page in self.api.pages(SCHEDULER_PODS, limit=PAGE, label_selector=SCHEDULER_SELECTOR):
                schedulers += [read_scheduler(body, seen) for body in page.items if is_static(body)]
        except ApiError as error:
            if not error.is_forbidden:
                raise
            _log.warning("cannot see whether kube-schedulers keep gpushare's edit: %s", error)
        return schedulers

    async def _volcano_config(self, at: VolcanoLocation) -> VolcanoConfigObject:
        if not at.namespace:
            return VolcanoConfigObject(result=ReadResult.MISSING)
        try:
            body = await self.api.get(paths.config_map_path(at.namespace, at.config_map))
        except ApiError as error:
            if error.is_not_found:
                return VolcanoConfigObject(result=ReadResult.MISSING)
            if error.is_forbidden:
                return VolcanoConfigObject(result=ReadResult.FORBIDDEN)
            raise
        return read_volcano_config(body, at.key)

    async def read_refusals(self) -> bool:
        """Reads why pods of ours are not made. Returns whether that is new."""
        refusals = await read_refusals(self.api, self.namespace, self.cache.snapshot())
        return self.cache.replace_refusals(refusals)

    async def read_share_nodes(self, names: Iterable[str]) -> bool:
        """Reads the GPUShareNodes of these nodes, for what must not follow from old versions. Returns whether
        anything was new."""
        changes: list[Change] = []
        for name in names:
            selector = f"metadata.name={name}"
            async for page in self.api.pages(paths.SHARE_NODES, limit=PAGE, field_selector=selector):
                changes += [self.cache.observe(SHARE_NODES, body) for body in page.items]
        return any(changes)

    async def read_heartbeats(self) -> bool:
        """Reads which plugins are unavailable, and where files of isolation are. Returns whether anything is
        new.

        Their Leases are not watched: thousands of renewals a minute only say that all is well.
        """
        path, selector = paths.leases(self.namespace), f"{COMPONENT_LABEL}={COMPONENT}"
        leases: list[Json] = []
        async for page in self.api.pages(path, limit=HEARTBEATS_PAGE, label_selector=selector):
            leases += page.items
        snapshot = self.cache.snapshot()
        shares = snapshot.share_nodes.items()
        reported = {name: share.registered_since for name, share in shares if share.registered_since}
        of_running = written_by_running_plugins(leases, snapshot.states)
        changes = (
            self.cache.replace_unavailable(self.heartbeats.unavailable(of_running, reported)),
            self.cache.replace_isolation_files(
                isolation_files_by_node(leases, self.cache.snapshot().states, self.now())
            ),
        )
        return any(changes)


def _version_in_force(snapshot: ClusterSnapshot) -> str:
    deployment = snapshot.deployments.get(DEDICATED_SCHEDULER)
    spec = deployment.body.get("spec", {}).get("template", {}).get("spec", {}) if deployment else {}
    own = (container.get("image", "") for container in spec.get("containers", ()))
    return version_in_force(own, (scheduler.image for scheduler in snapshot.schedulers.values()))


def _log_support(version: str) -> None:
    match support_of(version):
        case KubernetesSupport.TOO_OLD:
            _log.error(
                "the API server is %s, too old for this version of gpushare, which needs Kubernetes %s",
                version,
                RANGE,
            )
        case KubernetesSupport.NOT_TESTED:
            _log.info(
                "the API server is %s; this version of gpushare is tested with Kubernetes %s", version, RANGE
            )
