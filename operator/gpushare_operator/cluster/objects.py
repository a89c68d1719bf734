"""What the operator knows of the cluster's objects, and nothing else: there can be thousands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from gpushare_core.api.conditions import ConditionState
from gpushare_core.api.names import PLUGIN_NODE_LABEL, POLICY_LABEL
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.api.share_node import MemoryTotals, UnitTotals
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.extender_report import ExtenderReport
from gpushare_core.text.json_object import Json

UNIT_SEPARATOR = ", "
"""Between the units of several classes in a status."""
_NO_STATUS = PolicyStatus()
POLICY_LABELS = frozenset({POLICY_LABEL, PLUGIN_NODE_LABEL})
"""On nodes: they name its policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObject:
    """A GPUSharePolicy. ``spec`` is None when the object does not keep to the schema; ``error`` says why."""

    name: str
    uid: str
    resource_version: str = ""
    generation: int = 1
    created: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    retry: str = ""
    """By which a person asks for another attempt at what has failed."""
    let_go: frozenset[str] = frozenset()
    """Nodes that a person says are lost for ever: nothing there is waited for."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Our label and annotation for admission policies, by their keys."""
    spec: PolicySpec | None
    error: str = ""
    status: PolicyStatus = field(default_factory=PolicyStatus)

    @property
    def precedence(self) -> tuple[str, str]:
        """Orders policies: the older one comes first and keeps a node that two of them claim."""
        return (self.created, self.name)

    @property
    def asked(self) -> "PolicyObject":
        """Returns the policy without what changes though nobody asks for anything else."""
        bare = replace(self, resource_version="", generation=1, finalizers=(), retry="", marks={})
        return replace(bare, status=_NO_STATUS)

    def asks_the_same(self, other: "PolicyObject") -> bool:
        """Returns whether ``other`` differs in nothing but the status."""
        status, version = self.status, self.resource_version
        return self == replace(other, status=status, resource_version=version)


@dataclass(frozen=True, slots=True)
class NodeStartupTaint:
    """That a node has it, and what has to be known to take it off."""

    resource_version: str
    """Of the node: its list of taints can only be replaced as a whole."""
    others: tuple[Json, ...]
    """The node's other taints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    """A Node."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    deleting: bool = False
    own_labels: frozenset[str] = frozenset()
    """Those of its labels by the names of dialects that the operator set last: the others are not ours."""
    closed_cards: Mapping[str, str] = field(default_factory=dict)
    """Annotations by which dialects tell their schedulers of cards that take no new pods."""
    offered: tuple[str, ...] = ()
    """Extended resources by the names of dialects in its capacity or allocatable, whoever offers them; but no
    numbers of cards that somebody else has written."""
    zeros: frozenset[str] = frozenset()
    """Those of them of which there is nothing."""
    counts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Capacity and allocatable of those that may stand for a number of cards."""
    startup_taint: NodeStartupTaint | None = None

    @property
    def policy(self) -> str:
        """Returns the policy whose plugin runs there, by the label that no kubelet sets; empty: none."""
        return self.labels.get(PLUGIN_NODE_LABEL, "")

    @property
    def named_policy(self) -> str:
        """Returns the policy that it is to be freed of: by the label that its kubelet may have set only where
        the other one is not there."""
        return self.policy or self.labels.get(POLICY_LABEL, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNodeObject:
    """A GPUShareNode; of its status only what a policy sums up."""

    name: str
    uid: str = ""
    generation: int = 1
    deleting: bool = False
    owners: tuple[str, ...] = ()
    """UIDs."""
    spec: Json
    spec_hash: str = ""
    """Of the spec as it was applied, without what the API server filled in."""
    observed_generation: int = 0
    conditions: Mapping[str, ConditionState] = field(default_factory=dict)
    """By type."""
    registered_since: datetime | None = None
    """Since when its plugin says so, by the node's clock; None where it does not."""
    unit: str = ""
    """What a unit is, as it is in force; empty when the plugin has not said so."""
    dialect: str = ""
    """By whose names units are offered; empty when the plugin has not said so."""
    units: UnitTotals = field(default_factory=UnitTotals)
    resources: Mapping[str, UnitTotals] = field(default_factory=dict)
    """In mode Mixed: of each class, in the order in which ``unit`` names their units."""
    memory: MemoryTotals = field(default_factory=MemoryTotals)
    cards: int = 0
    unhealthy_cards: int = 0
    sick_cards: tuple[str, ...] = ()
    """Those that are unhealthy, for people: ``card 0 (GPU-...)``."""
    closed_cards: tuple[int, ...] = ()
    """Indices of those that take no new pods: unhealthy ones, and cordoned ones."""
    card_indices: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    """What does not go together within the object."""
    version: str = ""
    """Of the operator that wrote it last, by its label."""
    plugin_version: str = ""

    @property
    def policy(self) -> str:
        return str(self.spec.get("policy", ""))

    def differs_in_figures_only(self, other: "ShareNodeObject") -> bool:
        """Returns whether ``other`` says the same of everything but what is allocated and used; conditions in
        other words, too: nothing is decided by a message."""
        is_same = _without_messages(self.conditions) == _without_messages(other.conditions)
        return is_same and self == replace(
            other,
            units=self.units,
            resources=self.resources,
            memory=self.memory,
            conditions=self.conditions,
        )

    @property
    def units_by_kind(self) -> Mapping[str, UnitTotals]:
        """Returns what a unit is -> how many there are; empty when the plugin has not said so."""
        kinds = self.unit.split(UNIT_SEPARATOR)
        if len(kinds) > 1 and len(kinds) == len(self.resources):
            return dict(zip(kinds, self.resources.values(), strict=True))
        return {self.unit: self.units} if self.unit else {}


def _without_messages(conditions: Mapping[str, ConditionState]) -> Mapping[str, tuple[str, str]]:
    return {type_: (each.status, each.reason) for type_, each in conditions.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSetObject:
    """One of our DaemonSets; ``body`` is what the API server holds, for comparison."""

    name: str
    uid: str = ""
    policy: str = ""
    deleting: bool = False
    created: datetime | None = None
    body: Json = field(default_factory=dict)
    managed_fields: list[Json] = field(default_factory=list)
    """Who owns which field, but for the status: it only matters once somebody is fought."""
    outdated: int = 0
    """Nodes whose pod is not of its present template, by the DaemonSet controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentObject:
    """The Deployment of our own kube-scheduler; ``body`` is what the API server holds, for comparison."""

    name: str
    uid: str = ""
    deleting: bool = False
    body: Json = field(default_factory=dict)
    managed_fields: list[Json] = field(default_factory=list)
    is_rolled_out: bool = False
    """Whether every pod is of its present template, and one of them is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObject:
    """One run of hostctl on one node."""

    name: str
    uid: str = ""
    command: str
    node: str
    node_uid: str
    sequence: int
    spec_hash: str = ""
    inputs_hash: str = ""
    rolled_back_inputs: str = ""
    extender_ports: tuple[int, ...] = ()
    """Where the extender listened when the run began."""
    renew_after: datetime | None = None
    """When the host's keys are to be renewed, as it was known when the run began."""
    has_drifted: bool = False
    """Whether kube-scheduler had lost our edit when the run began."""
    asked: frozenset[str] = frozenset()
    """What people had asked for by ``PolicyObject.retry``."""
    exit_code: int | None = None
    """As far as Kubernetes says so of the Job itself, which may outlive its pod."""
    result: int | None = None
    """The exit code of hostctl, where its pod went on after it."""
    deleting: bool = False
    complete: bool = False
    failed: bool = False
    failing: bool = False
    """Kubernetes has given it up, and waits for its pod to stop: for ever, if the node is away."""
    failure: str = ""
    finished: datetime | None = None
    version: str = ""
    """Of hostctl, by the Job's label."""

    @property
    def active(self) -> bool:
        return not (self.complete or self.failed)

    def as_hostctl_said(self, pod: "PodObject | None") -> "JobObject":
        """Returns the run as hostctl's own container ended, whatever else runs in its ``pod``: a container
        that somebody adds and that never ends keeps the Job open, and has it fail at its deadline."""
        code = self.result if pod is None or pod.exit_code is None else pod.exit_code
        if self.complete or code is None or (self.failed and code):
            return self
        ended = (pod.ended if pod else None) or self.finished
        return replace(self, complete=not code, failed=bool(code), failing=False, finished=ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObject:
    """One of our pods."""

    name: str
    component: str
    policy: str = ""
    job: str = ""
    node: str = ""
    ready: bool = False
    started: datetime | None = None
    """When the container began that runs now; by the node's clock."""
    exit_code: int | None = None
    ended: datetime | None = None
    """When the container ended that ``exit_code`` is of."""
    is_held_open: bool = False
    """Of hostctl: whether another container runs on after it."""
    termination: str = ""
    """What the first container wrote into its termination message."""
    waiting: str = ""
    """Why a container does not start, for people."""
    last_words: str = ""
    """What the first container said before it ended, where it ended by itself and was started again."""
    extender_ports: tuple[int, ...] = ()
    """Of an extender: where it listens."""
    version: str = ""
    """Of the program, by the label of its template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerObject:
    """A kube-scheduler, as its kubelet shows it: the pod of its manifest."""

    name: str
    node: str
    config: str = ""
    """The last ``--config``: the one that counts."""
    seen: datetime
    """When this was read."""
    started: datetime | None = None
    """When what runs there now was started, by the host's clock; None while nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsObject:
    """What extenders make known: calls of kube-schedulers, and differences between their books."""

    name: str
    port: int = 0
    """Where it was called last."""
    by: str = ""
    """Which extender was called."""
    at: datetime | None = None
    """When it was written, by the API server's clock."""
    reports: tuple[ExtenderReport, ...] = ()
    """In order of their annotations."""
    other_schedulers: str = ""
    """How many pods ask for cards and are placed by a scheduler that does not ask the extender, and some of
    their names."""

    @property
    def host(self) -> str:
        """Returns the name of the host that the extender runs on."""
        return self.by.rpartition("_")[0] or self.by


@dataclass(frozen=True, slots=True)
class VolcanoLocation:
    """Where the configuration of a Volcano scheduler is."""

    namespace: str
    config_map: str
    key: str

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.config_map}"


class ReadResult(StrEnum):
    """What came of reading an object that is not ours."""

    FOUND = "Found"
    MISSING = "Missing"
    FORBIDDEN = "Forbidden"
    NOT_SERVED = "NotServed"
    """The API server does not know its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What has to be known of the API server where a kube-scheduler of our own is wanted."""

    version: str
    """As images of Kubernetes are tagged, such as ``v1.36.3``; empty where it names none."""
    pod_policy: ReadResult
    """The MutatingAdmissionPolicy that points pods at our kube-scheduler."""
    pods_without_scheduler: tuple[str, ...] | None = None
    """``NAMESPACE/NAME`` of pods that nobody places by cards; None without the right to list pods."""
    absent_scheduler: str = ""
    """Their ``schedulerName``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoConfigObject:
    """The configuration of a Volcano scheduler, as it was read."""

    result: ReadResult
    uid: str = ""
    resource_version: str = ""
    text: str | None = None
    """None where the key is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoBackupObject:
    """What a configuration was before it was edited, and with the edit."""

    name: str
    uid: str = ""
    location: VolcanoLocation
    original: str
    written: str
    """The edited text's SHA-256."""
    additions: tuple[tuple[str, str], ...] = ()
    """What is ours in it: plugin, and what of it was not there before."""
    deleting: bool = False
