"""Which cards an annotation of people cordons, and what the kubelet gets of their units."""

from dataclasses import replace

import msgspec
import pytest
from tests.samples.plugin import card, layout, share_node

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.decide.health.cordon import Cordon, cordoned, kept_units, read_cordon
from gpushare_plugin.decide.offer.device_list import encode_devices
from gpushare_plugin.decide.offer.offering import Offering
from gpushare_plugin.decide.report.conditions import AnnotationState, RegistrationState, node_conditions
from gpushare_plugin.devices.card import LeftOutCard, Reading
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

MIG = LeftOutCard(index=2, uuid="GPU-2", reason="MIG is enabled")
READING = Reading(cards=(card(0), card(1)), left_out=(MIG,))


def annotated(text: str, *, indices: dict[int, str] | None = None) -> GPUShareNode:
    """``indices``: of the cards in the status."""
    cards = [
        {"index": index, "uuid": uuid, "memory": "16Gi", "units": 16}
        for index, uuid in (indices or {}).items()
    ]
    body = share_node(status={"cards": cards})
    metadata = msgspec.structs.replace(body.metadata, annotations={CORDON_ANNOTATION: text} if text else {})
    return msgspec.structs.replace(body, metadata=metadata)


@pytest.mark.parametrize(
    ("text", "cards", "unknown"),
    [
        pytest.param("", set(), (), id="nothing"),
        pytest.param("GPU-1", {"GPU-1"}, (), id="a UUID"),
        pytest.param("1", {"GPU-1"}, (), id="an index"),
        pytest.param("0, GPU-1", {"GPU-0", "GPU-1"}, (), id="several"),
        pytest.param(",, 1 ,1,", {"GPU-1"}, (), id="commas and spaces"),
        pytest.param("2", {"GPU-2"}, (), id="a card that is left out"),
        pytest.param("7 1 all", {"GPU-1"}, ("7", "all"), id="what is no card cordons nothing"),
        pytest.param("-1", set(), ("-1",), id="no counting from the end"),
        pytest.param("GPU-", set(), ("GPU-",), id="no prefix"),
        pytest.param("x" * 9999, set(), ("x" * 60,), id="long nonsense is cut"),
    ],
)
def test_words_name_cards_or_nothing(text: str, cards: set[str], unknown: tuple[str, ...]) -> None:
    assert read_cordon(annotated(text), READING) == Cordon(frozenset(cards), unknown)


def test_an_index_is_that_of_the_status_which_people_see() -> None:
    """While units are held indices stay, whatever the source tells."""
    shown = annotated("0", indices={0: "GPU-1", 1: "GPU-0"})
    assert read_cordon(shown, READING).cards == {"GPU-1"}


def test_a_card_that_is_gone_and_held_can_be_named() -> None:
    assert read_cordon(annotated("GPU-9", indices={9: "GPU-9"}), READING) == Cordon(frozenset({"GPU-9"}))


def test_units_that_pods_have_stay_healthy_and_the_others_do_not() -> None:
    shared = layout(replace(card(0, memory=3 * 2**30), cordoned=True), card(1, memory=2**30))
    kept = kept_units(shared, [[1, 3]])
    assert kept == {1}
    devices = api.ListAndWatchResponse.FromString(encode_devices(shared, kept=kept)).devices
    assert [device.health for device in devices] == ["Unhealthy", "Healthy", "Unhealthy", "Healthy"]


def test_a_sick_card_that_is_cordoned_has_no_healthy_unit() -> None:
    sick = replace(card(0, memory=2 * 2**30, healthy=False), cordoned=True)
    devices = api.ListAndWatchResponse.FromString(encode_devices(layout(sick), kept=frozenset({0}))).devices
    assert [device.health for device in devices] == ["Unhealthy"] * 2


def condition(cordon: Cordon) -> tuple[str, str, str]:
    cards = cordoned(READING, cordon).cards
    states = node_conditions(
        share_node().spec,
        Offering(layout=layout(*cards)),
        RegistrationState(registered=True),
        AnnotationState(pod_resources_available=True),
        cordon=cordon,
    )
    return next(
        (state.status, state.reason, state.message) for state in states if state.type == "CardsCordoned"
    )


def test_the_condition_names_cards_and_what_to_do() -> None:
    status, reason, message = condition(Cordon(frozenset({"GPU-1"})))
    assert (status, reason) == ("True", "Cordoned")
    assert message.startswith("no new pod gets card 1 (GPU-1), and pods there stay")


@pytest.mark.parametrize(("cards", "status"), [(set(), "False"), ({"GPU-0"}, "True")])
def test_the_condition_names_words_that_are_no_card(cards: set[str], status: str) -> None:
    words = tuple(f"w{number}" for number in range(9))
    found, reason, message = condition(Cordon(frozenset(cards), words))
    assert (found, reason) == (status, "UnknownCards")
    assert "'w0', 'w1', 'w2', 'w3', 'w4', which is no card of this node and cordons nothing" in message
