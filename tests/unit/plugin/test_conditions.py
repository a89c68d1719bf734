"""A condition says what is wrong and what to do about it."""

from dataclasses import replace

import msgspec
import pytest
from tests.samples.plugin import GIB, card, layout, share_node

from gpushare_core.api.enums import Injection
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import Devices, GPUShareNode
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.placement.units import WHOLE_CARD, MemoryUnit
from gpushare_plugin.decide.offer.offering import POD_RESOURCES_UNAVAILABLE, Offering
from gpushare_plugin.decide.report.conditions import (
    NOTHING_READ,
    AnnotationState,
    RegistrationState,
    node_conditions,
)
from gpushare_plugin.decide.units.layout import Layout, lay_out
from gpushare_plugin.devices.card import Equipment, LeftOutCard, Reading

GOOD = Offering(layout=layout())
REGISTERED = RegistrationState(registered=True)
IN_SYNC = AnnotationState(pod_resources_available=True)

States = dict[str, tuple[str, str, str]]


def states(
    offering: Offering = GOOD,
    *,
    registration: RegistrationState = REGISTERED,
    annotations: AnnotationState = IN_SYNC,
    node: GPUShareNode | None = None,
    reading: Reading = NOTHING_READ,
) -> States:
    spec = (node or share_node()).spec
    conditions = node_conditions(spec, offering, registration, annotations, reading=reading)
    return {
        condition.type: (condition.status, condition.reason, condition.message) for condition in conditions
    }


def test_all_is_well() -> None:
    assert {kind: state[:2] for kind, state in states().items()} == {
        "Registered": ("True", "Registered"),
        "CardsHealthy": ("True", "AllHealthy"),
        "CardsCordoned": ("False", "NoneCordoned"),
        "LedgerInSync": ("True", "InSync"),
        "UnitTooFine": ("False", "Fits"),
        "UnitChangeBlocked": ("False", "NotBlocked"),
    }


NO_SIZE = Problem("InvalidUnit", "mode Slices needs slicesPerCard, such as 2")
MIG = LeftOutCard(index=2, uuid="GPU-2", reason="MIG is enabled")
LOST = LeftOutCard(index=3, reason="it is lost", healthy=False)
HUNG = Problem("DriverHung", "the driver does not answer")
TOO_FINE = Offering(
    layout=layout(),
    finest_unit=MemoryUnit.parse("3M"),
    refused_unit=MemoryUnit.parse("1M"),
    desired_units=640_000,
)


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        pytest.param(
            "Registered",
            states(registration=RegistrationState(registered=False, message="kubelet.sock does not exist")),
            ("False", "KubeletUnreachable", "kubelet.sock does not exist"),
            id="the kubelet is away",
        ),
        pytest.param(
            "Registered",
            states(Offering(problem=NO_SIZE)),
            ("False", "InvalidUnit", "mode Slices needs slicesPerCard, such as 2"),
            id="unit",
        ),
        pytest.param(
            "Registered",
            states(Offering(layout=layout(), problem=NO_SIZE, blocked_by=("default/a", "default/b"))),
            (
                "False",
                "InvalidUnit",
                (
                    "mode Slices needs slicesPerCard, such as 2;"
                    " the earlier resource stays while pods hold units of it"
                ),
            ),
            id="unit while units are held",
        ),
        pytest.param(
            "Registered",
            states(Offering(layout=layout(unit="64Gi"))),
            (
                "False",
                "UnitTooCoarse",
                (
                    "no card has a unit of 64Gi: the largest has 16Gi; set a smaller memoryUnit or"
                    " reservedMemory"
                ),
            ),
            id="a unit larger than every card",
        ),
        pytest.param(
            "Registered",
            states(Offering(layout=lay_out([card(0), card(1)], WHOLE_CARD, reserved=20 * GIB))),
            (
                "False",
                "UnitTooCoarse",
                (
                    "no card has a unit of 1 card: the largest has 16Gi, less the 20Gi that is reserved; set"
                    " a smaller reservedMemory"
                ),
            ),
            id="more reserved than any card has",
        ),
        pytest.param(
            "Registered",
            states(Offering(layout=Layout(MemoryUnit.parse("1Gi"), ()))),
            (
                "False",
                "NoCards",
                "no card was found on this node: see devices in the policy, and the cards' driver",
            ),
            id="no cards",
        ),
        pytest.param(
            "Registered",
            states(Offering(finest_unit=MemoryUnit.parse("3M"), desired_units=9)),
            ("False", "UnitTooFine", "nothing is offered: set memoryUnit to 3M or more"),
            id="too fine from the start",
        ),
        pytest.param(
            "Registered", states(Offering()), ("False", "NotShared", "this node is not shared"), id="off"
        ),
        pytest.param(
            "CardsHealthy",
            states(Offering(layout=layout(card(0), card(1, healthy=False)))),
            ("False", "CardsUnhealthy", "card 1 (GPU-1): Xid 79"),
            id="an unhealthy card",
        ),
        pytest.param(
            "CardsHealthy",
            states(Offering(layout=layout(card(0), card(1, memory=GIB), unit="2Gi"))),
            ("True", "UnitTooCoarse", "cards 1 have no room for a unit of 2Gi and serve nothing"),
            id="a unit larger than one card",
        ),
        pytest.param(
            "CardsHealthy",
            states(Offering(layout=layout(card(0), card(1, memory=GIB), reserved=GIB))),
            (
                "True",
                "UnitTooCoarse",
                "cards 1 have no room for a unit of 1Gi beside the 1Gi that is reserved and serve nothing",
            ),
            id="a unit larger than what is left of one card",
        ),
        pytest.param(
            "CardsHealthy",
            states(Offering(layout=lay_out([card(0), card(1, memory=GIB)], WHOLE_CARD, reserved=GIB))),
            (
                "True",
                "UnitTooCoarse",
                "cards 1 have no more memory than the 1Gi that is reserved and serve nothing",
            ),
            id="a card that is reserved as a whole",
        ),
        pytest.param(
            "Registered",
            states(Offering(layout=Layout(MemoryUnit.parse("1Gi"), ())), reading=Reading(left_out=(MIG,))),
            (
                "False",
                "NoCards",
                "no card of this node can be shared: card 2 (GPU-2) is left out: MIG is enabled",
            ),
            id="every card is left out",
        ),
        pytest.param(
            "CardsHealthy",
            states(reading=Reading(left_out=(MIG,))),
            ("True", "CardsLeftOut", "card 2 (GPU-2) is left out: MIG is enabled"),
            id="a card left out on purpose",
        ),
        pytest.param(
            "CardsHealthy",
            states(reading=Reading(left_out=(MIG, LOST))),
            ("False", "CardsUnhealthy", "card 3 is left out: it is lost"),
            id="a card left out because of a fault",
        ),
        pytest.param(
            "CardsHealthy",
            states(reading=Reading(problem=HUNG)),
            ("Unknown", "DriverHung", "the driver does not answer"),
            id="cards as they were known last",
        ),
        pytest.param(
            "CardsHealthy",
            states(Offering(layout=layout(card(0, healthy=False))), reading=Reading(problem=HUNG)),
            ("False", "DriverHung", "the driver does not answer"),
            id="cards that cannot work without the driver",
        ),
        pytest.param(
            "CardsHealthy",
            states(Offering()),
            ("Unknown", "NothingOffered", "nothing is offered: see Registered"),
            id="nothing offered",
        ),
        pytest.param(
            "LedgerInSync",
            states(annotations=AnnotationState(pod_resources_available=True, differing=("default/a (403)",))),
            (
                "False",
                "RepairPending",
                (
                    "annotations that differ from the kubelet's records and could not be corrected"
                    " yet: default/a (403)"
                ),
            ),
            id="a repair is pending",
        ),
        pytest.param(
            "LedgerInSync",
            states(annotations=AnnotationState(pod_resources_available=False)),
            (
                "Unknown",
                "PodResourcesUnreachable",
                (
                    "which units pods hold is not known until the kubelet's PodResources answer:"
                    " is the kubelet running, and is its folder pod-resources mounted?"
                ),
            ),
            id="PodResources do not answer",
        ),
        pytest.param(
            "UnitTooFine",
            states(TOO_FINE, node=share_node("1M")),
            (
                "True",
                "TooManyUnits",
                (
                    "memoryUnit 1M makes 640000 units, more than the kubelet takes in one message:"
                    " the finest that works here is 3M; 1Gi stays in force"
                ),
            ),
            id="too fine",
        ),
        pytest.param(
            "UnitChangeBlocked",
            states(Offering(layout=layout(), blocked_by=("default/a",)), node=share_node("512Mi")),
            (
                "True",
                "PodsHoldUnits",
                (
                    "memoryUnit 512Mi is applied when this pod is gone, which holds units of 1Gi: default/a;"
                    " until then no new pod gets units here"
                ),
            ),
            id="one pod in the way of a unit",
        ),
        pytest.param(
            "UnitChangeBlocked",
            states(
                Offering(layout=layout(), blocked_by=("default/a", "default/b"), problem=NO_SIZE),
                node=share_node(mode="Slices", slicesPerCard=2),
            ),
            (
                "True",
                "PodsHoldUnits",
                (
                    "mode Slices is applied when these 2 pods are gone, which hold units of 1Gi: default/a,"
                    " default/b; until then no new pod gets units here"
                ),
            ),
            id="two pods in the way of a mode",
        ),
    ],
)
def test_a_condition_says_what_is_wrong_and_what_to_do(
    kind: str, found: States, expected: tuple[str, str, str]
) -> None:
    assert found[kind] == expected


def test_a_refusal_is_not_said_of_another_unit_that_is_asked_for_since() -> None:
    """The offer stays while the kubelet does not answer, and so do the words about an earlier spec."""
    kept = replace(TOO_FINE, postponed=POD_RESOURCES_UNAVAILABLE)
    assert states(kept, node=share_node("1M"))["UnitTooFine"][0] == "True"
    later = states(kept, node=share_node("2Gi"))["UnitTooFine"]
    assert later[:2] == ("Unknown", "PodResourcesUnreachable")
    assert "2Gi" not in later[2]


def test_of_many_pods_in_the_way_some_are_named() -> None:
    pods = tuple(f"default/p{at}" for at in range(7))
    message = states(Offering(layout=layout(), blocked_by=pods), node=share_node("2Gi"))["UnitChangeBlocked"][
        2
    ]
    assert "these 7 pods are gone" in message
    assert "default/p4 and 2 more; until then" in message


def test_without_a_card_none_is_called_healthy() -> None:
    found = states(Offering(layout=Layout(MemoryUnit.parse("1Gi"), ())))
    assert found["CardsHealthy"][:2] == ("Unknown", "NoCards")


def test_units_that_the_kubelet_forgot_are_said() -> None:
    annotations = AnnotationState(pod_resources_available=True, lost=["default/a"])
    status, reason, message = states(annotations=annotations)["LedgerInSync"]
    assert (status, reason) == ("False", "KubeletForgot")
    assert "default/a" in message
    assert "delete these pods" in message


def test_a_checkpoint_that_cannot_be_read_is_said() -> None:
    annotations = AnnotationState(pod_resources_available=True, checkpoint_problem="no such file")
    status, reason, message = states(annotations=annotations)["LedgerInSync"]
    assert (status, reason) == ("True", "InSync")
    assert message.endswith("no such file")


def test_units_that_nobody_knows_the_card_of_are_said() -> None:
    offering = Offering(postponed=Problem("LayoutUnknown", "nobody knows"))
    assert states(offering)["Registered"] == (
        "False",
        "LayoutUnknown",
        "nothing is offered yet: nobody knows",
    )
    assert states(offering)["LedgerInSync"][:2] == ("False", "LayoutUnknown")


def test_a_card_that_is_left_out_is_named() -> None:
    offering = Offering(
        layout=layout(),
        finest_unit=MemoryUnit.parse("2Gi"),
        refused_unit=MemoryUnit.parse("1Gi"),
        desired_units=48,
        left_out=(card(2),),
    )
    status, _, message = states(offering)["UnitTooFine"]
    assert status == "True"
    assert message.endswith("is 2Gi; 1Gi stays in force; card 2 (GPU-2) is left out")


def difference(kind: DifferenceKind, sentence: str) -> Difference:
    return Difference(node="gpu-1", kind=kind, sentence=sentence)


def test_a_card_of_which_more_is_held_than_it_has_is_said_first() -> None:
    found = [
        difference(DifferenceKind.SHARES_DIFFER, "small"),
        difference(DifferenceKind.OVER_CAPACITY, "20 of 16 units"),
    ]
    annotations = AnnotationState(pod_resources_available=True, lost=["default/a"], differences=found)
    assert states(annotations=annotations)["LedgerInSync"] == ("False", "OverCommitted", "20 of 16 units")


def test_of_many_differences_the_first_are_told() -> None:
    found = [difference(DifferenceKind.SHARES_DIFFER, f"pod {number} differs") for number in range(5)]
    annotations = AnnotationState(pod_resources_available=True, differences=found)
    assert states(annotations=annotations)["LedgerInSync"] == (
        "False",
        "BooksDiffer",
        "pod 0 differs; pod 1 differs; pod 2 differs; and 2 more",
    )


def registered(variable: str, injection: Injection = Injection.ENVIRONMENT) -> tuple[str, str, str]:
    equipped = replace(card(0), equipment=Equipment(runtime_variable=variable))
    node = share_node()
    spec = msgspec.structs.replace(node.spec, devices=Devices(injection=injection))
    offering = Offering(layout=lay_out([equipped], MemoryUnit.parse("1Gi"), reserved=0))
    return states(offering, node=msgspec.structs.replace(node, spec=spec))["Registered"]


def test_an_inventory_s_variable_that_pods_may_set_is_said_and_served() -> None:
    status, _, message = registered("GCU_VISIBLE")
    assert status == "True"
    assert "pods may set GCU_VISIBLE" in message
    assert "ends in _VISIBLE_DEVICES" in message


@pytest.mark.parametrize("variable", ["ENFLAME_VISIBLE_DEVICES", "TOPS_VISIBLE_DEVICES", ""])
def test_of_a_variable_that_is_protected_or_an_application_s_nothing_is_said(variable: str) -> None:
    assert registered(variable) == ("True", "Registered", "")


def test_of_a_variable_that_is_not_used_nothing_is_said() -> None:
    assert registered("GCU_VISIBLE", Injection.CDI) == ("True", "Registered", "")
