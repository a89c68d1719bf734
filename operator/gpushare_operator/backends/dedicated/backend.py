"""Backend Dedicated: its row in the table, and how it is taken back."""

from collections.abc import Iterator

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_operator.actions import DeleteDeployment
from gpushare_operator.backends.backend import SchedulerBackend
from gpushare_operator.backends.dedicated.condition import condition, disconnected, disconnecting
from gpushare_operator.backends.dedicated.connection import connect, engine_choice, may_be_made
from gpushare_operator.backends.teardown_step import Situation, connection_step, ready_nodes
from gpushare_operator.cluster.snapshot import ClusterSnapshot


def _has_deployment(snapshot: ClusterSnapshot) -> bool:
    return DEDICATED_SCHEDULER in snapshot.deployments


def _delete_deployment(situation: Situation) -> Iterator[DeleteDeployment]:
    present = situation.snapshot.deployments.get(DEDICATED_SCHEDULER)
    if present and not present.deleting:
        yield DeleteDeployment(present.name, present.uid)


def _stopping_pods(snapshot: ClusterSnapshot) -> list[str]:
    return ready_nodes(snapshot, (pod.node for pod in snapshot.dedicated_pods))


DEDICATED = SchedulerBackend(
    name=Backend.DEDICATED,
    connect=connect,
    condition=condition,
    engine=engine_choice,
    disconnecting=disconnecting,
    disconnected=disconnected,
    needed_by_others=f"{DEDICATED_SCHEDULER} stays",
    is_in_force=_has_deployment,
    may_be_connected=may_be_made,
    teardown_steps=(
        # No other scheduler asks its extender. The pods end the binds that are under way.
        connection_step("dedicated scheduler", left=_has_deployment, actions=_delete_deployment),
        connection_step("dedicated scheduler stopped", left=_stopping_pods),
    ),
)
