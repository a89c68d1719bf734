"""Random nodes whose books agree have no difference; any one change of one book is found."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples.audit import GIB, NODE, Have, World

from gpushare_core.allocation_annotation import decode_allocation, encode_allocation
from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.audit.differences import differences, node_differences, released_early, status_differences
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    LedgerRecord,
    NodeRecords,
    PodKey,
    ShareNodeRecord,
    StatusCard,
)
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass

ANNOTATION = GPUSHARE.allocation_annotation
CLASSES = {
    "Memory": [ResourceClass.MEMORY],
    "Slices": [ResourceClass.SLICE],
    "Exclusive": [ResourceClass.CARD],
    "Mixed": [*ResourceClass],
}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A node in any mode; each card is filled from its first unit on, by pods of one class."""
    mode = draw(st.sampled_from(sorted(CLASSES)))
    memories = draw(st.lists(st.integers(4, 12), min_size=1, max_size=4))
    pods: list[Have] = []
    cards = draw(st.permutations(range(len(memories))))
    while cards and len(pods) < 6:
        resource = draw(st.sampled_from(CLASSES[mode]))
        count = draw(st.integers(1, len(cards))) if resource is not ResourceClass.MEMORY else 1
        chosen, cards = cards[:count], cards[count:]
        pods += _sharing(draw, resource, chosen, memories[chosen[0]], len(pods))
    dialect = draw(st.sampled_from(["gpushare.io", "aliyun.com", "volcano.sh", "enflame.com", "tuya.com"]))
    return World(mode, memories, pods, dialect)


def _sharing(
    draw: st.DrawFn, resource: ResourceClass, cards: list[int], memory: int, serial: int
) -> list[Have]:
    """Pods that share these cards."""
    room = {ResourceClass.MEMORY: memory, ResourceClass.SLICE: 4, ResourceClass.CARD: 1}[resource]
    pods: list[Have] = []
    first = 0
    while first < room and len(pods) < 3:
        units = draw(st.integers(1, room - first)) if resource is ResourceClass.MEMORY else 1
        name = f"pod-{serial + len(pods)}"
        containers = {"main": dict.fromkeys(cards, (first, units))}
        inits: frozenset[str] = frozenset()
        if draw(st.booleans()) and resource is ResourceClass.MEMORY:
            containers = {"init": {cards[0]: (first, draw(st.integers(1, units)))}, **containers}
            inits = frozenset({"init"})
        elif resource is ResourceClass.MEMORY and units > 1 and draw(st.booleans()):
            containers = {"main": {cards[0]: (first, 1)}, "side": {cards[0]: (first + 1, units - 1)}}
        pods.append(Have(name, resource, containers, inits))
        first += units
    return pods


Change = Callable[[NodeRecords, str, int], NodeRecords]


def _status(records: NodeRecords, at: str, change: Callable[[StatusCard], StatusCard]) -> NodeRecords:
    assert records.share_node
    cards = tuple(change(card) if card.uuid == at else card for card in records.share_node.cards)
    total = sum(card.allocated for card in cards)
    return replace(records, share_node=replace(records.share_node, cards=cards, units_allocated=total))


def status_forgets_a_holder(records: NodeRecords, card: str, at: int) -> NodeRecords:
    def forget(each: StatusCard) -> StatusCard:
        gone = each.holders[at % len(each.holders)]
        left = tuple(holder for holder in each.holders if holder is not gone)
        return replace(each, holders=left, allocated=each.allocated - gone.units)

    return _status(records, card, forget)


def status_has_other_units(records: NodeRecords, card: str, at: int) -> NodeRecords:
    def more(each: StatusCard) -> StatusCard:
        changed = each.holders[at % len(each.holders)]
        holders = tuple(
            replace(holder, units=holder.units + 1) if holder is changed else holder
            for holder in each.holders
        )
        return replace(each, holders=holders, allocated=each.allocated + 1)

    return _status(records, card, more)


def status_says_another_sum(records: NodeRecords, card: str, _at: int) -> NodeRecords:
    return _status(records, card, lambda each: replace(each, allocated=each.allocated + 1))


def annotation_is_gone(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    return _pod(records, at, lambda _text, _uid: "")


def annotation_has_other_units(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    def change(text: str, uid: str) -> str:
        allocation = decode_allocation(text, uid=uid)
        more = {
            name: {card: units + 1 for card, units in shares.items()}
            for name, shares in allocation.containers.items()
        }
        cards = {card: units + 1 for card, units in allocation.cards.items()}
        return encode_allocation(replace(allocation, containers=more, cards=cards))

    return _pod(records, at, change)


def annotation_names_another_card(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    return _pod(records, at, lambda text, _uid: text.replace("GPU-", "GPU-9"))


def _pod(records: NodeRecords, at: int, change: Callable[[str, str], str]) -> NodeRecords:
    assert records.pods
    uid = sorted(records.pods)[at % len(records.pods)]
    pod = records.pods[uid]
    text = change(pod.annotations[ANNOTATION], uid)
    annotations = {ANNOTATION: text} if text else {}
    return replace(records, pods={**records.pods, uid: replace(pod, annotations=annotations)})


def pod_is_gone(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    assert records.pods
    gone = sorted(records.pods)[at % len(records.pods)]
    return replace(records, pods={uid: pod for uid, pod in records.pods.items() if uid != gone})


def kubelet_forgets(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    assert records.resources
    assert records.checkpoint
    gone = records.resources[at % len(records.resources)].key
    return replace(
        records,
        resources=[resource for resource in records.resources if resource.key != gone],
        checkpoint={
            key: each
            for key, each in records.checkpoint.items()
            if key != ContainerKey(PodKey("", "", f"uid-{gone.pod.name}"), gone.container)
        },
    )


def kubelet_has_one_unit_less(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    assert records.resources
    each = [*records.resources]
    changed = each[at % len(each)]
    units = (replace(changed.units[0], numbers=changed.units[0].numbers[1:]),)
    each[at % len(each)] = replace(changed, units=units)
    return replace(records, resources=each)


def container_sees_another_card(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    assert records.environments
    key = sorted(records.environments)[at % len(records.environments)]
    seen = records.environments[key]
    assert seen
    return replace(records, environments={**records.environments, key: replace(seen, cards=("GPU-x",))})


def container_sees_more(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    assert records.environments
    key = sorted(records.environments)[at % len(records.environments)]
    seen = records.environments[key]
    assert seen
    assert seen.units
    return replace(records, environments={**records.environments, key: replace(seen, units=seen.units + 1)})


def container_sees_nothing(records: NodeRecords, _card: str, at: int) -> NodeRecords:
    assert records.environments
    key = sorted(records.environments)[at % len(records.environments)]
    return replace(records, environments={**records.environments, key: None})


def extender_counts_less(records: NodeRecords, card: str, _at: int) -> NodeRecords:
    return _ledger(records, card, -1)


def extender_counts_more(records: NodeRecords, card: str, _at: int) -> NodeRecords:
    return _ledger(records, card, 1)


def _ledger(records: NodeRecords, card: str, by: int) -> NodeRecords:
    assert records.ledger
    cards = tuple(
        replace(
            difference,
            shares=(
                replace(difference.shares[0], units=difference.shares[0].units + by),
                *difference.shares[1:],
            ),
            allocated=difference.allocated + by,
        )
        if difference.uuid == card
        else difference
        for difference in records.ledger.cards
    )
    return replace(records, ledger=replace(records.ledger, cards=cards))


def card_is_smaller(records: NodeRecords, card: str, _at: int) -> NodeRecords:
    assert records.hardware
    return replace(records, hardware={**records.hardware, card: records.hardware[card] - GIB})


CHANGES: list[Change] = [
    status_forgets_a_holder,
    status_has_other_units,
    status_says_another_sum,
    annotation_is_gone,
    annotation_has_other_units,
    annotation_names_another_card,
    pod_is_gone,
    kubelet_forgets,
    kubelet_has_one_unit_less,
    container_sees_another_card,
    container_sees_more,
    container_sees_nothing,
    extender_counts_less,
    extender_counts_more,
    card_is_smaller,
]


@settings(deadline=None)
@given(worlds())
def test_books_that_agree_have_no_difference(world: World) -> None:
    records = world.records()
    assert differences(ClusterRecords({NODE: records})) == []
    assert released_early(records, records) == []


@settings(deadline=None)
@given(worlds(), st.sampled_from(CHANGES), st.integers(0, 99))
def test_the_status_alone_is_audited_as_among_all_books(world: World, change: Change, at: int) -> None:
    cards = sorted({f"GPU-{card}" for pod in world.pods for card in pod.held()})
    share_node = change(world.records(), cards[at % len(cards)], at).share_node
    assert share_node
    alone = NodeRecords(node=NODE, share_node=share_node)
    assert status_differences(share_node) == node_differences(alone)


@settings(deadline=None, max_examples=300)
@given(worlds(), st.sampled_from(CHANGES), st.integers(0, 99))
def test_any_change_of_one_book_is_found(world: World, change: Change, at: int) -> None:
    cards = sorted({f"GPU-{card}" for pod in world.pods for card in pod.held()})
    assert node_differences(change(world.records(), cards[at % len(cards)], at))


@settings(deadline=None)
@given(worlds(), st.integers(0, 99), st.sampled_from(["status", "ledger"]))
def test_a_book_that_lets_go_before_the_kubelet_is_named(world: World, at: int, book: str) -> None:
    records = world.records()
    pod = world.pods[at % len(world.pods)]
    after = _without_in_status(records, pod) if book == "status" else _without_in_ledger(records, pod)
    found = released_early(records, after)
    assert {(difference.kind, difference.pod) for difference in found} == {
        (DifferenceKind.RELEASED_EARLY, str(pod.key))
    }
    assert released_early(after, after) == []


@settings(deadline=None)
@given(worlds(), st.integers(0, 99))
def test_what_the_kubelet_has_released_may_be_free(world: World, at: int) -> None:
    gone = world.pods[at % len(world.pods)]
    fewer = World(world.mode, world.memories, [pod for pod in world.pods if pod is not gone], world.dialect)
    assert released_early(world.records(), fewer.records()) == []


def _without_in_status(records: NodeRecords, pod: Have) -> NodeRecords:
    share_node = records.share_node
    assert isinstance(share_node, ShareNodeRecord)
    cards = tuple(
        replace(card, holders=tuple(holder for holder in card.holders if holder.key.pod != pod.key))
        for card in share_node.cards
    )
    return replace(records, share_node=replace(share_node, cards=cards))


def _without_in_ledger(records: NodeRecords, pod: Have) -> NodeRecords:
    ledger = records.ledger
    assert isinstance(ledger, LedgerRecord)
    cards = tuple(
        replace(card, shares=tuple(share for share in card.shares if share.pod != pod.key))
        for card in ledger.cards
    )
    return replace(records, ledger=replace(ledger, cards=cards))
