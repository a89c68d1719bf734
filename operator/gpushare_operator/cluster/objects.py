"""What the operator keeps of the cluster's objects: there can be thousands, so no more than it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

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
"""On nodes: labels that name a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObject:
    """A GPUSharePolicy."""

    name: str
    uid: str
    resource_version: str = ""
    generation: int = 1
    created: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    retry: str = ""
    """With a new value a person asks for another attempt at what has failed."""
    let_go: frozenset[str] = frozenset()
    """Nodes that a person has declared lost for ever: the operator waits for nothing there."""
    leaves_isolation_files: bool = False
    """Whether its deletion does not wait for containers that need files of isolation."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Our label and annotation for admission policies, by their keys."""
    spec: PolicySpec | None
    error: str = ""
    """Where ``spec`` is None: how the object violates the schema."""
    status: PolicyStatus = field(default_factory=PolicyStatus)

    @property
    def precedence(self) -> tuple[str, str]:
        """Sorts policies: the older one comes first, and keeps a node that both claim."""
        return (self.created, self.name)

    @property
    def asked(self) -> "PolicyObject":
        """The policy without fields that change although nobody asks for anything else."""
        bare = replace(self, resource_version="", generation=1, finalizers=(), retry="", marks={})
        return replace(bare, status=_NO_STATUS)

    def asks_the_same(self, other: "PolicyObject") -> bool:
        """Returns whether ``other`` differs only in its status."""
        status, version = self.status, self.resource_version
        return self == replace(other, status=status, resource_version=version)


@dataclass(frozen=True, slots=True)
class NodeStartupTaint:
    """Our startup taint on a node."""

    resource_version: str
    """Of the node: its taints can only be replaced as a whole."""
    others: tuple[Json, ...]
    """The node's other taints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    deleting: bool = False
    own_labels: frozenset[str] = frozenset()
    """Labels of dialects that the operator set last: the others are not ours."""
    closed_cards: Mapping[str, str] = field(default_factory=dict)
    """Annotations in which dialects list cards that take no new pods."""
    offered: tuple[str, ...] = ()
    """Extended resources of dialects in its capacity or allocatable, whoever offers them; without numbers of
    cards that somebody else has written."""
    zeros: frozenset[str] = frozenset()
    """Those in ``offered`` of which the node has none."""
    counts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Capacity and allocatable of resources that may stand for a number of cards."""
    startup_taint: NodeStartupTaint | None = None

    @property
    def policy(self) -> str:
        """The policy whose plugin runs there, by the label that no kubelet sets; empty: none."""
        return self.labels.get(PLUGIN_NODE_LABEL, "")

    @property
    def named_policy(self) -> str:
        """The policy from which the node is to be freed. The label that its kubelet may have set counts only
        without the other one."""
        return self.policy or self.labels.get(POLICY_LABEL, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A container that is measured to have more memory of a card than it asked for."""

    namespace: str
    pod: str
    uid: str
    """Of the pod."""
    container: str
    card: str
    """UUID."""
    since: datetime
    """By the node's clock."""
    used: str = ""
    """A quantity, for people."""
    asked: str = ""
    """A quantity, for people; empty where the unit is not known."""

    @property
    def key(self) -> "ExcessKey":
        return (self.uid, self.container, self.card, self.since)


ExcessKey: TypeAlias = tuple[str, str, str, datetime]
"""Tells one excess from others, whatever its size is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNodeObject:
    """A GPUShareNode, with those parts of its status that a policy sums up."""

    name: str
    uid: str = ""
    generation: int = 1
    deleting: bool = False
    owners: tuple[str, ...] = ()
    """UIDs."""
    spec: Json
    spec_hash: str = ""
    """Of the spec as it was applied, without defaults of the API server."""
    observed_generation: int = 0
    conditions: Mapping[str, ConditionState] = field(default_factory=dict)
    """By type."""
    registered_since: datetime | None = None
    """Of its condition Registered, by the node's clock; None while that is not true."""
    unit: str = ""
    """What a unit is; empty until the plugin has reported it."""
    dialect: str = ""
    """Whose names units have; empty until the plugin has reported it."""
    units: UnitTotals = field(default_factory=UnitTotals)
    resources: Mapping[str, UnitTotals] = field(default_factory=dict)
    """In mode Mixed: by class, in the order in which ``unit`` names their units."""
    memory: MemoryTotals = field(default_factory=MemoryTotals)
    cards: int = 0
    unhealthy_cards: int = 0
    sick_cards: tuple[str, ...] = ()
    """Unhealthy cards, for people: ``card 0 (GPU-...)``."""
    closed_cards: tuple[int, ...] = ()
    """Indices of cards that take no new pods: unhealthy and cordoned ones."""
    card_indices: tuple[int, ...] = ()
    excesses: tuple[Excess, ...] = ()
    differences: tuple[Difference, ...] = ()
    """Contradictions within the object."""
    version: str = ""
    """Of the operator that wrote it last."""
    plugin_version: str = ""

    @property
    def policy(self) -> str:
        return str(self.spec.get("policy", ""))

    def differs_in_figures_only(self, other: "ShareNodeObject") -> bool:
        """Whether ``other`` differs only in what is allocated and used, and in messages of conditions: by a
        message nothing is decided."""
        is_same = _without_messages(self.conditions) == _without_messages(other.conditions)
        is_same &= [each.key for each in self.excesses] == [each.key for each in other.excesses]
        return is_same and self == replace(
            other,
            units=self.units,
            resources=self.resources,
            memory=self.memory,
            excesses=self.excesses,
            conditions=self.conditions,
        )

    @property
    def units_by_kind(self) -> Mapping[str, UnitTotals]:
        """What a unit is -> how many there are; empty until the plugin has reported it."""
        kinds = self.unit.split(UNIT_SEPARATOR)
        if len(kinds) > 1 and len(kinds) == len(self.resources):
            return dict(zip(kinds, self.resources.values(), strict=True))
        return {self.unit: self.units} if self.unit else {}


def _without_messages(conditions: Mapping[str, ConditionState]) -> Mapping[str, tuple[str, str]]:
    return {type_: (condition.status, condition.reason) for type_, condition in conditions.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSetObject:
    """One of our DaemonSets. ``body``: as the API server has it, for comparison."""

    name: str
    uid: str = ""
    policy: str = ""
    deleting: bool = False
    created: datetime | None = None
    body: Json = field(default_factory=dict)
    managed_fields: list[Json] = field(default_factory=list)
    """Who owns which field, except the status: needed once another manager undoes our writes."""
    outdated: int = 0
    """Number of nodes whose pod is not of the present template, by the DaemonSet controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentObject:
    """The Deployment of our own kube-scheduler. ``body``: as the API server has it, for comparison."""

    name: str
    uid: str = ""
    deleting: bool = False
    body: Json = field(default_factory=dict)
    managed_fields: list[Json] = field(default_factory=list)
    is_rolled_out: bool = False
    """Whether every pod is of the present template, and one is ready."""


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
    """When the host's keys are to be renewed, if that was known when the run began."""
    engine: str = ""
    """Which one the run connects; empty of a run of a version that knew only the extender."""
    has_drifted: bool = False
    """Whether kube-scheduler had lost our edit when the run began."""
    asked: frozenset[str] = frozenset()
    """Values of ``PolicyObject.retry`` when the run began."""
    exit_code: int | None = None
    """From the Job itself, which may outlive its pod."""
    result: int | None = None
    """hostctl's exit code, where another container of the pod ran on."""
    deleting: bool = False
    complete: bool = False
    failed: bool = False
    failing: bool = False
    """Kubernetes has given the Job up and waits for its pod to stop: for ever, if the node is away."""
    failure: str = ""
    finished: datetime | None = None
    version: str = ""
    """Of hostctl, by the Job's label."""

    @property
    def active(self) -> bool:
        return not (self.complete or self.failed)

    def as_hostctl_said(self, pod: "PodObject | None") -> "JobObject":
        """Returns the run as hostctl's own container ended: another container that somebody adds to the pod,
        and that never ends, keeps the Job open and makes it fail at its deadline."""
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
    """Start of the running container, by the node's clock."""
    exit_code: int | None = None
    ended: datetime | None = None
    """When the container with ``exit_code`` ended."""
    is_held_open: bool = False
    """Of hostctl: whether another container runs on after it."""
    termination: str = ""
    """Termination message of the program's own container; of an init container that failed before it."""
    waiting: str = ""
    """Why a container does not start, for people."""
    last_words: str = ""
    """Last message of the first container that ended by itself and was started again."""
    extender_ports: tuple[int, ...] = ()
    """Of an extender: where it listens."""
    runs_extender: bool = False
    """Whether one of its containers is the extender."""
    version: str = ""
    """Of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerObject:
    """A kube-scheduler: the mirror pod of its manifest."""

    name: str
    node: str
    config: str = ""
    """The last ``--config``, which counts."""
    image: str = ""
    """As the manifest names it."""
    seen: datetime
    """When this was read."""
    started: datetime | None = None
    """Start of its running container, by the host's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsObject:
    """What an extender reports in its Lease: calls of kube-schedulers, differences, other schedulers."""

    name: str
    port: int = 0
    """Of the last call."""
    by: str = ""
    """Which extender was called."""
    at: datetime | None = None
    """When the Lease was written, by the API server's clock."""
    reports: tuple[ExtenderReport, ...] = ()
    """By their annotations in order."""
    other_schedulers: str = ""
    """How many pods ask for cards although their scheduler does not call the extender, and some names."""

    @property
    def host(self) -> str:
        """Name of the extender's host."""
        return self.by.rpartition("_")[0] or self.by


@dataclass(frozen=True, slots=True)
class VolcanoLocation:
    namespace: str
    config_map: str
    key: str

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.config_map}"


class ReadResult(StrEnum):
    """Of an object that is not ours."""

    FOUND = "Found"
    MISSING = "Missing"
    FORBIDDEN = "Forbidden"
    NOT_SERVED = "NotServed"
    """The API server does not know its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a kube-scheduler of our own needs to know of the API server besides its version."""

    pod_policy: ReadResult
    """Of the MutatingAdmissionPolicy that gives pods to our kube-scheduler."""
    pods_without_scheduler: tuple[str, ...] | None = None
    """``NAMESPACE/NAME`` of pods that no scheduler places by cards; None without the right to list pods."""
    absent_scheduler: str = ""
    """Their ``schedulerName``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoConfigObject:
    result: ReadResult
    uid: str = ""
    resource_version: str = ""
    text: str | None = None
    """None where the key is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoBackupObject:
    """A Volcano scheduler's configuration before our edit, and what the edit was."""

    name: str
    uid: str = ""
    location: VolcanoLocation
    original: str
    written: str
    """SHA-256 of the edited text."""
    additions: tuple[tuple[str, str], ...] = ()
    """Plugin -> what we added to it."""
    deleting: bool = False
