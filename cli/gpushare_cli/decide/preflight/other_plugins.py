"""Who else gives cards away: the device plugins of NVIDIA and of other systems that share cards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.node_groups import places
from gpushare_cli.decide.preflight.objects import PreflightNode
from gpushare_core.api.names import DIALECT_LABEL, PLUGIN_NODE_LABEL
from gpushare_core.dialects.table import DIALECTS


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPlugin:
    name: str
    images: tuple[str, ...]
    """Parts of the images of its DaemonSet."""
    resources: tuple[str, ...]
    """What it offers on nodes; empty: it gives cards to ResourceClaims."""
    switched_off: str
    """A command that keeps it away from a node, or a sentence."""


NVIDIA = OtherPlugin(
    name="NVIDIA's device plugin",
    images=("nvidia/k8s-device-plugin", "/nvidia-gpu-device-plugin"),
    resources=("nvidia.com/gpu",),
    switched_off="kubectl label node NAME nvidia.com/gpu.deploy.device-plugin=false  # with the GPU operator",
)
OTHER_PLUGINS: Sequence[OtherPlugin] = (
    NVIDIA,
    OtherPlugin(
        name="HAMi",
        images=("/hami:", "/hami@", "/k8s-vgpu"),
        resources=("nvidia.com/gpu",),
        switched_off="kubectl label node NAME gpu-",
    ),
    OtherPlugin(
        name="Volcano's device plugin",
        images=("/volcano-device-plugin", "/volcano-vgpu-device-plugin"),
        resources=("volcano.sh/gpu-memory", "volcano.sh/vgpu-number"),
        switched_off="",
    ),
    OtherPlugin(
        name="Aliyun's gpushare",
        images=("/k8s-gpushare-plugin", "/gpushare-device-plugin"),
        resources=("aliyun.com/gpu-mem",),
        switched_off="kubectl label node NAME gpushare-",
    ),
    OtherPlugin(
        name="Enflame's gcushare",
        images=("/gcushare-device-plugin", "/k8s-gcushare-plugin"),
        resources=("enflame.com/shared-gcu",),
        switched_off="",
    ),
    OtherPlugin(
        name="Tencent's GPU manager",
        images=("/gpu-manager",),
        resources=("tencent.com/vcuda-core",),
        switched_off="kubectl label node NAME nvidia-device-enable-",
    ),
    OtherPlugin(
        name="NVIDIA's DRA driver",
        images=("/k8s-dra-driver", "/dra-driver-nvidia-gpu"),
        resources=(),
        switched_off="",
    ),
)


def other_plugins_answer(facts: PreflightFacts) -> PreflightAnswer:
    nodes = {node.name: node for node in facts.nodes}
    found, served, commands = [], set[str](), []
    for plugin in OTHER_PLUGINS:
        sets, offered = list(_daemon_sets(plugin, facts)), _nodes_of(plugin, facts)
        if sets or (offered and not _is_claimed(plugin, facts)):
            served |= set(offered)
            found.append(_described(plugin, sets, offered))
            commands.append(plugin.switched_off)
    if not found:
        return PreflightAnswer(verdict=Verdict.OK, found="no other device plugin for cards is seen")
    twice = sorted(name for name in served if PLUGIN_NODE_LABEL in nodes[name].labels)
    warning = f" On {places(twice)}, which gpushare shares, cards go to two pods." if twice else ""
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found="; ".join(found),
        to_do="Keep it away from nodes that gpushare gets, and let its pods there end first: docs/nvml.md."
        + warning,
        command=next(filter(None, commands), ""),
        nodes=tuple(sorted(served)),
    )


def _described(plugin: OtherPlugin, sets: Sequence[str], offered: Sequence[str]) -> str:
    runs = f" (DaemonSet {', '.join(sets)})" if sets else ""
    if not plugin.resources:
        return f"{plugin.name}{runs}, which gives cards to ResourceClaims"
    return f"{plugin.name}{runs}" + (
        f" offers {plugin.resources[0]} on {places(offered)}" if offered else ", which offers nothing yet"
    )


def _daemon_sets(plugin: OtherPlugin, facts: PreflightFacts) -> Iterator[str]:
    for found in facts.daemon_sets:
        if any(part in image for image in found.images for part in plugin.images):
            yield found.full_name


def _nodes_of(plugin: OtherPlugin, facts: PreflightFacts) -> list[str]:
    return sorted(
        node.name
        for node in facts.nodes
        if any(node.offers(name) for name in plugin.resources if name not in _ours(node))
    )


def _ours(node: PreflightNode) -> frozenset[str]:
    """Returns the resources that gpushare's own plugin offers there by the names of a dialect."""
    dialect = DIALECTS.get(node.labels.get(DIALECT_LABEL, ""))
    return frozenset(dialect.resources) if dialect and PLUGIN_NODE_LABEL in node.labels else frozenset()


def _is_claimed(plugin: OtherPlugin, facts: PreflightFacts) -> bool:
    """Whether another plugin, whose DaemonSet is seen, offers the same resources; without any DaemonSet the
    first one of the table is taken to."""
    same = [other for other in OTHER_PLUGINS if set(other.resources) & set(plugin.resources)]
    owners = [other for other in same if any(_daemon_sets(other, facts))] or same[:1]
    return plugin not in owners
