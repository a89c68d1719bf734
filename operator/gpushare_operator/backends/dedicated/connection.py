"""How a second kube-scheduler is run: with engine Plugin our own, with engine Extender Kubernetes' own.

It follows the version of the API server. Pods come to it by their ``schedulerName``, which a
MutatingAdmissionPolicy of the installation writes while a policy's status names this backend.
"""

from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import ApplyDeployment, Plan
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.names import Installation
from gpushare_operator.policies.engine_choice import EngineChoice, choose_engine
from gpushare_operator.policies.scheduler_settings import scheduler_settings


def engine_choice(situation: Situation) -> EngineChoice:
    snapshot = situation.snapshot
    return choose_engine(scheduler_settings(snapshot).engine, snapshot.kubernetes)


def may_be_made(snapshot: ClusterSnapshot) -> bool:
    """Returns whether the server's version is known, and people have given the operator the rights."""
    facts = snapshot.server
    return bool(snapshot.kubernetes) and facts is not None and facts.pods_without_scheduler is not None


def connect(situation: Situation) -> Plan:
    snapshot, installation = situation.snapshot, situation.installation
    present = snapshot.deployments.get(DEDICATED_SCHEDULER)
    is_going = present is not None and present.deleting
    if is_going or not may_be_made(snapshot) or is_as_desired(snapshot, installation):
        return Plan()
    return Plan((ApplyDeployment(DEDICATED_SCHEDULER, _desired(snapshot, installation)),))


def is_as_desired(snapshot: ClusterSnapshot, installation: Installation) -> bool:
    """Returns whether the Deployment is there as desired now; the debounce delays changes for a moment."""
    present = snapshot.deployments.get(DEDICATED_SCHEDULER)
    if present is None or present.deleting:
        return False
    return not has_drifted(present.body, _desired(snapshot, installation))


def _desired(snapshot: ClusterSnapshot, installation: Installation) -> Json:
    return scheduler_deployment(installation, scheduler_settings(snapshot), snapshot.kubernetes)
