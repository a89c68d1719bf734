"""A simulated cluster: nodes with kubelets and plugins, extenders, kube-scheduler, and the API's objects."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fakes.book_readings import node_books
from tests.fakes.books import Cards
from tests.samples.pod_shapes import SPECS
from tests.simulation.api_server import ApiServer
from tests.simulation.books import kubelet_books
from tests.simulation.extender import SimulatedExtender
from tests.simulation.go_engine import GoEngines, SimulatedPluginEngine
from tests.simulation.known_pod import FINISHED
from tests.simulation.kubelet import SimulatedKubelet
from tests.simulation.network import Link, SimulatedClient
from tests.simulation.plugin import SimulatedPlugin
from tests.simulation.scheduler import Engine, SimulatedScheduler
from tests.simulation.static_pods import is_mirror, is_static, way_of_mirror

from gpushare_core.audit.readers import read_pod
from gpushare_core.audit.records import ClusterRecords, LedgerRecord, NodeRecords, PodRecord
from gpushare_core.kube.paths import PODS, SHARE_NODES, storage_capacities
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.card import PhysicalCard

GI = 2**30
CARDS = {"n1": (16, 16, 8), "n2": (16, 5), "n3": (8, 8)}
"""GiB of each card."""
CONTROL_PLANES = ("east", "west")


@dataclass(slots=True)
class SimulatedNode:
    """A machine."""

    name: str
    cards: Cards
    kubelet: SimulatedKubelet
    plugin: SimulatedPlugin
    kubelet_link: Link
    plugin_link: Link


@dataclass(slots=True)
class World:
    """Everything that runs, runs in one event loop; dice of one seed for each party."""

    mode: str
    seed: int
    server: ApiServer = field(default_factory=ApiServer)
    nodes: dict[str, SimulatedNode] = field(default_factory=dict)
    go_engines: GoEngines | None = None
    """What decides where pods go; None: extenders do."""
    engines: dict[str, Engine] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    """Of every program."""
    scheduler: SimulatedScheduler = field(init=False)
    serial: int = 0
    _read: dict[str, tuple[str, PodRecord]] = field(default_factory=dict)
    """UID -> version and book: most pods have not changed since the last look."""
    _heals: "list[asyncio.Task[None]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, memories in CARDS.items():
            self._add_node(name, memories)
        for name in CONTROL_PLANES:
            self.engines[name] = self._engine(name)
        self.scheduler = SimulatedScheduler(
            self.server, self.engines, self._dice("scheduler"), CONTROL_PLANES[0]
        )
        self.server.put(storage_capacities("gpushare-system"), {"metadata": {"name": "gpushare-wake-up"}})

    def _dice(self, name: str) -> random.Random:
        return random.Random(f"{self.seed} {name}")  # noqa: S311

    def _client(self, name: str) -> SimulatedClient:
        self.links[name] = Link(self._dice(name))
        return SimulatedClient(self.server, self.links[name])

    def _engine(self, name: str) -> Engine:
        client = self._client(f"extender {name}")
        if self.go_engines is None:
            return SimulatedExtender(client, name)
        return SimulatedPluginEngine(client, name, self.go_engines, self._dice(f"lag {name}"))

    def _add_node(self, name: str, memories: tuple[int, ...]) -> None:
        present = [
            PhysicalCard(uuid=f"{name}-{index}", index=index, memory=memory * GI, numa_node=index % 2)
            for index, memory in enumerate(memories)
        ]
        cards = Cards({card.uuid: card for card in present})
        kubelet = SimulatedKubelet(name, self._client(f"kubelet {name}"), self._dice(name))
        plugin = SimulatedPlugin(self._client(f"plugin {name}"), kubelet, cards, self._dice(f"plugin {name}"))
        links = self.links[f"kubelet {name}"], self.links[f"plugin {name}"]
        self.nodes[name] = SimulatedNode(name, cards, kubelet, plugin, *links)

    # Life

    def start(self) -> None:
        for name, node in self.nodes.items():
            self.apply_policy(name, SPECS[self.mode][0])
            node.kubelet.start()
            node.plugin.start()
        for engine in self.engines.values():
            engine.start()
        self.scheduler.start()

    async def stop(self) -> None:
        for heal in self._heals:
            heal.cancel()
        await self.scheduler.stop()
        for engine in self.engines.values():
            await engine.kill()
        for node in self.nodes.values():
            await node.plugin.kill()
            node.kubelet.stop()
        await asyncio.sleep(0)

    def check_processes(self) -> None:
        """Raises what ended a process that should not have ended."""
        for node in self.nodes.values():
            node.plugin.check()
        for engine in self.engines.values():
            engine.check()
        self.scheduler.check()

    def later(self, after: float, heal: Callable[[], Awaitable[None] | None]) -> None:
        """Faults last for a while."""

        async def wait() -> None:
            await asyncio.sleep(after)
            if (result := heal()) is not None:
                await result

        self._heals.append(asyncio.ensure_future(wait()))

    async def heal(self) -> None:
        """Every fault that is under way ends now."""
        for heal in self._heals:
            heal.cancel()
        self._heals.clear()
        for link in self.links.values():
            link.heal()
        for name, node in self.nodes.items():
            node.kubelet.silent = False
            if not node.kubelet.is_up:
                node.kubelet.start()
            node.plugin.start()
            for uuid in node.cards.present:
                node.cards.set_health(uuid, healthy=True)
            if ("", name) not in self.server.collection(SHARE_NODES):
                self.apply_policy(name, SPECS[self.mode][0])
        for engine in self.engines.values():
            engine.start()
        self.server.wake()

    # Objects

    def apply_policy(self, node: str, spec: Json) -> None:
        present = self.server.collection(SHARE_NODES).get(("", node))
        self.serial += 1
        metadata = {"name": node, "uid": f"uid-{node}-{self.serial}", "generation": 1}
        item = {
            "metadata": metadata,
            "spec": {"policy": "default", "memoryUnit": "1Gi", "devices": {"source": "Simulated"}, **spec},
            "status": {},
        }
        if present is not None:
            generation = present["metadata"]["generation"] + 1
            item["metadata"] = {**present["metadata"], "generation": generation}
            item["spec"] = {**present["spec"], **spec}
            item["status"] = present["status"]
        self.server.put(SHARE_NODES, item)

    def delete_policy(self, node: str) -> None:
        self.server.delete(SHARE_NODES, ("", node))

    def create_pod(
        self, containers: list[Json], inits: list[Json], *, name: str = "", node: str = "", **annotations: str
    ) -> Json:
        self.serial += 1
        name = name or f"pod-{self.serial}"
        spec: Json = {"containers": containers, "initContainers": inits}
        if node:
            spec["nodeName"] = node
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{self.serial}",
            "annotations": {**annotations},
            "creationTimestamp": "2026-11-21T10:00:00Z",
        }
        return self.server.put(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def delete_pod(self, pod: Json) -> None:
        """Deletes a pod gracefully: the API server keeps it until the kubelet has ended it."""
        if not pod["spec"].get("nodeName"):
            self.force_delete(pod)
            return
        metadata = {**pod["metadata"], "deletionTimestamp": "2026-11-21T10:00:00Z"}
        self.server.put(PODS, {**pod, "metadata": metadata})

    def force_delete(self, pod: Json) -> None:
        self.server.delete(PODS, (pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def finish_pod(self, pod: Json) -> None:
        """Its containers end by themselves."""
        kubelet = self.nodes[pod["spec"]["nodeName"]].kubelet
        kubelet.finish(pod["metadata"]["uid"])

    def pods(self) -> list[Json]:
        return [*self.server.pods()]

    def bound(self) -> list[Json]:
        return [pod for pod in self.server.pods() if pod["spec"].get("nodeName")]

    # The books

    def recorded(self, node: str) -> set[tuple[str, str, str]]:
        """Returns the containers in the status, by namespace and name of the pod, and their own name."""
        item = self.server.collection(SHARE_NODES).get(("", node), {"status": {}})
        cards = item["status"].get("cards", [])
        shares = (pod for card in cards for pod in card.get("pods", []))
        return {(share["namespace"], share["name"], share["container"]) for share in shares}

    def books(self, engine: Engine | None = None) -> ClusterRecords:
        ledger = engine.records() if engine and engine.is_ready else None
        return ClusterRecords({name: self._node_books(node, ledger) for name, node in self.nodes.items()})

    def _pod_book(self, pod: Json) -> PodRecord:
        metadata = pod["metadata"]
        known = self._read.get(metadata["uid"])
        if known is None or known[0] != metadata["resourceVersion"]:
            known = self._read[metadata["uid"]] = (metadata["resourceVersion"], read_pod(pod))
        return known[1]

    def _node_books(self, node: SimulatedNode, ledger: Mapping[str, LedgerRecord] | None) -> NodeRecords:
        return node_books(
            node.name,
            share_node=self.server.collection(SHARE_NODES).get(("", node.name)),
            pods=(pod for pod in self.server.pods() if pod["spec"].get("nodeName") == node.name),
            kubelet=kubelet_books(node.kubelet),
            ledger=None if ledger is None else ledger.get(node.name, LedgerRecord()),
            hardware=None if self._is_busy(node) else node.cards.sizes(()),
            read=self._pod_book,
        )

    def _is_busy(self, node: SimulatedNode) -> bool:
        """Whether cards keep the sizes that they had, as they do while anybody has anything there."""
        bound = (pod for pod in self.server.pods() if pod["spec"].get("nodeName") == node.name)
        return bool(node.kubelet.pods) or any(pod["metadata"]["annotations"] for pod in bound)

    def on_the_way(self) -> Iterator[str]:
        """Yields why it is not quiet yet."""
        if self.scheduler.binds:
            yield "a bind"
        for pod in self.server.pods():
            yield from self._way_of(pod)
        uids = {pod["metadata"]["uid"] for pod in self.server.pods()}
        for node in self.nodes.values():
            yield from _awaited(node)
            yield from self._way_of_static_pods(node.kubelet)
            for uid, known in node.kubelet.pods.items():
                if uid not in uids and not is_static(known.body):
                    yield f"end of {known.name[1]}"
                if known.is_starting:
                    yield f"start of containers of {known.name[1]}"

    def _way_of_static_pods(self, kubelet: SimulatedKubelet) -> Iterator[str]:
        """One that runs may have no mirror for long."""
        for uid, pod in kubelet.manifests.pods.items():
            if uid not in kubelet.pods and uid not in kubelet.refused:
                yield f"admission of {pod['metadata']['name']}"
        for uid, known in kubelet.pods.items():
            if is_static(known.body) and (uid not in kubelet.manifests.pods or uid in kubelet.refused):
                yield f"end of {known.name[1]}"

    def _way_of(self, pod: Json) -> Iterator[str]:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if node and is_mirror(pod):
            kubelet = self.nodes[node].kubelet
            yield from way_of_mirror(pod, kubelet.manifests, kubelet.pods)
        elif "deletionTimestamp" in pod["metadata"]:
            yield f"deletion of {name}"
        elif node and pod["status"]["phase"] == "Pending":
            yield f"admission of {name}"
        elif (
            node
            and pod["status"]["phase"] in FINISHED
            and pod["metadata"]["uid"] in self.nodes[node].kubelet.pods
        ):
            yield f"end of {name}"
        elif not node and self.scheduler.would_try(pod):
            yield f"scheduling of {name}"


async def cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _awaited(node: SimulatedNode) -> Iterator[str]:
    """A kubelet that was restarted may show pods of before for a while: what they had counts so long, also if
    they have ended."""
    agent = node.plugin.agent
    if agent is not None and agent.state.assigned.unshown:
        yield f"showing of all pods of {node.name}"
