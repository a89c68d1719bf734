"""Each kind of difference, made by one change of one book of a node whose books agree."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.samples.audit import (
    GIB,
    MEMORY_WORLD,
    MIXED_WORLD,
    NODE,
    Have,
    World,
    card_pod,
    lending_pod,
    memory_pod,
    slice_pod,
)

from gpushare_core.allocation_annotation import decode_allocation, encode_allocation
from gpushare_core.audit.difference import DifferenceKind, Rule
from gpushare_core.audit.differences import (
    differences,
    node_differences,
    released_early,
    seen_twice,
    status_differences,
)
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    HeldUnits,
    LedgerShare,
    ListedContainer,
    NodeRecords,
    PodKey,
    SeenCards,
    StatusHolder,
    StoredContainer,
)
from gpushare_core.audit.rules.claims import claims
from gpushare_core.dialects.annotation_room import MAX_BYTES
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest

ANNOTATION = GPUSHARE.allocation_annotation
UID = "uid-a"
OTHER = PodKey("default", "z", "uid-z")


def status_card(records: NodeRecords, at: int, **changes: Any) -> NodeRecords:
    """Changes what the status says of one card, and its sums with it."""
    assert records.share_node
    cards = [*records.share_node.cards]
    cards[at] = replace(cards[at], **changes)
    share_node = replace(
        records.share_node,
        cards=tuple(cards),
        units_total=sum(card.units for card in cards),
        units_allocated=sum(card.allocated for card in cards),
    )
    return replace(records, share_node=share_node)


def ledger_card(records: NodeRecords, at: int, **changes: Any) -> NodeRecords:
    assert records.ledger
    cards = [*records.ledger.cards]
    cards[at] = replace(cards[at], **changes)
    return replace(records, ledger=replace(records.ledger, cards=tuple(cards)))


def pod(records: NodeRecords, uid: str = UID, **changes: Any) -> NodeRecords:
    assert records.pods
    return replace(records, pods={**records.pods, uid: replace(records.pods[uid], **changes)})


def without_pod(records: NodeRecords, uid: str = UID) -> NodeRecords:
    assert records.pods
    return replace(records, pods={key: each for key, each in records.pods.items() if key != uid})


def annotated(records: NodeRecords, uid: str = UID, **changes: Any) -> NodeRecords:
    assert records.pods
    present = records.pods[uid].annotations
    allocation = replace(decode_allocation(present[ANNOTATION], uid=uid), **changes)
    return pod(records, uid, annotations={**present, ANNOTATION: encode_allocation(allocation)})


def listed(records: NodeRecords, at: int, numbers: list[int]) -> NodeRecords:
    """The kubelet has other units for a container, in both of its books."""
    assert records.resources
    assert records.checkpoint
    each = [*records.resources]
    units = (replace(each[at].units[0], numbers=numbers),)
    each[at] = replace(each[at], units=units)
    key = ContainerKey(PodKey("", "", f"uid-{each[at].key.pod.name}"), each[at].key.container)
    stored = {**records.checkpoint, key: replace(records.checkpoint[key], units=units)}
    return replace(records, resources=each, checkpoint=stored)


def stored(records: NodeRecords, uid: str = UID, container: str = "main", **changes: Any) -> NodeRecords:
    assert records.checkpoint
    key = ContainerKey(PodKey("", "", uid), container)
    return replace(
        records, checkpoint={**records.checkpoint, key: replace(records.checkpoint[key], **changes)}
    )


def seen(records: NodeRecords, at: SeenCards | None, name: str = "a") -> NodeRecords:
    key = ContainerKey(PodKey("default", name, f"uid-{name}"), "main")
    return replace(records, environments={**(records.environments or {}), key: at})


def unlisted(records: NodeRecords, name: str = "a") -> NodeRecords:
    """The kubelet has lost a pod."""
    return replace(
        records,
        resources=[resource for resource in records.resources or () if resource.key.pod.name != name],
        checkpoint={
            key: each for key, each in (records.checkpoint or {}).items() if key.pod.uid != f"uid-{name}"
        },
    )


def never_given() -> NodeRecords:
    """The only pod was bound before its kubelet knew what it asks for."""
    records = World("Memory", (16,), (memory_pod("a", 0, 0, 4),)).records()
    records = status_card(ledger_card(records, 0, shares=(), allocated=0), 0, holders=(), allocated=0)
    return seen(pod(unlisted(records), annotations={}), None)


def share(pod: PodKey, units: int, *, reserved: bool = False) -> LedgerShare:
    return LedgerShare(pod=pod, units=units, reserved=reserved)


def holder(pod: PodKey, units: int, *, orphaned: bool = False) -> StatusHolder:
    return StatusHolder(key=ContainerKey(pod, "main"), units=units, orphaned=orphaned)


MEMORY, MIXED = MEMORY_WORLD.records(), MIXED_WORLD.records()
A, B = PodKey("default", "a", "uid-a"), PodKey("default", "b", "uid-b")
FORGED = {"GPU-0": 12}
NOT_ASKING = PodRequest()


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(MEMORY_WORLD, id="Memory, with the words of aliyun.com"),
        pytest.param(MIXED_WORLD, id="Mixed"),
        pytest.param(
            World("Slices", (16, 8), (slice_pod("a", 0, 1), slice_pod("b", 1, first=1))), id="Slices"
        ),
        pytest.param(World("Exclusive", (16, 8, 8), (card_pod("a", 0, 2),)), id="Exclusive"),
        pytest.param(World("Memory", (16,), ()), id="nobody has anything"),
        pytest.param(World("Memory", (8,), (lending_pod("a", 0, 0, init=2, main=5),)), id="init lends"),
    ],
)
def test_books_that_agree_have_no_difference(world: World) -> None:
    assert differences(ClusterRecords({NODE: world.records()})) == []


@pytest.mark.parametrize(
    "book",
    ["share_node", "pods", "resources", "checkpoint", "environments", "ledger", "hardware"],
)
@pytest.mark.parametrize("world", [MEMORY_WORLD, MIXED_WORLD], ids=["Memory", "Mixed"])
def test_a_book_that_was_not_read_is_not_compared(world: World, book: str) -> None:
    unread: dict[str, Any] = {book: None}
    assert node_differences(replace(world.records(), **unread)) == []


CHANGES: list[tuple[str, DifferenceKind, Callable[[], NodeRecords]]] = [
    (
        "status allocates more than the card's memory",
        DifferenceKind.OVER_CAPACITY,
        lambda: status_card(MEMORY, 0, allocated=17, holders=(holder(A, 17),)),
    ),
    (
        "the card has less memory than the units that containers see",
        DifferenceKind.OVER_CAPACITY,
        lambda: replace(MEMORY, hardware={"GPU-0": 7 * GIB, "GPU-1": 8 * GIB}),
    ),
    (
        "containers see more together than the card has",
        DifferenceKind.OVER_CAPACITY,
        lambda: seen(MEMORY, SeenCards(cards=("GPU-0",), units=14, unit="1Gi")),
    ),
    (
        "the kubelet holds a unit for two pods",
        DifferenceKind.GRANTED_TWICE,
        lambda: listed(MEMORY, 1, [3, 4, 5, 6]),
    ),
    (
        "the kubelet holds units of two classes on one card",
        DifferenceKind.TWO_CLASSES,
        lambda: listed(
            MIXED, 1, [MIXED_WORLD.first_unit(0) + 16, MIXED_WORLD.numbers(MIXED_WORLD.pods[1], "main")[1]]
        ),
    ),
    (
        "containers see a card as two classes",
        DifferenceKind.TWO_CLASSES,
        lambda: seen(MIXED, SeenCards(cards=("GPU-0",), units=1, unit="1/4 card"), "b"),
    ),
    (
        "memory of one container lies on two cards",
        DifferenceKind.WRONG_SHAPE,
        lambda: listed(MEMORY, 0, [0, 1, 21, 22]),
    ),
    (
        "two slices of one container lie on one card",
        DifferenceKind.WRONG_SHAPE,
        lambda: listed(MIXED, 1, [MIXED_WORLD.first_unit(1) + 8, MIXED_WORLD.first_unit(1) + 9]),
    ),
    (
        "the kubelet holds a unit of no card",
        DifferenceKind.UNKNOWN_UNIT,
        lambda: listed(MEMORY, 0, [0, 1, 2, 99]),
    ),
    (
        "a card is larger in the status than it is",
        DifferenceKind.CAPACITY_DIFFERS,
        lambda: replace(MEMORY, hardware={"GPU-0": 16 * GIB, "GPU-1": 7 * GIB}),
    ),
    (
        "a healthy card is not there",
        DifferenceKind.CAPACITY_DIFFERS,
        lambda: replace(MEMORY, hardware={"GPU-0": 16 * GIB}),
    ),
    (
        "a card shares more than its memory",
        DifferenceKind.CAPACITY_DIFFERS,
        lambda: ledger_card(status_card(MEMORY, 1, units=9), 1, units=9),
    ),
    (
        "the extender has another size",
        DifferenceKind.CAPACITY_DIFFERS,
        lambda: ledger_card(MEMORY, 1, units=7),
    ),
    (
        "a container sees another card",
        DifferenceKind.ENVIRONMENT_DIFFERS,
        lambda: seen(MEMORY, SeenCards(cards=("GPU-1",), units=4, unit="1Gi")),
    ),
    (
        "a container sees more units than it has",
        DifferenceKind.ENVIRONMENT_DIFFERS,
        lambda: seen(MEMORY, SeenCards(cards=("GPU-0",), units=5, unit="1Gi")),
    ),
    ("a container with units sees no card", DifferenceKind.ENVIRONMENT_DIFFERS, lambda: seen(MEMORY, None)),
    (
        "a container's author names all cards to the runtime",
        DifferenceKind.ENVIRONMENT_DIFFERS,
        lambda: seen(
            MEMORY,
            SeenCards(cards=("GPU-0",), units=4, unit="1Gi", others={"NVIDIA_VISIBLE_DEVICES": "all"}),
        ),
    ),
    (
        "a container that asks for nothing names a card",
        DifferenceKind.ENVIRONMENT_DIFFERS,
        lambda: replace(
            pod(unlisted(MEMORY), request=NOT_ASKING),
        ),
    ),
    (
        "a container that asks for no card shows itself all of them",
        DifferenceKind.CARDS_UNASKED,
        lambda: pod(MEMORY, variables={"exporter": {"NVIDIA_VISIBLE_DEVICES": "all"}}),
    ),
    (
        "the plugin answered another card",
        DifferenceKind.ENVIRONMENT_DIFFERS,
        lambda: stored(MEMORY, response=SeenCards(cards=("GPU-1",), units=4)),
    ),
    (
        "the annotation names another card",
        DifferenceKind.SHARES_DIFFER,
        lambda: annotated(MEMORY, containers={"main": {"GPU-1": 4}}, cards={"GPU-1": 4}),
    ),
    ("a pod has no annotation", DifferenceKind.SHARES_DIFFER, lambda: pod(MEMORY, annotations={})),
    (
        "an annotation is of another pod",
        DifferenceKind.SHARES_DIFFER,
        lambda: pod(MEMORY, annotations=(MEMORY.pods or {})["uid-b"].annotations),
    ),
    (
        "the checkpoint has other units than PodResources",
        DifferenceKind.SHARES_DIFFER,
        lambda: stored(MEMORY, units=(HeldUnits(resource=GPUSHARE.memory_resource, numbers=[8, 9, 10, 11]),)),
    ),
    (
        "the status has a container with fewer units",
        DifferenceKind.SHARES_DIFFER,
        lambda: status_card(MEMORY, 0, allocated=7, holders=(holder(A, 3), holder(B, 4))),
    ),
    ("the kubelet has lost a pod that runs", DifferenceKind.SHARES_DIFFER, lambda: unlisted(MEMORY)),
    ("the kubelet has lost what a container sees", DifferenceKind.FORGOTTEN_UNITS, lambda: unlisted(MEMORY)),
    ("the kubelet started a pod without units", DifferenceKind.WITHOUT_UNITS, lambda: never_given()),
    (
        "the sum of a card is not that of its pods",
        DifferenceKind.SUMS_DIFFER,
        lambda: status_card(MEMORY, 0, allocated=9),
    ),
    (
        "the sum of the node is not that of its cards",
        DifferenceKind.SUMS_DIFFER,
        lambda: replace(MEMORY, share_node=replace(MEMORY.share_node, units_allocated=3)),  # type: ignore[type-var]
    ),
    (
        "the kubelet holds more than the status counts",
        DifferenceKind.UNCOUNTED,
        lambda: status_card(MEMORY, 0, allocated=4, holders=(holder(B, 4),)),
    ),
    (
        "the extender counts less than the status",
        DifferenceKind.UNCOUNTED,
        lambda: ledger_card(MEMORY, 0, allocated=4),
    ),
    (
        "the extender does not count an annotation",
        DifferenceKind.UNCOUNTED,
        lambda: ledger_card(MEMORY, 0, shares=(share(B, 4),), allocated=8),
    ),
    (
        "the extender counts other units for a pod",
        DifferenceKind.SHARES_DIFFER,
        lambda: ledger_card(MEMORY, 0, shares=(share(A, 3), share(B, 4))),
    ),
    (
        "the extender counts a pod that is gone",
        DifferenceKind.STALE_HOLDER,
        lambda: ledger_card(MEMORY, 0, shares=(share(A, 4), share(B, 4), share(OTHER, 1)), allocated=9),
    ),
    (
        "the extender keeps units for a bind",
        DifferenceKind.RESERVED,
        lambda: ledger_card(
            MEMORY, 0, shares=(share(A, 4), share(B, 4), share(OTHER, 1, reserved=True)), allocated=9
        ),
    ),
    (
        "the extender counts more than a card has",
        DifferenceKind.OVER_COUNTED,
        lambda: ledger_card(MEMORY, 0, shares=(share(A, 4), share(B, 4), share(OTHER, 9)), allocated=17),
    ),
    (
        "annotations promise one card twice",
        DifferenceKind.OVER_COUNTED,
        lambda: annotated(
            annotated(
                World("Memory", (8, 8), (memory_pod("a", 0, 0, 6), memory_pod("b", 1, 0, 6))).records(),
                "uid-b",
                cards={"GPU-0": 6},
                containers={"main": {"GPU-0": 6}},
            )
        ),
    ),
    ("the API server has ended a pod", DifferenceKind.ORPHAN_MARK, lambda: pod(MEMORY, phase="Succeeded")),
    ("the API server does not have a pod", DifferenceKind.ORPHAN_MARK, lambda: without_pod(MEMORY)),
    (
        "a pod of the API server's is called orphaned",
        DifferenceKind.ORPHAN_MARK,
        lambda: status_card(MEMORY, 0, holders=(holder(A, 4, orphaned=True), holder(B, 4))),
    ),
    (
        "a locked card is free",
        DifferenceKind.LOCK_DIFFERS,
        lambda: status_card(World("Mixed", (16,), ()).records(), 0, lock=ResourceClass.MEMORY),
    ),
    ("a card in use is open", DifferenceKind.LOCK_DIFFERS, lambda: status_card(MIXED, 0, lock=None)),
    (
        "the extender has another lock",
        DifferenceKind.LOCK_DIFFERS,
        lambda: ledger_card(MIXED, 0, lock=ResourceClass.SLICE),
    ),
    (
        "the index in the words of the dialect is another card's",
        DifferenceKind.DIALECT_DIFFERS,
        lambda: pod(
            MEMORY,
            annotations={**(MEMORY.pods or {})[UID].annotations, "ALIYUN_COM_GPU_MEM_IDX": "1"},
        ),
    ),
    (
        "the extender believes what an author has written",
        DifferenceKind.FORGED,
        lambda: ledger_card(
            annotated(MEMORY, cards=FORGED, containers={"main": FORGED}),
            0,
            shares=(share(A, 12), share(B, 4)),
            allocated=16,
        ),
    ),
    (
        "the status believes a pod that asks for nothing",
        DifferenceKind.FORGED,
        lambda: unlisted(pod(MEMORY, request=NOT_ASKING)),
    ),
    (
        "a pod was bound with more annotations than it may have",
        DifferenceKind.UNWRITABLE,
        lambda: pod(MEMORY, annotations_size=MAX_BYTES + 1),
    ),
    (
        "the GPUShareNode cannot be read",
        DifferenceKind.UNREADABLE,
        lambda: replace(MEMORY, share_node=replace(MEMORY.share_node, problem="no quantity")),  # type: ignore[type-var]
    ),
]


@pytest.mark.parametrize(
    ("kind", "change"), [pytest.param(kind, change, id=name) for name, kind, change in CHANGES]
)
def test_a_change_of_one_book_is_named(kind: DifferenceKind, change: Callable[[], NodeRecords]) -> None:
    found = [
        node_difference for node_difference in node_differences(change()) if node_difference.kind is kind
    ]
    assert found
    assert all(difference.node == NODE and len(difference.sentence.split()) > 10 for difference in found)


def admitted_once_more(*, lends: bool = False) -> NodeRecords:
    """A pod asks for 3 units and has 5: its kubelet has lost its checkpoint, has admitted an init container
    once more that had ended, and the other container has units of its own."""
    name = GPUSHARE.memory_resource
    have = Have("a", ResourceClass.MEMORY, {"init": {1: (0, 3)}, "main": {0: (0, 2)}}, frozenset({"init"}))
    asked = ResourceRequest(name, ResourceClass.MEMORY, 3, {"init": 3, "main": 2})
    records = pod(
        World("Memory", (16, 8), (have,)).records(), request=PodRequest((asked,), init_containers=have.inits)
    )
    if not lends:
        return records
    lent = World("Memory", (16, 8), (lending_pod("a", 1, 0, init=3, main=2),)).records()
    return replace(records, share_node=lent.share_node, resources=lent.resources, checkpoint=lent.checkpoint)


def test_a_pod_that_has_more_than_it_asks_for_by_its_kubelet_is_no_forgery() -> None:
    assert node_differences(admitted_once_more()) == []


def test_nor_is_it_where_the_kubelet_was_not_read() -> None:
    records = admitted_once_more()
    assert node_differences(replace(records, resources=None, checkpoint=None, environments=None)) == []


def test_nor_is_one_whose_other_containers_run_with_what_was_forgotten() -> None:
    """The init container is listed by the checkpoint alone, which is not believed of a pod without others."""
    records = admitted_once_more()
    stored = {key: each for key, each in (records.checkpoint or {}).items() if key.container == "init"}
    found = node_differences(replace(records, resources=[], checkpoint=stored))
    assert DifferenceKind.FORGOTTEN_UNITS in {
        difference.kind for difference in found if difference.container == "main"
    }
    assert {difference.kind for difference in found} == {
        DifferenceKind.FORGOTTEN_UNITS,
        DifferenceKind.SHARES_DIFFER,
    }
    assert all(
        "annotation" in difference.sentence
        for difference in found
        if difference.kind is DifferenceKind.SHARES_DIFFER
    )


def test_nobody_is_witness_by_saying_to_be_the_mirror_of_another_pod() -> None:
    records = admitted_once_more()
    forged = PodKey("default", "forged", "uid-forged")
    text = (records.pods or {})[UID].annotations[ANNOTATION].replace(UID, forged.uid)
    mirror = replace((records.pods or {})[UID], key=forged, annotations={ANNOTATION: text})
    claimed = claims(replace(records, pods={**(records.pods or {}), forged.uid: mirror}))
    assert claimed[UID].justified
    assert not claimed[forged.uid].justified


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(admitted_once_more(lends=True), id="its init container lends its units"),
        pytest.param(
            annotated(
                admitted_once_more(),
                cards={"GPU-0": 5},
                containers={"init": {"GPU-0": 3}, "main": {"GPU-0": 2}},
            ),
            id="its init container has another card",
        ),
        pytest.param(
            annotated(
                admitted_once_more(),
                cards={"GPU-0": 6, "GPU-1": 3},
                containers={"init": {"GPU-1": 3}, "main": {"GPU-0": 6}},
            ),
            id="a container has more than it asks for",
        ),
        pytest.param(
            annotated(admitted_once_more(), cards={"GPU-0": 8, "GPU-1": 8}), id="the pod has more than they"
        ),
    ],
)
def test_what_the_kubelet_does_not_witness_is_not_believed(forged: NodeRecords) -> None:
    claim = claims(forged)[UID]
    assert sum(claim.allocation.held().values()) > 3
    assert not claim.justified
    assert not claims(replace(forged, checkpoint=None))[UID].justified


def test_a_forgery_beside_what_an_init_container_has_is_named() -> None:
    forged = annotated(admitted_once_more(), cards={"GPU-0": 8, "GPU-1": 8})
    counted = ledger_card(forged, 0, shares=(share(A, 8),), allocated=8)
    assert DifferenceKind.FORGED in {node_difference.kind for node_difference in node_differences(counted)}


def static_pod(*, mirror: PodKey, request: PodRequest) -> NodeRecords:
    """Books of a pod that lends, which its kubelet knows by another UID than ``mirror``, who claims it."""
    records = World("Memory", (8,), (lending_pod("a", 0, 0, init=2, main=5),)).records()
    claimed = replace(
        (records.pods or {})[UID], key=mirror, kubelet_uid="static", annotations={}, request=request
    )
    stored = {
        ContainerKey(PodKey("", "", "static"), key.container): each
        for key, each in (records.checkpoint or {}).items()
    }
    return replace(records, pods={mirror.uid: claimed}, checkpoint=stored, environments=None, ledger=None)


def test_a_pod_that_only_says_to_be_the_mirror_of_another_one_has_nothing() -> None:
    """The true mirror is away. The kubelet lists static pods by the names of their mirrors."""
    forged = static_pod(mirror=PodKey("default", "forged", "uid-forged"), request=NOT_ASKING)
    found = {(node_difference.kind, node_difference.pod) for node_difference in node_differences(forged)}
    assert DifferenceKind.GRANTED_TWICE not in {kind for kind, _ in found}
    assert "default/forged" not in {pod for _, pod in found}


def test_a_mirror_that_asks_for_something_else_than_its_static_pod_shares_nothing() -> None:
    """Who takes the name and the digest of a static pod while it has no mirror is taken for its mirror."""
    forged = static_pod(mirror=PodKey("default", "a", "uid-other"), request=NOT_ASKING)
    assert DifferenceKind.GRANTED_TWICE not in {
        node_difference.kind for node_difference in node_differences(forged)
    }


def test_every_kind_is_shown_here_or_below() -> None:
    below = {DifferenceKind.TWO_NODES, DifferenceKind.RELEASED_EARLY}
    assert {kind for _, kind, _ in CHANGES} | below == {*DifferenceKind}


def test_one_book_says_and_several_say() -> None:
    """It was said that ``the pod's annotation say``."""
    other = annotated(MEMORY, containers={"main": {"GPU-1": 4}}, cards={"GPU-1": 4})
    told = " ".join(
        node_difference.sentence
        for node_difference in node_differences(other)
        if node_difference.kind is DifferenceKind.SHARES_DIFFER
    )
    assert "the pod's annotation says 4 of GPU-1" in told
    assert "the kubelet's PodResources and" in told
    assert "say 4 of GPU-0" in told


def test_each_kind_has_its_rule() -> None:
    assert {kind.rule for kind in DifferenceKind} == {*Rule}
    assert not any(kind.at_once for kind in DifferenceKind if kind.rule is Rule.AGREEMENT)


def test_a_pod_on_two_nodes() -> None:
    other = replace(MEMORY, node="gpu-2", pods=None, resources=None, checkpoint=None)
    other = replace(other, environments=None, hardware=None, ledger=None)
    found = differences(ClusterRecords({NODE: MEMORY, "gpu-2": other}))
    assert {difference.kind for difference in found} == {DifferenceKind.TWO_NODES}
    assert {difference.pod for difference in found} == {"default/a", "default/b", "default/c"}
    assert "gpu-1, gpu-2" in found[0].sentence


def test_the_status_alone_is_audited_as_with_all_books() -> None:
    broken = status_card(MEMORY, 0, allocated=17, holders=(holder(A, 17),)).share_node
    assert broken
    assert [status_difference.kind for status_difference in status_differences(broken)] == [
        DifferenceKind.OVER_CAPACITY
    ]


def test_what_is_seen_once_may_be_the_trace_of_reading() -> None:
    once = node_differences(status_card(MEMORY, 0, allocated=9))
    again = node_differences(status_card(MEMORY, 0, allocated=10))
    assert seen_twice([], once) == []
    assert seen_twice(once, again) == again


def test_two_pods_of_one_name_stand_side_by_side() -> None:
    """One was deleted by force, and its kubelet has not let go of it while the next one is there already."""
    world = World("Memory", (16,), (memory_pod("a", 0, 0, 4), memory_pod("b", 0, 4, 4)))
    records = world.records()
    old, new = PodKey("default", "a", "uid-a"), PodKey("default", "a", "uid-b")
    assert records.resources
    assert records.environments
    records = replace(
        records,
        pods={"uid-b": replace((records.pods or {})["uid-b"], key=new)},
        resources=[
            replace(resource, key=ContainerKey(PodKey("default", "a"), "main"))
            for resource in records.resources
        ],
        environments={
            ContainerKey(key.pod._replace(name="a"), "main"): each
            for key, each in records.environments.items()
        },
    )
    records = status_card(records, 0, holders=(holder(old, 4, orphaned=True), holder(new, 4)))
    records = ledger_card(records, 0, shares=(share(old, 4), share(new, 4)))
    assert node_differences(records) == []


def test_what_an_author_writes_in_words_that_nobody_reads_is_no_difference() -> None:
    """aliyun.com has no words for whole cards: its tools do not look at such pods."""
    card = Have("a", ResourceClass.CARD, {"main": {0: (0, 1)}})
    records = World("Exclusive", (16,), (card,), dialect="aliyun.com").records()
    annotations = {**(records.pods or {})[UID].annotations, "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}
    assert node_differences(pod(records, annotations=annotations)) == []


def test_the_checkpoint_may_show_pods_that_have_ended() -> None:
    ended = StoredContainer(units=(HeldUnits(resource=GPUSHARE.memory_resource, numbers=[8, 9]),))
    key = ContainerKey(PodKey("", "", "uid-ended"), "main")
    assert node_differences(replace(MEMORY, checkpoint={**(MEMORY.checkpoint or {}), key: ended})) == []


def test_units_of_a_replaced_system_are_not_laid_out() -> None:
    """Their IDs do not say the card; status and annotation still have to agree."""
    foreign = (HeldUnits(resource="aliyun.com/gpu-mem", foreign=4),)
    records = replace(
        MEMORY,
        resources=[
            replace(resource, units=foreign) if resource.key.pod.name == "a" else resource
            for resource in MEMORY.resources or ()
        ],
    )
    records = stored(records, units=foreign, response=None)
    records = seen(records, None)
    assert node_differences(records) == []
    moved = annotated(records, containers={"main": {"GPU-1": 4}}, cards={"GPU-1": 4})
    assert DifferenceKind.SHARES_DIFFER in {
        node_difference.kind for node_difference in node_differences(moved)
    }


def test_a_forged_annotation_without_effect_is_no_difference() -> None:
    """A pod that asks for nothing says that it has a card, and no book counts it."""
    allocation = (MEMORY.pods or {})[UID].annotations
    other = replace(
        (MEMORY.pods or {})[UID], key=OTHER, kubelet_uid=OTHER.uid, request=NOT_ASKING, annotations=allocation
    )
    assert node_differences(replace(MEMORY, pods={**(MEMORY.pods or {}), OTHER.uid: other})) == []
    forged = decode_allocation(allocation[ANNOTATION], uid=UID)
    own = {ANNOTATION: encode_allocation(replace(forged, uid=OTHER.uid))}
    other = replace(other, annotations=own)
    assert node_differences(replace(MEMORY, pods={**(MEMORY.pods or {}), OTHER.uid: other})) == []


@pytest.mark.parametrize("static", ["", "uid-of-the-file"], ids=["of a pod", "of a static pod"])
def test_a_pod_that_says_to_be_the_mirror_of_another_one_is_no_difference(static: str) -> None:
    """Anybody can annotate that."""
    pods, kubelet_uid = {**(MEMORY.pods or {})}, static or UID
    pods[UID] = replace(pods[UID], kubelet_uid=kubelet_uid)
    pods[OTHER.uid] = replace(
        pods[UID], key=OTHER, kubelet_uid=kubelet_uid, request=NOT_ASKING, annotations={}
    )
    checkpoint = {
        key._replace(pod=key.pod._replace(uid=kubelet_uid)) if key.pod.uid == UID else key: each
        for key, each in (MEMORY.checkpoint or {}).items()
    }
    assert node_differences(replace(MEMORY, pods=pods, checkpoint=checkpoint)) == []


def test_a_listed_pod_that_no_other_book_knows() -> None:
    unknown = ListedContainer(
        key=ContainerKey(PodKey("default", "x"), "main"),
        units=(HeldUnits(resource=GPUSHARE.memory_resource, numbers=[8, 9]),),
    )
    found = node_differences(replace(MEMORY, resources=[*(MEMORY.resources or ()), unknown]))
    assert {difference.kind for difference in found} == {
        DifferenceKind.UNCOUNTED,
        DifferenceKind.SHARES_DIFFER,
    }
    assert "2 of GPU-0" in found[-1].sentence or "2 of GPU-0" in found[0].sentence


FILE = "uid-of-the-file"


def static(*, mirror: str, status: str, ledger: str, held: bool = True) -> NodeRecords:
    """Books of a static pod whose mirror has that UID, and of the UIDs by which others count it. Where
    nothing is said, there is no mirror, or a book counts nothing."""
    records = World("Memory", (8,), (memory_pod("a", 0, 0, 4),)).records()
    shown = replace(
        (records.pods or {})[UID], key=PodKey("default", "a", mirror), kubelet_uid=FILE, annotations={}
    )
    stored = {
        ContainerKey(PodKey("", "", FILE), key.container): each
        for key, each in (records.checkpoint or {}).items()
    }
    own = ContainerKey(PodKey("default", "a", status), "main")
    pods = {mirror: shown} if mirror else {}
    records = replace(records, pods=pods, checkpoint=stored if held else {}, environments=None)
    records = records if held else replace(records, resources=())
    records = status_card(records, 0, holders=(StatusHolder(key=own, units=4),) if status else ())
    share = LedgerShare(pod=PodKey("default", "a", ledger), units=4)
    return ledger_card(records, 0, shares=(share,) if ledger else ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            static(mirror="", status=FILE, ledger=FILE),
            static(mirror="", status="uid-b", ledger="uid-b"),
            id="the status is of a mirror that has come and gone",
        ),
        pytest.param(
            static(mirror="uid-a", status="uid-a", ledger="uid-a"),
            static(mirror="", status="uid-a", ledger="uid-a"),
            id="the mirror goes",
        ),
        pytest.param(
            static(mirror="", status="uid-a", ledger="uid-a"),
            static(mirror="uid-b", status=FILE, ledger="uid-b"),
            id="a mirror comes",
        ),
        pytest.param(
            static(mirror="uid-a", status="uid-a", ledger="uid-a"),
            static(mirror="uid-b", status="uid-b", ledger="uid-b"),
            id="a mirror is made anew",
        ),
        pytest.param(
            static(mirror="uid-a", status="uid-a", ledger="uid-a"),
            static(mirror="", status="", ledger="", held=False),
            id="its containers end",
        ),
    ],
)
def test_a_static_pod_is_counted_under_any_of_its_uids(before: NodeRecords, after: NodeRecords) -> None:
    assert released_early(before, after) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "", id="without a mirror"),
        pytest.param("uid-a", "", id="its mirror goes"),
        pytest.param("", "uid-b", id="a mirror comes"),
        pytest.param("uid-a", "uid-b", id="its mirror is made anew"),
    ],
)
def test_units_of_a_static_pod_that_nobody_counts_any_more_are_named(before: str, after: str) -> None:
    counted = static(mirror=before, status=before or FILE, ledger=before or FILE)
    found = released_early(counted, static(mirror=after, status="", ledger=""))
    assert [(difference.kind, difference.pod, difference.uid) for difference in found] == [
        (DifferenceKind.RELEASED_EARLY, "default/a", FILE),
        (DifferenceKind.RELEASED_EARLY, "default/a", FILE),
    ]


def test_units_that_were_counted_for_a_mirror_that_is_gone_are_named() -> None:
    before = static(mirror="", status="uid-a", ledger="uid-a")
    after = static(mirror="", status="", ledger="")
    assert len(released_early(before, after, mirrors={"uid-a": FILE})) == 2
    assert released_early(before, after, mirrors={"uid-a": "uid-of-the-file-before"}) == []


def test_units_that_are_counted_for_another_pod_of_the_name_are_named() -> None:
    """It has what the kubelet gives it, and not what the one before it had."""
    before = static(mirror="uid-a", status="uid-a", ledger="uid-a")
    after = static(mirror="uid-z", status="uid-z", ledger="uid-z")
    after = pod(after, "uid-z", kubelet_uid="uid-z")
    assert {difference.kind for difference in released_early(before, after)} == {
        DifferenceKind.RELEASED_EARLY
    }
