"""Whatever comes first, and however often: what pods of a replaced system have is in the sums."""

import dataclasses
from collections.abc import Callable
from math import inf

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.samples.extender import pod_update, reference, share_node

from gpushare_core.dialects.aliyun import ALIYUN
from gpushare_core.dialects.legacy import LegacyAllocation
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.legacy_pods import LegacyPod
from gpushare_core.scheduling.objects.share_node import SERVED, ShareNode

OURS = share_node("n1")
SPEAKING = structs.replace(OURS, dialect=ALIYUN, resources=SERVED[ALIYUN.name, "Memory"])
ASKED = {"a": 4, "b": 7, "c": 2}
"""Pod -> units; each claims more, of card 0."""


def legacy(pod: str) -> PodUpdate:
    asked = ResourceRequest("aliyun.com/gpu-mem", ResourceClass.MEMORY, ASKED[pod], {"main": ASKED[pod]})
    uid = reference(pod).uid
    claims = {ALIYUN.name: LegacyAllocation(cards={0: 900})}
    found = LegacyPod(pod=reference(pod), claims=claims, node="n1", request=PodRequest((asked,)))
    return PodUpdate(uid, legacy=found)


def own(pod: str) -> PodUpdate:
    """The annotation that the plugin writes: the pod is on card 1."""
    return pod_update(reference(pod).uid, c1=ASKED[pod])


@dataclasses.dataclass
class Model:
    """What is true, in the plainest words."""

    node: ShareNode | None = None
    seen: set[str] = dataclasses.field(default_factory=set)
    """Pods with the old system's annotations alone."""
    on: dict[str, int] = dataclasses.field(default_factory=dict)
    """Pod -> index of the card on which it counts, until it is gone."""

    def settle(self) -> None:
        if self.node is SPEAKING:
            self.on.update({pod: 0 for pod in self.seen if pod not in self.on})

    def used(self) -> list[int]:
        return [sum(ASKED[pod] for pod, at in self.on.items() if at == card) for card in (0, 1)]


Operation = Callable[[Ledger, Model], None]


def set_node(node: ShareNode) -> Operation:
    def apply(ledger: Ledger, model: Model) -> None:
        ledger.set_share_node(node)
        model.node = node

    return apply


def drop_node(ledger: Ledger, model: Model) -> None:
    ledger.drop_share_node("n1")
    model.node = None


def see(pod: str) -> Operation:
    def apply(ledger: Ledger, model: Model) -> None:
        ledger.set_pod(legacy(pod))
        model.seen.add(pod)

    return apply


def see_own(pod: str) -> Operation:
    def apply(ledger: Ledger, model: Model) -> None:
        ledger.set_pod(own(pod))
        model.seen.discard(pod)
        model.on[pod] = 1

    return apply


def leave(pod: str) -> Operation:
    def apply(ledger: Ledger, model: Model) -> None:
        ledger.pod_deleted(reference(pod).uid, now=0.0)
        ledger.free_unreleased(now=inf)
        model.seen.discard(pod)
        model.on.pop(pod, None)

    return apply


def list_again(ledger: Ledger, model: Model) -> None:
    """As after a relist: what is there is there, with the annotations that it has."""
    ours = {pod for pod, card in model.on.items() if card == 1}
    present = [*map(own, sorted(ours)), *map(legacy, sorted(model.seen - ours))]
    ledger.replace_pods(present, begun=0.0)


OPERATIONS = st.sampled_from(
    [
        set_node(SPEAKING),
        set_node(OURS),
        drop_node,
        list_again,
        *(make(pod) for make in (see, see_own, leave) for pod in ASKED),
    ]
)


@given(st.lists(OPERATIONS, min_size=20, max_size=60))
def test_the_sums_are_those_of_the_model(operations: list[Operation]) -> None:
    ledger, model = Ledger(), Model()
    for operation in operations:
        operation(ledger, model)
        model.settle()
        sums = ledger.node("n1")
        if model.node and sums:
            assert [card.allocated for card in sums.cards()] == model.used()
