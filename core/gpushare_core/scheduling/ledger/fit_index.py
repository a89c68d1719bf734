"""Whether requests fit nodes, and how good each node is for them: known until the node changes. Pure.

Pods come in bursts of equals. Each of them asks about hundreds or thousands of nodes, and few of these have
changed since the pod before. Nor are there many different nodes: nodes that are alike share their answers.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import Key, ranking_key
from gpushare_core.placement.requests import PodRequest, Request
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.ledger.node_room import NodeRoom, room_of
from gpushare_core.scheduling.ledger.unfit_reason import UNKNOWN_NODE, Refusal, UnfitReason, unfit_reason

MAX_SHAPES = 64
"""Of requests that are remembered: anybody may make up more. At 5,000 nodes each takes up to 0.3 MiB; a
request that is not remembered takes up to 80 ms where no two nodes are alike."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Fit:
    """A request fits a node. Compared by identity: thousands of nodes share few."""

    strategy: Strategy
    candidates: int
    """How many nodes of the policy are offered for a pod at most; 0: all."""
    key: Key
    """The least is the best of the nodes with the same strategy."""

    @property
    def identity(self) -> Hashable:
        """Equal for fits that say the same."""
        return (self.strategy, self.candidates, self.key)


Answer = Fit | UnfitReason
Shape = tuple[tuple[str, int], ...]
"""What decides where a request fits: extended resources and how much of each."""


def shape_of(request: Request) -> Shape:
    return tuple((resource.name, resource.total) for resource in request.resources)


def node_unfit_reason(node: NodeLedger | None, room: NodeRoom | None, request: Request) -> UnfitReason:
    """Returns why ``request``, which does not fit, does not fit ``node`` with this ``room``."""
    if node is None or node.share_node is None:
        return UNKNOWN_NODE
    if room is None:
        return UnfitReason(node.closed_reason, Refusal.NODE_CLOSED, resolvable=False)
    return unfit_reason(request, room)


class SharedAnswers(dict[Shape, Answer]):
    """The answers of nodes that answer every request alike; it lives as long as there are such nodes."""

    __slots__ = ("__weakref__",)


class FitIndex:
    """Over ``nodes`` and their ``rooms``, both by name and kept up to date by their owner."""

    def __init__(
        self, nodes: Mapping[str, NodeLedger], rooms: Mapping[str, NodeRoom], most: int = MAX_SHAPES
    ) -> None:
        self.nodes = nodes
        self.rooms = rooms
        self._most = most
        self._shapes: OrderedDict[Shape, _Answers] = OrderedDict()
        """The one that nobody has asked about for longest comes first."""
        self._by_fingerprint: WeakValueDictionary[Hashable, SharedAnswers] = WeakValueDictionary()
        self._by_node: dict[str, SharedAnswers] = {}
        """Of the nodes that somebody has asked about since they changed."""

    def answers(self, nodes: Iterable[str], request: Request) -> list[Answer]:
        return [*map(self._answers(request).__getitem__, nodes)]

    def forget(self, node: str) -> None:
        """The node has changed."""
        self._by_node.pop(node, None)
        for answers in self._shapes.values():
            answers.pop(node, None)

    @property
    def size(self) -> int:
        """How many answers are remembered."""
        return sum(map(len, self._shapes.values()))

    def shared_answers(self, name: str, node: NodeLedger) -> SharedAnswers:
        known = self._by_node.get(name)
        if known is None:
            known = self._by_fingerprint.setdefault(node.fingerprint(), SharedAnswers())
            self._by_node[name] = known
        return known

    def _answers(self, request: Request) -> "_Answers":
        shape = shape_of(request)
        answers = self._shapes.get(shape)
        if answers is None:
            answers = self._shapes[shape] = _Answers(self, _bare(request))
            if len(self._shapes) > self._most:
                self._forget_shape(self._shapes.popitem(last=False)[0])
        self._shapes.move_to_end(shape)
        return answers

    def _forget_shape(self, shape: Shape) -> None:
        for answers in self._by_fingerprint.values():
            answers.pop(shape, None)


def _bare(request: Request) -> PodRequest:
    """Returns ``request`` without containers: a pod may have thousands."""
    return PodRequest(tuple(replace(resource, containers={}) for resource in request.resources))


class _Answers(dict[str, Answer]):
    """The answers to one request, by node; each is found when it is asked for."""

    __slots__ = ("_index", "_request", "_shape", "_shared")

    def __init__(self, index: FitIndex, request: Request) -> None:
        self._index = index
        self._request = request
        self._shape = shape_of(request)
        self._shared: WeakValueDictionary[Hashable, Answer] = WeakValueDictionary()
        """Each lives as long as it is the answer of some node."""

    def __missing__(self, name: str) -> Answer:
        """Remembers nothing of an unknown node: a caller may make up names."""
        node = self._index.nodes.get(name)
        if node is None or node.share_node is None:
            return UNKNOWN_NODE
        known = self._index.shared_answers(name, node)
        answer = known.get(self._shape)
        if answer is None:
            answer = known[self._shape] = self._answer(node, self._index.rooms.get(name))
        self[name] = answer
        return answer

    def _answer(self, node: NodeLedger, room: NodeRoom | None) -> Answer:
        fit = self._fit(node) if room and self._fits_each(room) else None
        if fit is not None:
            return self._shared.setdefault(fit.identity, fit)
        known = self._shared.get(room)
        if known is None:
            reason = node_unfit_reason(node, room, self._request)
            known = self._shared.setdefault(reason.identity if room is None else room, reason)
        return known

    def _fits_each(self, room: NodeRoom) -> bool:
        """Returns whether each resource alone would fit: that is cheap, and most requests have only one."""
        offers = ((room_of(resource.name, room), resource.total) for resource in self._request.resources)
        return all(offered is not None and total <= offered.room.greatest for offered, total in offers)

    def _fit(self, node: NodeLedger) -> Fit | None:
        candidate, share_node = node.candidate(self._request), node.share_node
        if candidate is None or share_node is None:
            return None
        return Fit(share_node.strategy, share_node.candidates, ranking_key(candidate, share_node.strategy))
