"""Events of a policy's nodes: each fact once when it begins and once when it ends, never a storm."""

from dataclasses import replace
from datetime import timedelta

from tests.samples.operator import NOW, node, policy, share, snapshot

from gpushare_core.api.conditions import ConditionState
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.notices import MAX_EVENTS, MAX_OF_A_KIND, QUIET, NodeNotices
from gpushare_operator.status.events import notice_event
from gpushare_operator.status.nodes.node_facts import Fact, FactFinder

OWNER = policy()
HEALTHY = share("gpu-1", OWNER)
SICK = replace(
    HEALTHY,
    unhealthy_cards=1,
    sick_cards=("card 0 (GPU-0)",),
    conditions={
        **HEALTHY.conditions,
        "CardsHealthy": ConditionState("CardsHealthy", "False", "Unhealthy", "Xid 79: reset it"),
    },
)
CORDON = ConditionState("CardsCordoned", "False", "UnknownCards", "the annotation names GPU-9")
MISTAKEN = replace(HEALTHY, conditions={**HEALTHY.conditions, "CardsCordoned": CORDON})


def facts(seen: ClusterSnapshot) -> dict[Fact, str]:
    results = seen.index(FactFinder(OWNER.name), subject=OWNER.name).results
    return {fact: text for result in results.values() for fact, text in result.items()}


GOOD = facts(snapshot(OWNER, node("gpu-1"), HEALTHY))
BROKEN = facts(snapshot(OWNER, node("gpu-1"), SICK))


def told(notices: NodeNotices, so: dict[Fact, str], minutes: float) -> list[str]:
    return [notice.reason for notice in notices.due(so, NOW + timedelta(minutes=minutes))]


def watching() -> NodeNotices:
    notices = NodeNotices()
    assert notices.due(GOOD, NOW) == []
    return notices


def test_a_card_that_falls_sick_is_told_once_and_so_is_its_return() -> None:
    notices = watching()
    assert told(notices, BROKEN, 1) == ["CardSick"]
    assert told(notices, BROKEN, 2) == []
    assert told(notices, BROKEN, 600) == []
    assert told(notices, GOOD, 601) == ["CardBack"]
    assert told(notices, GOOD, 602) == []


def test_the_event_names_card_and_node_and_says_why() -> None:
    (notice,) = watching().due(BROKEN, NOW)
    assert notice.note == "card 0 (GPU-0) of node gpu-1 takes no new pod: Xid 79: reset it"
    event = notice_event(OWNER, notice, NOW)
    assert (event["type"], event["reason"], event["regarding"]["name"]) == ("Warning", "CardSick", "default")


def test_a_lost_node_and_a_cordon_that_names_no_card_are_told() -> None:
    lost = facts(snapshot(OWNER, node("gpu-1", ready=False), HEALTHY))
    mistaken = facts(snapshot(OWNER, node("gpu-1"), MISTAKEN))
    assert told(watching(), lost, 1) == ["NodeLost"]
    assert told(watching(), mistaken, 1) == ["CordonNamesNoCard"]
    assert list(mistaken.values()) == ["GPUShareNode gpu-1: the annotation names GPU-9"]


def test_a_healthy_node_and_one_of_another_policy_are_no_news() -> None:
    other = policy("other", created=1)
    assert GOOD == {}
    assert facts(snapshot(OWNER, other, node("gpu-1", ready=False), share("gpu-1", other))) == {}


def test_an_operator_that_starts_repeats_nothing() -> None:
    notices = NodeNotices()
    assert told(notices, BROKEN, 0) == []
    assert told(notices, GOOD, 1) == ["CardBack"]


def test_what_comes_and_goes_is_told_again_after_a_while_only() -> None:
    notices = watching()
    assert told(notices, BROKEN, 1) == ["CardSick"]
    assert told(notices, GOOD, 2) == []
    assert notices.seconds_until_due(GOOD, NOW + timedelta(minutes=2)) == QUIET.total_seconds() - 60
    assert [told(notices, so, minute) for minute, so in ((3, BROKEN), (4, GOOD), (5, BROKEN))] == [[]] * 3
    assert notices.seconds_until_due(BROKEN, NOW + timedelta(minutes=5)) is None
    assert told(notices, GOOD, 11) == ["CardBack"]


def test_of_many_at_once_there_is_one_event() -> None:
    names = [f"gpu-{number}" for number in range(MAX_OF_A_KIND + 1)]
    seen = snapshot(
        OWNER, *(node(name, ready=False) for name in names), *(share(name, OWNER) for name in names)
    )
    (notice,) = watching().due(facts(seen), NOW)
    assert notice.reason == "NodeLost"
    assert notice.note.startswith(f"{len(names)} at once, on nodes such as gpu-0, gpu-1")


def test_a_clock_that_was_set_back_holds_nothing_back() -> None:
    notices = watching()
    assert told(notices, BROKEN, 60) == ["CardSick"]
    assert told(notices, GOOD, 0) == ["CardBack"]


def test_nodes_that_fail_one_after_the_other_are_no_storm_either() -> None:
    notices, lost, reasons = watching(), dict[Fact, str](), list[str]()
    for number in range(100):
        lost |= facts(snapshot(OWNER, node(f"gpu-{number}", ready=False), share(f"gpu-{number}", OWNER)))
        reasons += told(notices, lost, number / 60)
    assert len(reasons) == MAX_EVENTS
    later = NOW + timedelta(seconds=100)
    assert notices.seconds_until_due(lost, later) == QUIET.total_seconds() - 100
    (notice,) = notices.due(lost, NOW + QUIET)
    assert notice.note.startswith("80 at once")
