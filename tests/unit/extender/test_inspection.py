"""The ledger as people and tools see it."""

import msgspec
from tests.samples.extender import asked, cordoning, pod_update, reference, reporting, share_node

from gpushare_core.placement.card_choice import ChoiceReason
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.verbs.inspection import inspect_all, inspect_node


def test_a_node_shows_its_cards_and_who_has_what() -> None:
    ledger = Ledger()
    shared = share_node("n1", 16, 8, sick=(1,))
    ledger.set_share_node(shared)
    ledger.set_pod(pod_update("b", c0=2, c1=1))
    ledger.set_pod(pod_update("a", c0=4))
    ledger.reserve(reference("c", uid="c"), node="n1", request=asked(3))
    ledger.set_share_node(cordoning(shared, 0))
    view = msgspec.to_builtins(inspect_node(ledger, "n1"))
    pods = [
        {"namespace": "default", "name": name, "uid": name, "units": units, "reserved": reserved}
        for name, units, reserved in (("a", 4, False), ("b", 2, False), ("c", 3, True))
    ]
    assert view == {
        "name": "n1",
        "unit": "1Gi",
        "strategy": "Binpack",
        "refusal": "",
        "differences": [],
        "units": {"total": 24, "allocated": 10},
        "cards": [
            {
                "index": 0,
                "uuid": "n1-0",
                "units": 16,
                "allocated": 9,
                "reserved": 3,
                "healthy": True,
                "cordoned": True,
                "lock": "memory",
                "pods": pods,
            },
            {
                "index": 1,
                "uuid": "n1-1",
                "units": 8,
                "allocated": 1,
                "reserved": 0,
                "healthy": False,
                "cordoned": False,
                "lock": "memory",
                "pods": [{"namespace": "default", "name": "b", "uid": "b", "units": 1, "reserved": False}],
            },
        ],
    }


def test_units_are_shown_in_the_node_s_own() -> None:
    ledger = Ledger()
    ledger.set_share_node(reporting(share_node("n1", 16), a=2))
    ledger.set_pod(pod_update("a", unit="256Mi", c0=8))
    view = inspect_node(ledger, "n1")
    assert view is not None
    assert view.cards[0].pods[0].units == view.cards[0].allocated == 2


def test_a_holder_that_only_the_kubelet_knows_is_shown() -> None:
    ledger = Ledger()
    ledger.set_share_node(reporting(share_node("n1", 16), a=4, ghost=8))
    ledger.set_pod(pod_update("a", c0=4))
    view = inspect_node(ledger, "n1")
    assert view is not None
    assert [(pod.name, pod.units, pod.reserved) for pod in view.cards[0].pods] == [
        ("a", 4, False),
        ("ghost", 8, False),
    ]
    assert view.units.allocated == 12


def test_a_node_says_why_it_takes_no_pods() -> None:
    ledger = Ledger()
    ledger.set_share_node(share_node("n1", closed_reason="no healthy GPU card"))
    view = inspect_node(ledger, "n1")
    assert view is not None
    assert view.refusal == "no healthy GPU card"


def test_all_nodes_that_share_cards_sorted_by_name() -> None:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n2"), share_node("n1")])
    ledger.set_pod(pod_update("a", node="gone", c0=4))
    assert [view.name for view in inspect_all(ledger).nodes] == ["n1", "n2"]


def test_a_node_that_does_not_share_cards_has_no_view() -> None:
    assert inspect_node(Ledger(), "n1") is None


def test_a_pod_that_was_bound_here_shows_why_it_has_its_card() -> None:
    ledger = Ledger()
    ledger.set_share_node(share_node("n1", 16, 8))
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_pod(pod_update("b", c0=4, c1=2))
    choices = {"b": {"n1-0": ChoiceReason.TIGHTEST}, "gone": {"n1-0": ChoiceReason.ONLY}}
    (node,) = msgspec.to_builtins(inspect_all(ledger, choices=choices))["nodes"]
    assert [[pod.get("reason") for pod in card["pods"]] for card in node["cards"]] == [
        [None, "tightest card that fits"],
        [None],
    ]
