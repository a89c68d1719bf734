"""Places pods one after the other, by the code by which the extender does."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gpushare_cli.decide.simulation.node_room import NodeRooms
from gpushare_cli.decide.simulation.simulated_pod import SimulatedPod
from gpushare_cli.decide.simulation.simulation_report import (
    AskedUnits,
    PendingReason,
    SimulatedCard,
    SimulatedPlacement,
)
from gpushare_core.placement.requests import PodRequest, ResourceRequest
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import FilterResult, Narrowing, filter_nodes
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.objects.holder import Holder

NO_NODE = "no node shares GPU cards"


@dataclass(frozen=True, kw_only=True)
class Placer:
    """Places pods in ``ledger``, which keeps what they get: use a ledger of your own."""

    ledger: Ledger
    rooms: NodeRooms
    without: frozenset[str] = frozenset()
    """Nodes that take no pod."""
    _units: dict[str, str] = field(default_factory=dict)
    """Name of a resource -> the unit in which nodes serve it."""

    @cached_property
    def nodes(self) -> list[str]:
        return [name for name in self.ledger.node_names() if name not in self.without]

    def place_all(self, pods: Iterable[SimulatedPod]) -> list[SimulatedPlacement]:
        return [self.place(pod) for pod in pods]

    def asks(self, pod: SimulatedPod) -> bool:
        """Returns whether the pod asks for a share of cards at all."""
        return bool(self._request(pod).resources)

    def place(self, pod: SimulatedPod) -> SimulatedPlacement:
        """The best node by the extender's scores, the first by name of several; then its cards."""
        request = self._request(pod)
        if pod.shape.gates:
            gate = PendingReason(
                nodes=0, message=f"the pod has the scheduling gate {', '.join(pod.shape.gates)}"
            )
            return self._placement(pod, request, obstacles=[gate])
        candidates = self._candidates(pod)
        refused = self.rooms.refusals(pod.shape, candidates)
        names = [name for name in candidates if name not in refused]
        result = self._filtered(pod, request, names)
        if result.passing:
            return self._reserved(pod, request, self._best(result.passing, request))
        messages = [*refused.values(), *result.failed.values(), *result.unresolvable.values()]
        return self._placement(pod, request, obstacles=_obstacles(messages))

    def _candidates(self, pod: SimulatedPod) -> list[str]:
        return [name for name in self.nodes if pod.shape.node in ("", name)]

    def _request(self, pod: SimulatedPod) -> PodRequest:
        return pod.shape.kube_pod.request(self.ledger.resources)

    def _filtered(self, pod: SimulatedPod, request: PodRequest, names: list[str]) -> FilterResult:
        version = pod.shape.kube_pod.version
        return filter_nodes(
            self.ledger,
            names,
            uid=pod.uid,
            request=request,
            annotations_size=version.annotations_size,
            narrowing=Narrowing(pod.shape.kube_pod.nominated_node),
        )

    def _best(self, names: Sequence[str], request: PodRequest) -> str:
        scores = prioritize_nodes(self.ledger, names, request)
        return min(names, key=lambda name: (-scores[name], name))

    def _reserved(self, pod: SimulatedPod, request: PodRequest, node: str) -> SimulatedPlacement:
        try:
            holder = self.ledger.reserve(pod.reference, node=node, request=request, priority=request.priority)
        except DoesNotFitError as error:
            return self._placement(pod, request, obstacles=[PendingReason(nodes=1, message=str(error))])
        self.rooms.take(pod.shape, node)
        return self._placement(pod, request, node=node, cards=self._cards(holder))

    def _cards(self, holder: Holder) -> list[SimulatedCard]:
        share_node, reservation = self.ledger.share_node(holder.node), self.ledger.reservations[holder.uid]
        found = []
        for card, units in holder.shares.items():
            known = share_node.card(card) if share_node else None
            index = known.index if known else -1
            found.append(
                SimulatedCard(index=index, uuid=card, units=units, reason=reservation.reasons[card].value)
            )
        return sorted(found, key=lambda card: card.index)

    def _placement(
        self,
        pod: SimulatedPod,
        request: PodRequest,
        *,
        node: str = "",
        cards: Sequence[SimulatedCard] = (),
        obstacles: Sequence[PendingReason] = (),
    ) -> SimulatedPlacement:
        return SimulatedPlacement(
            uid=pod.present_uid,
            namespace=pod.namespace,
            name=pod.name,
            workload=pod.workload,
            moved_from=pod.moved_from,
            waits_already=pod.is_waiting,
            asked=[self._asked(resource) for resource in request.resources],
            node=node,
            cards=cards,
            obstacles=obstacles,
        )

    def _asked(self, resource: ResourceRequest) -> AskedUnits:
        if resource.name not in self._units:
            self._units[resource.name] = units_served(self.ledger, resource)
        return AskedUnits(resource=resource.name, units=resource.total, unit=self._units[resource.name])


def units_served(ledger: Ledger, resource: ResourceRequest) -> str:
    """Returns the unit of a resource on the nodes that serve it; several with commas."""
    served = (ledger.share_node(name) for name in ledger.node_names())
    units = {node.unit_of(resource.resource) for node in served if node and resource.name in node.resources}
    return ", ".join(sorted(units - {""}))


def _obstacles(messages: Sequence[str]) -> list[PendingReason]:
    if not messages:
        return [PendingReason(nodes=0, message=NO_NODE)]
    counted = Counter(messages)
    ordered = sorted(counted, key=lambda message: (-counted[message], message))
    return [PendingReason(nodes=counted[message], message=message) for message in ordered]
