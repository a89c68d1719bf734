"""The condition about kube-schedulers that people connect by themselves."""

from collections.abc import Iterator

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import CONTROL_PLANE_LABEL, EXTERNAL_SCHEDULER_LABEL
from gpushare_core.api.served import Problem
from gpushare_operator.backends.extender_workload.hosts import unready_extenders
from gpushare_operator.backends.external.connection import last_calls, scheduler_hosts
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.scheduler_settings import scheduler_settings
from gpushare_operator.policies.wording import explained, listed

NO_HOST = (
    f"no node has the label {CONTROL_PLANE_LABEL}: label the nodes on which a kube-scheduler runs, because"
    f" the extender runs beside it: kubectl label node NAME {EXTERNAL_SCHEDULER_LABEL}="
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
    "gpushare edited no kube-scheduler: remove the extender at port {port} from the configurations"
    " to which you added it"
)


def condition(situation: Situation) -> ConditionState:
    snapshot = situation.snapshot
    if problem := next(_obstacles(snapshot), None):
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    calls = last_calls(snapshot)
    where = f"port {calls.port} of {calls.host}" if calls else "nowhere"
    message = IT_CALLS.format(where=where, arguments=_render_arguments(snapshot))
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CALLED, message)


def disconnecting(situation: Situation) -> Problem:
    return _going(situation.snapshot, conditions.RESTORING, "the extender is being removed")


def disconnected(situation: Situation) -> Problem:
    return _going(situation.snapshot, conditions.RESTORED, "the extender is gone")


def _going(snapshot: ClusterSnapshot, reason: str, message: str) -> Problem:
    out = TAKE_IT_OUT.format(port=scheduler_settings(snapshot).port)
    return Problem(reason, f"{message}; {out}")


def _obstacles(snapshot: ClusterSnapshot) -> Iterator[Problem]:
    hosts = scheduler_hosts(snapshot)
    # The extender needs a node to run on.
    if not hosts:
        yield Problem(conditions.NO_CONTROL_PLANE, NO_HOST)
    # Without the extender a kube-scheduler that is connected places no pod.
    if unready := unready_extenders(snapshot, hosts):
        yield Problem(conditions.EXTENDER_NOT_READY, f"{explained(unready)}; {HOW_TO_MAKE_KEYS}")
    # Only people can connect kube-scheduler.
    if not last_calls(snapshot):
        names, arguments = listed(node.name for node in hosts), _render_arguments(snapshot)
        message = HOW_TO_CONNECT.format(hosts=names, arguments=arguments)
        yield Problem(conditions.WAITING_FOR_CALLS, message)


def _render_arguments(snapshot: ClusterSnapshot) -> str:
    """Returns the arguments of ``gpushare-hostctl render``, which depend on the dialects and modes in use."""
    return " ".join(scheduler_settings(snapshot).extender_arguments)
