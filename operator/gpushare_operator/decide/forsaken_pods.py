"""Pods that wait for a scheduler which places nothing by cards: people have to do something about them."""

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.backend_choice import needed_backend

DEFAULT_SCHEDULER = "default-scheduler"


def forsaken_scheduler(snapshot: Snapshot) -> str:
    """Returns the ``schedulerName`` of such pods; empty where none have to be looked for.

    With backend Dedicated nobody extends the cluster's own scheduler. Without it nobody answers to the name
    of ours: pods that it has not placed when it goes keep its name, which nobody can change.
    """
    if needed_backend(snapshot) is Backend.DEDICATED:
        return DEFAULT_SCHEDULER
    had_any = snapshot.server is not None and bool(snapshot.server.strays)
    return DEDICATED_SCHEDULER if had_any or DEDICATED_SCHEDULER in snapshot.deployments else ""
