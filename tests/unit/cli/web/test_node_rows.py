"""Rows of nodes follow from all that inspect shows, and are made anew only where something changed."""

import json
from typing import Any

import pytest
from tests.samples.shared_cards import card, pending_pod_object, raw, reading, share, share_node_object

from gpushare_cli.decide.web.node_rows import PageReading, PageRow, node_rows, unread_rows
from gpushare_core.text.json_object import Json

RACK = "topology.kubernetes.io/rack"


def page(*nodes: Json, pods: tuple[Json, ...] = (), rack: str = "r1", **more: Any) -> PageReading:
    return PageReading(
        cluster=reading(pods=pods, **more),
        nodes={node["metadata"]["name"]: raw(node) for node in nodes},
        labels={node["metadata"]["name"]: {RACK: rack, "other": "x"} for node in nodes},
        group_labels=[RACK],
    )


def node(name: str, *held: Json, **more: Any) -> Json:
    return share_node_object(name, card(0, 16, *held, node=name, **more))


def shown(row: PageRow) -> Any:
    return json.loads(row.text)


def test_a_row_has_what_inspect_shows() -> None:
    one = node("n1", share("a/x", 4, used="1Gi"), usedMemory="1Gi")
    row = shown(node_rows(page(one), {})["n1"])
    (found,) = row["cards"]
    assert row["groups"] == {RACK: "r1"}
    assert (found["heldUnits"], found["freeUnits"], found["usedBytes"]) == (4, 12, 2**30)
    assert found["serves"] == "Memory"
    assert found["holders"] == [
        {"namespace": "a", "name": "x", "units": 4, "askedBytes": 4 * 2**30, "usedBytes": 2**30}
    ]


@pytest.mark.parametrize(
    ("more", "closed", "state"),
    [
        pytest.param({}, (), "Open", id="open"),
        pytest.param({"health": "Unhealthy", "healthReason": "Xid"}, (), "Sick", id="sick"),
        pytest.param({"cordoned": True}, (), "Cordoned", id="cordoned"),
        pytest.param({}, ("n1",), "Closed", id="its node takes no pods"),
        pytest.param({"health": "Unhealthy", "cordoned": True}, ("n1",), "Sick", id="the first that applies"),
    ],
)
def test_a_card_has_one_state(more: dict[str, Any], closed: tuple[str, ...], state: str) -> None:
    found = node_rows(page(node("n1", **more), unschedulable_nodes=frozenset(closed)), {})
    (row,) = shown(found["n1"])["cards"]
    assert row.get("state", "Open") == state


def test_only_nodes_of_which_something_changed_are_made_anew() -> None:
    before = node_rows(page(node("n1"), node("n2"), node("n3")), {})
    after = node_rows(page(node("n1"), node("n2", share("a/x", 4)), node("n3")), before)
    assert [name for name in after if after[name] is not before[name]] == ["n2"]
    assert shown(after["n2"])["cards"][0]["heldUnits"] == 4


def test_a_pod_a_cordon_or_a_label_changes_a_row() -> None:
    before = node_rows(page(node("n1")), {})
    pod = pending_pod_object("a/new", 6, node="n1", card="GPU-n1-0")
    bound = node_rows(page(node("n1"), pods=(pod,)), before)
    assert shown(bound["n1"])["cards"][0]["holders"][0]["state"] == "NotStarted"
    closed = node_rows(page(node("n1"), unschedulable_nodes=frozenset({"n1"})), before)
    assert shown(closed["n1"])["closed"] == "kubectl cordon"
    moved = node_rows(page(node("n1"), rack="r2"), before)
    assert shown(moved["n1"])["groups"] == {RACK: "r2"}


def test_nodes_that_are_gone_have_no_row() -> None:
    assert node_rows(page(node("n2")), node_rows(page(node("n1"), node("n2")), {})).keys() == {"n2"}


def test_names_are_data_whatever_they_contain() -> None:
    evil = '<script><img src=x onerror="alert(1)">'
    found = node_rows(page(node("n1", share(f"{evil}/x", 1))), {})
    assert shown(found["n1"])["cards"][0]["holders"][0]["namespace"] == evil


def test_nodes_whose_cards_cannot_be_read_are_said() -> None:
    """Of a newer plugin, for example: no cards on the map would look as if there were none."""
    good, newer = node("n1"), [node(name, model={"new": 1}) for name in ("n2", "n3")]
    assert unread_rows(node_rows(page(good), {})) == []
    rows = node_rows(page(good, *newer), {})
    (said,) = unread_rows(rows)
    assert said.startswith("The cards of 2 nodes are not shown, n2, n3: its GPUShareNode cannot be read: ")
    assert unread_rows(node_rows(page(good, *newer), rows)) == [said]
