"""Extender, plugins and kubelets against a model that knows nothing but what containers were told.

Pods come and go in any order, cards fail, programs and nodes restart, modes change. No card is ever
over-committed or serves two classes, nobody is refused what was promised, and in the end all is free again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.fakes.books import Node, Pod
from tests.fakes.books_audit import read_books
from tests.fakes.books_cluster import GI, Cluster
from tests.samples.plugin import container
from tests.samples.pod_shapes import CARD, CLASSES, MEMORY, SERVED, SHAPES, SLICE, SPECS

from gpushare_core.allocation_annotation import decode_allocation
from gpushare_core.api.share_node import CardStatus
from gpushare_core.audit.auditor import differences
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass

DIALECT_NAMES = ("gpushare.io", "tuya.com")
"""Of the latter every class has a name of its own."""
RESERVED = GI
CARDS = {"n1": (8, 8, 5), "n2": (8, 1)}
"""GiB of each card. Of the last nothing is left beside what is reserved."""


@dataclass
class World:
    """The operations by name. Each takes two numbers, which choose what it is done to."""

    mode: str
    cluster: Cluster = field(default_factory=Cluster)

    def __post_init__(self) -> None:
        for name, memories in CARDS.items():
            strategy = "Binpack" if name == "n1" else "Spread"
            spec = {"reservedMemory": "1Gi", "strategy": strategy, **SPECS[self.mode][0]}
            self.cluster.add_node(name, *memories, spec=spec)

    def rest(self, _a: int, _b: int) -> None:
        """Nothing happens."""

    def schedule(self, a: int, b: int) -> None:
        served = [
            DIALECTS[DIALECT_NAMES[a % 7 % 2]].resource_name(resource) for resource in CLASSES[self.mode]
        ]
        is_memory = RESOURCES[served[b % len(served)]] is ResourceClass.MEMORY
        amount = a % 9 + 1 if is_memory else a % 3 + 1
        containers, inits = SHAPES[b % len(SHAPES)](served[b % len(served)], amount)
        if len(served) > 1 and not b % 4:
            containers.append(container("other", 1, served[(b + 1) % len(served)]))
        self.cluster.schedule(self.cluster.create(containers, inits))

    def bind_past_the_extender(self, a: int, b: int) -> None:
        served = SERVED[self.mode]
        containers, inits = SHAPES[b % 2](served[a % len(served)], b % 3 + 1)
        self.cluster.bind_past_the_extender(self.cluster.create(containers, inits), self.node(a).name)

    def admit(self, a: int, _b: int) -> None:
        waiting = [pod for pod in self.cluster.pods.values() if pod.phase == "Pending"]
        if waiting:
            pod = waiting[a % len(waiting)]
            node = self.cluster.nodes[pod.node]
            promised = node.offers and not node.disturbed
            refusal = self.cluster.admit(pod)
            assert not (refusal and promised), refusal

    def kill(self, a: int, b: int) -> None:
        """The kubelet ends it before the API server forgets it."""
        if pod := self.bound(a):
            self.cluster.nodes[pod.node].kubelet.pods.pop(pod.name, None)
            if b % 2:
                self.cluster.nodes[pod.node].look()
            self.cluster.leave(pod)

    def finish(self, a: int, _b: int) -> None:
        """Or is deleted by force: the kubelet is the last to let go."""
        if pod := self.bound(a):
            self.cluster.leave(pod)

    def release(self, a: int, _b: int) -> None:
        self.cluster.release(self.node(a).name)

    def look(self, a: int, _b: int) -> None:
        self.node(a).look()
        self.check_status(self.node(a))

    def card_fails(self, a: int, b: int) -> None:
        node = self.node(a)
        uuids = [*node.cards.present]
        node.cards.set_health(uuids[b % len(uuids)], healthy=False)
        node.disturbed = True

    def card_returns(self, a: int, b: int) -> None:
        uuids = [*self.node(a).cards.present]
        self.node(a).cards.set_health(uuids[b % len(uuids)], healthy=True)

    def restart_plugin(self, a: int, _b: int) -> None:
        self.node(a).start_plugin()

    def restart_node(self, a: int, _b: int) -> None:
        """The kubelet has what its checkpoint has; the lists of devices are gone until the plugin is back."""
        node = self.node(a)
        node.kubelet.devices.clear()
        node.start_plugin()
        node.look()

    def restart_extender(self, _a: int, _b: int) -> None:
        self.cluster.let_time_pass()
        self.cluster.restart_extender()

    def change_mode(self, a: int, b: int) -> None:
        """Away and back."""
        others = [spec for mode in NODE_MODES for spec in SPECS[mode]]
        spec = others[b % len(others)] if b % 3 else SPECS[self.mode][0]
        self.cluster.change_spec(self.node(a).name, spec)

    def change_dialect(self, a: int, b: int) -> None:
        self.cluster.change_spec(self.node(a).name, {"dialect": DIALECT_NAMES[b % 2]})

    def let_time_pass(self, _a: int, _b: int) -> None:
        """Where nobody waits for a card that failed, or that others took, promises are kept again."""
        self.cluster.let_time_pass()
        self.check_books()
        for node in self.cluster.nodes.values():
            pods = [*self.cluster.bound_to(node.name)]
            healthy = all(card.healthy for card in node.cards.present.values())
            if healthy and not any(pod.foreign or pod.phase == "Pending" for pod in pods):
                node.disturbed = False

    def node(self, number: int) -> Node:
        return self.cluster.nodes["n1" if number % 3 else "n2"]

    def bound(self, number: int) -> Pod | None:
        bound = [pod for pod in self.cluster.pods.values() if pod.node]
        return bound[number % len(bound)] if bound else None

    # The other opinion

    def check(self) -> None:
        for node in self.cluster.nodes.values():
            self.check_cards(node)
            self.check_promises(node)

    def check_cards(self, node: Node) -> None:
        taken: Counter[tuple[str, str]] = Counter()
        for pod, _ in node.kubelet.pods.values():
            taken.update({(name, unit) for name, unit, _, _ in told(node, pod)})
        assert all(count == 1 for count in taken.values()), f"units of two pods: {taken}"
        check_sums(node, held(node))

    def check_promises(self, node: Node) -> None:
        """What the extender has promised goes beside what pods have."""
        sums = held(node)
        for pod in self.cluster.bound_to(node.name):
            text = pod.body["metadata"]["annotations"].get(GPUSHARE.allocation_annotation)
            if text and pod.name not in node.kubelet.pods:
                allocation = decode_allocation(text, uid=pod.uid)
                for uuid, units in allocation.held().items():
                    unit = allocation.other_units.get(uuid, allocation.unit)
                    sums.setdefault(uuid, Counter())[unit] += units
        if not node.disturbed:
            check_sums(node, sums)

    def check_status(self, node: Node) -> None:
        """Once the plugin has looked, status and ledger know what pods have, card by card."""
        sums = self.cluster.ledger.node(node.name)
        assert sums
        given = {uuid: units.total() for uuid, units in held(node).items()}
        status = {card.uuid: card.allocated_units for card in share_node_cards(node)}
        assert {uuid: units for uuid, units in status.items() if units} == given
        assert all(card.allocated >= given.get(card.uuid, 0) for card in sums.cards())

    def check_books(self) -> None:
        """Where nobody is on the way all books agree; until then none may say what is never true."""
        waiting = any(pod.phase == "Pending" for pod in self.cluster.pods.values())
        found = [
            difference
            for difference in differences(read_books(self.cluster))
            if difference.kind.at_once or not waiting
        ]
        assert not found, "\n".join(map(str, found))

    def finale(self) -> None:
        """Everything goes, every card returns, and the policy asks for what it asked for at first."""
        for pod in [*self.cluster.pods.values()]:
            self.cluster.leave(pod)
        for node in self.cluster.nodes.values():
            node.kubelet.pods.clear()
            for uuid in node.cards.present:
                node.cards.set_health(uuid, healthy=True)
            self.cluster.change_spec(node.name, {**SPECS[self.mode][0], "dialect": GPUSHARE.name})
            node.let_cards_return()
        self.cluster.let_time_pass()
        self.check_books()
        for node in self.cluster.nodes.values():
            sums = self.cluster.ledger.node(node.name)
            assert sums
            assert not sums.holders
            assert not sums.closed_reason
            assert [card.allocated for card in sums.cards()] == [0] * len(CARDS[node.name])
            for name in SERVED[self.mode]:
                assert len(node.kubelet.free(name)) == whole(node, name)


def held(node: Node) -> dict[str, Counter[str]]:
    """Card UUID -> what one unit is -> how many of these the pods have that the kubelet knows."""
    sums: dict[str, Counter[str]] = {}
    for pod, _ in node.kubelet.pods.values():
        for _, _, uuid, unit in told(node, pod):
            sums.setdefault(uuid, Counter())[unit] += 1
    return sums


def check_sums(node: Node, sums: dict[str, Counter[str]]) -> None:
    for uuid, units in sums.items():
        assert len(units) == 1, f"{uuid} serves {units}"
        ((unit, amount),) = units.items()
        assert amount <= capacity(node, uuid, unit), f"{uuid} has {amount} units of {unit}"


def told(node: Node, pod: Pod) -> Iterator[tuple[str, str, str, str]]:
    """Yields resource, unit ID, card and what one unit is, each unit of ``pod`` once."""
    _, given = node.kubelet.pods[pod.name]
    yield from {
        (container.resource, unit, uuid, container.variables["GPUSHARE_UNIT"])
        for containers in given.values()
        for container in containers
        for uuid, unit in container.cards()
    }


def share_node_cards(node: Node) -> Sequence[CardStatus]:
    assert node.state.share_node
    return node.state.share_node.status.cards


def capacity(node: Node, uuid: str, unit: str) -> int:
    """Returns how many units a card has of which RESERVED bytes are kept."""
    left = node.cards.present[uuid].memory - RESERVED
    if left <= 0:
        return 0
    if unit.endswith("card"):
        return int(unit.split()[0].removeprefix("1/"))
    return left // parse_memory(unit)


def whole(node: Node, name: str) -> int:
    """Returns how many units of the resource ``name`` a free node has, in the first spec of its mode."""
    unit = {MEMORY: "1Gi", SLICE: "1/2 card", CARD: "1 card"}[name]
    return sum(capacity(node, uuid, unit) for uuid in node.cards.present)


WEIGHTS = {
    World.rest: 1,
    World.schedule: 12,
    World.admit: 12,
    World.kill: 4,
    World.finish: 3,
    World.release: 3,
    World.look: 4,
    World.card_fails: 1,
    World.card_returns: 1,
    World.restart_plugin: 1,
    World.restart_node: 1,
    World.restart_extender: 1,
    World.change_mode: 1,
    World.change_dialect: 1,
    World.let_time_pass: 1,
    World.bind_past_the_extender: 1,
}
OPERATIONS = [operation for operation, weight in WEIGHTS.items() for _ in range(weight)]
Step = tuple[Callable[[World, int, int], None], int, int]
STEPS = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 63), st.integers(0, 63))
LENGTH = RUNS = 100
"""10,000 operations for each mode."""


def failure(mode: str, steps: Sequence[Step]) -> Exception | None:
    world = World(mode)
    try:
        for operation, a, b in steps:
            operation(world, a, b)
            world.check()
        world.finale()
    except Exception as error:  # whatever goes wrong is to be told with the steps that lead there
        return error
    return None


def fewest(mode: str, steps: Sequence[Step]) -> Sequence[Step]:
    """Returns steps each of which is needed to fail. Faster by far than hypothesis makes long lists short."""
    at = 0
    while at < len(steps):
        shorter = [*steps[:at], *steps[at + 1 :]]
        steps, at = (shorter, at) if failure(mode, shorter) else (steps, at + 1)
    return steps


@pytest.mark.parametrize("mode", list(NODE_MODES))
@settings(max_examples=RUNS, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=LENGTH, max_size=LENGTH))
def test_nothing_is_over_committed_and_everything_is_given_back(mode: str, steps: list[Step]) -> None:
    if failure(mode, steps):
        needed = fewest(mode, steps)
        shown = ", ".join(f"{operation.__name__}({a}, {b})" for operation, a, b in needed)
        raise AssertionError(f"{mode}: {shown}") from failure(mode, needed)
