"""GPUSharePolicy: what the administrator writes and reads. The CRD is generated from these models."""

from typing import Annotated

from pydantic import Field

from gpushare_core.api import bounds
from gpushare_core.api.api_model import Amount, ApiModel, Quantity, Word, bounded, rule, rules
from gpushare_core.api.conditions import FALSE, TRUE, UNKNOWN
from gpushare_core.api.enums import (
    Backend,
    DialectName,
    Injection,
    LogLevel,
    MeasurementScope,
    Mode,
    Preemption,
    SelectorOperator,
    Source,
    StartupTaint,
    UnitChange,
    VisibleDevices,
)
from gpushare_core.api.names import EXTENDER_PORT, STARTUP_TAINT
from gpushare_core.api.node_object import IGNORED_XIDS
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import CANDIDATES, MAX_WEIGHT, WEIGHT

MAX_RULES = 12
MAX_NAMES = 256
"""In one rule. With ``MAX_RULES`` the most that the API server's cost estimate for CEL lets pass."""
MAX_NAMES_TOGETHER = 800
"""In all rules. The most that comparing each with each costs within the API server's limit at run time."""
MAX_CANDIDATES = 10000
"""More than the nodes of any cluster that Kubernetes supports."""
LOG_FOLDER_PATTERN = "^/var/log(/[A-Za-z0-9][A-Za-z0-9._-]*)+$"
"""As in manifests/admission-operator.yaml: nothing else of a node may become a plugin's to write to."""
MAX_POLICY_NAME = 40
"""Leaves room for ``gpushare-plugin-`` and what Kubernetes adds in the names of pods."""

_NODE_NAME = rules(
    rule(
        "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
        "no node can have this name: give each name in full, as kubectl get nodes shows it, or select several"
        " nodes by their labels",
    )
)
_LABEL_VALUE = rules(
    rule(
        "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
        "no label can have this value, which has letters, digits and - _ . alone, such as Tesla-V100:"
        " kubectl get nodes --show-labels shows those that nodes have",
    )
)

NodeName = Annotated[str, Field(min_length=1, max_length=253, json_schema_extra=_NODE_NAME)]
LabelText = Annotated[str, Field(max_length=317)]
LabelValue = Annotated[LabelText, Field(json_schema_extra=_LABEL_VALUE)]
"""For values of expressions, of which there may be many more, the API server finds the rule too costly."""


class LabelExpression(ApiModel):
    """One requirement on a label. Source: ``metav1.LabelSelectorRequirement``."""

    key: LabelText
    operator: SelectorOperator
    values: list[LabelText] = Field(default_factory=list, max_length=64)


_EXPRESSION = rules(
    rule(
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
        "operator In or NotIn needs values, such as [a100, h100]; whether a label is there at all is asked by"
        " operator Exists or DoesNotExist",
    ),
    rule(
        "self.operator in ['In', 'NotIn'] || !has(self.values) || size(self.values) == 0",
        "operator Exists or DoesNotExist takes no values: leave them out, or use operator In or NotIn",
    ),
)


class NodeSelector(ApiModel):
    """Selects by labels; all requirements must hold. Source: ``metav1.LabelSelector``."""

    match_labels: dict[str, LabelValue] = Field(default_factory=dict, json_schema_extra={"maxProperties": 32})
    match_expressions: list[Annotated[LabelExpression, Field(json_schema_extra=_EXPRESSION)]] = Field(
        default_factory=list, max_length=32
    )


class SimulatedCards(ApiModel):
    """Cards that do not exist, for trying the system out and for tests."""

    count: int = Field(ge=1, le=64)
    memory: Quantity
    """Of each card."""
    model: str = Field(default="Sim", max_length=63)
    compute_score: int = Field(default=100, ge=0, le=1_000_000)
    """How fast a card is; shared work goes to nodes with slow cards first, whole cards to fast ones."""
    numa_node: int = Field(default=0, ge=0, le=63)
    """Of each card; pods that ask for several whole cards get them of one where that is possible."""
    link_group: int | None = Field(default=None, ge=0, le=63)
    """Cards of the same NUMA node with the same number are linked directly; left out: not linked."""


INVENTORY_FOLDERS = ("/etc/gpushare", "/var/lib/gpushare")
"""On nodes: where inventories may be. The plugin's pod sees those of the two that its policy names."""
CDI_KIND = "^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?$"
"""Vendor and class. Source: the Container Device Interface's specification."""

_INVENTORY_PATH = rules(
    rule(
        f"self.matches('^({'|'.join(INVENTORY_FOLDERS)})/[A-Za-z0-9][A-Za-z0-9._-]*$')",
        f"inventoryPath must be a file directly in {' or '.join(INVENTORY_FOLDERS)}",
    )
)
_CDI_KIND = rules(
    rule(f"self.matches('{CDI_KIND}')", "cdiKind must be a vendor and a class such as nvidia.com/gpu")
)


class CardHealth(ApiModel):
    """When a card is sick, and when it returns."""

    ignored_xids: list[Annotated[int, Field(ge=0, le=65535)]] = Field(
        default=list(IGNORED_XIDS), max_length=128, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Xid messages of the driver that make no card sick: by default those that applications cause."""
    quiet_seconds: int = Field(default=600, ge=1, le=86400)
    """How long nothing may be wrong with a sick card until it returns; twice as long with every relapse."""


class Devices(ApiModel):
    """Where the cards of a node come from."""

    source: Source = Source.NVML
    """Where the node's plugin learns of its cards."""
    simulated: list[SimulatedCards] = Field(default_factory=list, max_length=16)
    """With source Simulated: the cards to pretend."""
    inventory_path: str = Field(
        default="/etc/gpushare/inventory.yaml", max_length=253, json_schema_extra=_INVENTORY_PATH
    )
    """With source Inventory: the file on the node that lists its cards."""
    injection: Injection = Injection.ENVIRONMENT
    """Environment: variables name a container's cards, as NVIDIA's container runtime reads them; with source
    Inventory also device nodes and mounts. CDI: the container runtime gets qualified CDI names."""
    cdi_kind: str = Field(default="nvidia.com/gpu", max_length=127, json_schema_extra=_CDI_KIND)
    """With injection CDI: vendor and class of the names, which end with the card's UUID. An inventory may
    name others."""
    health: CardHealth = Field(default_factory=CardHealth)


_DEVICES = rules(
    rule(
        "!has(self.source) || self.source != 'Simulated'"
        " || (has(self.simulated) && size(self.simulated) > 0)",
        "source Simulated needs at least one entry in simulated, such as {count: 8, memory: 16Gi}",
    ),
    rule(
        "!has(self.simulated) || size(self.simulated) == 0"
        " || (has(self.source) && self.source == 'Simulated')",
        "simulated is only read with source: Simulated",
    ),
)

_RULE = rules(
    rule(
        "has(self.names) != has(self.selector)",
        "each entry of nodes has either names or a selector, not both and not neither",
    ),
    rule("!has(self.names) || size(self.names) > 0", "names must name at least one node"),
    rule(
        "!has(self.selector) || (has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0)"
        " || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",
        "an empty selector would take every node: give matchLabels or matchExpressions",
    ),
    rule(
        "!has(self.slicesPerCard) || self.mode == 'Slices' || self.mode == 'Mixed'",
        "slicesPerCard only has a meaning with mode Slices or Mixed",
    ),
    rule(
        "has(self.slicesPerCard) || !(self.mode == 'Slices' || self.mode == 'Mixed')",
        "mode Slices or Mixed needs slicesPerCard",
    ),
)


class NodeRule(ApiModel):
    """Some nodes and how their cards are shared. A node belongs to the first rule that matches it."""

    names: list[NodeName] | None = Field(
        default=None, max_length=MAX_NAMES, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Names of nodes. Either these or a selector."""
    selector: NodeSelector | None = None
    """Selects nodes by their labels."""
    mode: Mode = Mode.MEMORY
    """Memory: units of one card. Slices: equal parts of distinct cards. Exclusive: whole cards.
    Mixed: all three. "Off": this policy leaves the node alone; in quotes, for to YAML a bare Off is false."""
    slices_per_card: int | None = Field(default=None, ge=2, le=64)
    """With mode Slices or Mixed: how many parts a card is cut into."""
    reserved_memory: Quantity = Field(default="0", description="Per card, kept out of sharing.")
    devices: Devices = Field(default_factory=Devices, json_schema_extra=_DEVICES)


class Placement(ApiModel):
    """How units are laid out over cards."""

    strategy: Strategy = Strategy.BINPACK
    """Binpack: the tightest card that fits. Spread: the emptiest one."""
    preemption: Preemption = Preemption.ENABLED
    """Enabled: where kube-scheduler finds no pod to preempt because the free units lie on several cards, pods
    of lower priority are evicted that free enough on one card. Disabled: such a pod waits."""
    candidates: int = Field(default=CANDIDATES, ge=0, le=MAX_CANDIDATES)
    """How many of the nodes that a pod fits are offered to kube-scheduler, the best ones; where other pods or
    plugins keep it from all of these, it is offered every node at its next attempts. 0: always every node."""
    weight: int = Field(default=WEIGHT, ge=1, le=MAX_WEIGHT)
    """How much the strategy counts beside kube-scheduler's own scores: the default outweighs its spreading
    over nodes by default, 1 leaves most to it. What a pod itself prefers comes first in any case. One weight
    holds for all policies: that of the oldest one that shares a node."""


_EXTENDER_PORT = rules(
    rule(
        "self + 1 < 30000 || self > 32767",
        "extenderPort and the port after it must lie outside the NodePort range 30000-32767:"
        " a Service could take over kube-scheduler's calls",
    )
)


class VolcanoScheduler(ApiModel):
    """Where the configuration of Volcano's scheduler is. Its defaults are those of Volcano's installation."""

    namespace: str = Field(default="volcano-system", min_length=1, max_length=63)
    config_map: str = Field(default="volcano-scheduler-configmap", min_length=1, max_length=253)
    key: str = Field(default="volcano-scheduler.conf", min_length=1, max_length=253)
    """Of the file in the ConfigMap."""


_SCHEDULER = rules(
    rule(
        "!has(self.volcano) || (has(self.backend) && self.backend == 'Volcano')",
        "volcano is only read with backend: Volcano",
    )
)


class Scheduler(ApiModel):
    """How pods reach cards."""

    backend: Backend = Backend.KUBE_SCHEDULER
    """KubeScheduler: the control plane's static pod is edited, and restored with the last policy.
    Dedicated: a second kube-scheduler runs in the cluster, for managed control planes.
    External: people edit it by themselves, with what gpushare-hostctl render says.
    Volcano: its own scheduler places pods; its ConfigMap is edited, and restored with the last policy."""
    volcano: VolcanoScheduler | None = None
    """With backend Volcano: where its configuration is."""
    extender_port: int = Field(default=EXTENDER_PORT, ge=1024, le=65534, json_schema_extra=_EXTENDER_PORT)
    """Where the extender listens on each control plane's loopback address; the next port is for probes."""
    timeout_seconds: int = Field(default=120, ge=30, le=900)
    """How long a kube-scheduler that was edited may take until it serves again; then the edit is undone."""


_RUNTIME_CLASS = rules(
    rule(
        "self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
        "runtimeClassName must be the name of a RuntimeClass, such as nvidia",
    )
)
_LOG_FOLDER = rules(
    rule(
        f"self == '' || self.matches('{LOG_FOLDER_PATTERN}')",
        "logFolder must be a folder below /var/log such as /var/log/gpushare",
    )
)


class Measurement(ApiModel):
    """What is measured of the memory that is in use."""

    scope: MeasurementScope = MeasurementScope.CARDS
    """Off: nothing. Cards: how much of each card is in use. Containers: also by which container, and whether
    that is more than it asked for; where a node's cards are NVML's the plugin then runs with hostPID."""
    interval_seconds: int = Field(default=30, ge=10, le=3600)
    """How often the driver is asked."""


class PluginSettings(ApiModel):
    """Settings of the plugin on each node."""

    log_level: LogLevel = LogLevel.INFO
    runtime_class_name: str = Field(default="", max_length=253, json_schema_extra=_RUNTIME_CLASS)
    """RuntimeClass of the plugin's pods: with source NVML that of NVIDIA's container runtime, which gives
    them the driver's library. Empty: the runtime that is the node's default."""
    measurement: Measurement = Field(default_factory=Measurement)
    log_folder: str = Field(default="", max_length=200, json_schema_extra=_LOG_FOLDER)
    """A folder of the node below /var/log: the plugin's log is kept there besides, in gpushare-plugin.log and
    four earlier files of 10 MiB. Empty: nowhere."""


class ProgramSettings(ApiModel):
    """Settings of a program that serves all policies."""

    log_level: LogLevel = LogLevel.INFO
    """Of several policies the most verbose one counts."""


class ExtenderSettings(ProgramSettings):
    """Settings of the extender."""

    log_folder: str = Field(default="", max_length=200, json_schema_extra=_LOG_FOLDER)
    """A folder of the extender's host below /var/log: its log is kept there besides, in
    extender/gpushare-extender.log and four earlier files of 10 MiB. Empty: nowhere. With backends
    KubeScheduler and External; the oldest policy that names one counts."""


class Admission(ApiModel):
    """What becomes of new pods in the whole cluster."""

    visible_devices: VisibleDevices = VisibleDevices.ALLOW
    """A container that asks for no card and sets NVIDIA_VISIBLE_DEVICES, or the like of another runtime, may
    see all cards of its node. Allow: it may. Warn: whoever makes its pod is warned. Deny: its pod is refused.
    Of several policies the strictest one counts. Namespaces with the label gpushare.io/visible-devices:
    allowed are left alone."""


_MEMORY_UNIT = rules(
    rule(
        "self.matches('^[1-9][0-9]*(M|G|Mi|Gi)$')",
        "memoryUnit must be a whole number of M, G, Mi or Gi, such as 1Gi (default), 256Mi, 1G, 100M or 1M",
    )
)

_TOGETHER = f"self.map(a, has(a.names) ? size(a.names) : 0).sum() <= {MAX_NAMES_TOGETHER}"

_NODES = rules(
    rule(_TOGETHER, f"at most {MAX_NAMES_TOGETHER} nodes by name: select more by their labels"),
    rule(
        f"!({_TOGETHER}) || self.all(a, !has(a.names)"
        " || a.names.all(name, self.exists_one(b, has(b.names) && name in b.names)))",
        "a node is named by more than one entry of nodes: name each node once",
    ),
    rule(
        "self.all(a, !has(a.selector) || self.exists_one(b, has(b.selector) && b.selector == a.selector))",
        "two entries of nodes have the same selector: a node belongs to the first entry that matches it, so"
        " the second has no effect; take one of them out",
    ),
)


_SPEC = rules(
    rule(
        "!has(self.scheduler) || !has(self.scheduler.backend) || self.scheduler.backend != 'Volcano'"
        " || (has(self.dialect) && self.dialect == 'volcano.sh')",
        "scheduler.backend Volcano needs dialect: volcano.sh, the only one that Volcano's scheduler speaks",
    ),
)


class PolicySpec(ApiModel):
    """What the administrator asks for."""

    memory_unit: str = Field(
        default="1Gi", max_length=12, description="Size of one unit.", json_schema_extra=_MEMORY_UNIT
    )
    nodes: Annotated[
        list[Annotated[NodeRule, Field(json_schema_extra=_RULE)]],
        Field(min_length=1, max_length=MAX_RULES, json_schema_extra=_NODES),
    ]
    """Which nodes share their cards, and how. A node belongs to the first entry that matches it."""
    unit_change: UnitChange = UnitChange.DRAIN
    """Where pods that hold units keep another unit or mode from coming into force on a node. Drain: no new
    pod comes to such a node, so that a number means the same everywhere, and the node changes when the last
    of these pods has ended. Keep: it goes on taking pods by the former unit."""
    dialect: DialectName = DialectName.GPUSHARE
    placement: Placement = Field(default_factory=Placement)
    admission: Admission = Field(default_factory=Admission)
    startup_taint: StartupTaint = Field(
        default=StartupTaint.IGNORE,
        description=f"Remove: nodes that are made with the taint {STARTUP_TAINT} lose it when their plugin"
        " offers their cards: autoscalers do not count them as ready before. Ignore: it is left alone.",
    )
    scheduler: Scheduler = Field(default_factory=Scheduler, json_schema_extra=_SCHEDULER)
    plugin: PluginSettings = Field(default_factory=PluginSettings)
    extender: ExtenderSettings = Field(default_factory=ExtenderSettings)
    operator: ProgramSettings = Field(default_factory=ProgramSettings)


Units = Annotated[str, bounded(bounds.text(bounds.UNITS))]


class NodeTotals(ApiModel):
    enabled: int = 0
    ready: int = 0
    summary: Word = Field(default="", description="Ready/enabled, for people.")


class CardTotals(ApiModel):
    total: int = 0
    healthy: int = 0
    summary: Word = Field(default="", description="Healthy and not cordoned/total, for people.")


class UnitTotals(ApiModel):
    total: int = 0
    allocated: int = 0


class PolicyUnits(UnitTotals):
    """Over nodes in different modes the sums are of unlike things; the texts keep them apart."""

    unit: Units = Field(
        default="", description="What a unit is, such as 1Gi, 1/2 card, 1 card; all there are."
    )
    summary: Units = Field(default="", description="Allocated/total of each kind of unit, in the same order.")


class MemoryTotals(ApiModel):
    """Quantities."""

    total: Amount = "0"
    allocated: Amount = "0"
    used: Amount = "0"


Versions = Annotated[str, bounded(bounds.text(bounds.VERSIONS))]


class ProgramVersions(ApiModel):
    """Which versions run; several of one program as in ``0.2.0 (5), 0.1.0 (3)``, with their numbers."""

    operator: Word = Field(default="", description="The one at work.")
    plugin: Versions = Field(default="", description="By the policy's nodes.")
    extender: Versions = Field(default="", description="By its pods.")
    hostctl: Versions = Field(default="", description="By its last run on each host.")


class Condition(ApiModel):
    """What holds, since when, and why. Source: ``metav1.Condition``."""

    type: Annotated[str, bounded(bounds.text(316, bounds.CONDITION_TYPE))]
    status: str = Field(json_schema_extra={"enum": [TRUE, FALSE, UNKNOWN]})
    reason: Annotated[str, bounded(bounds.text(1024, bounds.CONDITION_REASON))]
    message: Annotated[str, bounded(bounds.MESSAGE)]
    last_transition_time: str = Field(json_schema_extra={"format": "date-time"})
    observed_generation: int = 0


CONDITION_LIST = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    **bounds.items(bounds.CONDITIONS),
}


class PolicyStatus(ApiModel):
    """What came of it."""

    observed_generation: int = 0
    backend: Word = Field(
        default="",
        description="By which scheduler backend pods are placed: the one that the oldest policy asks for.",
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        json_schema_extra=CONDITION_LIST,
    )
    nodes: NodeTotals = Field(default_factory=NodeTotals)
    cards: CardTotals = Field(default_factory=CardTotals)
    units: PolicyUnits = Field(default_factory=PolicyUnits)
    memory: MemoryTotals = Field(default_factory=MemoryTotals)
    versions: ProgramVersions = Field(default_factory=ProgramVersions)


class ObjectMeta(ApiModel):
    """The part of ``metav1.ObjectMeta`` that the programs read."""

    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    annotations: dict[str, str] = Field(default_factory=dict)


class GPUSharePolicy(ApiModel):
    """Who shares what, and how. Cluster-scoped."""

    metadata: ObjectMeta
    spec: PolicySpec = Field(json_schema_extra=_SPEC)
    status: PolicyStatus = Field(default_factory=PolicyStatus)
