"""What the extender sees of a node is audited by the rules of all: what it finds, and what it does not."""

import pytest
from msgspec.structs import replace
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import asked, cordoning, pod_update, reference, reporting, share_node

from gpushare_core.audit.auditor import node_differences
from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode
from gpushare_extender.decide.audit.records import node_records, settled_differences

ADMITTED = reporting(share_node(), 0, a=4)


def ledger(reported: ShareNode, *updates: PodUpdate) -> Ledger:
    seen = Ledger()
    seen.set_share_node(reported)
    for update in updates:
        seen.set_pod(update)
    return seen


def found(seen: Ledger) -> list[str]:
    books = node_records(seen, "n1")
    return (
        [f"{node_difference.kind} {node_difference.pod}" for node_difference in node_differences(books)]
        if books
        else ["no books"]
    )


def lending(present: ShareNode) -> ShareNode:
    """An init container of pod ``a`` lends its 4 units to the next: both are listed, 4 are held."""
    first, *others = present.cards
    (reported,) = first.holders
    cards = (replace(first, holders=(replace(reported, units=8, least=4),)), *others)
    return replace(present, cards=cards)


def lending_to_two() -> ShareNode:
    """An init container of 4 units, then a sidecar of 3 and a container of 2: 5 are held."""
    first, *others = reporting(share_node(), 0, a=5).cards
    (reported,) = first.holders
    cards = (replace(first, holders=(replace(reported, units=9, least=4),)), *others)
    return replace(share_node(), cards=cards)


def mixed() -> ShareNode:
    card = share_node("n1", 16, unit="1Gi, 1/2 card, 1 card", mode=NODE_MODES["Mixed"]).cards[0]
    offers = {ResourceClass.MEMORY: 16, ResourceClass.SLICE: 2, ResourceClass.CARD: 1}
    given = reporting(share_node("n1", 16, unit="1Gi, 1/2 card, 1 card", mode=NODE_MODES["Mixed"]), 0, a=4)
    locked = replace(given.cards[0], lock=ResourceClass.MEMORY, offers=offers)
    return replace(given, cards=(locked, replace(card, uuid="n1-1", index=1, offers=offers)))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(ledger(share_node()), id="nobody"),
        pytest.param(ledger(ADMITTED, pod_update("a", c0=4)), id="admitted"),
        pytest.param(ledger(lending(ADMITTED), pod_update("a", c0=4)), id="an init container lends"),
        pytest.param(ledger(lending_to_two(), pod_update("a", c0=5)), id="an init container lends to two"),
        pytest.param(ledger(cordoning(ADMITTED, 0), pod_update("a", c0=4)), id="cordoned"),
        pytest.param(ledger(mixed(), pod_update("a", c0=4)), id="one of three classes"),
        pytest.param(
            ledger(reporting(share_node(unit="512Mi"), 0, a=8), pod_update("a", c0=4)), id="in another unit"
        ),
    ],
)
def test_books_that_agree(seen: Ledger) -> None:
    assert found(seen) == []


def orphaned() -> ShareNode:
    first, *others = ADMITTED.cards
    cards = (
        replace(first, holders=tuple(replace(holder, orphaned=True) for holder in first.holders)),
        *others,
    )
    return replace(ADMITTED, cards=cards)


def reserved() -> Ledger:
    seen = ledger(share_node())
    seen.reserve(reference("a"), node="n1", request=asked(4))
    return seen


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(ledger(ADMITTED), ["SharesDiffer default/a"], id="no annotation"),
        pytest.param(ledger(orphaned()), [], id="deleted by force: the kubelet has its units still"),
        pytest.param(
            ledger(share_node(), pod_update("a", c0=4)), ["SharesDiffer default/a"], id="never admitted"
        ),
        pytest.param(
            ledger(ADMITTED, pod_update("a", c1=4)),
            ["SharesDiffer default/a", "SharesDiffer default/a"],
            id="annotated on another card",
        ),
        pytest.param(
            ledger(ADMITTED, pod_update("a", c0=6)), ["SharesDiffer default/a"], id="annotated with more"
        ),
        pytest.param(
            ledger(ADMITTED, pod_update("a", c0=2)),
            ["SharesDiffer default/a", "SharesDiffer default/a"],
            id="annotated with less",
        ),
        pytest.param(reserved(), ["Reserved default/a"], id="a bind under way"),
        pytest.param(Ledger(), ["no books"], id="a node that is not shared"),
    ],
)
def test_books_that_differ(seen: Ledger, expected: list[str]) -> None:
    assert found(seen) == expected


def test_of_a_card_that_pods_come_to_all_the_time_nothing_is_said() -> None:
    books = node_records(ledger(mixed(), pod_update("a", c0=4), pod_update("b", c1=4)), "n1")
    assert books
    assert {node_difference.kind for node_difference in node_differences(books)} == {
        DifferenceKind.LOCK_DIFFERS,
        DifferenceKind.SHARES_DIFFER,
    }
    assert [
        (settled_difference.kind, settled_difference.uid)
        for settled_difference in settled_differences(books, ())
    ] == [(DifferenceKind.SHARES_DIFFER, "b")]
    assert settled_differences(books, {"b"}) == []


def test_before_the_plugin_has_answered_there_are_no_books() -> None:
    """As after a policy was deleted and applied anew: its pods run on, and the plugin has yet to come."""
    unanswered = replace(share_node(unit=""), cards=())
    assert found(ledger(unanswered, pod_update("a", c0=4))) == ["no books"]


def test_a_defect_of_the_sums_is_found() -> None:
    seen = ledger(ADMITTED, pod_update("a", c0=4))
    sums = seen.node("n1")
    assert sums
    sums._uses.clear()
    assert found(seen) == ["Uncounted "]


def test_every_change_of_a_node_is_told() -> None:
    heard = HeardChanges()
    seen, told = Ledger(heard), heard.nodes
    for change in (
        lambda: seen.set_share_node(share_node()),
        lambda: seen.set_pod(pod_update("a", c0=4)),
        lambda: seen.set_share_node(ADMITTED),
        lambda: seen.reserve(reference("b"), node="n1", request=asked(2)),
        lambda: seen.release("uid-b"),
        lambda: seen.drop_pod("a"),
        lambda: seen.drop_share_node("n1"),
    ):
        before = len(told)
        change()
        assert set(told[before:]) == {"n1"}
