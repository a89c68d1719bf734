"""What a browser is sent: all there is, or what changed since the version that it has."""

import json
from typing import Any

import pytest

from gpushare_cli.decide.web import page_state
from gpushare_cli.decide.web.page_state import PageState


def rows(*names: str, text: str = "") -> dict[str, bytes]:
    return {name: json.dumps({"name": name, "text": text}).encode() for name in names}


def changes(state: PageState, since: int) -> dict[str, Any]:
    text = state.changes_since(since)
    assert text
    found: dict[str, Any] = json.loads(text)
    return found


def snapshot(state: PageState) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join(state.snapshot()))
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [node["name"] for node in found["nodes"]]


def test_a_snapshot_is_all_there_is() -> None:
    state = PageState()
    assert state.publish(rows("a", "b"), title=b'"t"')
    found = snapshot(state)
    assert (found["whole"], names(found), found["parts"]) == (True, ["a", "b"], {"title": "t"})


def test_later_it_is_what_changed() -> None:
    state = PageState()
    state.publish(rows("a", "b", "c"), title=b'"t"', waiting=b"[]")
    state.publish(rows("a", "b") | rows("d") | rows("b", text="new"), waiting=b"[1]", title=b'"t"')
    found = changes(state, 1)
    assert not found["whole"]
    assert sorted(names(found)) == ["b", "d"]
    assert (found["removed"], found["parts"]) == (["c"], {"waiting": [1]})


def test_several_versions_are_one_change() -> None:
    state = PageState()
    state.publish(rows("a", "b"))
    state.publish(rows("a", "b", text="1"))
    state.publish(rows("a") | rows("b", text="2"))
    found = changes(state, 1)
    assert [node["text"] for node in found["nodes"] if node["name"] == "b"] == ["2"]
    assert found["version"] == 3


def test_a_node_that_comes_back_is_not_removed() -> None:
    state = PageState()
    state.publish(rows("a"))
    state.publish({})
    state.publish(rows("a"))
    found = changes(state, 1)
    assert (names(found), found["removed"]) == (["a"], [])


def test_nothing_new_is_no_new_version() -> None:
    state = PageState()
    state.publish(rows("a"), title=b"1")
    assert not state.publish(rows("a"), title=b"1")
    assert not state.publish(title=b"1")
    assert state.version == 1


def test_a_snapshot_comes_in_pieces_of_one_moment() -> None:
    state = PageState()
    large = "x" * page_state.PIECE
    state.publish(rows("a", "b", "c", text=large))
    pieces = state.snapshot()
    first = next(pieces)
    state.publish(rows("a"))
    text = first + b"".join(pieces)
    assert len(first) < 3 * page_state.PIECE
    assert names(json.loads(text)) == ["a", "b", "c"]
    assert json.loads(text)["version"] == 1


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_version_that_never_was_needs_a_snapshot(version: int) -> None:
    state = PageState()
    state.publish(rows("a"))
    assert state.changes_since(version) is None
    assert state.changes_since(1)


def test_what_was_removed_is_remembered_for_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_state, "MAX_REMOVED", 2)
    state = PageState()
    state.publish(rows("a", "b", "c", "d"))
    state.publish(rows("b", "c", "d"))
    state.publish(rows("d"))
    assert state.changes_since(1) is None, "that a is gone is forgotten"
    assert sorted(changes(state, 2)["removed"]) == ["b", "c"]


def test_more_than_a_message_may_have_is_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_state, "MAX_CHANGES", 500)
    state = PageState()
    state.publish(rows("a", "b"))
    state.publish(rows("a") | rows("b", text="x" * 600))
    assert state.changes_since(1) is None
    state.publish(rows("a", text="small") | rows("b", text="x" * 600))
    assert state.changes_since(2)


def test_equal_questions_share_an_answer() -> None:
    state = PageState()
    state.publish(rows("a"))
    state.publish(rows("a", text="1"))
    assert state.changes_since(1) is state.changes_since(1)
