"""Backend External: people connect kube-schedulers by themselves, as `gpushare-hostctl render` says.

The extender runs beside them as ever. Nothing on a host is edited: which of them call it, only the calls say.
"""

from collections.abc import Iterator
from datetime import datetime

from gpushare_core.api.names import (
    CALLS_LEASE,
    CONTROL_PLANE_LABEL,
    EXTERNAL_SCHEDULER_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_operator.cluster.labels import EXTERNAL_MARK
from gpushare_operator.cluster.objects import CallsObject, NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.actions import Action, ApplyDaemonSet, LabelNode, Plan
from gpushare_operator.decide.scheduler import extender_log, mark, ports_in_force, scheduler_settings
from gpushare_operator.desired.daemon_sets import external_extender_daemon_set
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.names import EXTENDER_NAME, Installation


def plan_external(snapshot: ClusterSnapshot, installation: Installation, _: datetime) -> Plan:
    """Returns what brings the extender to the hosts of kube-schedulers."""
    return Plan((*_mark_hosts(snapshot), *_apply_extender(snapshot, installation)))


def scheduler_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the control planes, and the nodes of which people say that a kube-scheduler runs there."""
    labels = {CONTROL_PLANE_LABEL, EXTERNAL_SCHEDULER_LABEL}
    return [node for node in snapshot.traits.hosts if labels & set(node.labels) and not node.deleting]


def external_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the nodes that are marked for this backend."""
    return [node for node in snapshot.traits.hosts if node.labels.get(SCHEDULER_LABEL) == EXTERNAL_MARK]


def last_calls(snapshot: ClusterSnapshot) -> CallsObject | None:
    """Returns where kube-scheduler called last; None when it did not call at the port that is asked for since
    this extender is here."""
    calls, extender = snapshot.calls.get(CALLS_LEASE), snapshot.daemon_sets.get(EXTENDER_NAME)
    if (
        calls is None
        or calls.at is None
        or calls.port != scheduler_settings(snapshot).port
        or extender is None
    ):
        return None
    return calls if extender.created is None or calls.at >= extender.created else None


def _mark_hosts(snapshot: ClusterSnapshot) -> Iterator[LabelNode]:
    hosts = scheduler_hosts(snapshot)
    yield from (mark(node, EXTERNAL_MARK) for node in hosts if SCHEDULER_LABEL not in node.labels)
    yield from (mark(node, None) for node in external_hosts(snapshot) if node not in hosts)


def _apply_extender(snapshot: ClusterSnapshot, installation: Installation) -> Iterator[Action]:
    desired = external_extender_daemon_set(installation, _extender_ports(snapshot), extender_log(snapshot))
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(EXTENDER_NAME, desired)


def _extender_ports(snapshot: ClusterSnapshot) -> list[int]:
    """Returns the port that is asked for, and those of before until a call has come there."""
    port = scheduler_settings(snapshot).port
    former = [] if last_calls(snapshot) else ports_in_force(snapshot)
    return list(dict.fromkeys((port, *former)))
