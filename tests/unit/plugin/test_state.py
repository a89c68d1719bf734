"""What the plugin remembers of its pods: the newest of each name, and nothing of those that are gone."""

from dataclasses import replace

import pytest
from tests.samples.plugin import NODE, container, name_of, pod, share_node

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.held.preferred_cards import PreferredCard
from gpushare_plugin.state import PluginState

READ = pod("a", container(units=4))
METADATA = replace(READ, asked=None, request=None)


@pytest.fixture
def state() -> PluginState:
    made = PluginState(NODE)
    made.put_pod(READ)
    made.put_preferred(READ.uid, ("GPU-0",), ResourceClass.MEMORY)
    made.changed.clear()
    return made


@pytest.mark.parametrize(
    ("update", "remembered"),
    [
        pytest.param(METADATA, READ, id="metadata alone leave what was asked for"),
        pytest.param(replace(METADATA, version=9), replace(READ, version=9), id="a version is no change"),
        pytest.param(
            replace(METADATA, deleting=True), replace(READ, deleting=True), id="deletion is a change"
        ),
        pytest.param(replace(METADATA, uid="other"), replace(METADATA, uid="other"), id="a successor is new"),
    ],
)
def test_a_pod_is_remembered(state: PluginState, update: Pod, remembered: Pod) -> None:
    state.put_pod(update)
    assert state.pods == {READ.name: remembered}
    assert state.changed.is_set() == (replace(remembered, version=READ.version) != READ)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(replace(METADATA, version=8), replace(READ, version=7), id="a spec that came late"),
        pytest.param(replace(READ, version=8), replace(METADATA, version=7), id="a watch that lags"),
        pytest.param(
            replace(READ, version=8),
            replace(METADATA, uid="predecessor", version=7),
            id="a watch that shows the predecessor",
        ),
    ],
)
def test_what_is_older_overwrites_nothing(first: Pod, second: Pod) -> None:
    state = PluginState(NODE)
    state.put_pod(replace(first, annotation="newest"))
    state.put_pod(replace(second, annotation="older"))
    kept = state.pods[READ.name]
    assert (kept.uid, kept.annotation, kept.version, kept.request) == (READ.uid, "newest", 8, READ.request)


def test_a_list_counts_whatever_was_read_before() -> None:
    """After the API server's data were put back to an earlier day, versions are smaller."""
    state = PluginState(NODE)
    state.put_pod(replace(READ, version=80, annotation="before"))
    state.put_pods([replace(METADATA, version=7, annotation="put back"), replace(pod("b"), version=6)])
    kept = state.pods[READ.name]
    assert (kept.annotation, kept.version, kept.request) == ("put back", 7, READ.request)
    state.put_pods([])
    assert state.pods == {}


def test_the_checkpoint_tells_that_nothing_is_assigned_while_podresources_never_answered() -> None:
    state = PluginState(NODE)
    state.lose_pod_resources(AssignedDevices(checkpoint_problem="no such file"))
    assert not state.assigned_known
    state.lose_pod_resources(AssignedDevices())
    assert state.assigned_known


def test_the_card_that_was_preferred_for_a_pod_is_forgotten_with_it(state: PluginState) -> None:
    state.drop_pod(READ.name, READ.uid)
    assert (state.pods, state.preferred) == ({}, {})


def test_the_card_that_was_preferred_for_a_pod_is_forgotten_when_another_one_has_its_name(
    state: PluginState,
) -> None:
    state.put_pod(replace(METADATA, uid="other"))
    assert state.preferred == {}


def test_the_end_of_a_pod_is_not_that_of_its_successor(state: PluginState) -> None:
    state.drop_pod(READ.name, "earlier")
    assert state.pods == {READ.name: READ}
    assert not state.changed.is_set()


def test_pods_that_are_not_listed_any_more_are_forgotten(state: PluginState) -> None:
    state.put_pods([pod("b")])
    assert list(state.pods) == [name_of("b")]
    assert state.preferred == {}


def test_preferred_cards_count_the_containers(state: PluginState) -> None:
    state.put_preferred(READ.uid, ("GPU-0",), ResourceClass.MEMORY)
    assert state.preferred[READ.uid] == PreferredCard(("GPU-0",), 2, {"GPU-0": ResourceClass.MEMORY})


def test_an_assignment_that_says_the_same_is_no_change(state: PluginState) -> None:
    state.put_assigned(state.assigned, state.listed_since_restart)
    assert state.changed.is_set()  # PodResources answer now
    state.changed.clear()
    state.put_assigned(state.assigned, state.listed_since_restart)
    assert not state.changed.is_set()


def test_pod_resources_that_do_not_answer_are_a_change_once(state: PluginState) -> None:
    state.put_assigned(state.assigned, state.listed_since_restart)
    state.changed.clear()
    state.lose_pod_resources(AssignedDevices())
    assert state.changed.is_set()
    state.changed.clear()
    state.lose_pod_resources(AssignedDevices())
    assert not state.changed.is_set()


def test_the_watch_tells_nothing_new_of_what_was_answered_to_a_write() -> None:
    state = PluginState(NODE)
    state.put_share_node(share_node())
    assert state.changed.is_set()
    state.changed.clear()
    state.put_share_node(share_node())
    assert not state.changed.is_set()


def test_of_a_share_node_that_cannot_be_read_only_the_version_counts() -> None:
    state = PluginState(NODE)
    state.put_share_node(share_node())
    for version in ("7", "8"):
        state.changed.clear()
        state.put_unreadable(version, "spec.mode: unknown")
        assert state.share_node
        assert state.share_node.metadata.resource_version == version
        assert state.share_node.spec == share_node().spec
        assert state.changed.is_set() == (version == "7"), "the problem is a change, another version is none"
    state.put_share_node(state.share_node)
    assert state.changed.is_set()
    assert not state.share_node_problem


def test_what_pods_ask_for_follows_the_dialect_whoever_is_told_of_it_first() -> None:
    """The answer to a write of ours sets another GPUShareNode than the watch."""
    state = PluginState(NODE)
    state.put_pod(READ)
    state.share_node = share_node(dialect="aliyun.com")
    state.put_pod(replace(pod("b", container(units=2)), version=1))
    request = state.pods[READ.name].request
    assert request is not None
    assert request.containers == {}
