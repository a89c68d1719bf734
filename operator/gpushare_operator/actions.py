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
from gpushare_operator.cluster.objects import VolcanoLocation


@dataclass(frozen=True, slots=True)
class SetFinalizers:
    """Refused by the API server if the policy has changed since ``resource_version``."""

    policy: str
    resource_version: str
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApplyShareNode:
    """Create a GPUShareNode, or change the one that has ``uid``: each is refused where the other is due."""

    node: str
    body: Json
    uid: str = ""
    """Empty: there is none."""


@dataclass(frozen=True, slots=True)
class DeleteShareNode:
    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class DoubtShareNode:
    """Have conditions of a GPUShareNode say that nothing is known: its plugin is not heard of."""

    node: str
    uid: str
    since: datetime
    """When it was heard of last."""
    conditions: tuple[ConditionState, ...]


@dataclass(frozen=True, slots=True)
class LabelNode:
    """None removes a label or annotation. Refused if the node is not the one with ``uid`` any more."""

    node: str
    uid: str
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MarkPolicy:
    """None removes a label or annotation. Refused if the policy is not the one with ``uid`` any more."""

    policy: str
    uid: str
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ApplyDaemonSet:
    """Create or change a DaemonSet."""

    name: str
    body: Json


@dataclass(frozen=True, slots=True)
class DeleteDaemonSet:
    """Its pods go with it."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ApplyDeployment:
    """Create or change a Deployment."""

    name: str
    body: Json


@dataclass(frozen=True, slots=True)
class DeleteDeployment:
    """Its pods go with it."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Nothing happens if there is one of that name: a name stands for one attempt on one node."""

    name: str
    body: Json


@dataclass(frozen=True, slots=True)
class RecordResult:
    """Have a Job remember the exit code of hostctl."""

    name: str
    uid: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Its pods go with it."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ApplyVolcanoBackup:
    """Create or change what says how a configuration of Volcano was."""

    name: str
    body: Json


@dataclass(frozen=True, slots=True)
class DeleteVolcanoBackup:
    name: str
    uid: str


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
    """Who left resources in a node's status."""

    BY_PLUGIN = "plugin"
    """It has just gone."""
    BY_KUBELET = "kubelet"
    """It wrote down what it remembers of a plugin that went before."""


@dataclass(frozen=True, slots=True)
class ClearCapacity:
    """Take resources out of a node's capacity and allocatable: the kubelet never forgets them by itself."""

    node: str
    uid: str
    resources: tuple[str, ...]
    left: CapacityLeft = CapacityLeft.BY_PLUGIN


@dataclass(frozen=True, slots=True)
class SetCounts:
    """Have a node's capacity and allocatable show ``counts``: no plugin registers these names there, so the
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
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now.

    Every action is right for the snapshot that the plan was made of: none relies on another one before it
    having succeeded. What must come later is planned when the snapshot shows that its time has come.
    """

    actions: tuple[Action, ...] = ()
    retry_after: float | None = None
    """Seconds after which something may be due although nothing happened."""


PRESENT = "present"
"""Of a thing that is wanted in whatever shape."""


def target(action: Action) -> tuple[str, str]:
    """Returns what kind of thing is done to which object."""
    name = getattr(action, "name", "") or getattr(action, "node", "") or getattr(action, "policy", "")
    # Labels of one node are wanted for different reasons.
    keys = sorted([*action.labels, *action.annotations]) if isinstance(action, LabelNode) else []
    part = f" {','.join(keys)}" if keys else ""
    return (type(action).__name__, f"{name}{part}")


DesiredFields: TypeAlias = dict[tuple[str, ...], str | None]


def desired_fields(action: Action) -> DesiredFields:
    """Returns what is wanted of which thing, None for its absence: two actions that want the same thing
    otherwise undo each other."""
    match action:
        case LabelNode():
            changes = (("label", action.labels), ("annotation", action.annotations))
            return {(kind, action.node, key): each[key] for kind, each in changes for key in each}
        case MarkPolicy():
            changes = (("policy label", action.labels), ("policy annotation", action.annotations))
            return {(kind, action.policy, key): each[key] for kind, each in changes for key in each}
        case SetCounts():
            return {("capacity", action.node, name): str(count) for name, count in action.counts.items()}
        case ClearCapacity():
            wanted: DesiredFields = {("capacity", action.node, name): None for name in action.resources}
            # What the kubelet remembers is no matter of what is offered now.
            return wanted | ({("offer", action.node): None} if action.left is CapacityLeft.BY_PLUGIN else {})
        case ApplyShareNode():
            return {("GPUShareNode", action.node): PRESENT, ("offer", action.node): PRESENT}
        case DeleteShareNode():
            return {("GPUShareNode", action.node): None}
        case ApplyDaemonSet() | ApplyDeployment() | CreateJob() | ApplyVolcanoBackup():
            return {(_kind(action), action.name): PRESENT}
        case DeleteDaemonSet() | DeleteDeployment() | DeleteJob() | DeleteVolcanoBackup():
            return {(_kind(action), action.name): None}
        case (
            SetFinalizers() | WriteVolcanoConfig() | RemoveStartupTaint() | DoubtShareNode() | RecordResult()
        ):
            return {}


def digest(action: Action) -> bytes:
    """Returns the same for actions that ask the same of their object, whatever version of it they are for."""
    asked: Action = action
    if isinstance(action, SetFinalizers | WriteVolcanoConfig | RemoveStartupTaint):
        asked = replace(action, resource_version="")
    elif isinstance(action, ApplyShareNode):
        asked = replace(action, uid="")
    return hashlib.blake2b(msgspec.json.encode(asked, order="sorted"), digest_size=16).digest()


def describe(action: Action) -> str:
    """Returns what is done, for logs and conditions."""
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
        case ClearCapacity() | SetCounts() | RemoveStartupTaint():
            return _describe_node_change(action)
        case ApplyVolcanoBackup() | DeleteVolcanoBackup():
            return f"{_verb(action)} ConfigMap {action.name}"
        case WriteVolcanoConfig():
            return f"edit {action.name}"
        case _:
            return f"{_verb(action)} {_kind(action)} {action.name}"


def _kind(action: Action) -> str:
    """Returns the kind of an object that the action's own name says, such as DaemonSet."""
    return type(action).__name__[len(_verb(action)) :]


def _describe_node_change(action: ClearCapacity | SetCounts | RemoveStartupTaint) -> str:
    match action:
        case ClearCapacity():
            return f"take {', '.join(action.resources)} out of the status of node {action.node}"
        case SetCounts():
            counts = ", ".join(f"{name} {count}" for name, count in action.counts.items())
            return f"show {counts} in the status of node {action.node}"
        case RemoveStartupTaint():
            return f"take the startup taint off node {action.node}"


def _verb(action: Action) -> str:
    name = type(action).__name__
    return next(verb for verb in ("apply", "delete", "create") if name.lower().startswith(verb))
