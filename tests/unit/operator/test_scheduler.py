"""Connecting and restoring schedulers: what comes next on a control-plane node."""

from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    control_plane,
    extender,
    extender_pod,
    failed,
    installed,
    job,
    job_pod,
    policy,
    restored,
    snapshot,
    untouched,
)

from gpushare_core.api.names import FINALIZER
from gpushare_operator.cluster.objects import JobObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import (
    Action,
    ApplyDaemonSet,
    CreateJob,
    DeleteDaemonSet,
    DeleteJob,
    LabelNode,
)
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.scheduler import scheduler_needed
from gpushare_operator.desired.hostctl_job import HostctlCommand

INSTALL, RESTORE = HostctlCommand.INSTALL, HostctlCommand.RESTORE


def connected(*jobs: Any) -> Snapshot:
    """A policy wants the scheduler connected, and the extender is ready."""
    return snapshot(policy(), control_plane(), extender(), extender_pod(), *jobs)


def abandoned(*jobs: Any) -> Snapshot:
    """No policy is left."""
    return snapshot(control_plane(), extender(), extender_pod(), *jobs)


def short(action: Action) -> str:
    match action:
        case CreateJob():
            return f"+{action.name.removeprefix('gpushare-scheduler-')}"
        case DeleteJob():
            return f"-{action.name.removeprefix('gpushare-scheduler-')}"
        case ApplyDaemonSet():
            return "+extender"
        case DeleteDaemonSet():
            return "-extender"
        case LabelNode():
            return f"{'+' if any(action.labels.values()) else '-'}mark-{action.node}"
    raise TypeError(action)


def due(seen: Snapshot) -> list[str]:
    return [short(action) for action in plan_cluster(seen, INSTALLATION, NOW).actions]


def test_the_extender_comes_first() -> None:
    assert due(snapshot(policy(), control_plane())) == ["+extender"]


def test_a_scheduler_is_not_pointed_at_an_extender_that_is_not_ready() -> None:
    assert due(snapshot(policy(), control_plane(), extender(), extender_pod(ready=False))) == []
    assert due(snapshot(policy(), control_plane("cp"), extender(), extender_pod("other"))) == []


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([], ["+install-cp-1"], id="untouched: install"),
        pytest.param([job(INSTALL)], [], id="installing: wait"),
        pytest.param([installed()], [], id="installed: done"),
        pytest.param([installed(spec_hash="old")], ["+install-cp-2"], id="installed otherwise: again"),
        pytest.param([installed(), job(INSTALL, sequence=2)], ["-install-cp-1"], id="superseded goes"),
        pytest.param([failed(INSTALL, ago=1)], [], id="just failed: backoff"),
        pytest.param([failed(INSTALL, ago=6)], ["+install-cp-2"], id="failed a while ago: again"),
        pytest.param([failed(INSTALL, ago=60, sequence=5)], [], id="failed five times: longer backoff"),
        pytest.param([failed(INSTALL, ago=301, sequence=50)], ["+install-cp-51"], id="never give up"),
        pytest.param([job(RESTORE)], [], id="being restored: wait"),
        pytest.param([restored()], ["+install-cp-3"], id="restored: install"),
        pytest.param([failed(RESTORE, ago=0)], ["+install-cp-2"], id="not restored: install all the same"),
        pytest.param(
            [installed(node_uid="former")], ["+install-cp-1", "-install-cp-1"], id="another machine"
        ),
        pytest.param([installed(), installed("gone", 4)], ["-install-gone-4"], id="a node that is gone"),
    ],
)
def test_while_a_policy_needs_it(jobs: list[JobObject], expected: list[str]) -> None:
    assert due(connected(jobs)) == expected


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([installed()], ["+restore-cp-2"], id="installed: restore"),
        pytest.param([failed(INSTALL, ago=0)], ["+restore-cp-2"], id="half installed: restore"),
        pytest.param([job(INSTALL)], [], id="installing: wait for its end"),
        pytest.param([installed(), job(RESTORE, sequence=2)], ["-install-cp-1"], id="restoring: wait"),
        pytest.param([failed(RESTORE, ago=1, sequence=2)], [], id="just failed: backoff"),
        pytest.param([failed(RESTORE, ago=11, sequence=2)], ["+restore-cp-3"], id="failed: again"),
        pytest.param([restored()], ["-extender"], id="restored: the extender goes"),
        pytest.param(
            [installed("gone"), restored()], ["-extender"], id="a node that is gone needs no restoring"
        ),
        pytest.param([], ["+restore-cp-1"], id="no Job: somebody may have deleted it"),
    ],
)
def test_when_no_policy_is_left(jobs: list[JobObject], expected: list[str]) -> None:
    assert due(abandoned(jobs)) == expected


def test_the_history_is_deleted_last() -> None:
    assert due(snapshot(control_plane(), restored())) == ["-mark-cp"]
    assert due(snapshot(untouched(), restored())) == ["-restore-cp-2"]
    assert due(snapshot(control_plane(), restored(), extender(deleting=True))) == []
    assert due(snapshot(untouched())) == []


def test_a_node_is_marked_before_its_scheduler_is_edited() -> None:
    assert due(snapshot(policy(), untouched(), extender(), extender_pod())) == ["+mark-cp"]


def test_a_marked_node_is_restored_though_all_else_of_ours_was_deleted() -> None:
    assert due(snapshot(control_plane())) == ["+restore-cp-1"]


def test_one_node_that_cannot_be_restored_keeps_the_extender_for_all() -> None:
    seen = snapshot(
        control_plane("cp"),
        control_plane("cp2"),
        extender(),
        restored("cp"),
        failed(RESTORE, ago=1, sequence=2, on="cp2"),
    )
    assert due(seen) == []


def test_what_needs_a_person_is_tried_again_only_after_minutes() -> None:
    last = failed(INSTALL, ago=100)
    plan = plan_cluster(connected(last, job_pod(last, 2)), INSTALLATION, NOW)
    assert plan.actions == ()
    assert plan.retry_after == 200


def test_a_backoff_says_when_it_is_over() -> None:
    assert plan_cluster(connected(failed(INSTALL, ago=1)), INSTALLATION, NOW).retry_after == 4
    assert plan_cluster(connected(installed()), INSTALLATION, NOW).retry_after is None


def test_each_control_plane_is_judged_by_itself() -> None:
    seen = connected(installed("cp"), control_plane("cp2"), extender_pod("cp2"), control_plane("cp3"))
    assert due(seen) == ["+install-cp2-1"]


def test_a_policy_without_our_finalizer_yet_does_not_need_the_scheduler() -> None:
    assert scheduler_needed(snapshot(policy(finalizers=()))) is False
    assert scheduler_needed(snapshot(policy(finalizers=(FINALIZER,)))) is True
