"""What kube-scheduler and an extender say to each other: JSON, decoded only as far as needed.

Source: ``k8s.io/kube-scheduler/extender/v1`` (Go structs without JSON tags, so keys are the fields' names).
"""

import msgspec

from gpushare_extender.decide.pod import Pod


class NodeItems(msgspec.Struct):
    """Source: ``v1.NodeList``. Items go back as they came."""

    items: list[msgspec.Raw] | None = None


class ExtenderArgs(msgspec.Struct, rename="pascal"):
    """Of filter and prioritize: with nodeCacheCapable the scheduler sends ``node_names``, else ``nodes``."""

    pod: Pod | None = None
    nodes: NodeItems | None = None
    node_names: list[str] | None = None


class ExtenderFilterResult(msgspec.Struct, rename="pascal", omit_defaults=True, kw_only=True):
    """``error`` fails this attempt of the whole pod."""

    nodes: NodeItems | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(msgspec.Struct, rename="pascal"):
    """One of a ``HostPriorityList``. ``score`` is 0 to ``MaxExtenderPriority`` (10)."""

    host: str
    score: int


class ExtenderBindingArgs(msgspec.Struct, rename="pascal"):
    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = msgspec.field(name="PodUID")


class ExtenderBindingResult(msgspec.Struct):
    """An empty error is success."""

    error: str = msgspec.field(name="Error", default="")


class NodeMetadata(msgspec.Struct):
    name: str


class NamedNode(msgspec.Struct):
    """All that is read of a whole ``v1.Node``."""

    metadata: NodeMetadata


EXTENDER_ARGS = msgspec.json.Decoder(ExtenderArgs)
BINDING_ARGS = msgspec.json.Decoder(ExtenderBindingArgs)
NAMED_NODE = msgspec.json.Decoder(NamedNode)
ENCODER = msgspec.json.Encoder()
