"""The condition about kube-schedulers that people connect by themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Backend
from gpushare_core.api.names import CONTROL_PLANE_LABEL, EXTERNAL_SCHEDULER_LABEL
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.external import last_calls, scheduler_hosts
from gpushare_operator.decide.scheduler import extender_ready, scheduler_settings
from gpushare_operator.decide.teardown import is_disconnected
from gpushare_operator.desired.hostctl_job import HostctlCommand, HostctlRun
from gpushare_operator.desired.names import Installation
from gpushare_operator.status import conditions
from gpushare_operator.status.checks import first_failure
from gpushare_operator.status.scheduler import why_no_extender
from gpushare_operator.status.wording import explained, listed

NO_HOST = (
    f"no node has the label {CONTROL_PLANE_LABEL}: label the nodes on which a kube-scheduler runs, for the"
    f" extender runs beside it: kubectl label node NAME {EXTERNAL_SCHEDULER_LABEL}="
)
HOW_TO_MAKE_KEYS = (
    "the extender starts once its host has keys; on each of these hosts, as root:"
    " gpushare-hostctl keys --root /"
)
HOW_TO_CONNECT = (
    "no kube-scheduler has called the extender yet: it does so for the first pod that asks for cards. To see"
    " what to put where on each of {hosts}: gpushare-hostctl render {arguments}"
)
IT_CALLS = (
    "kube-scheduler calls the extender: {where}. The operator does not see for which resources: after a"
    " change of the dialect compare its configuration with what this prints:"
    " gpushare-hostctl render {arguments}"
)
TAKE_IT_OUT = (
    "no kube-scheduler was edited by gpushare: take the extender at port {port} out of the configurations"
    " that you put it into"
)


@dataclass(frozen=True, slots=True)
class _Connection:
    snapshot: ClusterSnapshot
    policy: PolicyObject
    installation: Installation


def external_configured(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation, _: datetime
) -> ConditionState:
    connection = _Connection(snapshot, policy, installation)
    problem = first_failure(GOING_CHECKS if policy.deleting else CONFIGURED_CHECKS, connection)
    if problem:
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    calls = last_calls(snapshot)
    where = f"port {calls.port} of {calls.host}" if calls else "nowhere"
    message = IT_CALLS.format(where=where, arguments=_arguments(connection))
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CALLED, message)


def _has_host(connection: _Connection) -> Problem | None:
    return None if scheduler_hosts(connection.snapshot) else Problem(conditions.NO_CONTROL_PLANE, NO_HOST)


def _extenders_are_ready(connection: _Connection) -> Problem | None:
    snapshot = connection.snapshot
    port = scheduler_settings(snapshot).port
    unready = [node for node in scheduler_hosts(snapshot) if not extender_ready(snapshot, node, port)]
    reasons = {node.name: why_no_extender(snapshot, node) for node in unready}
    if not unready:
        return None
    return Problem(conditions.EXTENDER_NOT_READY, f"{explained(reasons)}; {HOW_TO_MAKE_KEYS}")


def _scheduler_calls(connection: _Connection) -> Problem | None:
    snapshot = connection.snapshot
    if last_calls(snapshot):
        return None
    hosts = listed(node.name for node in scheduler_hosts(snapshot))
    message = HOW_TO_CONNECT.format(hosts=hosts, arguments=_arguments(connection))
    return Problem(conditions.WAITING_FOR_CALLS, message)


def _arguments(connection: _Connection) -> str:
    """Returns those of ``gpushare-hostctl render``: with a policy of another dialect or mode they change."""
    run = HostctlRun(
        command=HostctlCommand.INSTALL,
        settings=scheduler_settings(connection.snapshot),
        installation=connection.installation,
    )
    return " ".join(run.edit)


CONFIGURED_CHECKS: tuple[Callable[[_Connection], Problem | None], ...] = (
    # Nowhere to run.
    _has_host,
    # Without it a kube-scheduler that is connected places no pod.
    _extenders_are_ready,
    # Only people can do the rest.
    _scheduler_calls,
)


def _is_needed_by_others(connection: _Connection) -> Problem | None:
    if needed_backend(connection.snapshot) is not Backend.EXTERNAL:
        return None
    return Problem(conditions.DELETING, "the extender stays: other policies need it")


def _is_gone(connection: _Connection) -> Problem | None:
    done = is_disconnected(connection.snapshot, Backend.EXTERNAL)
    reason = conditions.RESTORED if done else conditions.RESTORING
    message = "the extender is gone" if done else "the extender is being removed"
    out = TAKE_IT_OUT.format(port=scheduler_settings(connection.snapshot).port)
    return Problem(reason, f"{message}; {out}")


GOING_CHECKS: tuple[Callable[[_Connection], Problem | None], ...] = (
    # Nothing is removed before the last policy goes.
    _is_needed_by_others,
    # What is left to do is done by people.
    _is_gone,
)
