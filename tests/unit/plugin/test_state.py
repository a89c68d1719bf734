"""What the plugin remembers of its pods: the newest of each name, and nothing of those that are gone."""

from dataclasses import replace

import pytest
from tests.samples.plugin import NODE, container, name_of, pod

from gpushare_plugin.decide.admission import Grant
from gpushare_plugin.decide.pods import Pod
from gpushare_plugin.state import NodeState

READ = pod("a", container(units=4))
METADATA = replace(READ, ask=None)


@pytest.fixture
def state() -> NodeState:
    made = NodeState(NODE)
    made.put_pod(READ)
    made.note_grant(READ.uid, "GPU-0")
    made.changed.clear()
    return made


@pytest.mark.parametrize(
    ("news", "remembered"),
    [
        pytest.param(METADATA, READ, id="metadata alone leave what was asked for"),
        pytest.param(replace(METADATA, deleting=True), replace(READ, deleting=True), id="deletion is news"),
        pytest.param(replace(METADATA, uid="other"), replace(METADATA, uid="other"), id="a successor is new"),
    ],
)
def test_a_pod_is_remembered(state: NodeState, news: Pod, remembered: Pod) -> None:
    state.put_pod(news)
    assert state.pods == {READ.name: remembered}
    assert state.changed.is_set()


def test_what_a_pod_was_granted_is_forgotten_with_it(state: NodeState) -> None:
    state.drop_pod(READ.name, READ.uid)
    assert (state.pods, state.grants) == ({}, {})


def test_what_a_pod_was_granted_is_forgotten_when_another_one_has_its_name(state: NodeState) -> None:
    state.put_pod(replace(METADATA, uid="other"))
    assert state.grants == {}


def test_the_end_of_a_pod_is_not_that_of_its_successor(state: NodeState) -> None:
    state.drop_pod(READ.name, "earlier")
    assert state.pods == {READ.name: READ}
    assert not state.changed.is_set()


def test_pods_that_are_not_listed_any_more_are_forgotten(state: NodeState) -> None:
    state.put_pod(pod("b"))
    state.keep_pods({name_of("b")})
    assert list(state.pods) == [name_of("b")]
    assert state.grants == {}


def test_grants_count_the_containers(state: NodeState) -> None:
    state.note_grant(READ.uid, "GPU-0")
    assert state.grants[READ.uid] == Grant("GPU-0", containers=2)


def test_books_that_say_the_same_are_no_news(state: NodeState) -> None:
    state.put_books(state.books)
    assert state.changed.is_set()  # they can be read now
    state.changed.clear()
    state.put_books(state.books)
    assert not state.changed.is_set()


def test_books_that_cannot_be_read_are_news_once(state: NodeState) -> None:
    state.put_books(state.books)
    state.changed.clear()
    state.lose_books()
    assert state.changed.is_set()
    state.changed.clear()
    state.lose_books()
    assert not state.changed.is_set()
