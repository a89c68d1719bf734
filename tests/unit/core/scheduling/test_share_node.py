"""What a GPUShareNode says of its cards, and every reason why it takes no pods."""

import json
from collections.abc import Callable

import msgspec
import pytest
from tests.samples.extender import GI, share_node_json

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.node_ranking import CANDIDATES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.objects.share_node import (
    ReportedHolder,
    ShareNode,
    ShareNodeCard,
    read_share_node,
)
from gpushare_core.text.json_object import Json


def read(node: Json) -> ShareNode:
    return read_share_node(json.dumps(node).encode())


def test_a_registered_node_takes_pods() -> None:
    assert read(share_node_json(cards=2, units=16)) == ShareNode(
        name="n1",
        cards=tuple(
            ShareNodeCard(f"n1-{index}", index, 16, healthy=True, memory=16 * GI) for index in range(2)
        ),
        unit="1Gi",
        meanings=((ResourceClass.MEMORY, GI),),
        strategy=Strategy.BINPACK,
        closed_reason="",
    )


def test_cards_come_in_order_of_index() -> None:
    node = share_node_json(cards=3)
    node["status"]["cards"].reverse()
    assert [card.index for card in read(node).cards] == [0, 1, 2]


def test_the_unit_in_force_counts_not_the_one_of_the_spec() -> None:
    node = share_node_json()
    node["spec"]["memoryUnit"] = "256Mi"
    assert read(node).unit == "1Gi"


@pytest.mark.parametrize(
    ("in_force", "served"),
    [
        pytest.param("aliyun.com", "aliyun.com/gpu-mem", id="another one: pods are in the way"),
        pytest.param("", "enflame.com/gcu-memory", id="not told yet: that of the spec"),
    ],
)
def test_the_dialect_in_force_counts_not_the_one_of_the_spec(in_force: str, served: str) -> None:
    node = share_node_json()
    node["spec"]["dialect"] = "enflame.com"
    node["status"]["dialect"] = in_force
    assert [*read(node).resources] == [served]
    assert read(node).dialect.memory_resource == served


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        pytest.param("Spread", Strategy.SPREAD, id="as the policy says"),
        pytest.param("Astrology", Strategy.BINPACK, id="unknown: the default"),
    ],
)
def test_the_strategy_is(text: str, strategy: Strategy) -> None:
    node = share_node_json()
    node["spec"]["strategy"] = text
    assert read(node).strategy is strategy


@pytest.mark.parametrize(
    ("written", "candidates"),
    [
        pytest.param({}, CANDIDATES, id="an operator that did not know it"),
        pytest.param({"candidates": None}, CANDIDATES, id="null"),
        pytest.param({"candidates": 0}, 0, id="all"),
        pytest.param({"candidates": 1}, 1, id="one"),
        pytest.param({"candidates": -1}, 0, id="negative"),
        pytest.param({"candidates": 10**30}, 10**30, id="huge"),
    ],
)
def test_so_many_nodes_are_offered(written: Json, candidates: int) -> None:
    node = share_node_json()
    node["spec"] |= written
    assert (read(node).candidates, read(node).closed_reason) == (candidates, "")


def no_status(node: Json) -> None:
    del node["status"]


def registration_failed(node: Json) -> None:
    node["status"]["conditions"][0].update(status="False", message="the kubelet is away")


def other_mode(node: Json) -> None:
    node["spec"]["mode"] = "Whole"


def other_dialect(node: Json) -> None:
    node["spec"]["dialect"] = "example.com"


def all_sick(node: Json) -> None:
    for card in node["status"]["cards"]:
        card["health"] = "Unhealthy"


def all_cordoned_or_sick(node: Json) -> None:
    node["status"]["cards"][0]["cordoned"] = True
    node["status"]["cards"][1]["health"] = "Unhealthy"


def no_cards(node: Json) -> None:
    node["status"]["cards"] = None


def being_deleted(node: Json) -> None:
    node["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"


def another_unit(node: Json) -> None:
    node["spec"]["memoryUnit"] = "256Mi"


def another_mode(node: Json) -> None:
    node["spec"].update(mode="Mixed", slicesPerCard=2)


def no_isolation(node: Json) -> None:
    isolation_not_heard_of(node)
    lacking = {"type": "IsolationReady", "status": "False", "message": "the image has no library"}
    node["status"]["conditions"].append(lacking)
    node["status"]["isolation"] = "Unavailable"


def isolation_not_heard_of(node: Json) -> None:
    node["spec"]["isolation"] = {"memory": "Hook"}
    node["status"]["isolation"] = "None"


def isolation_of_another_version(node: Json) -> None:
    node["spec"]["isolation"] = {"memory": "Hook"}


def nonsense(node: Json) -> None:
    node["status"]["cards"][0]["units"] = "many"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(no_status, "not registered with the kubelet yet", id="plugin has not started"),
        pytest.param(registration_failed, "yet: the kubelet is away", id="registration failed"),
        pytest.param(
            other_mode,
            "mode Whole, which is not served, only Memory, Slices, Exclusive, Mixed",
            id="other mode",
        ),
        pytest.param(other_dialect, "dialect example.com, which is not served", id="other dialect"),
        pytest.param(all_sick, "without a healthy GPU card", id="all cards sick"),
        pytest.param(all_cordoned_or_sick, "whose GPU cards are cordoned", id="the healthy ones cordoned"),
        pytest.param(no_cards, "without a healthy GPU card", id="no cards"),
        pytest.param(being_deleted, "being taken out of GPU sharing", id="being deleted"),
        pytest.param(
            another_unit,
            (
                "take no new pods until the pods with units of 1Gi are gone:"
                " the policy asks for units of 256Mi"
            ),
            id="another unit is to come",
        ),
        pytest.param(
            another_mode, "the policy asks for units of 1Gi, 1/2 card, 1 card", id="another mode is to come"
        ),
        pytest.param(no_isolation, "without isolation: the image has no library", id="no isolation"),
        pytest.param(
            isolation_not_heard_of, "does not report yet that it provides isolation Hook", id="a change"
        ),
        pytest.param(isolation_of_another_version, "without isolation: the plugin", id="an older plugin"),
        pytest.param(nonsense, "cannot be read", id="unreadable"),
    ],
)
def test_a_node_takes_no_pods_because(change: Callable[[Json], None], reason: str) -> None:
    node = share_node_json()
    change(node)
    assert reason in read(node).closed_reason


def test_a_node_with_isolation_takes_pods_where_the_plugin_gives_it() -> None:
    node = share_node_json()
    node["spec"]["isolation"], node["status"]["isolation"] = {"memory": "Hook"}, "Hook"
    assert not read(node).closed_reason


def kept(node: Json) -> None:
    node["spec"].update(memoryUnit="256Mi", unitChange="Keep")


def refused(node: Json) -> None:
    node["spec"]["memoryUnit"] = "1M"
    node["status"]["conditions"].append({"type": "UnitTooFine", "status": "True"})


def in_other_words(node: Json) -> None:
    node["spec"]["memoryUnit"] = "1024Mi"


def not_asked(node: Json) -> None:
    del node["spec"]["memoryUnit"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(kept, id="the policy wants it so"),
        pytest.param(refused, id="the other one is refused, and will not come"),
        pytest.param(in_other_words, id="the same in other words"),
        pytest.param(not_asked, id="nothing readable is asked for"),
    ],
)
def test_a_node_takes_pods_by_the_unit_in_force_where(change: Callable[[Json], None]) -> None:
    node = share_node_json()
    change(node)
    assert read(node).closed_reason == ""


def test_of_what_a_plugin_says_a_reason_has_the_beginning() -> None:
    """kube-scheduler writes the reason into every pod that waits, and the extender into its log."""
    node = share_node_json()
    node["status"]["conditions"][0].update(status="False", message="x" * 32 * 1024)
    assert len(read(node).closed_reason) < 1200
    assert read(node).closed_reason.endswith("xxx...")


def test_a_sick_card_is_kept_apart_from_the_healthy_ones() -> None:
    node = share_node_json()
    node["status"]["cards"][0]["health"] = "Unhealthy"
    assert [card.healthy for card in read(node).cards] == [False, True]
    assert read(node).closed_reason == ""


@pytest.mark.parametrize("unit", ["", "much", "1.0000001Ki"])
def test_an_unreadable_unit_has_no_size(unit: str) -> None:
    node = share_node_json()
    node["status"]["memoryUnit"] = unit
    assert read(node).meanings == ()


def test_what_is_no_object_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        read_share_node(b"[]")


class TestHolders:
    def card(self, *pods: Json, allocated: int) -> ShareNodeCard:
        node = share_node_json(cards=1)
        node["status"]["cards"][0].update(allocatedUnits=allocated, pods=pods)
        return read(node).cards[0]

    @staticmethod
    def share(uid: str, container: str, units: int) -> Json:
        return {"namespace": "d", "name": "p", "uid": uid, "container": container, "units": units}

    def test_the_containers_of_a_pod_are_one_holder(self) -> None:
        card = self.card(self.share("a", "x", 4), self.share("a", "y", 2), allocated=6)
        assert card.holders == (ReportedHolder("a", "d", "p", 6, 4),)
        assert card.units_in_use({}) == 6

    def test_without_pods_there_are_none(self) -> None:
        assert read(share_node_json()).cards[0].holders == ()

    def test_what_an_init_container_lends_counts_once(self) -> None:
        card = self.card(
            self.share("a", "init", 8), self.share("a", "main", 6), self.share("b", "main", 4), allocated=12
        )
        assert card.units_in_use({"a": 8, "b": 4}) == 12

    def test_of_a_pod_that_our_books_do_not_know_the_total_tells_how_much_it_lends(self) -> None:
        card = self.card(self.share("a", "init", 8), self.share("a", "main", 6), allocated=8)
        assert card.units_in_use({}) == 8
        assert card.units_in_use({"reserved": 8}) == 16

    def test_nor_does_a_lender_make_two_containers_of_another_count_more(self) -> None:
        lender = (self.share("a", "init", 4), self.share("a", "main", 4))
        card = self.card(*lender, self.share("b", "x", 4), self.share("b", "y", 4), allocated=12)
        assert card.units_in_use({"a": 4, "b": 8}) == 12

    def test_a_total_that_is_less_than_its_pods_have_frees_nothing(self) -> None:
        card = self.card(self.share("a", "main", 4), self.share("b", "main", 2), allocated=0)
        assert card.units_in_use({"a": 4}) == card.units_in_use({}) == 6

    def test_beside_another_that_lends_it_counts_as_much_as_it_can_have(self) -> None:
        card = self.card(
            self.share("a", "init", 8), self.share("a", "main", 6), self.share("b", "main", 4), allocated=12
        )
        assert card.units_in_use({"a": 8}) == 12
        assert card.units_in_use({"b": 4}) == 12


@pytest.mark.parametrize(
    ("unit", "mode"),
    [
        pytest.param("1Gi", "Memory", id="memory"),
        pytest.param("1/4 card", "Slices", id="slices"),
        pytest.param("1 card", "Exclusive", id="cards"),
        pytest.param("1Gi, 1/2 card, 1 card", "Mixed", id="all of them"),
        pytest.param("", "Memory", id="nothing is served yet"),
    ],
)
def test_the_mode_is_the_one_in_force(unit: str, mode: str) -> None:
    node = share_node_json()
    node["spec"]["mode"] = "Slices"  # as while pods keep it from being applied
    node["status"]["memoryUnit"] = unit
    served = [served.resource for served in NODE_MODES[mode].served]
    assert [*read(node).resources.values()] == served


def test_a_card_that_is_open_to_several_classes_says_what_it_offers_of_each_and_what_it_serves() -> None:
    node = share_node_json()
    node["status"]["memoryUnit"] = "1Gi, 1/2 card, 1 card"
    first, second = node["status"]["cards"]
    first |= {"lock": "Slices", "units": 2, "offers": {"memory": 16, "slice": 2, "card": 1}}
    second |= {"offers": {"memory": 16, "slice": 2, "card": 1}}
    locked, free = read(node).cards
    assert (locked.lock, free.lock) == (ResourceClass.SLICE, None)
    assert [locked.units_of(resource) for resource in ResourceClass] == [16, 2, 1]
    assert locked.offers is free.offers


def test_pods_without_a_uid_are_known_by_their_names() -> None:
    node = share_node_json(cards=1)
    node["status"]["cards"][0]["pods"] = [
        {"uid": "", "namespace": "ml", "name": name, "container": container, "units": units}
        for name, container, units in (("a", "main", 3), ("b", "main", 2), ("a", "second", 1))
    ]
    (card,) = read(node).cards
    assert [(holder.name, holder.units, holder.least) for holder in card.holders] == [
        ("a", 4, 3),
        ("b", 2, 2),
    ]
