"""Rows ``allocate`` and ``plugin``: what a plugin costs the kubelet and the node."""

from bench.measuring.figures import Figure, at_most
from bench.rows.programs.plugin_node import COARSE, FINE, PluginNode
from bench.rows.programs.workplace import Workplace

MAX_MIB = 64.0
MAX_IDLE = 0.2
LONGEST = {COARSE: 5.0, FINE: 150.0}
"""Milliseconds of an admission at p99."""


async def admissions(workplace: Workplace) -> list[Figure]:
    """Allocate and GetPreferredAllocation together, the plugin's own time."""
    return [figure for node in (COARSE, FINE) for figure in await _admissions(workplace, node)]


async def _admissions(workplace: Workplace, node: PluginNode) -> list[Figure]:
    use = await workplace.plugin(node)
    what = f"Allocate + GetPreferredAllocation, {use.pods} pods, {node.units:,} units"
    return [
        Figure(f"{what}: p50", use.admission.p50, "ms"),
        Figure(f"{what}: p99", use.admission.p99, "ms", at_most(LONGEST[node])),
        Figure(f"{what}: plugin per pod, until the status has it", use.cpu, "ms of CPU"),
    ]


async def footprint(workplace: Workplace) -> list[Figure]:
    """Memory with many pods and with many units, and what it does while nothing happens."""
    coarse, fine = await workplace.plugin(COARSE), await workplace.plugin(FINE)
    return [
        Figure(f"plugin, {coarse.pods} pods", coarse.loaded, "MiB", at_most(MAX_MIB)),
        Figure(f"plugin, {FINE.units:,} units", fine.offered, "MiB", at_most(MAX_MIB)),
        Figure(f"plugin, {FINE.units:,} units and {fine.pods} pods", fine.loaded, "MiB", at_most(MAX_MIB)),
        Figure(f"plugin when idle, {coarse.pods} pods", coarse.idle, "% of a core", at_most(MAX_IDLE)),
    ]
