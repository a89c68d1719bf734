"""Pods that ask for cards and are placed by a scheduler that does not ask the extender."""

from dataclasses import replace

from gpushare_core.api.conditions import ConditionState
from gpushare_core.api.enums import Engine
from gpushare_core.api.names import CALLS_LEASE
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies.wording import counted


def with_other_schedulers(state: ConditionState, snapshot: ClusterSnapshot, engine: str) -> ConditionState:
    """Returns ``state`` with a note on such pods, by the extender's Lease. Their allocations are right, so
    nothing is wrong with the policy.

    ``engine``: the one that places pods. Without an extender nothing is known of them: the Lease keeps what
    the last one wrote.
    """
    if engine != Engine.EXTENDER:
        return state
    lease = snapshot.calls.get(CALLS_LEASE)
    number, *names = (lease.other_schedulers if lease else "").split() or [""]
    if not state.is_true or not whole_number(number):
        return state
    count = whole_number(number)
    more = f" and {count - len(names)} more" if count > len(names) else ""
    note = (
        f"{counted(count, 'pod')} that {'asks' if count == 1 else 'ask'} for cards"
        f" {'has' if count == 1 else 'have'} another schedulerName ({', '.join(names)}{more}): that scheduler"
        " does not look at single cards, and where no card has room the kubelet refuses the pod"
    )
    return replace(state, message=f"{state.message}; {note}")
