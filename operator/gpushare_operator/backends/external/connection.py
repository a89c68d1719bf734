"""How the extender is run for kube-schedulers that people connect, as `gpushare-hostctl render` says.

The operator edits nothing on a host, so only requests to the extender show which schedulers ask it.
"""

from collections.abc import Iterator

from gpushare_core.api.names import (
    CALLS_LEASE,
    CONTROL_PLANE_LABEL,
    EXTERNAL_SCHEDULER_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_operator.actions import LabelNode, Plan
from gpushare_operator.backends.extender_workload.daemon_set import (
    apply_extender,
    external_extender_daemon_set,
)
from gpushare_operator.backends.extender_workload.hosts import mark
from gpushare_operator.backends.extender_workload.log_folder import extender_log
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.labels import EXTERNAL_MARK
from gpushare_operator.cluster.objects import CallsObject, NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME
from gpushare_operator.policies.scheduler_settings import ports_in_force, scheduler_settings


def connect(situation: Situation) -> Plan:
    snapshot = situation.snapshot
    ports, log = _extender_ports(snapshot), extender_log(snapshot)
    desired = external_extender_daemon_set(situation.installation, ports, log)
    return Plan((*_mark_hosts(snapshot), *apply_extender(snapshot, desired)))


def scheduler_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the control planes, and the nodes that people have labelled as hosts of a kube-scheduler."""
    labels = {CONTROL_PLANE_LABEL, EXTERNAL_SCHEDULER_LABEL}
    return [node for node in snapshot.traits.hosts if labels & set(node.labels) and not node.deleting]


def external_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    return [node for node in snapshot.traits.hosts if node.labels.get(SCHEDULER_LABEL) == EXTERNAL_MARK]


def last_calls(snapshot: ClusterSnapshot) -> CallsObject | None:
    """Returns where kube-scheduler called last; None if it has not called the desired port since the extender
    was made."""
    calls, extender = snapshot.calls.get(CALLS_LEASE), snapshot.daemon_sets.get(EXTENDER_NAME)
    if calls is None or calls.at is None or extender is None:
        return None
    if calls.port != scheduler_settings(snapshot).port:
        return None
    return calls if extender.created is None or calls.at >= extender.created else None


def _mark_hosts(snapshot: ClusterSnapshot) -> Iterator[LabelNode]:
    hosts = scheduler_hosts(snapshot)
    yield from (mark(node, EXTERNAL_MARK) for node in hosts if SCHEDULER_LABEL not in node.labels)
    yield from (mark(node, None) for node in external_hosts(snapshot) if node not in hosts)


def _extender_ports(snapshot: ClusterSnapshot) -> list[int]:
    """Returns the desired port, and the former ones until a request has come to it."""
    port = scheduler_settings(snapshot).port
    former = [] if last_calls(snapshot) else ports_in_force(snapshot)
    return list(dict.fromkeys((port, *former)))
