"""Backend External: its row in the table, and how it is taken back."""

from collections.abc import Iterator

from gpushare_core.api.enums import Backend
from gpushare_operator.actions import DeleteDaemonSet, LabelNode
from gpushare_operator.backends.backend import SchedulerBackend
from gpushare_operator.backends.extender_workload.daemon_set import is_external
from gpushare_operator.backends.extender_workload.hosts import mark
from gpushare_operator.backends.external.condition import condition, disconnected, disconnecting
from gpushare_operator.backends.external.connection import connect, external_hosts
from gpushare_operator.backends.teardown_step import (
    Situation,
    connection_step,
    delete_daemon_set,
    ready_nodes,
)
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME


def _has_extender(snapshot: ClusterSnapshot) -> bool:
    return is_external(snapshot.daemon_sets.get(EXTENDER_NAME))


def _delete_extender(situation: Situation) -> Iterator[DeleteDaemonSet]:
    if _has_extender(situation.snapshot):
        yield from delete_daemon_set(situation.snapshot, EXTENDER_NAME)


def _stopping_extenders(snapshot: ClusterSnapshot) -> list[str]:
    names = [node.name for node in external_hosts(snapshot) if node.name in snapshot.extender_pods]
    return ready_nodes(snapshot, names)


def _remove_marks(situation: Situation) -> list[LabelNode]:
    return [mark(node, None) for node in external_hosts(situation.snapshot)]


EXTERNAL = SchedulerBackend(
    name=Backend.EXTERNAL,
    connect=connect,
    condition=condition,
    disconnecting=disconnecting,
    disconnected=disconnected,
    needed_by_others="the extender stays",
    is_in_force=lambda snapshot: _has_extender(snapshot) or bool(external_hosts(snapshot)),
    teardown_steps=(
        # A kube-scheduler that people still have connected stays as it is for pods that share no cards.
        connection_step("external extender", left=_has_extender, actions=_delete_extender),
        connection_step("external extender stopped", left=_stopping_extenders),
        # The marks go last: they say that pods of the extender may still run.
        connection_step("external marks", left=external_hosts, actions=_remove_marks),
    ),
)
