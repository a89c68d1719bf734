"""Pods that a replaced system bound: they run on, and nobody has written our annotation for them yet.

Nobody protected that system's annotations. So they count only on a node whose policy has the system's
dialect, and only where our records do not know the pod. Only the card is taken from them: the pod's own
request says how much.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.legacy import LegacyAllocation, MalformedAnnotationsError
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import PodRequest, ResourceRequest
from gpushare_core.placement.units import Meaning
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import ShareNode


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyPod:
    """A bound pod with annotations of replaced systems and without one of ours that is its own."""

    pod: PodReference
    claims: Mapping[str, LegacyAllocation]
    """Name of a dialect -> what its system wrote."""
    created: str = ""
    """RFC 3339."""
    node: str = ""
    """Empty until the pod itself was read, as is ``request``."""
    request: PodRequest = field(default_factory=PodRequest)


def read_claims(annotations: Mapping[str, str]) -> tuple[dict[str, LegacyAllocation], list[str]]:
    """Returns what each system wrote, by its dialect's name, and why the rest cannot be read."""
    claims: dict[str, LegacyAllocation] = {}
    problems: list[str] = []
    for name, dialect in DIALECTS.items():
        try:
            claim = dialect.codec.read_legacy(annotations)
        except MalformedAnnotationsError as error:
            problems.append(str(error))
        else:
            claims |= {name: claim} if claim else {}
    return claims, problems


@dataclass(frozen=True, slots=True)
class LegacyShares:
    cards: Mapping[str, int]
    """Card UUID -> units."""
    unit_meaning: Meaning


def legacy_shares(legacy: LegacyPod, share_node: ShareNode) -> LegacyShares | None:
    """Returns what ``legacy`` has of the cards of ``share_node``; None where nothing of it can be believed,
    and while the node's cards are unknown."""
    claim, asked = legacy.claims.get(share_node.dialect.name), _asked(legacy, share_node)
    if claim is None or asked is None or not share_node.meanings:
        return None
    uuids = {card.index: card.uuid for card in share_node.cards}
    units = {uuids[index]: units for index, units in claim.shares(asked.total).items() if index in uuids}
    return LegacyShares(units, _meaning(asked, share_node)) if units else None


def _asked(legacy: LegacyPod, share_node: ShareNode) -> ResourceRequest | None:
    """Returns what the pod asks for by the system's own names: the system wrote about no others."""
    names = share_node.dialect.resources.keys() - GPUSHARE.resources.keys()
    return next((resource for resource in legacy.request.resources if resource.name in names), None)


def _meaning(asked: ResourceRequest, share_node: ShareNode) -> Meaning:
    """The replaced system had the same unit. Where the node now serves other classes, the pod's units mean
    nothing there: its class alone makes the whole card taken."""
    return share_node.meaning_of(asked.resource) or (asked.resource, 1)


class LegacyPods:
    """Those that do not count yet: their GPUShareNode, or its cards, are unknown."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, LegacyPod]] = {}
        """Node -> pod UID -> pod."""
        self._nodes: dict[str, str] = {}
        """Pod UID -> node."""

    def put(self, legacy: LegacyPod) -> None:
        self._by_node.setdefault(legacy.node, {})[legacy.pod.uid] = legacy
        self._nodes[legacy.pod.uid] = legacy.node

    def drop(self, uid: str) -> None:
        if node := self._nodes.pop(uid, ""):
            self._by_node[node].pop(uid)
            if not self._by_node[node]:
                del self._by_node[node]

    def keep_only(self, uids: Collection[str]) -> None:
        for uid in [uid for uid in self._nodes if uid not in uids]:
            self.drop(uid)

    def known(self, share_node: ShareNode) -> Iterator[tuple[LegacyPod, LegacyShares]]:
        """Yields the node's pods whose shares are known now, and drops them."""
        for uid, legacy in [*self._by_node.get(share_node.name, {}).items()]:
            if shares := legacy_shares(legacy, share_node):
                self.drop(uid)
                yield legacy, shares
