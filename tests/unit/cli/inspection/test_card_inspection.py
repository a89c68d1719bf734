"""Which nodes and cards ``inspect`` shows, and in which order."""

import json
from typing import Any

from tests.samples.shared_cards import card, reading, share, share_node_object

from gpushare_cli.decide.inspection.inspection import (
    CardInspection,
    InspectionChoice,
    InspectionSort,
    MissingNode,
    card_inspection,
)
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.output.format import Format, document_text
from gpushare_cli.report import ExitStatus

NODES = shared_nodes(
    reading(
        share_node_object(
            "gpu-1",
            card(0, 16, share("a/x", 10, used="1Gi"), usedMemory="1Gi", node="gpu-1"),
            card(1, 16, share("b/y", 4, used="4Gi"), usedMemory="4Gi", node="gpu-1"),
        ),
        share_node_object("gpu-2", card(0, 16, node="gpu-2"), card(1, 16, cordoned=True, node="gpu-2")),
        share_node_object("gpu-3", card(0, 80, share("a/z", 12), memory="80Gi", node="gpu-3")),
    )
)


def inspected(**choice: Any) -> CardInspection:
    return card_inspection(NODES, InspectionChoice(**choice))


def shown(report: CardInspection) -> list[tuple[str, list[int]]]:
    return [(node.name, [card.index for card in node.cards]) for node in report.nodes]


def test_all_by_name() -> None:
    report = inspected()
    assert shown(report) == [("gpu-1", [0, 1]), ("gpu-2", [0, 1]), ("gpu-3", [0])]
    assert (report.exit_status, report.looked_at, report.chooses_cards) == (ExitStatus.GOOD, 3, False)
    assert report.names == [f"gpusharenode.gpushare.io/gpu-{number}" for number in (1, 2, 3)]


def test_named_nodes() -> None:
    assert shown(inspected(names=["gpu-2"])) == [("gpu-2", [0, 1])]
    assert inspected(names=["gpu-2"]).chooses_cards


def test_nodes_that_a_selector_chooses() -> None:
    assert shown(inspected(labelled=frozenset({"gpu-3", "other"}))) == [("gpu-3", [0])]
    assert shown(inspected(labelled=frozenset())) == []


def test_a_card_by_index_or_uuid() -> None:
    assert shown(inspected(card="1")) == [("gpu-1", [1]), ("gpu-2", [1])]
    assert shown(inspected(card="GPU-gpu-3-0")) == [("gpu-3", [0])]


def test_cards_of_a_namespace() -> None:
    assert shown(inspected(namespace="a")) == [("gpu-1", [0]), ("gpu-3", [0])]


def test_a_named_node_without_the_card_is_missing() -> None:
    report = inspected(names=["gpu-3", "gpu-1"], card="1")
    assert shown(report) == [("gpu-1", [1])]
    assert report.missing == [MissingNode(name="gpu-3", reason="it has no card 1, only 0")]
    assert report.exit_status is ExitStatus.NO


def test_only_problems() -> None:
    report = inspected(only_problems=True)
    assert shown(report) == [("gpu-2", [1])]
    assert report.exit_status is ExitStatus.NO
    assert card_inspection(NODES[:1], InspectionChoice(only_problems=True)).exit_status is ExitStatus.GOOD


def test_problems_of_cards_that_are_not_shown_are_left_out() -> None:
    (node,) = inspected(names=["gpu-2"], card="0").nodes
    assert node.problems == []


def test_the_most_free_first() -> None:
    assert shown(inspected(sort=InspectionSort.FREE)) == [
        ("gpu-3", [0]),
        ("gpu-1", [1, 0]),
        ("gpu-2", [0, 1]),
    ]


def test_the_most_held_first() -> None:
    assert [name for name, _ in shown(inspected(sort=InspectionSort.HELD))] == ["gpu-1", "gpu-3", "gpu-2"]


def test_the_most_used_first() -> None:
    assert shown(inspected(sort=InspectionSort.USED))[0] == ("gpu-1", [1, 0])


def test_the_document_has_all() -> None:
    document = json.loads(document_text(inspected(names=["gpu-1"], card="0"), Format.JSON))
    assert (document["apiVersion"], document["kind"]) == ("cli.gpushare.io/v1alpha1", "CardInspection")
    (found,) = document["nodes"][0]["cards"]
    assert (found["heldUnits"], found["freeUnits"], found["usedBytes"]) == (10, 6, 2**30)
    assert found["holders"][0]["containers"][0] == {
        "container": "main",
        "units": 10,
        "askedBytes": 10 * 2**30,
        "usedBytes": 2**30,
        "isolation": "",
        "limitBytes": None,
        "lacksIsolation": False,
        "exceededSince": "",
        "evictedFrom": "",
    }


def test_a_card_that_no_node_has_is_a_no() -> None:
    assert inspected(card="9").exit_status is ExitStatus.NO
    assert inspected(card="1").exit_status is ExitStatus.GOOD
    assert inspected(card="9", only_problems=True).exit_status is ExitStatus.GOOD


def test_no_problem_is_known_only_where_all_could_be_read() -> None:
    well = NODES[2:]
    choice = InspectionChoice(only_problems=True)
    assert card_inspection(well, choice).exit_status is ExitStatus.GOOD
    assert card_inspection(well, choice, unread=["pods"]).exit_status is ExitStatus.CANNOT_LOOK
    assert card_inspection(NODES, choice, unread=["pods"]).exit_status is ExitStatus.NO
