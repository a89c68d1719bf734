"""What the figures of a run say of it."""

from collections.abc import Mapping, Sequence

import pytest
from chaos.alarms import alarms, needless_writes
from chaos.model.census import Census, idle_cluster
from chaos.record import Record
from chaos.verdict import verdict

from gpushare_core.text.json_object import Json

ALL_WELL: Mapping[str, Sequence[float]] = {"plugin on gpu-1": [60.0, 70.0, 68.0]}


def rules(
    *, readings: int = 100, unreadable: int = 3, memory: Mapping[str, Sequence[float]] = ALL_WELL
) -> list[str]:
    return [
        finding.rule for finding in verdict(Record(), readings=readings, unreadable=unreadable, memory=memory)
    ]


def test_a_run_that_looked_is_well() -> None:
    assert rules() == []


@pytest.mark.parametrize(("readings", "unreadable"), [(0, 0), (3, 100)])
def test_a_run_that_could_not_look_is_none(readings: int, unreadable: int) -> None:
    assert rules(readings=readings, unreadable=unreadable) == ["run"]


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        pytest.param([60, 75, 90, 105, 120, 135], True, id="1 MiB a second"),
        pytest.param(
            [60, 75, 90, 105, 60, 75, 90, 105], False, id="restarted, which the next run may not be"
        ),
        pytest.param([60, 61, 62, 63, 64, 65, 66, 67], False, id="a little"),
        pytest.param([60, 120, 121, 120, 121, 120], False, id="as it began its work"),
        pytest.param([97, 43, 97.1, 97.2, 97.3, 97.4, 97.5], False, id="seen as it started"),
        pytest.param([60, 300], True, id="past its limit"),
        pytest.param([], False, id="never seen"),
    ],
)
def test_memory_that_grows_is_a_finding(sizes: list[float], found: bool) -> None:  # noqa: FBT001
    assert rules(memory={"plugin on gpu-1": sizes}) == (["memory"] if found else [])


def item(name: str, kind: str, status: str, message: str = "") -> Json:
    said = {"type": kind, "status": status, "reason": "Why", "message": message}
    return {"metadata": {"name": name}, "status": {"conditions": [said], "cards": [{}]}}


@pytest.mark.parametrize(
    ("status", "message", "alarmed"),
    [
        ("True", "", False),
        ("False", "gpu-1: of a/b: ...", True),
        ("Unknown", "it is unknown what the kubelet has given out", True),
        ("Unknown", "no node is shared, so there are no records", False),
    ],
)
def test_a_false_alarm_is_told(status: str, message: str, alarmed: bool) -> None:  # noqa: FBT001
    assert bool(list(alarms([item("default", "BooksAgree", status, message)], []))) is alarmed
    share_node = item("gpu-1", "LedgerInSync", status, message)
    assert bool(list(alarms([], [share_node]))) is (status == "False")


def test_a_status_that_is_written_all_the_time_is_told() -> None:
    status = "gpushare-plugin on gpu-1: patch /apis/gpushare.io/v1alpha1/gpusharenodes/gpu-1/status"
    lease = "gpushare-operator on control-plane-1: patch /apis/coordination.k8s.io/v1/leases/x"
    (told,) = needless_writes({status: 12, lease: 12}, seconds=6.0)
    assert status in told
    assert not list(needless_writes({status: 3}, seconds=6.0))


def test_a_cluster_where_kubelets_refuse_everything_is_told() -> None:
    census = Census()
    for number in range(40):
        phase = "Running" if number < 8 else "Failed"
        pod: Json = {
            "metadata": {"name": f"a-{number}"},
            "spec": {"nodeName": "gpu-1"},
            "status": {"phase": phase},
        }
        census.see(pod)
        census.lose(pod)
    assert "only 8 ever ran" in idle_cluster(census)
    census.ran.update(census.seen)
    assert idle_cluster(census) == ""
