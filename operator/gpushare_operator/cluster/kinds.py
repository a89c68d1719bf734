"""Which kinds of objects the operator follows, where the API has them, and how they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gpushare_core.api.names import (
    CALLS_COMPONENT,
    COMPONENT_LABEL,
    NODE_PLURAL,
    POLICY_PLURAL,
)
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster import readers
from gpushare_operator.cluster.labels import MANAGED, VOLCANO
from gpushare_operator.cluster.objects import (
    CallsObject,
    DaemonSetObject,
    DeploymentObject,
    JobObject,
    NodeObject,
    PodObject,
    PolicyObject,
    ShareNodeObject,
    VolcanoBackupObject,
)
from gpushare_operator.cluster.share_node_reader import read_share_node

PAGE = 100
"""Objects in one page of a list: a node has some 15 kB, and ten times that in memory."""

SCHEDULER_PODS = paths.pods("kube-system")
SCHEDULER_SELECTOR = "component=kube-scheduler"
"""Mirror pods of kube-schedulers' static pods, with kubeadm's label. They are polled: nothing of theirs is
urgent."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """One row of the table."""

    plural: str
    path: Callable[[str], str]
    """Operator's namespace -> path of the collection."""
    label_selector: str = ""
    """Empty: all objects are followed."""
    read: Callable[[Json], T]
    is_decided_alike: Callable[[T, T], bool] = lambda *_: False
    """Whether two versions of an object differ only in what statuses sum up."""


POLICIES: Kind[PolicyObject] = Kind(
    plural=POLICY_PLURAL,
    path=lambda _: paths.POLICIES,
    read=readers.read_policy,
    is_decided_alike=PolicyObject.asks_the_same,
)
NODES: Kind[NodeObject] = Kind(
    plural="nodes",
    path=lambda _: paths.NODES,
    read=readers.read_node,
)
SHARE_NODES: Kind[ShareNodeObject] = Kind(
    plural=NODE_PLURAL,
    path=lambda _: paths.SHARE_NODES,
    read=read_share_node,
    is_decided_alike=ShareNodeObject.differs_in_figures_only,
)
DAEMON_SETS: Kind[DaemonSetObject] = Kind(
    plural="daemonsets",
    path=paths.daemon_sets,
    label_selector=MANAGED,
    read=readers.read_daemon_set,
)
DEPLOYMENTS: Kind[DeploymentObject] = Kind(
    plural="deployments",
    path=paths.deployments,
    label_selector=MANAGED,
    read=readers.read_deployment,
)
JOBS: Kind[JobObject] = Kind(
    plural="jobs",
    path=paths.jobs,
    label_selector=MANAGED,
    read=readers.read_job,
)
PODS: Kind[PodObject] = Kind(
    plural="pods",
    path=paths.pods,
    label_selector=MANAGED,
    read=readers.read_pod,
)
CALLS: Kind[CallsObject] = Kind(
    plural="leases",
    path=paths.leases,
    label_selector=f"{COMPONENT_LABEL}={CALLS_COMPONENT}",
    read=readers.read_calls,
)

VOLCANO_BACKUPS: Kind[VolcanoBackupObject] = Kind(
    plural="configmaps",
    path=paths.config_maps,
    label_selector=f"{COMPONENT_LABEL}={VOLCANO}",
    read=readers.read_volcano_backup,
)

KINDS: tuple[Kind[Any], ...] = (
    POLICIES,
    NODES,
    SHARE_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    CALLS,
    VOLCANO_BACKUPS,
)
