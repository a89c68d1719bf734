"""The condition about the cluster's scheduler, whatever backend connects it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false
from gpushare_core.api.enums import Backend
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.backends import BACKENDS, former_backends
from gpushare_operator.desired.names import Installation
from gpushare_operator.status import conditions
from gpushare_operator.status.dedicated import dedicated_configured
from gpushare_operator.status.external import external_configured
from gpushare_operator.status.scheduler import kube_scheduler_configured
from gpushare_operator.status.volcano import volcano_configured

CONDITIONS: Mapping[
    Backend, Callable[[ClusterSnapshot, PolicyObject, Installation, datetime], ConditionState]
] = {
    Backend.KUBE_SCHEDULER: kube_scheduler_configured,
    Backend.DEDICATED: dedicated_configured,
    Backend.EXTERNAL: external_configured,
    Backend.VOLCANO: volcano_configured,
}
"""Backend -> what is said of it. The other three parts of a backend are in ``decide.backends``."""


def scheduler_configured(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation, now: datetime
) -> ConditionState:
    needed = needed_backend(snapshot)
    if policy.deleting:
        return CONDITIONS[_backend_that_goes(snapshot, policy, needed)](snapshot, policy, installation, now)
    former = former_backends(snapshot, needed) if needed else []
    if needed and former and BACKENDS[needed].may_be_connected(snapshot):
        leaving = CONDITIONS[former[0].name]
        return _disconnecting(
            needed, former[0].name, leaving(snapshot, _as_deleted(policy), installation, now)
        )
    if needed is None:
        return _not_needed(snapshot)
    return CONDITIONS[needed](snapshot, policy, installation, now)


def _not_needed(snapshot: ClusterSnapshot) -> ConditionState:
    """No scheduler is touched for a policy without nodes."""
    going = [name for name, each in BACKENDS.items() if not each.settled(snapshot)]
    undone = f"; what connects backend {going[0]} is being taken back" if going else ""
    message = (
        f"no node shares its cards, so no scheduler is connected to the extender{undone};"
        " that is done with the first node"
    )
    return condition_false(conditions.SCHEDULER_CONFIGURED, conditions.NOT_NEEDED, message)


def _disconnecting(needed: Backend, former: Backend, state: ConditionState) -> ConditionState:
    return condition_false(
        conditions.SCHEDULER_CONFIGURED,
        conditions.DISCONNECTING,
        f"backend {needed} comes when nothing of {former} is left: {state.message}",
    )


def _as_deleted(policy: PolicyObject) -> PolicyObject:
    return replace(policy, deleting=True)


def _backend_that_goes(snapshot: ClusterSnapshot, policy: PolicyObject, needed: Backend | None) -> Backend:
    """Returns the first one of which something is left that nobody needs, else the policy's own."""
    going = [name for name, each in BACKENDS.items() if name is not needed and not each.settled(snapshot)]
    return next(iter(going), _own_backend(policy))


def _own_backend(policy: PolicyObject) -> Backend:
    return policy.spec.scheduler.backend if policy.spec else Backend.KUBE_SCHEDULER
