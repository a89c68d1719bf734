"""What a policy can ask of a node in each mode, and the shapes of pods that ask for something there."""

from collections.abc import Callable

from tests.samples.plugin import container

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.text.json_object import Json

SPECS: dict[str, list[Json]] = {
    "Memory": [{"mode": "Memory", "memoryUnit": "1Gi"}, {"mode": "Memory", "memoryUnit": "512Mi"}],
    "Slices": [{"mode": "Slices", "slicesPerCard": 2}, {"mode": "Slices", "slicesPerCard": 3}],
    "Exclusive": [{"mode": "Exclusive"}],
    "Mixed": [{"mode": "Mixed", "memoryUnit": "1Gi", "slicesPerCard": 2}],
}
"""What a policy can ask of a node."""
MEMORY, SLICE, CARD = GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource
SERVED = {"Memory": (MEMORY,), "Slices": (SLICE,), "Exclusive": (CARD,), "Mixed": (MEMORY, SLICE, CARD)}
CLASSES = {mode: [RESOURCES[name] for name in names] for mode, names in SERVED.items()}
SHAPES: list[Callable[[str, int], tuple[list[Json], list[Json]]]] = [
    lambda name, amount: ([container("main", amount, name)], []),
    lambda name, amount: ([container("main", amount, name), container("side", 1, name)], []),
    lambda name, amount: ([container("main", amount, name)], [container("init", 1, name)]),
    lambda name, amount: ([container("main", 1, name)], [container("init", amount, name)]),
    lambda name, amount: ([container("main", amount, name)], [_sidecar("side", 1, name)]),
]
"""Containers and init containers of a pod."""


def _sidecar(name: str, units: int, resource: str) -> Json:
    return container(name, units, resource, restartPolicy="Always")
