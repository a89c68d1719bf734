"""Which pods get an Event about a sick card: once for each fault, also across restarts of the plugin."""

from datetime import UTC, datetime

from gpushare_core.api.share_node import CardFault, CardStatus, NodeStatus, PodShare
from gpushare_plugin.decide.health.fault_events import fault_events

FIRST, LATER = "2026-11-22T10:00:00Z", "2026-11-22T11:00:00Z"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def status(*pods: str, since: str = FIRST, cleared: str = "", last_seen: str = "") -> NodeStatus:
    """One card with two containers of each pod; sick ``since``, unless that is empty."""
    shares = [
        PodShare(namespace="default", name=pod, uid=f"uid-{pod}", container=name, units=1)
        for pod in pods
        for name in ("x", "y")
    ]
    card = CardStatus(index=3, uuid="GPU-3", memory="16Gi", units=16, pods=shares)
    fault = CardFault(
        uuid="GPU-3",
        reason="Xid79",
        message="Xid 79",
        since=since,
        last_seen=last_seen or since,
        cleared=cleared,
    )
    return NodeStatus(cards=[card], faults=[fault] if since else [])


def pods_with_events(before: NodeStatus, after: NodeStatus) -> list[str]:
    return [event.pod.name for event in fault_events(before, after)]


def test_each_pod_is_told_once_however_many_containers_it_has() -> None:
    before = status("a", "b", since="")
    assert pods_with_events(before, status("a", "b")) == ["a", "b"]


def test_nobody_is_told_what_the_status_says_already() -> None:
    assert pods_with_events(status("a"), status("a")) == []
    assert pods_with_events(status("a"), status("a", last_seen=LATER)) == []


def test_a_pod_that_came_at_the_last_moment_is_told() -> None:
    assert pods_with_events(status("a"), status("a", "b")) == ["b"]


def test_of_a_card_that_returned_nobody_is_told_and_of_the_next_fault_all() -> None:
    returned = status("a", cleared=LATER)
    assert pods_with_events(status("a"), returned) == []
    assert pods_with_events(returned, status("a", since=LATER)) == ["a"]


def test_the_same_fault_of_the_same_pod_has_one_name() -> None:
    (first,) = fault_events(status("a", since=""), status("a"))
    (again,) = fault_events(status("a", since=""), status("a", last_seen=LATER))
    (other,) = fault_events(status("a", since=""), status("a", since=LATER))
    names = [event.to_json("gpu-1", NOW)["metadata"]["name"] for event in (first, again, other)]
    assert names[0] == names[1] != names[2]


def test_the_note_says_which_card_and_what_to_do() -> None:
    (event,) = fault_events(status("a", since=""), status("a"))
    body = event.to_json("gpu-1", NOW)
    assert body["note"].startswith("card 3 (GPU-3) of this pod is sick: Xid 79. No new pod gets it")
    assert "delete it" in body["note"]
    assert (body["type"], body["reason"], body["regarding"]["uid"]) == ("Warning", "CardUnhealthy", "uid-a")
