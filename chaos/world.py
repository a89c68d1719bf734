"""The cluster that operations work on, with the product installed and the first policies."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from chaos.operations.pod_shapes import HIGH
from chaos.plan.known import CONTROL_PLANES, WORKERS
from chaos.policies import POLICIES
from chaos.proxy.process import ProxyProcess, proxy_process
from gpushare_core.api.enums import Engine
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import pod_path, pods
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process import version
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig, NodeConfig
from gpushare_localcluster.scheduler import add_scheduler

CALL_SECONDS = 60.0
"""For one call: an API server beside other clusters may take that long, and a fault that cannot be healed
ends the run."""
SYSTEM = "gpushare-system"
NAMESPACE = "chaos"
OVERLAYS = {
    Engine.EXTENDER: Path(__file__).with_name("overlay"),
    Engine.PLUGIN: Path(__file__).with_name("overlay_plugin"),
}
SCHEDULERS: Mapping[Engine, Json] = {
    Engine.EXTENDER: {"backend": "KubeScheduler", "engine": "Extender"},
    Engine.PLUGIN: {"backend": "Dedicated", "engine": "Plugin"},
}
"""What a policy says of schedulers that a history leaves to the run: so one history serves each engine."""
KUBERNETES = "/etc/kubernetes"
VERSION = "chaos/version"
"""Annotation of static pods: which writing of the file it is."""
LOG_DISK = "/var/log/gpushare"
CONFIGURATION_DISK = KUBERNETES

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class World:
    """What operations work on. ``client`` goes to the API server itself, past every injected fault."""

    cluster: LocalCluster
    client: KubeClient
    api_proxy: ProxyProcess
    """Between our programs and the API server."""
    engine: Engine = Engine.EXTENDER
    """Which one places pods."""
    facts: dict[str, Any] = field(default_factory=dict)
    """State of a family of operations; the keys begin with the family's name."""
    before: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Control plane -> file below /etc/kubernetes -> bytes before the product was installed."""

    static_pods: dict[str, str] = field(default_factory=dict)
    """Name of the mirror pod of each static pod -> its ``VERSION``."""

    drained: set[str] = field(default_factory=set)
    """Names of pods that the end of a fault has deleted: the history does not say which."""

    bound_past_schedulers: set[str] = field(default_factory=set)
    """Names of pods that were bound to a node whether it offers their units or not."""

    async def thread(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Runs a blocking call, such as those of ``cluster``, in a thread."""
        return await asyncio.to_thread(call, *args, **options)

    async def together(self, calls: Iterable[Coroutine[Any, Any, object]]) -> None:
        """Makes all calls at once. Raises the first error, after all have ended."""
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    # Pods of the namespace that chaos works in

    def pod_path(self, name: str) -> str:
        return pod_path(NAMESPACE, name)

    async def create_pod(self, body: Json) -> None:
        await self.client.create(pods(NAMESPACE), body)

    async def create_pod_on(self, node: str, body: Json) -> None:
        """Past every scheduler."""
        self.bound_past_schedulers.add(body["metadata"]["name"])
        await self.create_pod({**body, "spec": {**body["spec"], "nodeName": node}})

    async def delete_pod(self, name: str, *, grace: int | None = None) -> None:
        """``grace`` in seconds; 0 deletes by force, None as the pod says. A deleted pod is no error."""
        body: Json = {} if grace is None else {"gracePeriodSeconds": grace}
        try:
            await self.client.send(ApiRequest(method="DELETE", path=self.pod_path(name), body=body))
        except ApiError as error:
            if error.status != 404:
                raise

    def static_pod_written(self, node: str, name: str) -> str:
        """Returns the ``VERSION`` that it has to bear."""
        version = str(time.time_ns())
        self.static_pods[f"{name}-{node}"] = version
        self.bound_past_schedulers.add(f"{name}-{node}")
        return version

    def static_pod_removed(self, node: str, name: str) -> None:
        self.static_pods.pop(f"{name}-{node}", None)

    # Policies

    async def apply_policy(self, policy: Json) -> None:
        """A policy that names no scheduler has that of the run."""
        spec = {"scheduler": SCHEDULERS[self.engine], **policy["spec"]}
        body = json.dumps({**policy, "spec": spec})
        await self.thread(self.cluster.kubectl, "apply", "-f", "-", stdin=body)

    # Nodes

    def node_file(self, node: str, path: str) -> Path:
        """Where a file of the node's lies on this host; see ``LocalCluster.node_path``."""
        return self.cluster.node_path(node, path)

    async def signal(self, *, namespace: str, pod: str, container: str, signal: Any) -> None:
        """Sends a signal to the first process of a running container."""
        await self.thread(
            self.cluster.kill_container, namespace=namespace, pod=pod, container=container, signal=signal
        )

    def control_plane_files(self) -> dict[str, dict[str, bytes]]:
        return {node: _files(self.node_file(node, KUBERNETES)) for node in CONTROL_PLANES}


def _files(folder: Path) -> dict[str, bytes]:
    """Returns path -> content. The path of a folder ends with a slash; the content of a link is its
    target."""
    return dict(_entry(folder, path) for path in sorted(folder.rglob("*")))


def _entry(folder: Path, path: Path) -> tuple[str, bytes]:
    name = path.relative_to(folder).as_posix()
    if path.is_symlink():
        return name, f"-> {path.readlink()}".encode()
    return (f"{name}/", b"") if path.is_dir() else (name, path.read_bytes() if path.is_file() else b"")


@asynccontextmanager
async def started(folder: Path, engine: Engine = Engine.EXTENDER) -> AsyncIterator[World]:
    """A cluster in ``folder`` with the product and the first policies. Its logs stay."""
    cluster = LocalCluster(folder)
    try:
        await asyncio.to_thread(_start, cluster)
        async with (
            KubeClient(
                from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS, field_manager="chaos"
            ) as client,
            proxy_process(cluster, log=folder / "api-proxy.log") as api_proxy,
        ):
            world = World(cluster, client, api_proxy, engine)
            world.before = await world.thread(world.control_plane_files)
            await _prepare(world)
            yield world
    finally:
        await asyncio.to_thread(cluster.stop)


def node_config(name: str) -> NodeConfig:
    """What may be full lies on small disks."""
    if name in CONTROL_PLANES:
        return NodeConfig(name, control_plane=True, disks={CONFIGURATION_DISK: "2m"})
    return NodeConfig(name, disks={LOG_DISK: "1m"})


def _start(cluster: LocalCluster) -> None:
    nodes = [node_config(name) for name in (*CONTROL_PLANES, *WORKERS)]
    cluster.start(ClusterConfig(nodes, free_service_address=True))
    cluster.wait_ready()
    add_scheduler(cluster, version.VERSION)


async def _prepare(world: World) -> None:
    await world.client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    await world.client.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": HIGH}, "value": 1000}
    )
    await world.thread(world.cluster.kubectl, "apply", "-k", str(OVERLAYS[world.engine]))
    for policy in POLICIES:
        await world.apply_policy(policy)
