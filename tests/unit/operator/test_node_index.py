"""What is kept node by node says the same as what is made from scratch, whatever has changed in between."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.operator_cluster import PODS, Cluster, Operator
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    SIMULATED,
    node,
    plugin_pod,
    policy,
    rule,
    serving,
    share,
    snapshot,
)

from gpushare_core.api.names import COMPONENT_LABEL, FINALIZER, MANAGED_BY_LABEL, MODE_LABEL, POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import SetFinalizers
from gpushare_operator.cluster import kinds
from gpushare_operator.cluster.cache import Cache, Change, Listing, read
from gpushare_operator.cluster.kinds import NODES, POLICIES, SHARE_NODES, Kind
from gpushare_operator.cluster.labels import MANAGER, PLUGIN
from gpushare_operator.cluster.nodes import observed_states
from gpushare_operator.cluster.nodes.node_index import Entry, NodeIndex
from gpushare_operator.cluster.nodes.observed_states import Journal, ObservedState, ObservedStates
from gpushare_operator.cluster.nodes.traits import NodeTraits
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.policy_plan import NodePlanner, plan_policy
from gpushare_operator.decide.teardown.capacity import CapacityFinder
from gpushare_operator.decide.teardown.steps import still_there
from gpushare_operator.reconcile import CLUSTER
from gpushare_operator.status.nodes import node_reports
from gpushare_operator.status.nodes.node_readiness import why_not_ready
from gpushare_operator.status.policy import policy_status

NAMES = ("a", "b", "c", "d")
FOLLOWED: dict[str, Kind[Any]] = {
    paths.POLICIES: POLICIES,
    paths.NODES: NODES,
    paths.SHARE_NODES: SHARE_NODES,
    PODS: kinds.PODS,
}


@dataclass
class World:
    """A cluster whose every change comes to the operator's cache, as its watches bring it."""

    cluster: Cluster = field(default_factory=Cluster)
    lists: list[tuple[Listing[Any], list[Json], str]] = field(default_factory=list)
    """Read some time ago."""

    def __post_init__(self) -> None:
        self.operator = Operator(self.cluster)
        self.cluster.api.on_change = self._tell
        for name in NAMES[:2]:
            self.cluster.add_node(name, gpu="yes")
        self.cluster.add_node("cp", control_plane=True)
        self.put_policy("old", 0)
        for _ in range(2):
            self.reconcile("old")
            self.move()

    @property
    def cache(self) -> Cache:
        return self.operator.reconciler.cache

    def _tell(self, collection: str, event: str, body: Json) -> None:
        if kind := FOLLOWED.get(collection):
            if event == "DELETED":
                self.cache.forget(kind, read(kind, body))
            else:
                self.cache.observe(kind, body)

    # What may happen.

    def put_policy(self, name: str, variant: int) -> None:
        specs: tuple[Json, ...] = (
            {"nodes": [{"selector": {"matchLabels": {"gpu": "yes"}}, "devices": SIMULATED}]},
            {"nodes": [{"names": ["a", "c"], "mode": "Slices", "slicesPerCard": 2, "devices": SIMULATED}]},
            {"nodes": [{"names": ["b"], "mode": "Off"}, {"selector": {"matchLabels": {"gpu": "yes"}}}]},
            {"nodes": [{"names": list(NAMES)}], "dialect": "aliyun.com"},
            {"nodes": "nonsense"},
            {"nodes": [{"names": ["a"], "mode": "Mixed"}], "scheduler": {"backend": "Volcano"}},
        )
        self._put(paths.POLICIES, name, {"spec": specs[variant]})

    def delete_policy(self, name: str) -> None:
        self._remove(paths.POLICIES, name)

    def lose_policy(self, name: str) -> None:
        """Somebody takes our finalizer off one that is being deleted."""
        if held := self.cluster.api.of(paths.POLICIES).get(name):
            held["metadata"]["finalizers"] = []
            self._remove(paths.POLICIES, name)

    def change_node(self, name: str, label: str, ready: str) -> None:
        if name not in self.cluster.api.of(paths.NODES):
            self.cluster.add_node(name, gpu=label)
            return
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        self._put(paths.NODES, name, {"metadata": {"labels": {"gpu": label}}, "status": status})

    def remove_node(self, name: str) -> None:
        self._remove(paths.NODES, name)

    def change_share(self, name: str, allocated: int, status: str, generation: int) -> None:
        held = self.cluster.api.of(paths.SHARE_NODES).get(name)
        moment = {"lastTransitionTime": "2026-11-21T11:00:00Z", "reason": "Because", "message": "so it is"}
        conditions = [
            {"type": type_, "status": status, **moment} for type_ in ("Registered", "UnitChangeBlocked")
        ]
        totals = {"total": 32, "allocated": allocated}
        told = {
            "observedGeneration": generation,
            "memoryUnit": "1Gi",
            "units": totals,
            "memory": {"total": "32Gi", "allocated": f"{allocated}Gi", "used": f"{allocated * 512}Mi"},
            "conditions": conditions,
            "cards": [{"uuid": "GPU-0", "index": 0, "memory": "32Gi", "units": 32, "health": "Unhealthy"}],
        }
        if held:
            self._put(paths.SHARE_NODES, name, {"status": told})

    def steal_share(self, name: str) -> None:
        """Somebody writes another policy into it."""
        if name in self.cluster.api.of(paths.SHARE_NODES):
            self._put(paths.SHARE_NODES, name, {"spec": {"policy": "other"}})

    def remove_share(self, name: str) -> None:
        self._remove(paths.SHARE_NODES, name)

    def put_pod(self, name: str, owner: str, ready: str) -> None:
        labels = {COMPONENT_LABEL: PLUGIN, POLICY_LABEL: owner, MANAGED_BY_LABEL: MANAGER}
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        body = {"metadata": {"labels": labels}, "spec": {"nodeName": name}, "status": status}
        self._put(PODS, f"plugin-{owner}-{name}", body)

    def remove_pod(self, name: str, owner: str) -> None:
        self._remove(PODS, f"plugin-{owner}-{name}")

    def move(self) -> None:
        """Controllers, kubelets and plugins do what is due."""
        for step in self.cluster.steps():
            step()

    def reconcile(self, key: str) -> None:
        asyncio.run(self.operator.work(key))

    def begin_list(self, position: int) -> None:
        collection = list(FOLLOWED)[position]
        listing = self.cache.listing(FOLLOWED[collection])
        self.lists.append((listing, *asyncio.run(self.cluster.api.list_all(collection))))

    def end_list(self, position: int) -> None:
        """The answer comes, however late."""
        if self.lists:
            listing, items, version = self.lists.pop(position % len(self.lists))
            listing.add(items)
            self.cache.replace(listing, version)

    def overtake(self, position: int, name: str) -> None:
        """A list is read and comes in, while the answer to an earlier one is still on its way."""
        collection = list(FOLLOWED)[position]
        self.begin_list(position)
        self._remove(collection, name)
        self.begin_list(position)
        self.end_list(len(self.lists) - 1)
        self.end_list(len(self.lists) - 1)

    def restore(self, version: int) -> None:
        """etcd is as it was in a backup, without node d; watches list anew, whatever is under way."""
        api = self.cluster.api
        api.restore(version)
        self.cluster.api.of(paths.NODES).pop("d", None)
        for position in range(len(FOLLOWED)):
            self.begin_list(position)
            self.end_list(len(self.lists) - 1)

    def _put(self, collection: str, name: str, patch: Json) -> None:
        if name in self.cluster.api.of(collection):
            self.cluster.api.change(collection, name, patch)
        else:
            self.cluster.api.put(
                collection, {**patch, "metadata": {"name": name, **patch.get("metadata", {})}}
            )

    def _remove(self, collection: str, name: str) -> None:
        if name in self.cluster.api.of(collection):
            self.cluster.api.remove(collection, name)


def a_change() -> st.SearchStrategy[Callable[[World], None]]:
    names, owners, truths = (
        st.sampled_from(NAMES),
        st.sampled_from(("old", "new")),
        st.sampled_from(["True", "False"]),
    )
    return st.one_of(
        st.builds(lambda *given: lambda world: world.put_policy(*given), owners, st.integers(0, 5)),
        st.builds(lambda *given: lambda world: world.delete_policy(*given), owners),
        st.builds(lambda *given: lambda world: world.lose_policy(*given), owners),
        st.builds(
            lambda *given: lambda world: world.change_node(*given),
            names,
            st.sampled_from(["yes", "no"]),
            truths,
        ),
        st.builds(lambda *given: lambda world: world.remove_node(*given), names),
        st.builds(
            lambda *given: lambda world: world.change_share(*given),
            names,
            st.integers(0, 40),
            truths,
            st.integers(1, 2),
        ),
        st.builds(lambda *given: lambda world: world.steal_share(*given), names),
        st.builds(lambda *given: lambda world: world.remove_share(*given), names),
        st.builds(lambda *given: lambda world: world.put_pod(*given), names, owners, truths),
        st.builds(lambda *given: lambda world: world.remove_pod(*given), names, owners),
        st.just(World.move),
        st.builds(
            lambda *given: lambda world: world.reconcile(*given), st.sampled_from(("old", "new", CLUSTER))
        ),
        st.builds(lambda *given: lambda world: world.begin_list(*given), st.integers(0, 3)),
        st.builds(lambda *given: lambda world: world.end_list(*given), st.integers(0, 3)),
        st.builds(lambda *given: lambda world: world.restore(*given), st.integers(1, 30)),
        st.builds(lambda *given: lambda world: world.overtake(*given), st.integers(0, 3), names),
    )


def from_scratch(seen: ClusterSnapshot) -> ClusterSnapshot:
    """The same objects, and nothing made of them."""
    objects = {field.name: getattr(seen, field.name) for field in fields(ClusterSnapshot) if field.compare}
    return ClusterSnapshot(**objects)


def all_that_is_said(seen: ClusterSnapshot) -> Any:
    later = NOW + timedelta(minutes=1)
    each = sorted(seen.policies.values(), key=lambda policy: policy.name)
    plans = [plan_policy(seen, policy, INSTALLATION, later) for policy in each]
    statuses = [policy_status(seen, policy, INSTALLATION, now=later) for policy in each]
    return plans, statuses, plan_cluster(seen, INSTALLATION, later)


@settings(max_examples=150, deadline=None)
@given(changes=st.lists(a_change(), min_size=3, max_size=25))
def test_whatever_changes_nothing_else_is_said_than_from_scratch(
    changes: Sequence[Callable[[World], None]],
) -> None:
    world = World()
    for change in (*changes, World.move):
        change(world)
        seen = world.cache.snapshot()
        fresh = from_scratch(seen)
        assert seen.states == fresh.states
        assert all_that_is_said(seen) == all_that_is_said(fresh)
        present = world.cluster.api.of(paths.NODES).keys()
        assert seen.nodes.keys() == present, "no list brings back what is gone, nor takes what is there"


@dataclass(frozen=True)
class Counting:
    """Counts what it is shown."""

    seen: list[str] = field(default_factory=list, compare=False)

    def __call__(self, state: ObservedState) -> Entry[str]:
        self.seen.append(state.name)
        if state.node and "defect" in state.node.labels:
            raise KeyError("defect")
        return Entry(state.name if state.share else None, {"nodes": 1})


def test_only_what_has_changed_is_looked_at_again() -> None:
    look, owner = Counting(), policy()
    index = NodeIndex(look)
    first = snapshot(node("a"), node("b"))
    index.update(first.states)
    index.update(first.states)
    assert look.seen == ["a", "b"]
    changed = {**first.states, "b": ObservedState("b", node("b"), share("b", owner))}
    index.update(changed)
    assert look.seen == ["a", "b", "b"]
    assert (index.results, index.sums) == ({"b": "b"}, {"nodes": 2})
    index.update({"a": changed["a"]})
    assert (index.results, index.sums) == ({}, {"nodes": 1})


def test_an_older_snapshot_is_answered_as_it_was() -> None:
    older, newer = snapshot(node("a")), snapshot(node("a"), node("b"))
    indexes = older.indexes
    look = Counting()
    assert indexes.find(look, newer.states).sums == {"nodes": 2}
    assert indexes.find(look, older.states).sums == {"nodes": 1}


@dataclass(frozen=True)
class Labelled:
    """Says of nodes with the same labels the same."""

    def __call__(self, state: ObservedState) -> Entry[str]:
        labels = state.node.labels if state.node else {}
        return Entry(common=tuple(labels.items()) or None)


def test_nodes_of_which_the_same_is_said_are_kept_together() -> None:
    index, red = NodeIndex(Labelled()), (("is", "red"),)
    first = snapshot(node("a", labels={"is": "red"}), node("b", labels={"is": "red"}), node("c"))
    index.update(first.states)
    assert {group: [*names] for group, names in index.groups.items()} == {red: ["a", "b"]}
    index.update(snapshot(node("a", labels={"is": "blue"}), node("b", labels={"is": "red"})).states)
    assert {group: [*names] for group, names in index.groups.items()} == {
        red: ["b"],
        (("is", "blue"),): ["a"],
    }
    index.update({})
    assert index.groups == {}


class Unwalked(ObservedStates):
    """Fails whoever goes through all nodes."""

    def items(self) -> Any:
        raise AssertionError("all nodes were compared, and one has changed")


def test_one_change_among_thousands_is_found_without_comparing_the_others() -> None:
    """Every index compared every node in every round, however few had changed."""
    journal, nodes = Journal(), {name: ObservedState(name) for name in NAMES}
    index, looked = NodeIndex(look := Looked()), look.names
    index.update(ObservedStates(nodes, journal))
    looked.clear()
    journal.note(["b", "c"])
    changed = {name: ObservedState(name) for name in ("b", "d")}
    index.update(Unwalked({**nodes, "b": changed["b"]}, journal))
    assert looked == ["b"], "c was noted, and is the same"
    journal.note(["a"])
    index.update(Unwalked({name: nodes[name] for name in "cd"} | {"b": changed["b"]}, journal))
    assert (looked, sorted(index.results)) == (["b"], ["b", "c", "d"])


@dataclass(eq=False)
class Looked:
    """Says something of every node, and which it was asked about."""

    names: list[str] = field(default_factory=list)

    def __call__(self, state: ObservedState) -> Entry[str]:
        self.names.append(state.name)
        return Entry(state.name)


def test_what_the_journal_has_forgotten_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed_states, "MAX_CHANGES", 1)
    journal, nodes = Journal(), {name: ObservedState(name) for name in NAMES}
    index = NodeIndex(Looked())
    index.update(ObservedStates(nodes, journal))
    journal.note(["a", "b"])
    assert journal.between(0, 2) is None
    index.update(ObservedStates({name: nodes[name] for name in "cd"}, journal))
    assert sorted(index.results) == ["c", "d"]


def test_the_journal_says_what_changed_between_two_numbers_in_order() -> None:
    journal = Journal()
    journal.note(["a", "b", "a", "c", "d"])
    assert [*(journal.between(1, 4) or ())] == ["b", "a", "c"]
    assert [*(journal.between(0, 3) or ())] == ["a", "b"]
    assert [*(journal.between(4, 5) or ())] == ["d"]
    assert [*(journal.between(5, 5) or ())] == []


def test_states_of_another_journal_or_of_later_are_compared() -> None:
    journal, other = Journal(), Journal()
    early = ObservedStates({}, journal)
    journal.note(["a"])
    late = ObservedStates({"a": ObservedState("a")}, journal)
    assert list(late.changed_since(early) or ()) == ["a"]
    assert early.changed_since(late) is None
    assert late.changed_since(ObservedStates({}, other)) is None
    assert late.changed_since({}) is None


def test_a_defect_at_one_node_says_nothing_of_it_and_all_of_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = NodeIndex(Counting())
    states = snapshot(node("a", labels={"defect": ""}), node("b")).states
    index.update(states)
    assert (index.sums, index.defects) == ({"nodes": 1}, {"a": "KeyError('defect')"})
    assert "cannot evaluate node a" in caplog.text
    index.update({**states, "a": ObservedState("a", node("a"))})
    assert (index.sums, index.defects) == ({"nodes": 2}, {})


def test_a_defect_at_one_node_keeps_no_other_from_its_policy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was raised out of the whole plan: no node got anything, and nobody saw why."""
    whole = NodePlanner._share

    def defect(planner: NodePlanner, state: ObservedState, *given: Any) -> Any:
        if state.name == "gpu-1":
            raise RuntimeError("of the test")
        return whole(planner, state, *given)

    monkeypatch.setattr(NodePlanner, "_share", defect)
    caplog.set_level(logging.CRITICAL)
    asked = policy("default", rule("gpu-1", "gpu-2", "gpu-3"))
    seen = snapshot(asked, node("gpu-1"), node("gpu-2"), node("gpu-3"))
    actions = plan_policy(seen, asked, INSTALLATION, NOW).actions
    assert {getattr(action, "node", "gpu-2") for action in actions} == {"gpu-2", "gpu-3"}


def test_a_defect_at_one_node_is_told_by_the_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    asked = policy("default", rule("gpu-1", "gpu-2"))
    seen = snapshot(serving(asked, "gpu-1", "gpu-2"))
    whole = why_not_ready

    def defect(state: ObservedState) -> str:
        if state.name == "gpu-1":
            raise RuntimeError("of the test")
        return whole(state)

    monkeypatch.setattr(node_reports, "why_not_ready", defect)
    status = policy_status(seen, asked, INSTALLATION, now=NOW)
    ready = next(condition for condition in status.conditions if condition.type == "NodesReady")
    assert ready.status == "False"
    assert ready.message == "gpu-1: a defect of the operator, see its log: RuntimeError('of the test')"
    assert status.units.total == 32, "of the other node"


def test_a_node_for_which_nothing_can_be_planned_is_told_by_the_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the log knew: the policy was Ready, whatever became of the node."""
    caplog.set_level(logging.CRITICAL)
    asked = policy("default", rule("gpu-1"), finalizers=(FINALIZER,))
    seen = snapshot(serving(asked, "gpu-1"))

    def defect(*_: Any) -> Any:
        raise RuntimeError("of the test")

    monkeypatch.setattr(NodePlanner, "_share", defect)
    status = policy_status(seen, asked, INSTALLATION, now=NOW)
    ready = next(condition for condition in status.conditions if condition.type == "NodesReady")
    assert ready.message == "gpu-1: a defect of the operator, see its log: RuntimeError('of the test')"


def test_a_plugin_that_is_ready_counts_before_one_that_goes() -> None:
    goes = plugin_pod("a", ready=False, name="plugin-z")
    stays = plugin_pod("a", name="plugin-b")
    assert snapshot(goes, stays).states["a"].plugin == stays


CARD: Json = {"uuid": "GPU-0", "index": 0, "memory": "32Gi", "units": 32, "allocatedUnits": 0}
HALF: Json = {**CARD, "allocatedUnits": 8, "pods": [{"namespace": "n", "name": "p", "uid": "u", "units": 8}]}
REGISTERED: Json = {
    "type": "Registered",
    "status": "True",
    "reason": "Registered",
    "message": "words",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("patch", "change"),
    [
        pytest.param(
            {"units": {"total": 32, "allocated": 8}, "cards": [HALF]}, Change.FIGURES, id="allocated"
        ),
        pytest.param({"memory": {"total": "32Gi", "used": "1Gi"}}, Change.FIGURES, id="used"),
        pytest.param({"observedGeneration": 2}, Change.ALL, id="answered"),
        pytest.param({"dialect": "aliyun.com"}, Change.ALL, id="dialect"),
        pytest.param(
            {"conditions": [{**REGISTERED, "message": "other words"}]}, Change.FIGURES, id="other words"
        ),
        pytest.param({"conditions": [{**REGISTERED, "reason": "Other"}]}, Change.ALL, id="reason"),
        pytest.param({"conditions": [{**REGISTERED, "status": "False"}]}, Change.ALL, id="status"),
        pytest.param({"conditions": []}, Change.ALL, id="said no more"),
        pytest.param(
            {"conditions": [REGISTERED, {**REGISTERED, "type": "Other"}]}, Change.ALL, id="said besides"
        ),
        pytest.param({}, Change.NOTHING, id="nothing"),
    ],
)
def test_what_is_only_summed_up_is_told_from_what_decides(patch: Json, change: Change) -> None:
    def body(version: int, status: Json) -> Json:
        metadata = {"name": "a", "uid": "u", "resourceVersion": str(version)}
        return {
            "metadata": metadata,
            "spec": {"policy": "default"},
            "status": {"units": {"total": 32}, "cards": [CARD], "conditions": [REGISTERED], **status},
        }

    cache = Cache()
    assert cache.observe(SHARE_NODES, body(1, {})) is Change.ALL
    assert cache.observe(SHARE_NODES, body(2, patch)) is change
    listing = Listing(SHARE_NODES)
    listing.add([body(3, {})])
    assert cache.replace(listing, "3") is change


def test_a_host_that_cannot_be_looked_at_is_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its kube-scheduler would be restored."""

    def defect(*_: Any) -> Any:
        raise RuntimeError("of the test")

    monkeypatch.setattr(NodeTraits, "__call__", defect)
    caplog.set_level(logging.CRITICAL)
    asked = policy("default", rule("gpu-1"))
    with pytest.raises(RuntimeError, match="cannot tell hosts"):
        plan_cluster(snapshot(serving(asked, "gpu-1")), INSTALLATION, NOW)


def test_a_node_that_cannot_be_looked_at_is_not_taken_for_clean(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The policy went, and our resources stayed in the node's status."""

    def defect(*_: Any) -> Any:
        raise RuntimeError("of the test")

    monkeypatch.setattr(CapacityFinder, "__call__", defect)
    caplog.set_level(logging.CRITICAL)
    leaving = policy("default", rule("gpu-1"), deleting=True, finalizers=(FINALIZER,))
    seen = snapshot(leaving, node("gpu-1", labels={MODE_LABEL: "Memory"}, offered=("gpushare.io/memory",)))
    actions = plan_policy(seen, leaving, INSTALLATION, NOW).actions
    assert not any(isinstance(action, SetFinalizers) for action in actions)
    assert "gpu-1" in str(still_there(seen, "default"))
