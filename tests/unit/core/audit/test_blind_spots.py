"""Over-commitments and wrong cards of which the books agree with each other all the same."""

from dataclasses import replace
from typing import Any

import pytest
from tests.samples.audit import MEMORY_WORLD, MIXED_WORLD, NODE, Have, World, memory_pod

from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.audit.differences import node_differences, released_early, status_differences
from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    LedgerCard,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
MEMORY, MIXED = MEMORY_WORLD.records(), MIXED_WORLD.records()


def kinds(records: NodeRecords) -> set[DifferenceKind]:
    return {node_difference.kind for node_difference in node_differences(records)}


def seeing(records: NodeRecords, visible: str) -> NodeRecords:
    key = ContainerKey(PodKey("default", "a", "uid-a"), "main")
    seen = (records.environments or {})[key]
    assert seen
    changed = replace(seen, others={VISIBLE: visible})
    return replace(records, environments={**(records.environments or {}), key: changed})


@pytest.mark.parametrize("visible", ["1", "0,1", "GPU-", "GPU-1,GPU-0", "all", "GPU-0 ,GPU-1", "MIG-3"])
@pytest.mark.parametrize("stored", [True, False], ids=["with the plugin's answer", "without"])
def test_a_runtime_that_is_told_other_cards_in_any_words(visible: str, stored: bool) -> None:  # noqa: FBT001
    records = MEMORY if stored else replace(MEMORY, checkpoint=None)
    assert kinds(seeing(records, visible)) == {DifferenceKind.ENVIRONMENT_DIFFERS}


@pytest.mark.parametrize("visible", ["", "void", "none", "GPU-0"])
def test_a_runtime_that_is_told_no_card_or_its_own(visible: str) -> None:
    assert kinds(seeing(MEMORY, visible)) == set()


def test_a_runtime_whose_words_are_those_of_an_inventory() -> None:
    """The plugin has answered the index: the container sees just that."""
    key = ContainerKey(PodKey("", "", "uid-a"), "main")
    answer = (MEMORY.checkpoint or {})[key]
    assert answer.response
    told = replace(answer, response=replace(answer.response, others={VISIBLE: "7"}))
    records = replace(MEMORY, checkpoint={**(MEMORY.checkpoint or {}), key: told})
    assert kinds(seeing(records, "7")) == set()
    assert kinds(seeing(records, "6")) == {DifferenceKind.ENVIRONMENT_DIFFERS}


def test_an_image_names_all_cards_to_a_runtime_that_is_not_there() -> None:
    """CUDA's images do; where the plugin does not speak to NVIDIA's runtime, it is not there."""
    key = ContainerKey(PodKey("", "", "uid-a"), "main")
    answer = (MEMORY.checkpoint or {})[key]
    assert answer.response
    told = replace(answer, response=replace(answer.response, others={}))
    assert kinds(seeing(replace(MEMORY, checkpoint={**(MEMORY.checkpoint or {}), key: told}), "all")) == set()


def init_only(name: str, first: int) -> Have:
    return Have(name, ResourceClass.MEMORY, {"init": {0: (first, 8)}}, frozenset({"init"}))


def test_units_of_a_running_init_container_granted_to_another_pod() -> None:
    """PodResources do not show it, the checkpoint does; by their sums the books are in order."""
    world = World("Memory", (16,), (init_only("a", 0), memory_pod("b", 0, 0, 8)))
    assert kinds(world.records()) == {DifferenceKind.GRANTED_TWICE}


def test_an_init_container_that_has_ended_since_the_checkpoint_was_written() -> None:
    """The kubelet writes its checkpoint when it grants units, and forgets those of ended pods before."""
    world = World("Memory", (16,), (init_only("a", 0), memory_pod("b", 0, 0, 8)))
    records = world.records()
    older = {key: each for key, each in (records.checkpoint or {}).items() if key.pod.uid == "uid-a"}
    assert DifferenceKind.GRANTED_TWICE not in kinds(replace(records, checkpoint=older))


def test_units_of_two_init_containers_of_different_pods() -> None:
    world = World("Memory", (16,), (init_only("a", 0), init_only("b", 4)))
    assert kinds(world.records()) == {DifferenceKind.GRANTED_TWICE}


def test_an_init_container_after_a_restartable_one_has_its_units() -> None:
    """The restartable one runs on beside it: only what ran before lends units."""
    pod = Have("a", ResourceClass.MEMORY, {"side": {0: (0, 4)}, "init": {0: (0, 4)}}, frozenset({"init"}))
    assert kinds(World("Memory", (16,), (pod,)).records()) == {DifferenceKind.GRANTED_TWICE}


def test_a_restartable_init_container_after_an_ordinary_one_has_its_units() -> None:
    pod = Have("a", ResourceClass.MEMORY, {"init": {0: (0, 4)}, "side": {0: (0, 4)}}, frozenset({"init"}))
    assert kinds(World("Memory", (16,), (pod,)).records()) == set()


def legacy(records: NodeRecords) -> NodeRecords:
    """A running pod of a replaced system's, which the status does not have."""
    key = PodKey("default", "old", "uid-old")
    amounts = {"main": 12}
    request = PodRequest((ResourceRequest("aliyun.com/gpu-mem", ResourceClass.MEMORY, 12, amounts),))
    held = (HeldUnits(resource="aliyun.com/gpu-mem", foreign=12),)
    return replace(
        records,
        pods={**(records.pods or {}), key.uid: PodRecord(key=key, node=NODE, request=request)},
        resources=[*(records.resources or ()), ListedContainer(key=ContainerKey(key, "main"), units=held)],
        checkpoint={
            **(records.checkpoint or {}),
            ContainerKey(PodKey("", "", key.uid), "main"): StoredContainer(units=held),
        },
    )


def test_devices_of_a_replaced_system_that_nobody_counts() -> None:
    found = [
        node_difference
        for node_difference in node_differences(legacy(MEMORY))
        if node_difference.kind is DifferenceKind.UNCOUNTED
    ]
    assert [difference.pod for difference in found] == ["default/old"]


def test_devices_of_another_plugin_under_a_name_that_is_not_the_node_s() -> None:
    """``nvidia.com/gpu`` is ours in dialect tuya.com alone."""
    records = legacy(World("Memory", (16,), ()).records())
    assert DifferenceKind.UNCOUNTED not in kinds(records)


def test_one_unit_under_two_names_counts_twice() -> None:
    """After a change of the dialect a pod holds units under the former name: the kubelet keeps two lists."""
    world = World("Memory", (16,), (memory_pod("a", 0, 0, 12), memory_pod("b", 0, 0, 12)))
    records = world.records()
    assert records.resources
    assert records.share_node
    renamed = replace(
        records.resources[1], units=(replace(records.resources[1].units[0], resource="aliyun.com/gpu-mem"),)
    )
    key = ContainerKey(PodKey("", "", "uid-b"), "main")
    stored = {
        **(records.checkpoint or {}),
        key: replace((records.checkpoint or {})[key], units=renamed.units),
    }
    (card,) = records.share_node.cards
    records = NodeRecords(
        node=NODE,
        share_node=replace(
            records.share_node,
            cards=(replace(card, allocated=12, holders=card.holders[:1]),),
            units_allocated=12,
        ),
        resources=[records.resources[0], renamed],
        checkpoint=stored,
    )
    assert {DifferenceKind.OVER_CAPACITY, DifferenceKind.UNCOUNTED} <= kinds(records)


def test_a_card_that_only_the_extender_has() -> None:
    assert MEMORY.ledger
    ledger = replace(
        MEMORY.ledger, cards=(*MEMORY.ledger.cards, LedgerCard(uuid="GPU-9", units=8, allocated=0))
    )
    assert kinds(replace(MEMORY, ledger=ledger)) == {DifferenceKind.CAPACITY_DIFFERS}


def test_two_cards_whose_units_have_the_same_numbers() -> None:
    """A unit of both would be a unit of either card."""
    assert MEMORY.share_node
    first, second = MEMORY.share_node.cards
    share_node = replace(MEMORY.share_node, cards=(first, replace(second, first_unit=12)))
    assert DifferenceKind.CAPACITY_DIFFERS in {
        status_difference.kind for status_difference in status_differences(share_node)
    }


@pytest.mark.parametrize("book", ["status", "ledger"])
def test_a_part_that_is_let_go_before_the_kubelet_has_released_it(book: str) -> None:
    assert MEMORY.share_node
    assert MEMORY.ledger
    card, counted = MEMORY.share_node.cards[0], MEMORY.ledger.cards[0]
    after = (
        replace(
            MEMORY,
            share_node=replace(
                MEMORY.share_node,
                cards=(
                    replace(card, holders=(replace(card.holders[0], units=1), *card.holders[1:])),
                    *MEMORY.share_node.cards[1:],
                ),
            ),
        )
        if book == "status"
        else replace(
            MEMORY,
            ledger=replace(
                MEMORY.ledger,
                cards=(
                    replace(counted, shares=(replace(counted.shares[0], units=1), *counted.shares[1:])),
                    *MEMORY.ledger.cards[1:],
                ),
            ),
        )
    )
    assert {difference.kind for difference in released_early(MEMORY, after)} == {
        DifferenceKind.RELEASED_EARLY
    }


def written(records: NodeRecords, value: str | None, variable: str = VISIBLE) -> NodeRecords:
    """By the API server alone, without the kubelet's books."""
    pods = records.pods or {}
    author = replace(pods["uid-a"], variables={"main": {variable: value}})
    return NodeRecords(node=NODE, share_node=records.share_node, pods={**pods, "uid-a": author})


@pytest.mark.parametrize("value", ["all", "1", "GPU-1", None], ids=["all", "index", "UUID", "from elsewhere"])
def test_an_author_who_names_cards_is_named_without_the_kubelet(value: str | None) -> None:
    (found,) = node_differences(written(MEMORY, value))
    assert (found.kind, found.pod, found.container) == (
        DifferenceKind.ENVIRONMENT_DIFFERS,
        "default/a",
        "main",
    )
    assert f"sets {VISIBLE}" in found.sentence


def test_what_to_do_stands_behind_the_longest_value() -> None:
    for records in (seeing(MEMORY, "x" * 800_000), written(MEMORY, "x" * 800_000)):
        (told,) = (node_difference.sentence for node_difference in node_differences(records))
        assert "delete the pod" in told
        assert len(told) < 1000


@pytest.mark.parametrize("value", ["void", "none", "", "GPU-0"])
def test_an_author_who_names_no_card_harms_nobody(value: str) -> None:
    assert node_differences(written(MEMORY, value)) == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("variable", [VISIBLE, "ASCEND_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES"])
def test_an_author_who_names_cards_to_any_runtime_is_named_in_every_dialect(
    variable: str, dialect: str
) -> None:
    world = World("Memory", (16,), (memory_pod("a", 0, 0, 4),), dialect=dialect)
    (found,) = node_differences(written(world.records(), "0,1", variable))
    assert (found.kind, found.pod) == (DifferenceKind.ENVIRONMENT_DIFFERS, "default/a")
    assert f"sets {variable}" in found.sentence


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_what_hides_all_cards_from_one_runtime_says_nothing_to_another(value: str) -> None:
    (found,) = node_differences(written(MEMORY, value, "ASCEND_VISIBLE_DEVICES"))
    assert "sets ASCEND_VISIBLE_DEVICES" in found.sentence


def beside_units(variable: str, value: str | None, **pod: Any) -> NodeRecords:
    """A pod whose one container asks for units, and whose other one sets a variable."""
    author = replace((MEMORY.pods or {})["uid-a"], variables={"exporter": {variable: value}}, **pod)
    return replace(MEMORY, pods={**(MEMORY.pods or {}), "uid-a": author})


@pytest.mark.parametrize(
    ("variable", "value"),
    [(VISIBLE, "all"), (VISIBLE, None), ("ASCEND_VISIBLE_DEVICES", "0"), ("DOCKER_RESOURCE_GPU", "0")],
)
def test_a_container_without_units_that_shows_itself_cards_is_named(variable: str, value: str | None) -> None:
    (found,) = node_differences(beside_units(variable, value))
    assert (found.kind, found.pod, found.container) == (DifferenceKind.CARDS_UNASKED, "default/a", "exporter")
    assert f"asks for no card, and its pod sets {variable}" in found.sentence


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(beside_units(VISIBLE, "void"), id="sees no card"),
        pytest.param(beside_units("CUDA_VISIBLE_DEVICES", "all"), id="an application's variable"),
        pytest.param(beside_units(VISIBLE, "all", is_plugin=True), id="our plugin"),
    ],
)
def test_what_shows_nobody_a_card_that_is_not_its_own_is_not_named(records: NodeRecords) -> None:
    assert node_differences(records) == []


def test_seen_cards_are_compared_whatever_their_order() -> None:
    world = World("Slices", (16, 16), (Have("a", ResourceClass.SLICE, {"main": {0: (0, 1), 1: (0, 1)}}),))
    records = world.records()
    key = ContainerKey(PodKey("default", "a", "uid-a"), "main")
    seen = SeenCards(cards=("GPU-1", "GPU-0"), units=2, unit="1/4 card", others={VISIBLE: "GPU-1,GPU-0"})
    assert kinds(replace(records, environments={key: seen})) == set()
