"""The JSON of kube-scheduler's requests and of the responses, decoded only as far as needed.

Source: ``k8s.io/kube-scheduler/extender/v1`` (Go structs without JSON tags, so keys are the fields' names).
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from gpushare_core.scheduling.objects.pod import KubePod, PodMetadata
from gpushare_core.text.printable import REFUSAL_BYTES, printable
from gpushare_extender.decide.preemption.proposals import Proposal

MAX_NODES = 100_000
"""In a request: twice the largest cluster that was measured. Half a million would keep all other clients
waiting for seconds."""


class NodeItems(msgspec.Struct):
    """Source: ``v1.NodeList``. The response has the items as they came."""

    items: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MAX_NODES)] | None = None


class ExtenderArgs(msgspec.Struct, rename="pascal"):
    """Of filter and prioritize. With nodeCacheCapable kube-scheduler sends ``node_names``, else ``nodes``."""

    pod: KubePod | None = None
    nodes: NodeItems | None = None
    node_names: Annotated[list[str], msgspec.Meta(max_length=MAX_NODES)] | None = None


class ExtenderFilterResult(msgspec.Struct, rename="pascal", omit_defaults=True, kw_only=True):
    """``error`` fails the pod's attempt. kube-scheduler writes it, and the reasons, into the pod's Events."""

    nodes: NodeItems | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""

    def __post_init__(self) -> None:
        self.failed_nodes = _printable(self.failed_nodes)
        self.failed_and_unresolvable_nodes = _printable(self.failed_and_unresolvable_nodes)
        self.error = printable(self.error, max_bytes=REFUSAL_BYTES)


def _printable(reasons: dict[str, str]) -> dict[str, str]:
    """Returns node -> reason. Thousands of nodes have only a few different reasons."""
    shown = {reason: printable(reason, max_bytes=REFUSAL_BYTES) for reason in {*reasons.values()}}
    if all(reason == text for reason, text in shown.items()):
        return reasons
    return {node: shown[reason] for node, reason in reasons.items()}


class HostPriority(msgspec.Struct, rename="pascal"):
    """``score`` is from 0 to ``MaxExtenderPriority`` (10)."""

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

    def __post_init__(self) -> None:
        self.error = printable(self.error, max_bytes=REFUSAL_BYTES)


class MetaPod(msgspec.Struct):
    uid: str = msgspec.field(name="UID")


class MetaVictims(msgspec.Struct):
    """Pods by their UIDs, highest priority first."""

    pods: list[MetaPod] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class _VictimPod(msgspec.Struct):
    metadata: PodMetadata

    @property
    def uid(self) -> str:
        return self.metadata.uid


class Victims(msgspec.Struct):
    """Whole pods, which kube-scheduler sends without nodeCacheCapable."""

    pods: list[_VictimPod] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(msgspec.Struct, rename="pascal"):
    """Node -> the pods that kube-scheduler would evict there; from Kubernetes 1.37 on there may be none."""

    pod: KubePod | None = None
    node_name_to_meta_victims: dict[str, MetaVictims | None] | None = None
    node_name_to_victims: dict[str, Victims | None] | None = None

    def proposals(self) -> dict[str, Proposal]:
        """Returns node -> what kube-scheduler proposes."""
        victims = self.node_name_to_meta_victims or self.node_name_to_victims or {}
        return {
            node: Proposal(tuple(pod.uid for pod in some.pods or ()), some.violations) if some else Proposal()
            for node, some in victims.items()
        }


class ExtenderPreemptionResult(msgspec.Struct, rename="pascal"):
    """To kube-scheduler a node without victims is an error."""

    node_name_to_meta_victims: dict[str, MetaVictims]


def preemption_result(proposals: Mapping[str, Proposal]) -> ExtenderPreemptionResult:
    return ExtenderPreemptionResult(
        {
            node: MetaVictims([MetaPod(uid) for uid in proposal.victims], proposal.violations)
            for node, proposal in proposals.items()
        }
    )


class NodeMetadata(msgspec.Struct):
    name: str


class NamedNode(msgspec.Struct):
    """All that is read of a whole ``v1.Node``."""

    metadata: NodeMetadata


EXTENDER_ARGS = msgspec.json.Decoder(ExtenderArgs)
PREEMPTION_ARGS = msgspec.json.Decoder(ExtenderPreemptionArgs)
BINDING_ARGS = msgspec.json.Decoder(ExtenderBindingArgs)
NAMED_NODE = msgspec.json.Decoder(NamedNode)
