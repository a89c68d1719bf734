"""From the API's objects to what the operator looks at."""

from typing import Any

import pytest

from gpushare_core.api.names import FINALIZER
from gpushare_operator.cluster.cache import Inventory, Kind, Listing
from gpushare_operator.cluster.objects import (
    daemon_set_view,
    job_view,
    node_view,
    pod_view,
    policy_view,
    share_node_view,
)
from gpushare_operator.desired.drift import covers, says

Json = dict[str, Any]

MEMORY = "gpushare.io/memory"


def meta(name: str = "x", version: int = 1, **extra: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), **extra}


def test_a_policy_is_read() -> None:
    body = {
        "metadata": meta(generation=3, creationTimestamp="2026-01-01T00:00:00Z", finalizers=[FINALIZER]),
        "spec": {"nodes": [{"names": ["gpu-1"]}]},
        "status": {"observedGeneration": 2},
    }
    view = policy_view(body)
    assert (view.generation, view.finalizers, view.deleting) == (3, (FINALIZER,), False)
    assert view.spec is not None
    assert view.status.observed_generation == 2


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({}, "nodes: Field required", id="empty"),
        pytest.param({"nodes": [{"mode": "Half"}]}, "nodes.0.mode", id="unknown mode"),
        pytest.param(None, "", id="missing"),
    ],
)
def test_a_policy_that_does_not_parse_says_why(spec: Any, why: str) -> None:
    view = policy_view({"metadata": meta(), "spec": spec})
    assert view.spec is None
    assert why in view.error


def test_a_policy_with_a_broken_status_is_read_as_without() -> None:
    body = {"metadata": meta(), "spec": {"nodes": [{"names": ["a"]}]}, "status": {"conditions": "?"}}
    assert policy_view(body).status.conditions == []


@pytest.mark.parametrize(
    ("status", "ready", "offered"),
    [
        pytest.param({}, False, (), id="nothing known"),
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, True, (), id="ready"),
        pytest.param({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False, (), id="unknown"),
        pytest.param({"capacity": {"cpu": "1"}}, False, (), id="others' resources"),
        pytest.param({"capacity": {MEMORY: "0"}}, False, (MEMORY,), id="zero is shown"),
        pytest.param({"allocatable": {MEMORY: "4"}}, False, (MEMORY,), id="allocatable"),
    ],
)
def test_a_node_is_read(status: Json, *, ready: bool, offered: tuple[str, ...]) -> None:
    view = node_view({"metadata": meta(), "status": status})
    assert (view.ready, view.offered) == (ready, offered)


def test_a_share_node_is_read() -> None:
    view = share_node_view(
        {
            "metadata": meta(generation=4, ownerReferences=[{"uid": "p"}]),
            "spec": {"policy": "default"},
            "status": {
                "observedGeneration": 4,
                "units": {"total": 32, "allocated": 4},
                "memory": {"total": "32Gi"},
                "cards": [{"uuid": "a", "health": "Healthy"}, {"uuid": "b", "health": "Unhealthy"}],
            },
        }
    )
    assert (view.policy, view.owners, view.units) == ("default", ("p",), (32, 4))
    assert view.memory == ("32Gi", "0", "0")
    assert (view.cards, view.unhealthy) == (2, 1)


def test_a_share_node_without_status_is_read() -> None:
    assert share_node_view({"metadata": meta(), "spec": {}}).units == (0, 0)


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        pytest.param([], "active", id="running"),
        pytest.param([("Suspended", "False")], "active", id="not suspended"),
        pytest.param([("SuccessCriteriaMet", "True")], "active", id="about to end"),
        pytest.param([("Complete", "True")], "complete", id="complete"),
        pytest.param([("FailureTarget", "True"), ("Failed", "True")], "failed", id="failed"),
    ],
)
def test_a_job_is_read(conditions: list[tuple[str, str]], state: str) -> None:
    moment = {"lastTransitionTime": "2026-11-21T12:00:00Z", "reason": "Why"}
    told = [{"type": kind, "status": status, **moment} for kind, status in conditions]
    view = job_view({"metadata": meta(labels={"gpushare.io/sequence": "7"}), "status": {"conditions": told}})
    assert [name for name in ("active", "complete", "failed") if getattr(view, name)] == [state]
    assert view.sequence == 7
    assert (view.finished is None) is (state == "active")


def test_a_pod_tells_how_it_ended() -> None:
    ended = {"terminated": {"exitCode": 2, "message": "{}"}}
    view = pod_view({"metadata": meta(), "status": {"containerStatuses": [{"state": ended}]}})
    assert (view.exit_code, view.termination, view.waiting) == (2, "{}", "")


def test_a_pod_tells_why_it_waits() -> None:
    waits = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    assert (
        pod_view({"metadata": meta(), "status": {"containerStatuses": [{"state": waits}]}}).waiting
        == "ErrImagePull: no such image"
    )


def test_a_pod_that_terminates_is_not_ready() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert pod_view({"metadata": meta(), "status": status}).ready
    assert not pod_view({"metadata": meta(deletionTimestamp="2026-11-21T12:00:00Z"), "status": status}).ready


@pytest.mark.parametrize(
    ("actual", "desired", "covered"),
    [
        pytest.param({"a": 1, "default": 2}, {"a": 1}, True, id="defaults"),
        pytest.param({"a": 1}, {"a": 2}, False, id="other value"),
        pytest.param({}, {"a": None}, False, id="missing"),
        pytest.param({"l": [{"a": 1, "b": 2}]}, {"l": [{"a": 1}]}, True, id="defaults in a list"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, False, id="longer list"),
        pytest.param({"l": [2, 1]}, {"l": [1, 2]}, False, id="other order"),
        pytest.param("x", {"a": 1}, False, id="no object"),
        pytest.param("x", ["x"], False, id="no list"),
    ],
)
def test_covers(actual: Any, desired: Any, *, covered: bool) -> None:
    assert covers(actual, desired) is covered


def test_kind_and_version_do_not_count_since_lists_leave_them_out() -> None:
    body = {"metadata": meta(labels={"a": "b"}), "spec": {"x": 1}}
    view = daemon_set_view(body)
    assert says(view.body, {"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"x": 1}})
    assert not says(view.body, {"metadata": {"name": "x"}, "spec": {"x": 2}})


class TestInventory:
    """News in any order: the newest wins."""

    def node(self, version: int, **labels: str) -> Json:
        return {"metadata": meta("n", version, labels=labels)}

    def listing(self, *bodies: Json) -> Listing:
        listing = Listing(Kind.NODE)
        listing.take(bodies)
        return listing

    def test_a_heartbeat_is_no_news(self) -> None:
        inventory = Inventory()
        assert inventory.observe(Kind.NODE, self.node(1))
        assert not inventory.observe(Kind.NODE, self.node(2))
        assert inventory.observe(Kind.NODE, self.node(3, a="b"))

    def test_old_news_are_ignored(self) -> None:
        inventory = Inventory()
        inventory.observe(Kind.NODE, self.node(5, a="new"))
        assert not inventory.observe(Kind.NODE, self.node(4, a="old"))
        assert inventory.snapshot().nodes["n"].labels == {"a": "new"}

    def test_a_deletion_that_comes_late_does_not_remove_the_successor(self) -> None:
        inventory = Inventory()
        inventory.observe(Kind.NODE, self.node(9))
        assert not inventory.forget(Kind.NODE, self.node(8))
        assert "n" in inventory.snapshot().nodes

    def test_news_that_come_after_a_deletion_do_not_bring_it_back(self) -> None:
        inventory = Inventory()
        inventory.observe(Kind.NODE, self.node(1))
        assert inventory.forget(Kind.NODE, self.node(5))
        assert not inventory.observe(Kind.NODE, self.node(4))
        assert inventory.snapshot().nodes == {}

    def test_a_list_tells_what_vanished(self) -> None:
        inventory = Inventory()
        inventory.observe(Kind.NODE, self.node(1))
        assert inventory.replace(Kind.NODE, Listing(Kind.NODE), "2")
        assert inventory.snapshot().nodes == {}

    def test_what_came_after_a_list_was_read_stays(self) -> None:
        inventory = Inventory()
        inventory.observe(Kind.NODE, self.node(7, a="new"))
        assert not inventory.replace(Kind.NODE, self.listing(self.node(3, a="old")), "5")
        assert inventory.snapshot().nodes["n"].labels == {"a": "new"}

    def test_what_was_deleted_after_a_list_was_read_stays_gone(self) -> None:
        inventory = Inventory()
        inventory.observe(Kind.NODE, self.node(3))
        inventory.forget(Kind.NODE, self.node(7))
        assert not inventory.replace(Kind.NODE, self.listing(self.node(3)), "5")
        assert inventory.snapshot().nodes == {}
