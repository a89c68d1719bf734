"""Which engine the cluster's own kube-schedulers have, and what has to be there before any gets it."""

from gpushare_core.api.enums import Backend, Engine
from gpushare_core.api.names import KUBE_SCHEDULER_USER as USER
from gpushare_core.api.names import NAMESPACE
from gpushare_core.api.served import Problem
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.objects import ReadResult
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.decisive_policy import decisive_policy
from gpushare_operator.policies.engine_choice import EngineChoice, choose_engine
from gpushare_operator.policies.scheduler_settings import scheduler_settings

RIGHTS = (
    "until then no kube-scheduler is edited; grant them: kubectl apply"
    " -f manifests/kube-scheduler/rights.yaml"
)
RIGHTS_MISSING = {
    ReadResult.MISSING: f"the user {USER} lacks rights that engine {Engine.PLUGIN} needs; {RIGHTS}",
    ReadResult.FORBIDDEN: f"the operator lacks the right to check the rights of the user {USER}; {RIGHTS}",
}
UNKNOWN_VERSION = "waiting for the API server's version, which decides which kube-scheduler can run"
UNKNOWN_RIGHTS = f"waiting for the API server to report the rights of the user {USER}"


def engine_choice(situation: Situation) -> EngineChoice:
    snapshot = situation.snapshot
    return choose_engine(scheduler_settings(snapshot).engine, snapshot.kubernetes)


def needs_scheduler_rights(snapshot: ClusterSnapshot) -> bool:
    """Returns whether kube-schedulers are to get the plugin."""
    policy = decisive_policy(snapshot)
    spec = policy.spec if policy else None
    may_be_edited = spec is None or spec.scheduler.backend is Backend.KUBE_SCHEDULER
    return may_be_edited and scheduler_settings(snapshot).engine is Engine.PLUGIN


def obstacle(situation: Situation) -> Problem | None:
    """Returns why no kube-scheduler may be edited now, whatever becomes of each host; None where they may.

    Those that were edited stay as they are: without the server's version nobody knows which engine serves,
    and a plugin without its rights binds nothing.
    """
    snapshot = situation.snapshot
    if scheduler_settings(snapshot).engine is not Engine.PLUGIN:
        return None
    if not snapshot.kubernetes:
        return Problem(conditions.INSTALLING, UNKNOWN_VERSION)
    if engine_choice(situation).engine is not Engine.PLUGIN or snapshot.scheduler_rights is ReadResult.FOUND:
        return None
    if snapshot.scheduler_rights is None:
        return Problem(conditions.INSTALLING, UNKNOWN_RIGHTS)
    message = (
        f"{RIGHTS_MISSING[snapshot.scheduler_rights]}{_other_namespace(situation.installation.namespace)}"
    )
    return Problem(conditions.RIGHTS_MISSING, message)


def _other_namespace(namespace: str) -> str:
    """The file names that of the manifests, in which the Lease and the operator's account are not."""
    return "" if namespace == NAMESPACE else f" (write {namespace} in place of {NAMESPACE} into it first)"
