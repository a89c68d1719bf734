"""The kubelet's books: which units every container of this node holds.

They are read from PodResources here, but nothing below depends on who kept them.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.pods import Pod, PodName
from gpushare_plugin.decide.unit_ids import UnknownUnitError, decode_id


@dataclass(frozen=True, slots=True)
class Holding:
    """One active pod of this node, holding something or not."""

    name: PodName
    containers: Mapping[str, "array[int]"]
    """Every container that PodResources show -> numbers of the units it holds, four bytes each."""
    foreign: int = 0
    """IDs that are not of ours."""

    @property
    def units(self) -> int:
        return sum(map(len, self.containers.values()))


@dataclass(frozen=True, slots=True)
class Books:
    """All active pods, as of one moment."""

    pods: Mapping[PodName, Holding] = field(default_factory=dict)

    def holders(self) -> Iterator[Holding]:
        """The pods that hold units."""
        return (holding for holding in self.pods.values() if holding.units)

    def holds(self, name: PodName) -> bool:
        return name in self.pods and self.pods[name].units > 0

    def numbers(self) -> Iterator[int]:
        """Every unit that somebody holds."""
        for holding in self.holders():
            for numbers in holding.containers.values():
                yield from numbers


def holding(name: PodName, containers: Mapping[str, Iterable[str]]) -> Holding:
    """From the IDs that each container holds."""
    decoded = {container: _decode(ids) for container, ids in containers.items()}
    return Holding(
        name,
        {container: numbers for container, (numbers, _) in decoded.items()},
        sum(foreign for _, foreign in decoded.values()),
    )


def _decode(ids: Iterable[str]) -> tuple["array[int]", int]:
    numbers: array[int] = array("I")
    foreign = 0
    for unit_id in ids:
        try:
            numbers.append(decode_id(unit_id))
        except UnknownUnitError:
            foreign += 1
    return numbers, foreign


@dataclass(frozen=True, slots=True)
class PodUnits:
    """What one pod truly holds."""

    containers: Mapping[str, Mapping[str, int]]
    """Container -> card UUID -> units; ordinary init containers are included where their card is known."""
    cards: Mapping[str, int]
    """Card UUID -> units that the kubelet keeps for the pod as a whole."""


def pod_units(pod: Pod, holding: Holding | None, layout: Layout, granted: str | None) -> PodUnits | None:
    """What ``pod`` holds, or None while that is not settled: it was not admitted yet.

    PodResources do not show ordinary init containers, but the kubelet keeps their units until the pod ends.
    Their card is the one where the pod's other units are; failing that the card that was ``granted``, or
    the annotated one.
    """
    ask = pod.ask
    if holding is None or ask is None or not ask.request.containers:
        return None
    if any(not holding.containers.get(name) for name in ask.visible):
        return None
    visible = {name: layout.shares(holding.containers[name]) for name in ask.visible}
    return _with_hidden(pod, visible, granted)


def _with_hidden(pod: Pod, visible: dict[str, dict[str, int]], granted: str | None) -> PodUnits | None:
    assert pod.ask
    cards: dict[str, int] = {}
    for shares in visible.values():
        for uuid, units in shares.items():
            cards[uuid] = cards.get(uuid, 0) + units
    card = next(iter(cards), None) or granted or _annotated_card(pod)
    hidden = {name: units for name, units in pod.ask.request.containers.items() if name in pod.ask.hidden}
    if not hidden:
        return PodUnits(visible, cards)
    if card is None:
        return None
    beyond = max(0, pod.ask.request.total - sum(cards.values()))
    cards[card] = cards.get(card, 0) + beyond
    return PodUnits({**{name: {card: units} for name, units in hidden.items()}, **visible}, cards)


def _annotated_card(pod: Pod) -> str | None:
    return next(iter(pod.allocation.held()), None) if pod.allocation else None


def promised_units(pods: Iterable[Pod], books: Books) -> dict[str, int]:
    """Card UUID -> units annotated to pods that the kubelet has not admitted yet."""
    promised: dict[str, int] = {}
    for pod in pods:
        if books.holds(pod.name) or pod.allocation is None:
            continue
        for uuid, units in pod.allocation.held().items():
            promised[uuid] = promised.get(uuid, 0) + units
    return promised
