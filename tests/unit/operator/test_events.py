"""Events are turning points of conditions, and nothing twice."""

from tests.samples.operator import (
    INSTALLATION,
    NOW,
    control_plane,
    failed,
    node,
    policy,
    serving,
    sharing,
    snapshot,
)

from gpushare_core.api.events import event_name, event_note
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.status.events import events_for
from gpushare_operator.status.policy import policy_status


def reasons(before: ClusterSnapshot, after: ClusterSnapshot) -> list[str]:
    old = policy(status=policy_status(before, policy(), INSTALLATION, now=NOW))
    new = policy_status(after, old, INSTALLATION, now=NOW)
    return [f"{event['type']} {event['reason']}" for event in events_for(old, new, NOW)]


QUIET = snapshot(policy(), node("gpu-1"), control_plane())
GOOD = snapshot(serving(policy(), "gpu-1"))


def test_what_is_reached_is_posted_once() -> None:
    assert reasons(QUIET, GOOD) == ["Normal Ready", "Normal SchedulerConfigured"]
    assert reasons(GOOD, GOOD) == []


def test_what_is_only_on_its_way_is_no_turning_point() -> None:
    assert reasons(snapshot(policy(), control_plane(), node("gpu-1")), QUIET) == []


def test_a_failed_edit_is_a_warning() -> None:
    broken = sharing(policy(), node("gpu-1"), control_plane(), failed(HostctlCommand.INSTALL, ago=1))
    assert reasons(QUIET, broken) == ["Warning InstallFailed"]


def test_events_belong_to_the_policy() -> None:
    old = policy(status=PolicyStatus())
    event, *_ = events_for(old, policy_status(GOOD, old, INSTALLATION, now=NOW), NOW)
    assert event["regarding"]["kind"] == "GPUSharePolicy"
    assert event["regarding"]["uid"] == old.uid
    assert event["metadata"]["namespace"] == "default"


def test_an_event_is_no_longer_than_the_api_server_takes() -> None:
    assert len(event_name("p" * 253, "0" * 16)) == 253
    assert len(event_note("\N{EURO SIGN}" * 5000).encode()) == 1023
    assert event_note("short") == "short"
    assert event_name("a." + "b" * 240, "0" * 16).count(".") == 2
