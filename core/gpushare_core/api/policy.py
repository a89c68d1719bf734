"""GPUSharePolicy, which the administrator writes. The CRD is generated from these models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from gpushare_core.api import bounds
from gpushare_core.api.api_object import ApiObject, ObjectMeta
from gpushare_core.api.bounds import rule, rules
from gpushare_core.api.enums import (
    AdmissionAnswer,
    Backend,
    DialectName,
    Engine,
    LogLevel,
    Mode,
    Preemption,
    SelectorOperator,
    StartupTaintHandling,
    UnitChange,
)
from gpushare_core.api.names import EXTENDER_PORT, STARTUP_TAINT
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.api.share_node import Devices, Isolation, Measurement, NodeSpec
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import CANDIDATES, MAX_WEIGHT, WEIGHT
from gpushare_core.placement.quantity import parse_memory

MAX_RULES = 12
MAX_NAMES = 256
"""In one rule. More, with ``MAX_RULES``, exceed the API server's cost estimate for CEL."""
MAX_NAMES_TOGETHER = 800
"""In all rules: all names are compared with each other within the API server's limit at run time."""
MAX_CANDIDATES = 10000
"""Kubernetes supports no cluster of so many nodes."""
LOG_FOLDER_PATTERN = "^/var/log(/[A-Za-z0-9][A-Za-z0-9._-]*)+$"
"""As in manifests/admission-operator.yaml: a plugin may write to no other folder of a node."""
MAX_POLICY_NAME = 40
"""Leaves room for ``gpushare-plugin-`` and for what Kubernetes adds to names of pods."""


class PolicyModel(BaseModel):
    """Immutable; unknown fields are ignored, so that an older program reads a newer object."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    def to_json(self) -> dict[str, Any]:
        """Returns it as the API server wants it: camelCase, plain JSON types, no nulls."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


STRUCT = "x-struct"
"""In the JSON schema of a policy: the class of a field that is an ``ApiObject``, for ``crd`` alone."""


@dataclass(frozen=True, slots=True)
class _Struct:
    """Makes a field of a policy an object of ``kind``, as GPUShareNodes have it."""

    kind: type[ApiObject]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read, serialization=core_schema.plain_serializer_function_ser_schema(self.kind.to_json)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {STRUCT: self.kind}

    def _read(self, given: Any) -> ApiObject:
        return given if isinstance(given, self.kind) else self.kind.from_json(given)


def _quantity(text: str) -> str:
    parse_memory(text)
    return text


Quantity = Annotated[
    str, AfterValidator(_quantity), Field(max_length=20, json_schema_extra=bounds.QUANTITY_RULE)
]

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
        "no label can have this value: only letters, digits and - _ . are allowed, such as Tesla-V100;"
        " kubectl get nodes --show-labels shows the labels of your nodes",
    )
)

NodeName = Annotated[str, Field(min_length=1, max_length=253, json_schema_extra=_NODE_NAME)]
LabelText = Annotated[str, Field(max_length=317)]
LabelValue = Annotated[LabelText, Field(json_schema_extra=_LABEL_VALUE)]
"""Not for the many more values of expressions: the API server finds the rule too costly there."""


class LabelExpression(PolicyModel):
    """One requirement on a label. Source: ``metav1.LabelSelectorRequirement``."""

    key: LabelText
    operator: SelectorOperator
    values: list[LabelText] = Field(default_factory=list, max_length=64)

    def is_met(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case SelectorOperator.IN:
                return value in self.values
            case SelectorOperator.NOT_IN:
                return value not in self.values
            case SelectorOperator.EXISTS:
                return value is not None
            case SelectorOperator.DOES_NOT_EXIST:
                return value is None


_EXPRESSION = rules(
    rule(
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
        "operator In or NotIn needs values, such as [a100, h100]; to check only whether nodes have the label,"
        " use operator Exists or DoesNotExist",
    ),
    rule(
        "self.operator in ['In', 'NotIn'] || !has(self.values) || size(self.values) == 0",
        "operator Exists or DoesNotExist takes no values: leave them out, or use operator In or NotIn",
    ),
)


class NodeSelector(PolicyModel):
    """Selects by labels; all requirements must hold. Source: ``metav1.LabelSelector``."""

    match_labels: dict[str, LabelValue] = Field(default_factory=dict, json_schema_extra={"maxProperties": 32})
    match_expressions: list[Annotated[LabelExpression, Field(json_schema_extra=_EXPRESSION)]] = Field(
        default_factory=list, max_length=32
    )

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Returns whether all requirements hold, as the API server reads a ``metav1.LabelSelector``."""
        equal = all(labels.get(key) == value for key, value in self.match_labels.items())
        return equal and all(expression.is_met(labels) for expression in self.match_expressions)


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
        "each entry of nodes needs either names or a selector, and not both",
    ),
    rule("!has(self.names) || size(self.names) > 0", "names must name at least one node"),
    rule(
        "!has(self.selector) || (has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0)"
        " || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",
        "an empty selector would select every node: give matchLabels or matchExpressions",
    ),
    rule(
        "!has(self.slicesPerCard) || self.mode == 'Slices' || self.mode == 'Mixed'",
        "slicesPerCard only has a meaning with mode Slices or Mixed",
    ),
    rule(
        "has(self.slicesPerCard) || !(self.mode == 'Slices' || self.mode == 'Mixed')",
        "mode Slices or Mixed needs slicesPerCard",
    ),
    rule(
        "!has(self.isolation) || !has(self.isolation.memory) || self.isolation.memory != 'Driver'"
        " || !has(self.devices) || !has(self.devices.source) || self.devices.source == 'NVML'",
        "isolation.memory Driver needs devices.source NVML, because NVIDIA's driver limits the memory: use"
        " Hook or None for other cards",
    ),
    rule(
        "!has(self.isolation) || !has(self.isolation.memory) || self.isolation.memory != 'Hook'"
        " || !has(self.devices) || !has(self.devices.source) || self.devices.source != 'Simulated'",
        "isolation.memory Hook needs devices.source NVML or Inventory, because simulated cards have no CUDA:"
        " use None for them",
    ),
    rule(
        "!has(self.isolation) || !has(self.isolation.onExcess) || self.isolation.onExcess != 'Evict'"
        " || !has(self.devices) || !has(self.devices.source) || self.devices.source != 'Inventory'",
        "isolation.onExcess Evict needs devices.source NVML, because the use of an inventory's cards is not"
        " measured: use Report for them",
    ),
)


class NodeRule(PolicyModel):
    """Some nodes and how their cards are shared. A node belongs to the first rule that matches it."""

    names: list[NodeName] | None = Field(
        default=None, max_length=MAX_NAMES, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Names of nodes. Either these or a selector."""
    selector: NodeSelector | None = None
    """Selects nodes by their labels."""
    mode: Mode = Mode.MEMORY
    """What a container gets. Memory: units of one card. Slices: equal parts of different cards. Exclusive:
    whole cards. Mixed: all three. "Off": the policy does not share the node's cards; write the quotes,
    because YAML reads a bare Off as false."""
    slices_per_card: int | None = Field(default=None, ge=2, le=64)
    """With mode Slices or Mixed: how many slices each card is divided into."""
    reserved_memory: Quantity = Field(default="0", description="Memory of each card that is not shared.")
    devices: Annotated[Devices, _Struct(Devices)] = Field(default_factory=Devices, json_schema_extra=_DEVICES)
    isolation: Annotated[Isolation, _Struct(Isolation)] = Field(default_factory=Isolation)

    def matches(self, node: str, labels: Mapping[str, str]) -> bool:
        """Returns whether a node of this name with these labels is one of them."""
        if self.names is not None:
            return node in self.names
        return self.selector is not None and self.selector.selects(labels)


class Placement(PolicyModel):
    """How nodes and cards are chosen for pods."""

    strategy: Strategy = Strategy.BINPACK
    """Binpack: the card with the least free room that is enough. Spread: the emptiest card."""
    preemption: Preemption = Preemption.ENABLED
    """What happens where kube-scheduler preempts no pod, because enough units are free but on several cards.
    Enabled: pods of lower priority are evicted to free enough units on one card. Disabled: the pod waits."""
    candidates: int = Field(default=CANDIDATES, ge=0, le=MAX_CANDIDATES)
    """How many of the nodes that fit a pod are offered to kube-scheduler, the best by the strategy. If other
    pods or scheduler plugins rule out all of these, the pod's next attempts are offered every node. 0: always
    every node."""
    weight: int = Field(default=WEIGHT, ge=1, le=MAX_WEIGHT)
    """Weight of the strategy beside kube-scheduler's own scores. The default outweighs kube-scheduler's
    default spreading over nodes; 1 leaves most to kube-scheduler. A pod's own preferences always come first.
    One weight applies to all policies: that of the oldest policy that shares a node."""


_EXTENDER_PORT = rules(
    rule(
        "self + 1 < 30000 || self > 32767",
        "extenderPort and the port after it must lie outside the NodePort range 30000-32767:"
        " a Service could take over kube-scheduler's calls",
    )
)


class VolcanoScheduler(PolicyModel):
    """Where the configuration of Volcano's scheduler is. Its defaults are those of Volcano's installation."""

    namespace: str = Field(default="volcano-system", min_length=1, max_length=63)
    config_map: str = Field(default="volcano-scheduler-configmap", min_length=1, max_length=253)
    key: str = Field(default="volcano-scheduler.conf", min_length=1, max_length=253)
    """Key of the configuration file in the ConfigMap."""


_SCHEDULER = rules(
    rule(
        "!has(self.volcano) || (has(self.backend) && self.backend == 'Volcano')",
        "volcano is only read with backend: Volcano",
    ),
    rule(
        "!has(self.engine) || self.engine != 'Plugin'"
        " || !has(self.backend) || !(self.backend in ['External', 'Volcano'])",
        "engine Plugin needs a kube-scheduler of gpushare's own: set backend to Dedicated or"
        " KubeScheduler, or leave engine out",
    ),
)
ENGINE_OF_BACKEND: Mapping[Backend, Engine] = {Backend.DEDICATED: Engine.PLUGIN}
"""Where a policy names none; with all other backends it is Extender."""


class Scheduler(PolicyModel):
    """Which scheduler places pods, and which program chooses cards for it."""

    backend: Backend = Backend.KUBE_SCHEDULER
    """KubeScheduler: the cluster's own; its static pod is edited, and restored with the last policy.
    Dedicated: a second kube-scheduler that runs in the cluster, for managed control planes.
    External: a kube-scheduler that people configure themselves, by what gpushare-hostctl render prints.
    Volcano: Volcano's scheduler; its ConfigMap is edited, and restored with the last policy."""
    engine: Engine | None = None
    """Plugin: gpushare's own kube-scheduler places pods, with a plugin that knows the cards; if there is none
    for the API server's minor version, Extender is used. Extender: an HTTP extender chooses cards, beside a
    kube-scheduler as Kubernetes publishes it. Left out: Plugin with backend Dedicated, Extender with all
    others."""
    volcano: VolcanoScheduler | None = None
    """With backend Volcano: where Volcano's configuration is."""
    extender_port: int = Field(default=EXTENDER_PORT, ge=1024, le=65534, json_schema_extra=_EXTENDER_PORT)
    """The extender's port on the loopback address of each control plane; the next port is for probes."""
    timeout_seconds: int = Field(default=120, ge=30, le=900)
    """How long an edited kube-scheduler may take until it serves again. After that the edit is undone."""

    @property
    def desired_engine(self) -> Engine:
        """Returns the engine that is asked for, by name or by leaving it out."""
        return self.engine or ENGINE_OF_BACKEND.get(self.backend, Engine.EXTENDER)


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


class PluginSettings(PolicyModel):
    """Settings of the plugin on each node."""

    log_level: LogLevel = LogLevel.INFO
    runtime_class_name: str = Field(default="", max_length=253, json_schema_extra=_RUNTIME_CLASS)
    """RuntimeClass of the plugin's pods: with source NVML that of NVIDIA's container runtime, which gives
    them the driver's library. Empty: the node's default runtime."""
    measurement: Annotated[Measurement, _Struct(Measurement)] = Field(default_factory=Measurement)
    log_folder: str = Field(default="", max_length=200, json_schema_extra=_LOG_FOLDER)
    """Folder on the node, below /var/log, for a copy of the plugin's log: gpushare-plugin.log and four
    earlier files of 10 MiB. Empty: no copy."""


class ProgramSettings(PolicyModel):
    """Settings of a program that serves all policies."""

    log_level: LogLevel = LogLevel.INFO
    """Of several policies the most verbose one counts."""


class ExtenderSettings(ProgramSettings):
    """Settings of the extender."""

    log_folder: str = Field(default="", max_length=200, json_schema_extra=_LOG_FOLDER)
    """Folder on the extender's host, below /var/log, for a copy of the extender's log:
    extender/gpushare-extender.log and four earlier files of 10 MiB. Empty: no copy. Used with backends
    KubeScheduler and External; the oldest policy that names a folder counts."""


class Admission(PolicyModel):
    """Which new pods are warned of or refused, in the whole cluster."""

    visible_devices: AdmissionAnswer = AdmissionAnswer.ALLOW
    """For pods with a container that asks for no card and sets NVIDIA_VISIBLE_DEVICES, or another runtime's
    variable like it: the container may see all cards of its node. Allow: such a pod may run. Warn: whoever
    creates it is warned. Deny: it is refused. Of several policies the strictest one counts. Namespaces with
    the label gpushare.io/visible-devices: allowed are exempt."""
    isolation_bypass: AdmissionAnswer = AdmissionAnswer.WARN
    """For pods that ask for units and bypass isolation, while a policy asks for isolation: by variables of
    the driver or of MPS, mounts over isolation's files, or privileges. Allow: such a pod may run. Warn:
    whoever creates it is warned. Deny: it is refused. Of several policies the strictest one counts.
    Namespaces with the label gpushare.io/isolation-bypass: allowed are exempt."""


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
        " the second has no effect; remove one of them",
    ),
)


_SPEC = rules(
    rule(
        "!has(self.scheduler) || !has(self.scheduler.backend) || self.scheduler.backend != 'Volcano'"
        " || (has(self.dialect) && self.dialect == 'volcano.sh')",
        "scheduler.backend Volcano needs dialect: volcano.sh, the only one that Volcano's scheduler speaks",
    ),
    rule(
        "self.nodes.all(a, !has(a.isolation) || !has(a.isolation.onExcess)"
        " || a.isolation.onExcess != 'Evict') || (has(self.plugin) && has(self.plugin.measurement)"
        " && has(self.plugin.measurement.scope) && self.plugin.measurement.scope == 'Containers')",
        "isolation.onExcess Evict needs the memory use of containers: set plugin.measurement.scope to"
        " Containers, or onExcess to Report",
    ),
)


class PolicySpec(PolicyModel):
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
    """What a node does whose unit or mode cannot change yet, because pods hold units. Drain: it takes no new
    pods, so that an amount means the same everywhere, and changes when the last of these pods has ended.
    Keep: it takes new pods by the former unit."""
    dialect: DialectName = DialectName.GPUSHARE
    placement: Placement = Field(default_factory=Placement)
    admission: Admission = Field(default_factory=Admission)
    startup_taint: StartupTaintHandling = Field(
        default=StartupTaintHandling.IGNORE,
        description=f"Remove: a new node loses the taint {STARTUP_TAINT} when its plugin offers its cards;"
        " before that, autoscalers do not count the node as ready. Ignore: the taint stays.",
    )
    scheduler: Scheduler = Field(default_factory=Scheduler, json_schema_extra=_SCHEDULER)
    plugin: PluginSettings = Field(default_factory=PluginSettings)
    extender: ExtenderSettings = Field(default_factory=ExtenderSettings)
    operator: ProgramSettings = Field(default_factory=ProgramSettings)

    def first_rule(self, node: str, labels: Mapping[str, str]) -> int | None:
        """Returns the position of the rule that the node belongs to."""
        return next((at for at, rule in enumerate(self.nodes) if rule.matches(node, labels)), None)

    def of_node(self, policy: str, rule: NodeRule) -> NodeSpec:
        """Returns what the policy of that name asks of a node under ``rule``.

        What nobody asked for is left out: an upgrade writes no GPUShareNode anew because of a new field.
        """
        asked, candidates = self.extender.log_level, self.placement.candidates
        return NodeSpec(
            policy=policy,
            mode=rule.mode,
            memory_unit=self.memory_unit,
            dialect=self.dialect,
            strategy=self.placement.strategy,
            preemption=self.placement.preemption,
            candidates=None if candidates == CANDIDATES else candidates,
            slices_per_card=rule.slices_per_card,
            unit_change=None if self.unit_change is UnitChange.DRAIN else self.unit_change,
            reserved_memory=rule.reserved_memory,
            devices=rule.devices,
            log_level=self.plugin.log_level,
            measurement=self.plugin.measurement,
            isolation=None if rule.isolation == Isolation() else rule.isolation,
            extender_log_level=None if asked is LogLevel.INFO else asked,
        )


class GPUSharePolicy(PolicyModel):
    """Which nodes share their cards, and how. Cluster-scoped."""

    metadata: Annotated[ObjectMeta, _Struct(ObjectMeta)]
    spec: PolicySpec = Field(json_schema_extra=_SPEC)
    status: Annotated[PolicyStatus, _Struct(PolicyStatus)] = Field(default_factory=PolicyStatus)
