"""Pods that wait for a scheduler which places nothing by cards: people have to do something about them."""

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend

DEFAULT_SCHEDULER = "default-scheduler"


def forsaken_scheduler(snapshot: ClusterSnapshot) -> str:
    """Returns the ``schedulerName`` of such pods; empty where none have to be looked for.

    With backend Dedicated nobody extends the cluster's own scheduler. Without it nobody answers to the name
    of ours: pods that it has not placed when it goes keep its name, which nobody can change. They are looked
    for once after it has gone, and again as long as there are any.
    """
    needed = needed_backend(snapshot)
    if needed is None or needed is Backend.DEDICATED:
        return DEFAULT_SCHEDULER if needed else ""
    facts = snapshot.server
    may_be_some = facts is not None and (
        facts.absent_scheduler == DEFAULT_SCHEDULER or bool(facts.pods_without_scheduler)
    )
    return DEDICATED_SCHEDULER if may_be_some or DEDICATED_SCHEDULER in snapshot.deployments else ""
