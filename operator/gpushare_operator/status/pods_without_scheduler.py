"""Pods that ask for cards and wait for a scheduler that does not place them: people have to act."""

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import ReadResult
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import counted, listed

DEFAULT_SCHEDULER = "default-scheduler"


def absent_scheduler(snapshot: ClusterSnapshot) -> str:
    """Returns the ``schedulerName`` of such pods:

    1. With backend Dedicated that of the cluster's own scheduler, which does not ask the extender then.
    2. With another backend that of our own scheduler, while it goes, once after it has gone, and as long as
       there are such pods: nobody can change their schedulerName.
    3. Empty: nobody has to look for such pods.
    """
    needed = needed_backend(snapshot)
    if needed is None or needed is Backend.DEDICATED:
        return DEFAULT_SCHEDULER if needed else ""
    facts = snapshot.server
    may_be_some = facts is not None and (
        facts.absent_scheduler == DEFAULT_SCHEDULER or bool(facts.pods_without_scheduler)
    )
    return DEDICATED_SCHEDULER if may_be_some or DEDICATED_SCHEDULER in snapshot.deployments else ""


def pods_without_scheduler(snapshot: ClusterSnapshot) -> list[Problem]:
    facts = snapshot.server
    if facts is None or not facts.pods_without_scheduler:
        return []
    number = counted(len(facts.pods_without_scheduler), "pod")
    pods = f"{number} with schedulerName: {facts.absent_scheduler} ({listed(facts.pods_without_scheduler)})"
    if facts.absent_scheduler == DEDICATED_SCHEDULER:
        message = f"nobody places {pods} any more: delete them, and write no schedulerName in new ones"
    else:
        message = f"nobody places {pods} by cards: delete them{_how_to_create(facts.pod_policy)}"
    return [Problem(conditions.PODS_NOT_SCHEDULED, message)]


def _how_to_create(pod_policy: ReadResult) -> str:
    if pod_policy is ReadResult.FOUND:
        return f"; new ones get schedulerName: {DEDICATED_SCHEDULER}"
    return f", and create them with schedulerName: {DEDICATED_SCHEDULER}"
