"""Everything that the operator ever does to the cluster, as values."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

import msgspec

from gpushare_core.api.conditions import ConditionState
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.objects import Excess, VolcanoLocation


@dataclass(frozen=True, slots=True)
class SetFinalizers:
    """Refused by the API server if the policy has changed since ``resource_version``."""

    policy: str
    resource_version: str
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApplyShareNode:
    """Create a GPUShareNode, or change the one that has ``uid``; refused where the other is due."""

    node: str
    body: Json
    uid: str = ""
    """Empty: no GPUShareNode is there."""


@dataclass(frozen=True, slots=True)
class DeleteShareNode:
    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class DoubtShareNode:
    """Set conditions of a GPUShareNode to Unknown, because its plugin is unavailable."""

    node: str
    uid: str
    since: datetime
    """When the plugin last renewed its Lease."""
    conditions: tuple[ConditionState, ...]


@dataclass(frozen=True, slots=True)
class LabelNode:
    """None removes a label or annotation. Refused if the node no longer has ``uid``."""

    node: str
    uid: str
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MarkPolicy:
    """None removes a label or annotation. Refused if the policy no longer has ``uid``."""

    policy: str
    uid: str
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Write:
    """Writes a whole object; its kind is in the name of the action's class."""

    name: str
    body: Json


@dataclass(frozen=True, slots=True)
class Deletion:
    """Deletes the object that has ``uid``; its pods go with it."""

    name: str
    uid: str


class ApplyDaemonSet(_Write):
    """Create or change a DaemonSet."""


class DeleteDaemonSet(Deletion):
    """Delete a DaemonSet."""


class ApplyDeployment(_Write):
    """Create or change a Deployment."""


class DeleteDeployment(Deletion):
    """Delete a Deployment."""


class CreateJob(_Write):
    """Nothing happens if there is one of that name: a name stands for one attempt on one node."""


class DeleteJob(Deletion):
    """Delete a Job."""


@dataclass(frozen=True, slots=True)
class RecordResult:
    """Write the exit code of hostctl into its Job."""

    name: str
    uid: str
    exit_code: int


class ApplyVolcanoBackup(_Write):
    """Create or change the ConfigMap that says how a configuration of Volcano was."""


class DeleteVolcanoBackup(Deletion):
    """Delete that ConfigMap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteVolcanoConfig:
    """Refused by the API server if the ConfigMap has changed since ``resource_version``."""

    location: VolcanoLocation
    uid: str
    resource_version: str
    text: str

    @property
    def name(self) -> str:
        return str(self.location)


class CapacityLeft(StrEnum):
    """Why resources are left in a node's status."""

    BY_PLUGIN = "plugin"
    """The plugin has just gone."""
    BY_KUBELET = "kubelet"
    """The kubelet wrote what it remembers of a plugin that went earlier."""


@dataclass(frozen=True, slots=True)
class ClearCapacity:
    """Take resources out of a node's capacity and allocatable: the kubelet never removes them by itself."""

    node: str
    uid: str
    resources: tuple[str, ...]
    left: CapacityLeft = CapacityLeft.BY_PLUGIN


@dataclass(frozen=True, slots=True)
class SetCounts:
    """Write ``counts`` into a node's capacity and allocatable. No plugin registers these names there, so the
    kubelet leaves them alone."""

    node: str
    uid: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RemoveStartupTaint:
    """Refused by the API server if the node has changed since ``resource_version``."""

    node: str
    uid: str
    resource_version: str
    others: tuple[Json, ...]
    """The taints that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPod:
    """Evict a pod because of ``excess``. Refused if another pod has its name now, and while a
    PodDisruptionBudget protects it."""

    node: str
    policy: str
    excess: Excess
    seconds: int
    """How long the operator has seen the excess."""

    @property
    def name(self) -> str:
        return f"{self.excess.namespace}/{self.excess.pod}"

    @property
    def why(self) -> str:
        """Returns what is wrong, as a sentence."""
        excess = self.excess
        asked = f" and asked for {excess.asked}" if excess.asked else ", more than it asked for"
        where = f"of card {excess.card} of node {self.node}"
        return f"container {excess.container} has {excess.used} {where}{asked}, for {self.seconds} s"


Action: TypeAlias = (
    SetFinalizers
    | ApplyShareNode
    | DeleteShareNode
    | DoubtShareNode
    | LabelNode
    | MarkPolicy
    | ApplyDaemonSet
    | DeleteDaemonSet
    | ApplyDeployment
    | DeleteDeployment
    | CreateJob
    | RecordResult
    | DeleteJob
    | ApplyVolcanoBackup
    | DeleteVolcanoBackup
    | WriteVolcanoConfig
    | ClearCapacity
    | SetCounts
    | RemoveStartupTaint
    | EvictPod
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now.

    Every action is right for the snapshot that the plan was made from: no action relies on the success of an
    earlier one. What must come later is planned once the snapshot shows that its time has come.
    """

    actions: tuple[Action, ...] = ()
    retry_after: float | None = None
    """Seconds after which something may be due although nothing has changed."""


PRESENT = "present"
"""The desired value of an object that has to exist, whatever its fields."""


def target(action: Action) -> tuple[str, str]:
    """Returns the kind of action, and the object that it changes."""
    name = getattr(action, "name", "") or getattr(action, "node", "") or getattr(action, "policy", "")
    # Different plans change different labels of one node.
    keys = sorted([*action.labels, *action.annotations]) if isinstance(action, LabelNode) else []
    part = f" {','.join(keys)}" if keys else ""
    return (type(action).__name__, f"{name}{part}")


DesiredFields: TypeAlias = dict[tuple[str, ...], str | None]


def desired_fields(action: Action) -> DesiredFields:
    """Returns field -> the value that ``action`` asks for, None for its absence: two actions that ask for
    different values of a field undo each other."""
    match action:
        case LabelNode():
            changes = (("label", action.labels), ("annotation", action.annotations))
            return {(kind, action.node, key): values[key] for kind, values in changes for key in values}
        case MarkPolicy():
            changes = (("policy label", action.labels), ("policy annotation", action.annotations))
            return {(kind, action.policy, key): values[key] for kind, values in changes for key in values}
        case SetCounts():
            return {("capacity", action.node, name): str(count) for name, count in action.counts.items()}
        case ClearCapacity():
            wanted: DesiredFields = {("capacity", action.node, name): None for name in action.resources}
            # What the kubelet remembers says nothing about what is offered now.
            return wanted | ({("offer", action.node): None} if action.left is CapacityLeft.BY_PLUGIN else {})
        case ApplyShareNode():
            return {("GPUShareNode", action.node): PRESENT, ("offer", action.node): PRESENT}
        case DeleteShareNode():
            return {("GPUShareNode", action.node): None}
        case _Write():
            return {(_kind(action), action.name): PRESENT}
        case Deletion():
            return {(_kind(action), action.name): None}
        case _:
            return {}


def digest(action: Action) -> bytes:
    """Returns the same for actions that ask the same of their object, whatever its version."""
    asked: Action = action
    if isinstance(action, SetFinalizers | WriteVolcanoConfig | RemoveStartupTaint):
        asked = replace(action, resource_version="")
    elif isinstance(action, ApplyShareNode):
        asked = replace(action, uid="")
    return hashlib.blake2b(msgspec.json.encode(asked, order="sorted"), digest_size=16).digest()


def describe(action: Action) -> str:
    match action:
        case SetFinalizers():
            return f"set finalizers of policy {action.policy} to {list(action.finalizers)}"
        case ApplyShareNode() | DeleteShareNode():
            return f"{_verb(action)} GPUShareNode {action.node}"
        case RecordResult():
            return f"record exit code {action.exit_code} of hostctl on Job {action.name}"
        case DoubtShareNode():
            types = ", ".join(condition.type for condition in action.conditions)
            return f"set {types} of GPUShareNode {action.node} to Unknown"
        case LabelNode():
            return f"label node {action.node} {dict(action.labels) | dict(action.annotations)}"
        case MarkPolicy():
            return f"mark policy {action.policy} {dict(action.labels) | dict(action.annotations)}"
        case ClearCapacity() | SetCounts() | RemoveStartupTaint() | EvictPod():
            return _describe_change_of_node(action)
        case ApplyVolcanoBackup() | DeleteVolcanoBackup():
            return f"{_verb(action)} ConfigMap {action.name}"
        case WriteVolcanoConfig():
            return f"edit {action.name}"
        case _:
            return f"{_verb(action)} {_kind(action)} {action.name}"


def _kind(action: Action) -> str:
    """Returns the kind of object in the name of the action's class, such as DaemonSet."""
    return type(action).__name__[len(_verb(action)) :]


def _describe_change_of_node(action: ClearCapacity | SetCounts | RemoveStartupTaint | EvictPod) -> str:
    match action:
        case ClearCapacity():
            return f"remove {', '.join(action.resources)} from the status of node {action.node}"
        case SetCounts():
            counts = ", ".join(f"{name} {count}" for name, count in action.counts.items())
            return f"show {counts} in the status of node {action.node}"
        case RemoveStartupTaint():
            return f"remove the startup taint from node {action.node}"
        case EvictPod():
            return f"evict pod {action.name}: {action.why}"


def _verb(action: Action) -> str:
    name = type(action).__name__
    return next(verb for verb in ("apply", "delete", "create") if name.lower().startswith(verb))
