"""Events are turning points of conditions, and nothing twice."""

from tests.samples.operator import NOW, control_plane, failed, node, policy, serving, snapshot

from gpushare_core.api.policy import PolicyStatus
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.desired.hostctl_job import HostctlCommand
from gpushare_operator.status.events import events_for
from gpushare_operator.status.policy import policy_status


def reasons(before: Snapshot, after: Snapshot) -> list[str]:
    old = policy(status=policy_status(before, policy(), now=NOW))
    new = policy_status(after, old, now=NOW)
    return [f"{event['type']} {event['reason']}" for event in events_for(old, new, NOW)]


QUIET = snapshot(policy(), node("gpu-1"), control_plane())
GOOD = snapshot(serving(policy(), "gpu-1"))


def test_what_is_reached_is_posted_once() -> None:
    assert reasons(QUIET, GOOD) == ["Normal Ready", "Normal SchedulerConfigured"]
    assert reasons(GOOD, GOOD) == []


def test_what_is_only_on_its_way_is_no_turning_point() -> None:
    assert reasons(snapshot(policy(), control_plane(), node("gpu-1")), QUIET) == []


def test_a_failed_edit_is_a_warning() -> None:
    broken = snapshot(policy(), node("gpu-1"), control_plane(), failed(HostctlCommand.INSTALL, ago=1))
    assert reasons(QUIET, broken) == ["Warning InstallFailed"]


def test_events_belong_to_the_policy() -> None:
    old = policy(status=PolicyStatus())
    event, *_ = events_for(old, policy_status(GOOD, old, now=NOW), NOW)
    assert event["regarding"]["kind"] == "GPUSharePolicy"
    assert event["regarding"]["uid"] == old.uid
    assert event["metadata"]["namespace"] == "default"
