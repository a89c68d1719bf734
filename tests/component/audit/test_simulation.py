"""Histories of simulated clusters, each from its seed: safe at every step, books that agree after quiet."""

import asyncio

import pytest
from tests.component.audit.cures import CURES
from tests.samples.extender import pod_update, share_node
from tests.samples.pod_shapes import SPECS
from tests.simulation.__main__ import main
from tests.simulation.operations import BY_NAME, QUIET, Step, draw
from tests.simulation.runner import DifferentError, fewest, run
from tests.simulation.virtual_time import run as run_in_virtual_time
from tests.simulation.virtual_time import seconds

from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.cluster.watchers import free_unreleased_pods


@pytest.mark.parametrize("mode", list(SPECS))
def test_all_books_agree_whatever_happens(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["--mode", mode, "--seed", "1", "--operations", "60", "--shrink", "40"])
    assert code == 0, capfd.readouterr().out


def test_a_seed_says_all_and_a_longer_history_begins_like_a_shorter_one() -> None:
    assert draw(7, 60) == draw(7, 60)
    assert draw(7, 60)[:40] == draw(7, 40)[:40]
    assert draw(7, 60) != draw(8, 60)


def test_a_history_has_steps_of_every_kind() -> None:
    assert {entry.name for entry in draw(1, 2000)} == {*BY_NAME, QUIET}


FORGOTTEN = [
    *(Step(0.1, "create_bound", 0, at) for at in range(3)),
    *(Step(2.0, "lose_checkpoint", node, 0) for node in range(3)),
    *(Step(0.3, "create", 0, at) for at in range(4)),
    Step(0.0, QUIET, 0, 0),
]


@pytest.mark.parametrize("mode", list(SPECS))
def test_what_a_kubelet_forgot_is_named_and_kept(mode: str) -> None:
    run(mode, 1, FORGOTTEN)


def test_what_a_kubelet_forgot_and_nobody_names_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpushare_core.audit.auditor.environments", lambda *_: ())
    with pytest.raises(DifferentError, match="nobody says so"):
        run("Memory", 1, FORGOTTEN)


def test_what_a_kubelet_forgot_and_others_get_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what was listed before nor the annotation is believed."""
    monkeypatch.setattr("gpushare_plugin.decide.held.allocations.lost_containers", lambda *_: [])
    with pytest.raises(DifferentError, match="ReleasedEarly"):
        run("Memory", 1, FORGOTTEN)


INITS_LOST = [
    *(Step(0.3, "create_bound", 0, 8) for _ in range(2)),
    Step(0.0, QUIET, 0, 0),
    Step(0.0, "lose_checkpoint", 0, 0),
    Step(0.0, "kill_plugin", 0, 3),
    *(Step(8.0, "restart_container", 0, at) for at in range(2)),
    Step(0.0, QUIET, 0, 0),
    *(Step(0.3, "create_bound", 0, 0) for _ in range(20)),
    Step(0.0, QUIET, 0, 0),
]
"""The init containers had more than the others, and have ended. Without a plugin the kubelet does not ask for
them once more after it lost its checkpoint, and later gives others what they had."""


@pytest.mark.parametrize("mode", ["Memory", "Mixed"])
def test_what_a_kubelet_lost_of_ended_init_containers_is_free_when_the_others_have_restarted(
    mode: str,
) -> None:
    run(mode, 1, INITS_LOST)


STATIC = [
    *(Step(0.1, "write_file", node, node) for node in range(3)),
    *(Step(0.3, "create", 0, at) for at in range(4)),
    Step(0.0, QUIET, 0, 0),
    Step(0.1, "delete_mirror", 0, 0),
    Step(0.1, "delete_mirror", 1, 1),
    Step(0.1, "forge_mirror", 0, 3),
    Step(0.0, QUIET, 0, 0),
    *(Step(1.0, "lose_checkpoint", node, 0) for node in range(3)),
    *(Step(0.1, "write_file", node, node + 2) for node in range(2)),
    Step(0.1, "remove_file", 1, 0),
    Step(0.1, "remove_file", 2, 0),
    *(Step(0.3, "create", 0, at) for at in range(4)),
    Step(0.0, QUIET, 0, 0),
]


@pytest.mark.parametrize("mode", list(SPECS))
def test_static_pods_and_their_mirrors(mode: str) -> None:
    run(mode, 1, STATIC)


def test_a_static_pod_that_nobody_counts_without_its_mirror_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cure = next(entry for entry in CURES if entry.name == "orphans-are-in-the-status")
    cure.take_out(monkeypatch)
    files = [Step(0.1, "write_file", node, node) for node in range(3)]
    with pytest.raises(DifferentError, match=r"ReleasedEarly.* for default/static-"):
        run("Memory", 1, [*files, Step(0.0, QUIET, 0, 0), *(Step(0.5, "delete_mirror", 0, 0),) * 3])


FAILED_ONCE = [
    pytest.param("Exclusive", 1818, 210, id="a mirror comes and goes; a forged one makes a pod forgotten"),
    pytest.param("Mixed", 77, 180, id="a static pod comes back before the status has heard of its end"),
    pytest.param("Exclusive", 5005, 135, id="a pod is deleted whose kubelet went away as it was admitted"),
]


@pytest.mark.parametrize(("mode", "seed", "operations"), FAILED_ONCE)
def test_what_has_failed_once_does_not_again(mode: str, seed: int, operations: int) -> None:
    run(mode, seed, draw(seed, operations))


def test_what_is_different_is_found_and_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run sees a cure that is taken out, as the auditor does."""
    cure = next(entry for entry in CURES if entry.name == "orphans-are-in-the-status")
    cure.take_out(monkeypatch)
    monkeypatch.setattr("tests.simulation.kubelet.REMOVAL", 30.0)
    steps = [*(Step(0.1, "create_bound", 0, at) for at in range(3)), Step(1.0, "force_delete", 1, 0)]
    steps = [*steps, Step(3.0, "create", 0, 0), Step(0.0, QUIET, 0, 0)]
    with pytest.raises(DifferentError, match="ReleasedEarly"):
        run("Memory", 1, steps)
    assert {entry.name for entry in fewest("Memory", 1, steps)} == {"create_bound", "force_delete", QUIET}


def test_a_restarted_kubelet_that_is_believed_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cure = next(entry for entry in CURES if entry.name == "a-restarted-kubelet-keeps-what-it-has")
    bound = [Step(0.1, "create_bound", 0, at) for at in range(3)]
    restarted = [Step(1.0, "restart_kubelet", node, 0) for node in range(3)]
    steps = [*bound, *restarted, *(Step(0.3, "create", 0, at) for at in range(4)), Step(0.0, QUIET, 0, 0)]
    run("Memory", 1, steps)
    cure.take_out(monkeypatch)
    with pytest.raises(DifferentError, match="ReleasedEarly"):
        run("Memory", 1, steps)


def test_a_status_that_is_stored_late_over_any_other_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cure = next(entry for entry in CURES if entry.name == "a-late-status-undoes-no-newer-one")
    lost = [Step(0.1, "create_bound", 0, 0), Step(0.0, QUIET, 0, 0), Step(0.1, "lose_answers", 1, 3)]
    steps = [*lost, *(Step(0.4, "create_bound", 0, 0) for _ in range(8)), Step(0.0, QUIET, 0, 0)]
    run("Memory", 5, steps)
    cure.take_out(monkeypatch)
    with pytest.raises(DifferentError, match="ReleasedEarly"):
        run("Memory", 5, steps)


def test_a_pod_that_never_came_to_its_kubelet_is_free_within_five_seconds() -> None:
    async def wait() -> list[int]:
        ledger = Ledger()
        ledger.set_share_node(share_node("n1"))
        ending = asyncio.ensure_future(free_unreleased_pods(ledger, seconds, asyncio.sleep))
        await asyncio.sleep(0.3)
        ledger.set_pod(pod_update("a", c0=4))
        ledger.pod_deleted("a", now=seconds())
        await asyncio.sleep(5.0)
        ending.cancel()
        node = ledger.node("n1")
        return [card.allocated for card in node.cards()] if node else []

    assert run_in_virtual_time(wait()) == [0, 0]
