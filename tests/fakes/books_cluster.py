"""The API server and the extender of a cluster without sockets, and the other opinion on all books."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from tests.fakes.books import NOW, Cards, Node, Pod, RefusedError

from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import SHARE_NODES
from gpushare_core.kube.response import Page
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unreleased_pods import UNRELEASED_SECONDS
from gpushare_core.scheduling.objects.holder import read_pod as read_holder
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binding import allocation_of, share_binding
from gpushare_plugin.decide.held.pods import read_pod
from gpushare_plugin.devices.card import PhysicalCard

ANNOTATION = GPUSHARE.allocation_annotation
GI = 2**30


@dataclass(slots=True)
class Cluster:
    """Every step is over when its method returns, and every program has heard of it; but plugins learn at
    their next reading what kubelets did."""

    pods: dict[str, Pod] = field(default_factory=dict)
    """By name: those that the API server has."""
    share_nodes: dict[str, Json] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    now: float = 0.0
    serial: int = 0
    refuses_statuses: bool = False
    """Whether the API server stores no status of a GPUShareNode, or only later."""
    unanswered: list[tuple[str, Json]] = field(default_factory=list)
    """Node and body of each write that it did not store."""
    version: int = 0
    """Of the GPUShareNode that was written last."""

    # What people do

    def add_node(self, name: str, *memories: int, spec: Json) -> None:
        """A node with cards of ``memories`` GiB, on two NUMA nodes; its plugin has looked once."""
        cards = [
            PhysicalCard(uuid=f"{name}-{index}", index=index, memory=memory * GI, numa_node=index % 2)
            for index, memory in enumerate(memories)
        ]
        self.put_share_node(_new_share_node(name, spec))
        self.nodes[name] = Node(self, name, Cards({card.uuid: card for card in cards}))
        self.nodes[name].start_plugin()
        self.nodes[name].look()

    def change_spec(self, node: str, spec: Json) -> None:
        share_node = self.share_nodes[node]
        share_node["metadata"]["generation"] += 1
        self.put_share_node({**share_node, "spec": {**share_node["spec"], **spec}})
        self._share_node_changed(node)

    def delete_policy(self, node: str) -> None:
        """Pods run on; the plugin, too, until its own pod goes."""
        del self.share_nodes[node]
        self.nodes[node].state.share_node = None
        self.ledger.drop_share_node(node)

    def apply_policy(self, node: str, spec: Json) -> None:
        """Anew: nothing is known of what was before."""
        self.put_share_node(_new_share_node(node, spec))
        self._share_node_changed(node)

    def annotate(self, pod: Pod, annotations: dict[str, str]) -> None:
        """As somebody does who may."""
        pod.body["metadata"]["annotations"] |= annotations
        self._pod_changed(pod)

    def create(self, containers: list[Json], inits: list[Json]) -> Pod:
        self.serial += 1
        name = f"pod-{self.serial}"
        body = {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {}},
            "spec": {"containers": containers, "initContainers": inits},
            "status": {},
        }
        pod = Pod(body)
        self.pods[name] = pod
        return pod

    def create_again(self, gone: Pod) -> Pod:
        """Creates another pod of the same name and spec, bound to the same node by an unknown client."""
        self.serial += 1
        metadata = {**gone.body["metadata"], "uid": f"uid-{self.serial}", "annotations": {}}
        pod = Pod({"metadata": metadata, "spec": gone.body["spec"], "status": {}})
        self.pods[pod.name.name] = pod
        self.bind_past_the_extender(pod, gone.node)
        return pod

    def schedule(self, pod: Pod) -> str:
        """As kube-scheduler and the bind verb do. Returns the node; without one the pod is gone again."""
        if node := self.schedule_unseen(pod):
            self.show(pod)
        return node

    def schedule_unseen(self, pod: Pod) -> str:
        """The same, and no watch has shown the Binding yet."""
        request, names = pod.request, [*self.nodes]
        passing = filter_nodes(self.ledger, names, uid=pod.uid, request=request).passing
        if not passing:
            del self.pods[pod.name.name]
            return ""
        scores = prioritize_nodes(self.ledger, passing, request.resources[0])
        node = max(passing, key=lambda name: scores[name])
        reference = PodReference("default", pod.name.name, pod.uid)
        holder = self.ledger.reserve(reference, node=node, request=request)
        share_node = self.ledger.share_node(node)
        assert share_node
        allocation = allocation_of(holder, request, share_node, now=NOW)
        pod.body["metadata"]["annotations"] = share_binding(
            reference, allocation, share_node, now=NOW
        ).annotations
        self.ledger.reservations.confirm(pod.uid, now=self.now)
        pod.body["spec"]["nodeName"] = node
        return node

    def show(self, pod: Pod) -> None:
        """Every watch shows it as it is."""
        self._pod_changed(pod)

    def bind_past_the_extender(self, pod: Pod, node: str) -> None:
        pod.foreign = True
        self.nodes[node].disturbed = True
        pod.body["spec"]["nodeName"] = node
        self._pod_changed(pod)

    def admit(self, pod: Pod) -> str:
        """Returns why the kubelet refused it; then the pod has failed."""
        try:
            self.nodes[pod.node].admit(pod)
        except RefusedError as error:
            self.leave(pod)
            return str(error)
        pod.phase = "Running"
        pod.body["status"] = {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}
        self._pod_changed(pod)
        return ""

    def leave(self, pod: Pod) -> None:
        """The pod has ended, or was deleted by force: everybody but the kubelet forgets it."""
        del self.pods[pod.name.name]
        self.ledger.pod_deleted(pod.uid, now=self.now)
        self.nodes[pod.node].state.drop_pod(pod.name, pod.uid)

    def release(self, node: str) -> None:
        """The kubelet ends the pods that the API server does not have any more."""
        kubelet = self.nodes[node].kubelet
        for pod, _ in [*kubelet.pods.values()]:
            if pod is not self.pods.get(pod.name.name):
                kubelet.end(pod.name)

    def restart_extender(self) -> None:
        """Restarts the extender: what the former process knew of deleted pods is lost, and time has
        passed."""
        self.ledger = Ledger()
        self.ledger.replace_share_nodes(self._read_share_node(name) for name in self.share_nodes)
        bound = [pod for pod in self.pods.values() if pod.node]
        self.ledger.replace_pods((self._read_holder(pod) for pod in bound), begun=self.now)

    def let_time_pass(self) -> None:
        """Lets every plugin report all that there is to report, and the extender read it."""
        for node in self.nodes.values():
            node.look()
        self.now += UNRELEASED_SECONDS
        self.ledger.free_unreleased(now=self.now)

    def bound_to(self, node: str) -> Iterator[Pod]:
        return (pod for pod in self.pods.values() if pod.node == node)

    # The API server, as far as a plugin writes to it

    async def merge(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        if path.startswith(SHARE_NODES):
            return self._merge_status(
                path.removeprefix(f"{SHARE_NODES}/").split("/")[0], body, dry_run=dry_run
            )
        pod = self.pods[path.rsplit("/", 1)[1]]
        assert body["metadata"]["uid"] == pod.uid
        pod.body["metadata"]["annotations"] |= body["metadata"]["annotations"]
        self.ledger.set_pod(self._read_holder(pod))
        return pod.body

    async def pages(self, path: str, *, limit: int, field_selector: str) -> AsyncIterator[Page]:
        """The GPUShareNode of one name."""
        assert (path, limit) == (SHARE_NODES, 1)
        found = self.share_nodes.get(field_selector.removeprefix("metadata.name="))
        yield Page([found] if found else [], str(self.version))

    def _merge_status(self, name: str, body: Json, *, dry_run: bool) -> Json:
        """As the API server: it looks at the version, and not at the UID."""
        if self.refuses_statuses:
            self.unanswered += [(name, body)] if not dry_run else []
            raise UnreachableError("no answer")
        present = self.share_nodes[name]
        version = present["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion", version) != version:
            raise ApiError(HTTPStatus.CONFLICT, "Conflict", "the object has been modified")
        written = {**present, "status": body["status"]}
        if not dry_run:
            written = self.put_share_node(written)
            self.ledger.set_share_node(self._read_share_node(name))
        return written

    def store_unanswered(self) -> None:
        """The API server carries out now what it did not answer."""
        for name, body in self.unanswered:
            with suppress(ApiError):
                self._merge_status(name, body, dry_run=False)

    def put_share_node(self, share_node: Json) -> Json:
        self.version += 1
        metadata = {**share_node["metadata"], "resourceVersion": str(self.version)}
        written = {**share_node, "metadata": metadata}
        self.share_nodes[metadata["name"]] = written
        return written

    def _share_node_changed(self, name: str) -> None:
        self.nodes[name].state.share_node = GPUShareNode.from_json(self.share_nodes[name])
        self.ledger.set_share_node(self._read_share_node(name))

    def _pod_changed(self, pod: Pod) -> None:
        self.ledger.set_pod(self._read_holder(pod))
        self.nodes[pod.node].state.put_pod(read_pod(pod.body, ANNOTATION, RESOURCES))

    def _read_share_node(self, name: str) -> Any:
        return read_share_node(msgspec.json.encode(self.share_nodes[name]))

    def _read_holder(self, pod: Pod) -> Any:
        return read_holder(msgspec.json.encode(pod.body))


def _new_share_node(name: str, spec: Json) -> Json:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
        "spec": {"policy": "default", "memoryUnit": "1Gi", "devices": {"source": "Simulated"}, **spec},
        "status": {},
    }
