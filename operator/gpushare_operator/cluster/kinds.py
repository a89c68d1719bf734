"""Which kinds of objects the operator follows, where the API has them, and how they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gpushare_core.api.names import CALLS_COMPONENT, COMPONENT_LABEL, NODE_PLURAL, POLICY_PLURAL
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster import objects
from gpushare_operator.cluster.labels import MANAGED, VOLCANO
from gpushare_operator.cluster.readers.extender_leases import read_calls
from gpushare_operator.cluster.readers.jobs import read_job
from gpushare_operator.cluster.readers.nodes import read_node
from gpushare_operator.cluster.readers.pods import read_pod
from gpushare_operator.cluster.readers.policies import read_policy
from gpushare_operator.cluster.readers.share_nodes import read_share_node
from gpushare_operator.cluster.readers.volcano import read_volcano_backup
from gpushare_operator.cluster.readers.workloads import read_daemon_set, read_deployment

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


POLICIES: Kind[objects.PolicyObject] = Kind(
    plural=POLICY_PLURAL,
    path=lambda _: paths.POLICIES,
    read=read_policy,
    is_decided_alike=objects.PolicyObject.asks_the_same,
)
NODES: Kind[objects.NodeObject] = Kind(plural="nodes", path=lambda _: paths.NODES, read=read_node)
SHARE_NODES: Kind[objects.ShareNodeObject] = Kind(
    plural=NODE_PLURAL,
    path=lambda _: paths.SHARE_NODES,
    read=read_share_node,
    is_decided_alike=objects.ShareNodeObject.differs_in_figures_only,
)
DAEMON_SETS: Kind[objects.DaemonSetObject] = Kind(
    plural="daemonsets", path=paths.daemon_sets, label_selector=MANAGED, read=read_daemon_set
)
DEPLOYMENTS: Kind[objects.DeploymentObject] = Kind(
    plural="deployments", path=paths.deployments, label_selector=MANAGED, read=read_deployment
)
JOBS: Kind[objects.JobObject] = Kind(plural="jobs", path=paths.jobs, label_selector=MANAGED, read=read_job)
PODS: Kind[objects.PodObject] = Kind(plural="pods", path=paths.pods, label_selector=MANAGED, read=read_pod)
CALLS: Kind[objects.CallsObject] = Kind(
    plural="leases", path=paths.leases, label_selector=f"{COMPONENT_LABEL}={CALLS_COMPONENT}", read=read_calls
)

VOLCANO_BACKUPS: Kind[objects.VolcanoBackupObject] = Kind(
    plural="configmaps",
    path=paths.config_maps,
    label_selector=f"{COMPONENT_LABEL}={VOLCANO}",
    read=read_volcano_backup,
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
