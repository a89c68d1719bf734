"""Cards that do not exist."""

import uuid
from collections.abc import Iterator, Sequence

from gpushare_core.api.names import SIMULATE_ANNOTATION
from gpushare_core.api.share_node import GPUShareNode, SimulatedCards
from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.devices.card import DeviceSource, PhysicalCard, Reading
from gpushare_plugin.devices.simulated.simulation import simulated_reading
from gpushare_plugin.devices.simulated.use import SimulatedUse
from gpushare_plugin.devices.use import LimitSource, UseSource

_NAMESPACE = uuid.UUID("a1f0c1f4-6f0b-5b1c-9a57-2f2f6f1c0e11")


class SimulatedFamily:
    def __init__(self) -> None:
        self._before: str | None = None
        """The annotation when the source was opened last."""

    def open(self, share_node: GPUShareNode) -> DeviceSource:
        happening = share_node.metadata.annotations.get(SIMULATE_ANNOTATION, "")
        before, self._before = self._before, happening
        groups = share_node.spec.devices.simulated
        return SimulatedSource(share_node.metadata.name, groups, happening, before=before)

    def open_use(self) -> UseSource:
        return SimulatedUse()

    def open_limits(self) -> LimitSource | None:
        return None


class SimulatedSource:
    """The cards that a policy describes. They change only as ``happening`` says, see ``simulation``.

    ``before``: what ``happening`` was at the last reading.
    """

    def __init__(
        self,
        node: str,
        groups: Sequence[SimulatedCards],
        happening: str = "",
        *,
        before: str | None = None,
    ) -> None:
        self._reading = simulated_reading(tuple(simulate(node, groups)), happening, before)

    async def read(self) -> Reading:
        return self._reading


def simulate(node: str, groups: Sequence[SimulatedCards]) -> Iterator[PhysicalCard]:
    """Yields the cards, group by group. The same node and index always give the same UUID."""
    group_of_card = (group for group in groups for _ in range(group.count))
    for index, group in enumerate(group_of_card):
        yield PhysicalCard(
            uuid=card_uuid(node, index),
            index=index,
            memory=parse_memory(group.memory),
            model=group.model,
            compute_score=group.compute_score,
            numa_node=group.numa_node,
            link_group=-1 if group.link_group is None else group.link_group,
        )


def card_uuid(node: str, index: int) -> str:
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}"
