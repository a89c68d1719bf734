"""Faults of programs, kubelets, machines and cards: how they are drawn, what they decide by themselves."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest
from chaos.operation import Fault, Kind
from chaos.operations import cards, disks, hostctl_runs, kubelets, machines, programs
from chaos.operations.kubelets import Damage, spoil
from chaos.operations.recovery import is_renewed, outdated
from chaos.plan.known import CONTROL_PLANES, WORKERS, Known
from chaos.policies import DEFAULT

from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.simulation import read_simulation

KINDS = (*programs.KINDS, *kubelets.KINDS, *machines.KINDS, *cards.KINDS, *disks.KINDS, *hostctl_runs.KINDS)
SHARED = {"manifests", "pause/extender", "pause/kube-scheduler"}
LONGEST = 45.0
"""Seconds: past the operator's Lease, and no more."""


def drawn(kind: Kind) -> Iterable[Fault]:
    random = Random(7)  # noqa: S311 - no secret, but repeatable
    for _ in range(50):
        operation = kind.draw(random, Known())
        assert isinstance(operation, Fault)
        yield operation


def each_kind(*wanted: object) -> pytest.MarkDecorator:
    kinds = [kind for kind in KINDS if not wanted or kind.operation in wanted]
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.name)


@each_kind()
def test_what_is_drawn_is_data_that_can_be_replayed(kind: Kind) -> None:
    for fault in drawn(kind):
        text = msgspec.json.encode(fault)
        assert msgspec.json.decode(text, type=kind.operation) == fault


@each_kind()
def test_what_lasts_is_bounded_and_somebody_ends_it(kind: Kind) -> None:
    lasting = [fault for fault in drawn(kind) if fault.seconds]
    assert all(0 < fault.seconds <= LONGEST for fault in lasting)
    assert all(type(fault).heal is not Fault.heal for fault in lasting), "nobody ends it"


@each_kind()
def test_no_two_faults_of_a_round_touch_the_same_machine(kind: Kind) -> None:
    for fault in drawn(kind):
        if node := getattr(fault, "node", ""):
            assert node in (*WORKERS, *CONTROL_PLANES)
            assert any(node in touch or touch in SHARED for touch in fault.touches)


@each_kind(*(kind.operation for kind in KINDS if issubclass(kind.operation, cards._Simulated)))
def test_words_are_those_that_a_plugin_understands(kind: Kind) -> None:
    for fault in drawn(kind):
        assert isinstance(fault, cards._Simulated)
        assert read_simulation(fault.words) != read_simulation("")


def test_every_name_is_used_once() -> None:
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names))


def test_who_oversleeps_sleeps_past_the_lease() -> None:
    random = Random(3)  # noqa: S311 - no secret, but repeatable
    assert all(programs.past(20.0, random) > 22 for _ in range(100))


# Checkpoints


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        pytest.param(Damage.DELETED, None, id="deleted"),
        pytest.param(Damage.EMPTY, b"", id="empty"),
        pytest.param(Damage.TRUNCATED, b'{"Data', id="cut in half"),
        pytest.param(Damage.GARBAGE, b"\x00\xff{]" * 97, id="garbage"),
    ],
)
def test_checkpoints_are_spoilt(tmp_path: Path, damage: Damage, left: bytes | None) -> None:
    checkpoint = tmp_path / "checkpoint"
    spoil(checkpoint, damage)
    assert not checkpoint.exists(), "one that is not there is not made"
    checkpoint.write_bytes(b'{"Data": {}}')
    spoil(checkpoint, damage)
    assert (checkpoint.read_bytes() if checkpoint.exists() else None) == left


# Nodes that return

NOW = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)


def test_a_node_is_back_when_its_kubelet_has_renewed_its_lease() -> None:
    moments = (NOW + timedelta(seconds=1), NOW - timedelta(seconds=1))
    leases: list[Json] = [{"spec": {"renewTime": moment.isoformat()}} for moment in moments]
    assert [is_renewed(lease, NOW) for lease in [*leases, {"spec": {}}]] == [True, False, False]


def pod(name: str, state: str, container: str) -> Json:
    statuses = [{"state": {state: {}}, "containerID": f"localcluster://{container}"}]
    return {"metadata": {"namespace": "a", "name": name}, "status": {"containerStatuses": statuses}}


def test_a_pod_is_outdated_whose_container_is_said_to_run_and_does_not() -> None:
    pods = [pod("runs", "running", "1"), pod("lost", "running", "2"), pod("over", "terminated", "3")]
    assert list(outdated(pods, {"1"})) == ["a/lost is said to run"]
    assert list(outdated([{"metadata": {"namespace": "a", "name": "new"}}], set())) == []


# Cards


def test_other_cards_are_simulated_on_one_node_only() -> None:
    rules = cards.with_simulated(DEFAULT, "gpu-1", [{"count": 1, "memory": "8Gi"}])
    assert [rule["devices"]["simulated"][0]["memory"] for rule in rules] == ["8Gi", "16Gi"]
    assert [{**rule, "devices": {}} for rule in rules] == [
        {**rule, "devices": {}} for rule in DEFAULT["spec"]["nodes"]
    ]
    assert cards.simulated_cards(DEFAULT, "gpu-2") == DEFAULT["spec"]["nodes"][1]["devices"]["simulated"]
    assert cards.simulated_cards(DEFAULT, "gpu-3") == ()


def test_faults_are_cleared_by_their_own_words_while_they_last() -> None:
    faults = [
        {"uuid": "GPU-1", "lastSeen": "2026-11-22T08:00:00Z"},
        {"uuid": "GPU-2", "lastSeen": "2026-11-22T08:00:00Z", "cleared": "2026-11-22T08:01:00Z"},
    ]
    assert list(cards.clearances({"status": {"faults": faults}})) == ["GPU-1@2026-11-22T08:00:00Z"]
    assert list(cards.clearances({})) == []
