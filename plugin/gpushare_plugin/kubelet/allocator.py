"""The kubelet's two questions when it admits a container: which units, and what comes with them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.decide.admission import admitted_next, admitted_now, unknown_names
from gpushare_plugin.decide.card_choice import Wish, choose_units
from gpushare_plugin.decide.environment import environment
from gpushare_plugin.decide.holdings import promised_units
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.pods import Pod
from gpushare_plugin.decide.unit_ids import encode_id
from gpushare_plugin.decide.unit_set import UnitSet, known_numbers
from gpushare_plugin.kubelet.bookkeeper import Bookkeeper
from gpushare_plugin.kubelet.pod_resources import BooksUnavailableError
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.state import NodeState

BOOKS_TIMEOUT = 3.0
"""Seconds within which the kubelet has to tell whom it admits; then the likeliest pod is taken."""
LOOKUP_TIMEOUT = 2.0
"""Seconds for reading pods that the kubelet knew earlier than we."""

_log = logging.getLogger(__name__)


class NothingOfferedError(Exception):
    """The node is not shared (any more)."""


@dataclass(slots=True, kw_only=True)
class Allocator:
    """Answers for one node."""

    state: NodeState
    bookkeeper: Bookkeeper
    pods: PodWatch

    async def prefer(self, ask: api.ContainerPreferredAllocationRequest) -> list[str]:
        """Exactly as many IDs as asked, all of one card: the kubelet fills up a short answer from anywhere.

        Raises:
            NothingFitsError, NothingOfferedError: with a text for the user.
        """
        layout = self._layout()
        pod = await self._identify(ask.allocation_size)
        included = known_numbers(ask.must_include_deviceIDs)
        wish = self._wish(ask.allocation_size, included, pod, layout)
        uuid, numbers = choose_units(
            wish,
            layout,
            available=self._available(ask, included),
            included=included,
            strategy=self.state.strategy,
        )
        self._note(pod, uuid, wish)
        return [encode_id(number) for number in numbers]

    def environment(self, ids: Sequence[str]) -> dict[str, str]:
        """Raises ``UnusableUnitsError`` or ``NothingOfferedError``."""
        self.bookkeeper.note_allocation()
        return environment(ids, self._layout(), self.state.dialect)

    def _layout(self) -> Layout:
        if self.state.offering.layout is None:
            raise NothingOfferedError(f"node {self.state.name} does not share its cards")
        return self.state.offering.layout

    async def _identify(self, size: int) -> Pod | None:
        """The pod that the kubelet admits. Its PodResources tell; without them the likeliest one."""
        state = self.state
        try:
            books = await self.bookkeeper.read_within_call(timeout=BOOKS_TIMEOUT)
        except BooksUnavailableError as error:
            _log.warning("admitting by order of arrival, PodResources do not answer: %s", error)
            return admitted_next(state.books, state.pods, state.grants, size)
        await self.pods.learn(unknown_names(books, state.pods), timeout=LOOKUP_TIMEOUT)
        return admitted_now(books, state.pods, state.grants, size)

    def _wish(self, size: int, included: list[int], pod: Pod | None, layout: Layout) -> Wish:
        state = self.state
        holding = state.books.pods.get(pod.name) if pod else None
        numbers = [number for held in holding.containers.values() for number in held] if holding else []
        others = (each for each in state.pods.values() if pod is None or each.uid != pod.uid)
        return Wish(
            size=size,
            rest=max(size, _total(pod) - len(numbers)),
            together_with=frozenset(layout.shares([*included, *numbers])) | self._granted(pod),
            annotated=_annotated(pod),
            promised=promised_units(others, state.books),
        )

    def _granted(self, pod: Pod | None) -> frozenset[str]:
        grant = self.state.grants.get(pod.uid) if pod else None
        return frozenset((grant.card,)) if grant else frozenset()

    def _available(self, ask: api.ContainerPreferredAllocationRequest, included: list[int]) -> UnitSet:
        """What the kubelet has free, less what its books show as held.

        The two differ when a pod ends while another one is being admitted: the kubelet then forgets for a
        moment what it gave to the latter. Source: ``ManagerImpl.UpdateAllocatedDevices``.
        """
        available = UnitSet(known_numbers(ask.available_deviceIDs))
        available.discard(set(self.state.books.numbers()).difference(included))
        return available

    def _note(self, pod: Pod | None, uuid: str, wish: Wish) -> None:
        self.bookkeeper.expect_allocation()
        if pod is None:
            _log.warning("units for a pod that nobody knows", extra={"card": uuid})
            return
        self.state.note_grant(pod.uid, uuid)
        if wish.annotated not in (None, uuid):
            told = "%d units from another card than annotated, which has no room"
            _log.warning(told, wish.size, extra={"pod": str(pod.name), "card": uuid})


def _total(pod: Pod | None) -> int:
    return pod.ask.request.total if pod and pod.ask else 0


def _annotated(pod: Pod | None) -> str | None:
    return next(iter(pod.allocation.held()), None) if pod and pod.allocation else None
