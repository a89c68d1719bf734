"""What kube-scheduler and an extender say to each other: JSON, decoded only as far as needed.

Source: ``k8s.io/kube-scheduler/extender/v1`` (Go structs without JSON tags, so keys are the fields' names).
"""

from typing import Any

import msgspec


class Resources(msgspec.Struct, omit_defaults=True):
    """Source: ``v1.ResourceRequirements``."""

    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class Container(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    restart_policy: str | None = None
    resources: Resources | None = None


class PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """Source: ``v1.PodSpec``."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class PodMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class Pod(msgspec.Struct):
    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class NodeItems(msgspec.Struct):
    """Source: ``v1.NodeList``. Items go back as they came."""

    items: list[msgspec.Raw] | None = None


class FilterArgs(msgspec.Struct, rename="pascal"):
    """``ExtenderArgs``: with nodeCacheCapable the scheduler sends ``node_names``, else ``nodes``."""

    pod: Pod | None = None
    nodes: NodeItems | None = None
    node_names: list[str] | None = None


class FilterResult(msgspec.Struct, rename="pascal", omit_defaults=True, kw_only=True):
    """``ExtenderFilterResult``. ``error`` fails this attempt of the whole pod."""

    nodes: NodeItems | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(msgspec.Struct, rename="pascal"):
    """One of ``HostPriorityList``. ``score`` is 0 to ``MaxExtenderPriority`` (10)."""

    host: str
    score: int


class BindArgs(msgspec.Struct, rename="pascal"):
    """``ExtenderBindingArgs``."""

    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = msgspec.field(name="PodUID")


class BindResult(msgspec.Struct):
    """``ExtenderBindingResult``; an empty error is success."""

    error: str = msgspec.field(name="Error", default="")


class NodeMeta(msgspec.Struct):
    name: str


class NamedNode(msgspec.Struct):
    metadata: NodeMeta


FILTER_ARGS = msgspec.json.Decoder(FilterArgs)
BIND_ARGS = msgspec.json.Decoder(BindArgs)
NAMED_NODE = msgspec.json.Decoder(NamedNode)
ENCODER = msgspec.json.Encoder()
