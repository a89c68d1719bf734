"""The kubelet's two questions when it admits a container: which units, and what comes with them."""

import logging
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from gpushare_core.allocation_annotation import Shares, sum_shares
from gpushare_core.placement.modes.table import unservable_reason
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.decide.admit.injection import ContainerAnswer, container_answer
from gpushare_plugin.decide.admit.pod_being_admitted import (
    candidates_by_arrival,
    candidates_by_list,
    has_pod_unknown_to_api,
    pods_to_read,
    pods_without_units,
    require_not_listed,
)
from gpushare_plugin.decide.admit.preferred_allocation import (
    ContainerRequest,
    NothingFitsError,
    PreferenceRequest,
    choose_units,
    reason_for_other_card,
)
from gpushare_plugin.decide.admit.unadmitted_pods import (
    classes_bound_not_admitted,
    hinted_cards,
    hinted_units,
    units_bound_not_admitted,
)
from gpushare_plugin.decide.held.allocations import (
    annotated_cards_of,
    answered_classes,
    every_allocation,
    lost_assignments_without_pod,
    lost_containers,
    lost_units,
    node_locks,
)
from gpushare_plugin.decide.held.lost_assignments import (
    has_known_cards,
    require_room_beside_unlisted,
    running_beside,
    shares_to_get_again,
)
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.offer.offering import is_draining
from gpushare_plugin.decide.offer.replaced_plugin_units import (
    foreign_by_card,
    foreign_locks,
    require_room_beside_foreign,
)
from gpushare_plugin.decide.offer.unit_change import may_go_on
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.units.locks import locks_of_units
from gpushare_plugin.decide.units.unit_ids import UnitSet, encode_id, known_numbers
from gpushare_plugin.isolation.keeper import IsolationKeeper
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.pod_resources import PodResourcesUnavailableError
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.state import PluginState

POD_RESOURCES_TIMEOUT = 3.0
"""Seconds within which PodResources have to show which pod is admitted; then the likeliest one is taken."""
UNAVAILABLE_TIMEOUT = 0.5
"""The same where they did not answer the last time: the kubelet admits one pod after the other."""
SPECS_TIMEOUT = 2.0
"""Seconds for reading pods that the kubelet knew earlier than we."""
MAX_TRIED = 4
"""Pods to the cards of which a container is sent first that may be one of theirs."""
GIVEN_TO_ANOTHER = (
    "the kubelet chose units that it gives to another container at this moment: create the pod again"
)
MAX_NAMED = 5
"""Pods in a message."""

_log = logging.getLogger(__name__)


class NothingOfferedError(Exception):
    """The node is not shared (any more)."""


@dataclass(slots=True, kw_only=True)
class Allocator:
    """Answers for one node."""

    state: PluginState
    assignment_reader: AssignmentReader
    reservations: UnitReservations
    pod_watch: PodWatch
    name: str
    """Of the extended resource that the kubelet asks for."""
    resource: ResourceClass
    """What that stands for."""
    files: IsolationKeeper = field(default_factory=IsolationKeeper)

    async def prefer(self, request: PreferenceRequest) -> list[str]:
        """Returns exactly as many IDs as requested, on cards as the mode has it: the kubelet would fill up a
        short answer from anywhere. Raises ``NothingFitsError``, ``NothingOfferedError`` for users."""
        self._layout()
        candidates = await self._admitted_pods(request.units)
        likeliest = candidates[0] if candidates else None
        if likeliest and likeliest.request and (reason := unservable_reason(likeliest.request)):
            raise NothingFitsError(reason)
        if reason := self._why_nobody_new(candidates):
            raise NothingFitsError(reason)
        layout = self._layout()  # not an earlier one: what was asked on the way took its time
        numbers = self._choose(request, candidates, layout)
        self.reservations.promise(numbers)
        return [encode_id(number) for number in numbers]

    def _choose(self, request: PreferenceRequest, candidates: Sequence[Pod], layout: Layout) -> list[int]:
        """Returns the units: those of the first candidate that has room, whichever of them it is."""
        assigned, units = self.state.assigned, request.units
        is_known = all(has_known_cards(pod, assigned, units, resource=self.name) for pod in candidates)
        beside = {pod.uid: sum_shares(self._running_beside(pod, units)) for pod in candidates if is_known}
        lost = lost_units(self.state.assignments(layout), self.state.pods, candidates=beside)
        problems: list[NothingFitsError] = []
        tried = candidates if len(candidates) == 1 else [*candidates[:MAX_TRIED], None]
        for pod in tried:
            included = [*dict.fromkeys(request.included)]
            container = self._container_request(units, included, pod=pod, lost=lost, layout=layout)
            try:
                cards, numbers = choose_units(
                    container,
                    layout.of(self.resource),
                    available=self._available(request.available, included),
                    included=included,
                    strategy=self.state.strategy,
                )
            except NothingFitsError as error:
                problems.append(error)
            else:
                self._record(candidates, cards, container, layout=layout)
                return numbers
        raise NothingFitsError(f"{problems[0]}{_whose_is_unknown(candidates)}")

    async def allocate(self, ids: Sequence[str]) -> ContainerAnswer:
        """Returns what a container with ``ids`` gets, when what it mounts of ours is on the disk. Raises
        ``UnusableUnitsError``, ``NothingOfferedError``, ``IsolationFilesError`` for users."""
        numbers = [*known_numbers(ids)]
        await self._require_usable(numbers)
        await self._require_holder(numbers)
        self._layout()
        self.reservations.withdraw(numbers)
        answer = self._answer(ids)
        if answer.files:
            await self._write_files(ids, answer)
        require_room_beside_foreign(numbers, self._layout(), self.state.assigned)
        self.reservations.allocate(numbers)
        self.assignment_reader.read_soon()
        return answer

    def _answer(self, ids: Sequence[str]) -> ContainerAnswer:
        """Of the units and of what the policy asks for now."""
        state = self.state
        choice = state.isolation.choice
        return container_answer(ids, self._layout(), state.offering.dialect, state.devices, choice)

    async def _write_files(self, ids: Sequence[str], answer: ContainerAnswer) -> None:
        """Raises ``UnusableUnitsError`` where by the time that they are written the answer is another one, or
        another container has some of the units."""
        numbers, granted = [*known_numbers(ids)], self.reservations.granted
        self.reservations.promise(numbers)
        try:
            await self.files.write(answer.files)
            is_same = self._answer(ids) == answer
        finally:
            self.reservations.withdraw(numbers)
        if not is_same:
            raise UnusableUnitsError(
                "the meaning of these units is changing at this moment: create the pod again"
            )
        if self.reservations.is_given_since(granted, numbers):
            raise UnusableUnitsError(GIVEN_TO_ANOTHER)

    async def _require_usable(self, numbers: Sequence[int]) -> None:
        """Raises ``UnusableUnitsError`` where others have these units or their cards.

        A refusal is for good, and what was listed last may be seconds old. So the kubelet is asked once more:
        1. where the units are not usable by the last list: it may have heard of a pod since, or let go of
           one, and the list says whose container may be starting anew;
        2. where it has given these units away since, to a container that keeps them, or that lends them.
        """
        try:
            self._require_free(numbers, unavailable=False)
            is_sure = not self.reservations.may_be_unlisted(numbers)
        except UnusableUnitsError:
            is_sure = False
        if not is_sure:
            await self._require_usable_anew(numbers)

    async def _require_holder(self, numbers: Sequence[int]) -> None:
        """Raises ``UnusableUnitsError`` where the units were nobody's and are for a new pod, while the node
        takes none. The kubelet does not ask which units to take where it needs all that is free."""
        if not self._is_draining or not {*numbers}.difference(*self._taken()):
            return
        if reason := self._why_nobody_new(await self._admitted_pods(len(numbers))):
            raise UnusableUnitsError(reason)

    @property
    def _is_draining(self) -> bool:
        share_node = self.state.share_node
        return share_node is not None and is_draining(share_node.spec, self.state.offering)

    def _why_nobody_new(self, candidates: Sequence[Pod]) -> str:
        """Returns why none of ``candidates``, one of which is being admitted, gets units; empty where one
        may. A pod goes on that has units, or was promised some of the unit in force."""
        state, layout = self.state, self.state.offering.layout
        if layout is None or not self._is_draining:
            return ""
        if any(may_go_on(pod, state.assigned, layout.unit) for pod in candidates):
            return ""
        if not candidates and lost_assignments_without_pod(state.assigned, state.pods):
            return ""
        return (
            f"node {state.name} takes no new pods until the pods with units of {layout.unit.text} are gone,"
            " because the policy asks for others: create the pod again, and let the scheduler choose its node"
        )

    async def _require_usable_anew(self, numbers: Sequence[int]) -> None:
        """Raises ``UnusableUnitsError`` by what the kubelet says now, and where it takes some of these units
        for another container meanwhile: two may restart at once, and it can forget what it has set aside.

        What an ordinary init container lends to this one the kubelet wrote down before it asked. Source:
        ``ManagerImpl.allocateContainerResources``.
        """
        granted, lately = self.reservations.granted, self.reservations.given_lately(numbers)
        is_written = self.assignment_reader.is_written_down(lately)
        is_unavailable = not await self._is_listed_anew()
        candidates = await self._candidates(len(numbers), unavailable=is_unavailable)
        self._require_free(numbers, unavailable=is_unavailable, candidates=candidates)
        if not is_written or self.reservations.is_given_since(granted, numbers):
            raise UnusableUnitsError(GIVEN_TO_ANOTHER)

    def _require_free(
        self, numbers: Sequence[int], *, unavailable: bool, candidates: Sequence[Pod] = ()
    ) -> None:
        layout = self._layout()
        if not unavailable:  # else those who have them may have ended
            require_not_listed(numbers, self.state.assigned)
        self._require_open(numbers, layout)
        self._require_known(numbers, layout)
        # The kubelet does not always ask which units to take.
        require_room_beside_unlisted(
            numbers,
            self.resource,
            taken=self._taken(),
            assignments=self.state.assignments(layout),
            pods=self.state.pods,
            candidates=candidates,
            unavailable=unavailable,
        )

    def _require_open(self, numbers: Sequence[int], layout: Layout) -> None:
        """Raises ``UnusableUnitsError`` where a card of these units serves another class, or they are not of
        the class that is asked for."""
        if not layout.is_mixed:
            return
        shares = layout.of(self.resource).shares(numbers)
        if sum(shares.values()) != len(numbers):
            raise UnusableUnitsError(
                f"the kubelet chose units that are not of {self.name}, probably from an earlier list:"
                f" create the pod again"
            )
        locks = self._locks(layout)
        for card in shares:
            if (lock := locks.get(card, self.resource)) is not self.resource:
                raise UnusableUnitsError(
                    f"card {card} serves {lock} now, and the kubelet chose it for {self.name}: create the pod"
                    " again"
                )

    def _require_known(self, numbers: Sequence[int], layout: Layout) -> None:
        """Raises ``UnusableUnitsError`` where units of a closed card were nobody's before.

        The kubelet takes them by an earlier list, and does not ask which where it needs all that is free.
        """
        placed = layout.shares(numbers)
        closed = [card for card in layout.cards if card.uuid in placed and not card.card.is_open]
        if not closed or not {*numbers}.difference(*self._taken()):
            return
        lost = lost_units(self.state.assignments(layout), self.state.pods)
        for card in closed:
            if card.uuid not in lost:
                raise UnusableUnitsError(
                    f"card {card.card.index} ({card.uuid}) takes no new pod, and the kubelet chose it from"
                    " an earlier list: create the pod again"
                )

    def _locks(self, layout: Layout) -> dict[str, ResourceClass]:
        """By all that is assigned, being assigned, preferred, or listed under foreign IDs."""
        state, assignments = self.state, self.state.assignments(layout)
        known = node_locks(assignments, state.pods, every_allocation(assignments, state.pods))
        being_assigned = locks_of_units(layout, self.reservations.holdings())
        answered = answered_classes(state.pods.values(), assignments)
        return {**foreign_locks(layout, state.assigned), **answered, **being_assigned, **known}

    def _layout(self) -> Layout:
        layout = self.state.offering.layout
        if layout is None:
            raise NothingOfferedError(f"node {self.state.name} does not share its cards")
        is_served = self.resource in layout.classes
        if not is_served or self.state.offering.dialect.resource_name(self.resource) != self.name:
            raise NothingOfferedError(f"node {self.state.name} does not serve {self.name} (any more)")
        return layout

    async def _admitted_pods(self, units: int) -> Sequence[Pod]:
        """Returns the pod that the kubelet admits, by its PodResources; without them the likeliest one."""
        return await self._candidates(units, unavailable=not await self._is_listed_anew())

    async def _is_listed_anew(self) -> bool:
        try:
            await self._list_anew()
        except PodResourcesUnavailableError as error:
            _log.warning(
                "the kubelet's PodResources service does not answer, using its last answer: %s", error
            )
            return False
        return True

    async def _candidates(self, units: int, *, unavailable: bool) -> Sequence[Pod]:
        """Returns the pod that the kubelet asks for, by what is listed; several, the likeliest first, where a
        container of any of them may be starting anew."""
        candidates = await self._listed_candidates(units, unavailable=unavailable)
        assigned = self.state.assigned
        if not candidates or not lost_containers(candidates[0], assigned):
            return candidates[:1]
        return [] if has_pod_unknown_to_api(assigned, self.state.known_pods, candidates) else candidates

    async def _listed_candidates(self, units: int, *, unavailable: bool) -> Sequence[Pod]:
        state = self.state
        assigned = state.assigned
        if unavailable:
            return candidates_by_arrival(assigned, state.pods, state.preferred, units, resource=self.name)
        unsure = pods_without_units(assigned, state.pods)
        if len(unsure) > 1:  # one is being admitted, the others may run: then the kubelet forgot their units
            await self.pod_watch.read_specs_anew(unsure, timeout=SPECS_TIMEOUT)
        return candidates_by_list(assigned, state.pods, state.preferred, units, resource=self.name)

    async def _list_anew(self) -> None:
        """Lists until all pods are known that may be admitted. Raises ``PodResourcesUnavailableError``."""
        timeout = POD_RESOURCES_TIMEOUT if self.state.pod_resources_available else UNAVAILABLE_TIMEOUT
        assigned = await self.assignment_reader.read_during_call(timeout=timeout)
        names = pods_to_read(assigned, self.state.pods)
        await self.pod_watch.read_specs(names, timeout=SPECS_TIMEOUT)
        read = (self.state.pods[name] for name in names if name in self.state.pods)
        if not all(assigned.of(pod) for pod in read):
            # The watch had not shown yet that another pod has the name: whose units are whose follows anew.
            await self.assignment_reader.read_during_call(timeout=timeout)

    def _container_request(
        self, units: int, included: list[int], *, pod: Pod | None, lost: Mapping[str, int], layout: Layout
    ) -> ContainerRequest:
        assigned = self._assigned_numbers(pod, layout)
        others = [other for other in self.state.pods.values() if pod is None or other.uid != pod.uid]
        return ContainerRequest(
            units=units,
            pod_units=max(units, self._total(pod) - len(assigned) - self._running_units(pod, units)),
            pod_cards=self._pod_cards(pod, units, included, layout),
            annotated_cards=self._annotated_cards(pod, units, layout),
            hinted_cards=hinted_cards(pod, layout, self.state.offering.dialect) if pod else (),
            promised=self._promised(others, layout),
            lost=lost,
            limits=self._limits(included, layout),
            locks=self._locks(layout) if layout.is_mixed else None,
        )

    def _promised(self, others: Sequence[Pod], layout: Layout) -> dict[str, int]:
        """Returns card UUID -> units that ``others`` were promised, also by another scheduler.

        A card that they were promised as another class is promised to them as a whole.
        """
        assigned, dialect = self.state.assigned, self.state.offering.dialect
        hinted = hinted_units(others, assigned, layout, dialect)
        promised = sum_shares({"annotated": units_bound_not_admitted(others, assigned), "hinted": hinted})
        if layout.is_mixed:
            classes = classes_bound_not_admitted(others, assigned)
            whole = (card for card, resource in classes.items() if resource is not self.resource)
            promised |= {card: layout.of(self.resource).room_of(card) for card in whole}
        return promised

    def _annotated_cards(self, pod: Pod | None, units: int, layout: Layout) -> tuple[str, ...]:
        """Returns the annotated cards; of a pod that runs, those of the container that restarts."""
        if pod is None:
            return ()
        if again := tuple(shares_to_get_again(pod, self.state.assigned, units, resource=self.name)):
            return again
        return annotated_cards_of(pod, self.resource) if layout.is_mixed else pod.annotated_cards

    def _assigned_numbers(self, pod: Pod | None, layout: Layout) -> list[int]:
        holdings = self.state.assigned.holdings_of(pod) if pod else ()
        own = (held for held in holdings if held and layout.class_of(held[0]) in (None, self.resource))
        return [number for numbers in own for number in numbers]

    def _total(self, pod: Pod | None) -> int:
        asked = pod.request.resources if pod and pod.request else ()
        return sum(request.total for request in asked if request.name == self.name)

    def _pod_cards(self, pod: Pod | None, units: int, included: list[int], layout: Layout) -> frozenset[str]:
        """Returns the cards on which the pod has units. Where a container restarts whose own card is known it
        is that one: the pod's others may run elsewhere, as where a card was sick when they restarted."""
        numbers = [*included, *self._assigned_numbers(pod, layout)]
        cards = frozenset(layout.of(self.resource).shares(numbers)) | self._preferred_cards(pod)
        if pod is None or included or not cards or self.resource is not ResourceClass.MEMORY:
            return cards
        return frozenset(shares_to_get_again(pod, self.state.assigned, units, resource=self.name)) or cards

    def _running_units(self, pod: Pod | None, units: int) -> int:
        """Returns the units of the resource in question with which other lost containers of the pod run while
        one asks for ``units``: they need no room."""
        running = self._running_beside(pod, units) if pod else {}
        asked = pod.request.resources if pod and pod.request else ()
        asking = {name for request in asked if request.name == self.name for name in request.containers}
        return sum(sum(shares.values()) for name, shares in running.items() if name in asking)

    def _running_beside(self, pod: Pod, units: int) -> Mapping[str, Shares]:
        return running_beside(pod, self.state.assigned, units, resource=self.name)

    def _preferred_cards(self, pod: Pod | None) -> frozenset[str]:
        """Returns the cards that were preferred for the pod. Where each container gets a card of its own they
        count only while PodResources do not answer: a container that restarts after the kubelet lost its
        checkpoint has to get its own cards again."""
        preferred = self.state.preferred.get(pod.uid) if pod else None
        shown = self.resource is not ResourceClass.MEMORY and self.state.pod_resources_available
        return frozenset(preferred.cards_of(self.resource)) if preferred and not shown else frozenset()

    def _available(self, numbers: Iterable[int], included: list[int]) -> UnitSet:
        """Returns what the kubelet calls available, less what PodResources list as assigned and what is being
        taken.

        They differ when a pod ends while another one is being admitted: the kubelet then forgets for a moment
        what it gave to the latter. Source: ``ManagerImpl.UpdateAllocatedDevices``.
        """
        available = UnitSet(numbers)
        available.discard_all(self._taken(), but=included)
        return available

    def _limits(self, included: list[int], layout: Layout) -> Mapping[str, int]:
        """Returns card UUID -> units that are free beside the foreign ones, whatever the kubelet was sent."""
        foreign = foreign_by_card(layout, self.resource, self.state.assigned)
        if not foreign:
            return {}
        taken = UnitSet.of(self._taken())
        taken.discard(included)
        return {
            placed.uuid: placed.units - taken.count(placed.numbers) - foreign.get(placed.uuid, 0)
            for placed in layout.of(self.resource).cards
        }

    def _taken(self) -> "Iterator[array[int]]":
        """Yields the units of each container, some of them more than once."""
        return chain(self.state.assigned.holdings(), self.reservations.holdings())

    def _record(
        self, candidates: Sequence[Pod], cards: Sequence[str], request: ContainerRequest, *, layout: Layout
    ) -> None:
        named = ",".join(cards)
        if len(candidates) != 1:
            unknown = _whose_is_unknown(candidates)
            _log.warning("chose units for an unknown pod%s", unknown, extra={"card": named})
            return
        (pod,) = candidates
        reason = reason_for_other_card(request, layout.of(self.resource), cards)
        self.state.put_preferred(pod.uid, cards, self.resource, reason=reason)
        if reason:
            message = "the pod gets %d units of another card than annotated: %s"
            _log.warning(message, request.units, reason, extra={"pod": str(pod.name), "card": named})


def _whose_is_unknown(candidates: Sequence[Pod]) -> str:
    """Returns what to add to a message where several pods run whose units the kubelet has lost."""
    if len(candidates) < 2:
        return ""
    names = ", ".join(str(candidate.name) for candidate in candidates[:MAX_NAMED])
    more = ", ..." if len(candidates) > MAX_NAMED else ""
    return (
        f"; the kubelet has lost the units of {names}{more}, and does not say for which of them it starts a"
        " container: delete those that need not keep running"
    )
