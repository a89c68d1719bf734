"""The kubelet's two questions when it admits a container: which units, and what comes with them."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from gpushare_core.books.allocation import sum_shares
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.decide.admission import (
    admission_candidates,
    admitted_by_arrival,
    pods_to_read,
    pods_without_units,
)
from gpushare_plugin.decide.allocations import forgotten_units, promised_units, shares_to_get_again
from gpushare_plugin.decide.environment import environment
from gpushare_plugin.decide.hints import hinted_cards, hinted_units
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.pods import Pod
from gpushare_plugin.decide.preferred_allocation import ContainerRequest, choose_units
from gpushare_plugin.decide.stand_ins import foreign_by_card, require_room_beside_foreign
from gpushare_plugin.decide.unit_ids import UnitSet, encode_id, known_numbers
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.pod_resources import PodResourcesUnavailableError
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.reservations import Reservations
from gpushare_plugin.state import NodeState

POD_RESOURCES_TIMEOUT = 3.0
"""Seconds within which PodResources have to show which pod is admitted; then the likeliest one is taken."""
SILENT_TIMEOUT = 0.5
"""The same where they did not answer the last time: the kubelet admits one pod after the other."""
SPECS_TIMEOUT = 2.0
"""Seconds for reading pods that the kubelet knew earlier than we."""

_log = logging.getLogger(__name__)


class NothingOfferedError(Exception):
    """The node is not shared (any more)."""


@dataclass(slots=True, kw_only=True)
class Allocator:
    """Answers for one node."""

    state: NodeState
    assignment_reader: AssignmentReader
    reservations: Reservations
    pod_watch: PodWatch
    name: str
    """Of the extended resource that the kubelet asks for."""

    async def prefer(self, request: api.ContainerPreferredAllocationRequest) -> list[str]:
        """Returns exactly as many IDs as requested, on cards as the mode has it.

        The kubelet would fill up a short answer from anywhere.

        Raises:
            NothingFitsError, NothingOfferedError: with a text for the user.
        """
        self._layout()
        pod = await self._admitted_pod(request.allocation_size)
        layout = self._layout()  # not an earlier one: what was asked on the way took its time
        included = list(known_numbers(request.must_include_deviceIDs))
        container = self._container_request(request.allocation_size, included, pod, layout)
        cards, numbers = choose_units(
            container,
            layout,
            available=self._available(request.available_deviceIDs, included),
            included=included,
            strategy=self.state.strategy,
        )
        self.reservations.promise(numbers)
        self._record(pod, cards, container)
        return [encode_id(number) for number in numbers]

    def environment(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns the variables of a container with the units ``ids``.

        Raises:
            UnusableUnitsError, NothingOfferedError: with a text for the user.
        """
        self.reservations.allocate([*known_numbers(ids)])
        self.assignment_reader.read_soon()
        layout = self._layout()
        variables = environment(ids, layout, self.state.offering.dialect)
        require_room_beside_foreign([*known_numbers(ids)], layout, self.state.assigned)
        return variables

    def _layout(self) -> Layout:
        layout = self.state.offering.layout
        if layout is None:
            raise NothingOfferedError(f"node {self.state.name} does not share its cards")
        if self.state.offering.dialect.resource_name(layout.unit.resource) != self.name:
            raise NothingOfferedError(f"node {self.state.name} does not serve {self.name} (any more)")
        return layout

    async def _admitted_pod(self, units: int) -> Pod | None:
        """Returns the pod that the kubelet admits, by its PodResources; without them the likeliest one."""
        state = self.state
        timeout = POD_RESOURCES_TIMEOUT if state.pod_resources_available else SILENT_TIMEOUT
        try:
            assigned = await self.assignment_reader.read_during_call(timeout=timeout)
        except PodResourcesUnavailableError as error:
            _log.warning("admitting by order of arrival, PodResources do not answer: %s", error)
            return admitted_by_arrival(state.assigned, state.pods, state.preferred, units)
        await self.pod_watch.read_specs(pods_to_read(assigned, state.pods), timeout=SPECS_TIMEOUT)
        unsure = pods_without_units(assigned, state.pods)
        if len(unsure) > 1:  # one is being admitted, the others may run: then the kubelet forgot their units
            await self.pod_watch.read_specs(unsure, timeout=SPECS_TIMEOUT)
        return next(iter(admission_candidates(assigned, state.pods, state.preferred, units)), None)

    def _container_request(
        self, units: int, included: list[int], pod: Pod | None, layout: Layout
    ) -> ContainerRequest:
        assigned = self._assigned_numbers(pod)
        others = [other for other in self.state.pods.values() if pod is None or other.uid != pod.uid]
        return ContainerRequest(
            units=units,
            pod_units=max(units, _total(pod) - len(assigned)),
            pod_cards=frozenset(layout.shares([*included, *assigned])) | self._preferred_cards(pod),
            annotated_cards=self._annotated_cards(pod, units, layout),
            promised=self._promised(others, layout),
            forgotten=forgotten_units(others, self.state.assigned),
            limits=self._limits(included, layout),
        )

    def _promised(self, others: Sequence[Pod], layout: Layout) -> Mapping[str, int]:
        """Returns card UUID -> units that these pods were promised, also by another scheduler."""
        assigned, dialect = self.state.assigned, self.state.offering.dialect
        hinted = hinted_units(others, assigned, layout, dialect)
        return sum_shares({"annotated": promised_units(others, assigned), "hinted": hinted})

    def _annotated_cards(self, pod: Pod | None, units: int, layout: Layout) -> tuple[str, ...]:
        """Of a pod that runs those of the container that restarts: the others run on theirs still."""
        if pod is None:
            return ()
        again = tuple(shares_to_get_again(pod, self.state.assigned, units))
        return again or pod.annotated_cards or hinted_cards(pod, layout, self.state.offering.dialect)

    def _assigned_numbers(self, pod: Pod | None) -> list[int]:
        return self.state.assigned.numbers_of(pod) if pod else []

    def _preferred_cards(self, pod: Pod | None) -> frozenset[str]:
        """Where each card is another one only as long as PodResources do not show them: a container that
        restarts after the kubelet lost its checkpoint has to get its own cards again."""
        preferred = self.state.preferred.get(pod.uid) if pod else None
        shown = RESOURCES[self.name] is not ResourceClass.MEMORY and self.state.pod_resources_available
        return frozenset(preferred.cards) if preferred and not shown else frozenset()

    def _available(self, ids: Iterable[str], included: list[int]) -> UnitSet:
        """Returns what the kubelet calls available, less what PodResources show as assigned, or it is taking.

        They differ when a pod ends while another one is being admitted: the kubelet then forgets for a
        moment what it gave to the latter. Source: ``ManagerImpl.UpdateAllocatedDevices``.
        """
        available = UnitSet(known_numbers(ids))
        available.discard(self._taken(included))
        return available

    def _limits(self, included: list[int], layout: Layout) -> Mapping[str, int]:
        """Returns card UUID -> units that are free beside the foreign ones, whatever the kubelet was sent."""
        foreign = foreign_by_card(layout, self.state.assigned)
        if not foreign:
            return {}
        taken = UnitSet(self._taken(included))
        return {
            placed.uuid: placed.units - taken.count(placed.numbers) - foreign.get(placed.uuid, 0)
            for placed in layout.cards
        }

    def _taken(self, included: list[int]) -> Iterator[int]:
        kept = set(included)
        taken = chain(self.state.assigned.numbers(), self.reservations.numbers())
        return (number for number in taken if number not in kept)

    def _record(self, pod: Pod | None, cards: Sequence[str], request: ContainerRequest) -> None:
        named = ",".join(cards)
        if pod is None:
            _log.warning("units for a pod that nobody knows", extra={"card": named})
            return
        self.state.put_preferred(pod.uid, cards)
        if request.annotated_cards and not set(cards) <= set(request.annotated_cards):
            message = "%d units from another card than annotated, which has no room"
            _log.warning(message, request.units, extra={"pod": str(pod.name), "card": named})


def _total(pod: Pod | None) -> int:
    return pod.request.total if pod and pod.request else 0
