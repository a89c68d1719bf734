"""The sums over the whole cluster: which units of which card are free. Pure and synchronous.

Three sources meet here:
1. GPUShareNodes: which cards there are, and what the kubelets have given out.
2. Allocations: annotations of bound pods, ours or those of a replaced system.
3. Reservations: units chosen by a bind that no watch has shown as an allocation yet.

A bound pod never changes its node. Where its annotation names another node than before, one of the two is
wrong: the pod counts on both until its annotation and the GPUShareNode of the node in it agree.

A pod can be gone while the kubelet still has its units. The plugin of its node reports when they are back.
Where the plugin has not even reported that they were given out, they count for as long as that may take.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from gpushare_core.placement.requests import Request, ResourceClass
from gpushare_core.scheduling.ledger.cluster_room import ClusterRoom
from gpushare_core.scheduling.ledger.extended_resources import OurResources
from gpushare_core.scheduling.ledger.fit_index import Answer, node_unfit_reason
from gpushare_core.scheduling.ledger.hold import Hold, Holds
from gpushare_core.scheduling.ledger.listener import LedgerListener
from gpushare_core.scheduling.ledger.node_ledger import CardChoice, NodeLedger
from gpushare_core.scheduling.ledger.node_room import NodeRoom
from gpushare_core.scheduling.ledger.reservations import BindReservations, BindState, Reservation
from gpushare_core.scheduling.ledger.unfit_reason import UnfitReason
from gpushare_core.scheduling.ledger.unreleased_pods import UnreleasedPod, UnreleasedPods
from gpushare_core.scheduling.objects.holder import CardUnits, Holder, PodUpdate, legacy_holder
from gpushare_core.scheduling.objects.legacy_pods import LegacyPods
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import ShareNode


class DoesNotFitError(Exception):
    """The node does not take the request; the text says why, for people."""


class Ledger:
    """Use from one thread. The sums are right after every method."""

    def __init__(self, listener: LedgerListener | None = None) -> None:
        self._listener = listener or LedgerListener()
        self.holds = Holds()
        """For reading only."""
        self._nodes: dict[str, NodeLedger] = {}
        self._holders: dict[str, Holder] = {}
        """By pod UID, as seen last; those with a reservation as well."""
        self._earlier_nodes: dict[str, set[str]] = {}
        """Pod UID -> the other nodes on which it counts: its annotation named them before."""
        self._unreleased = UnreleasedPods()
        self._with_gone: set[str] = set()
        """The nodes whose plugins may still report pods that are gone."""
        self.reservations = BindReservations()
        """What no watch has shown as an allocation yet; ``reserve`` and ``release`` add and remove."""
        cluster = self._cluster = ClusterRoom(self._nodes, self._listener)
        self._rooms, self._greatest = cluster.rooms, cluster.greatest
        self.index = cluster.index
        """For reading only."""
        self.greatest: Mapping[str, Mapping[str, int]] = self._greatest.by_name
        """Name of an extended resource -> node that serves it and takes pods of ours -> the greatest amount
        that fits there."""
        self._changed: dict[str, None] | None = None
        """While many changes are made at once: the nodes that are to be followed."""
        self._ours = OurResources()
        self._legacy = LegacyPods()

    # GPUShareNodes

    def set_share_node(self, share_node: ShareNode) -> None:
        self._ours.set_node(share_node.name, share_node.resources)
        self._node_ledger(share_node.name).set_share_node(share_node)
        self._update_index(share_node.name)
        self._count_legacy(share_node.name)
        for uid in [uid for uid in self._earlier_nodes if self._holders[uid].node == share_node.name]:
            self._count_on_one_node(uid)
        for uid in self._unreleased.on(share_node.name):
            if self._nodes[share_node.name].is_reported_in_full(uid):
                self._free_unreleased(uid)

    def drop_share_node(self, node: str) -> None:
        """The node takes no more pods; what its pods have still counts."""
        self._ours.set_node(node, ())
        if node_ledger := self._nodes.get(node):
            node_ledger.set_share_node(None)
            self._update_index(node)

    def replace_share_nodes(self, share_nodes: Iterable[ShareNode]) -> None:
        """Takes ``share_nodes`` for all there are: other nodes take no more pods. Those that have not changed
        are skipped: nearly all of a list that is read anew."""
        present = {share_node.name: share_node for share_node in share_nodes}
        with self._many_changes():
            for node in self._nodes.keys() - present.keys():
                self.drop_share_node(node)
            for share_node in present.values():
                if share_node != self.share_node(share_node.name):
                    self.set_share_node(share_node)

    def pause(self, node: str, reason: str) -> None:
        """The node takes no pods until ``resume``; ``reason`` is for people."""
        self._node_ledger(node).paused_reason = reason
        self._update_index(node)

    def resume(self, node: str) -> None:
        if node_ledger := self._nodes.get(node):
            node_ledger.paused_reason = ""
            self._update_index(node)

    # Allocations

    def set_pod(self, update: PodUpdate) -> None:
        """A bound pod was seen. Its annotation replaces its reservation. Where the annotation is gone, what
        it said still counts: the pod has its units until it is gone."""
        if update.holder is not None:
            self.reservations.pop(update.uid, None)
            self._legacy.drop(update.uid)
            self._put(update.holder)
        elif update.legacy is not None and update.uid not in self._holders:
            self._legacy.put(update.legacy)
            self._count_legacy(update.legacy.node)

    def drop_pod(self, uid: str) -> None:
        """What the pod had, or had reserved, is free."""
        self.reservations.pop(uid, None)
        self._remove_from(self._forget(uid), uid)

    def pod_deleted(self, uid: str, *, now: float) -> None:
        """A bound pod is gone, or has ended. What it had is free on a node whose plugin has reported it: the
        plugin also reports its release by the kubelet. Elsewhere it counts until ``free_unreleased``."""
        self.reservations.pop(uid, None)
        nodes = self._forget(uid)
        reported = {node for node in nodes if self._nodes[node].was_reported(uid)}
        if reported or not nodes:
            self._delete_from(nodes, uid, now=now)
        else:
            self._unreleased[uid] = UnreleasedPod(frozenset(nodes), now)

    def free_unreleased(self, *, now: float) -> None:
        """Frees what pods had that are gone for so long that their node's plugin would have reported them. A
        pod that the plugin still reports then is no longer expected to give anything back."""
        for uid in self._unreleased.overdue(now):
            self._free_unreleased(uid)
        for name in self._with_gone:
            self._nodes[name].forget_gone(now=now)
        self._with_gone = {name for name in self._with_gone if self._nodes[name].reported_gone}

    def replace_pods(self, updates: Iterable[PodUpdate], *, begun: float) -> None:
        """Takes ``updates`` for all bound pods, as read from the moment ``begun`` on.

        Reservations that are unconfirmed, or confirmed since, stay: the read may have missed their pods.
        """
        present = {update.uid: update for update in updates}
        self._legacy.keep_only(present.keys())
        with self._many_changes():
            for uid in [uid for uid in self._holders if uid not in present]:
                if not self._may_be_missed(uid, begun):
                    self.pod_deleted(uid, now=begun)
            for update in present.values():
                self.set_pod(update)

    # Reservations

    def reserve(self, pod: PodReference, *, node: str, request: Request, priority: int = 0) -> Holder:
        """Chooses cards of ``node`` for ``request`` and keeps their units for ``pod``, in one step.

        A pod keeps the cards of an abandoned reservation: its Binding may still take effect. The pod's own
        hold ends, and so do holds on these cards for pods of lower ``priority``.

        Raises:
            DoesNotFitError: the request does not fit, or the pod has units, or had them until just now: what
                the kubelet may still have of it would be free as soon as the reservation is released.
        """
        if pod.uid in self._unreleased:
            raise DoesNotFitError("the pod had units until just now, and the kubelet may still hold them")
        ignorable = self.holds.ignorable_for(node, uid=pod.uid, priority=priority)
        if earlier := self._abandoned(pod, node, request):
            holder, choices = earlier.holder, earlier.choices
        else:
            holder, choices = self._chosen(pod, node, request, ignorable)
        self.reservations.put(holder, choices)
        self._put(holder)
        self._end_holds_on(holder, ignorable)
        return holder

    def _abandoned(self, pod: PodReference, node: str, request: Request) -> Reservation | None:
        """Returns the abandoned reservation of ``pod`` for the same; None when the pod has nothing."""
        present, reservation = self._holders.get(pod.uid), self.reservations.get(pod.uid)
        if present is None:
            return None
        share_node = self.share_node(node)
        is_same = (
            share_node
            and present.node == node
            and all(asked.name in share_node.resources for asked in request.resources)
            and present.meanings == {share_node.meaning_of(asked.resource) for asked in request.resources}
        )
        if reservation is None or reservation.state is not BindState.ABANDONED or not is_same:
            raise DoesNotFitError(f"the pod already holds units on node {present.node}")
        return reservation

    def _end_holds_on(self, holder: Holder, ignorable: Collection[str]) -> None:
        self.end_hold(holder.uid)
        chosen = {card.card for card in holder.cards}
        for hold in [*self.holds.values()]:
            if hold.uid in ignorable and any(card.card in chosen for card in hold.holder.cards):
                self.end_hold(hold.uid)

    def _chosen(
        self, pod: PodReference, node: str, request: Request, gone: Collection[str]
    ) -> tuple[Holder, Sequence[CardChoice]]:
        node_ledger, share_node = self._nodes.get(node), self.share_node(node)
        chosen = node_ledger.choose_together(request, gone=gone) if node_ledger else []
        if share_node is None or not chosen:
            raise DoesNotFitError(self.unfit_reason(node, request).message)
        meanings = {
            card: share_node.meaning_of(choice.asked.resource) for choice in chosen for card in choice.units
        }
        first = next(iter(meanings.values()))
        holder = Holder(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            node=node,
            cards=tuple(CardUnits(*units) for choice in chosen for units in choice.units.items()),
            unit_meaning=first,
            other_meanings=tuple(
                (card, meaning) for card, meaning in meanings.items() if meaning and meaning != first
            ),
        )
        return holder, chosen

    def release(self, uid: str) -> None:
        """The pod is surely not bound by us. Without effect on what a watch has shown."""
        if uid in self.reservations:
            self.drop_pod(uid)
            self._listener.fits(uid)

    def release_later(self, uid: str, *, now: float) -> None:
        """The pod is not bound by us, and may have been. Without effect on what a watch has shown."""
        if uid in self.reservations:
            self.pod_deleted(uid, now=now)

    # Holds

    def hold(
        self,
        pod: PodReference,
        *,
        node: str,
        request: Request,
        priority: int,
        gone: Collection[str] = (),
        until: float,
    ) -> Hold:
        """Keeps for ``pod`` what it gets of ``node`` once the pods ``gone`` (UIDs) are. This replaces the
        pod's earlier hold, and holds on these cards for pods of lower ``priority``.

        Raises:
            DoesNotFitError: the request would not fit then, or the pod has units, or had them until just now.
        """
        if pod.uid in self._holders or pod.uid in self._unreleased:
            raise DoesNotFitError("the pod has units of its own, and needs none to be held")
        ignorable = self.holds.ignorable_for(node, uid=pod.uid, priority=priority)
        holder, _ = self._chosen(pod, node, request, {*gone, *ignorable})
        hold = Hold(holder=holder, request=request, priority=priority, until=until)
        self._end_holds_on(holder, ignorable)
        self.holds[hold.uid] = hold
        self._node_ledger(node).put_hold(hold)
        self._update_index(node)
        return hold

    def end_hold(self, uid: str) -> None:
        if hold := self.holds.pop(uid, None):
            self._nodes[hold.node].remove_hold(uid)
            self._update_index(hold.node)

    # Questions

    @property
    def resources(self) -> Mapping[str, ResourceClass]:
        """Name of each extended resource that is ours now -> what it stands for."""
        return self._ours.names

    def holder(self, uid: str) -> Holder | None:
        """Returns what the pod has, allocated or reserved; None when it has no units."""
        return self._holders.get(uid)

    def node(self, name: str) -> NodeLedger | None:
        """Returns the sums of node ``name``, for reading only."""
        return self._nodes.get(name)

    def share_node(self, node: str) -> ShareNode | None:
        """Returns the GPUShareNode as it was seen last, or None when there is none."""
        return node_ledger.share_node if (node_ledger := self._nodes.get(node)) else None

    def unreleased(self, node: str) -> frozenset[str]:
        """Returns the UIDs of the pods that are gone and still count on ``node``: the next reports of its
        plugin free what they had."""
        node_ledger = self._nodes.get(node)
        return frozenset(self._unreleased.on(node)).union(node_ledger.reported_gone if node_ledger else ())

    def node_names(self) -> list[str]:
        return sorted(name for name, node_ledger in self._nodes.items() if node_ledger.share_node)

    def room(self, node: str) -> NodeRoom | None:
        """Returns None for a node that takes no pods of ours."""
        return self._rooms.get(node)

    def biggest(self) -> dict[str, int]:
        """Returns the name of each extended resource that a GPUShareNode serves -> the greatest amount that a
        pod can have on an empty node."""
        biggest: dict[str, int] = {}
        for node in self._nodes.values():
            for name, amount in node.possible().items():
                biggest[name] = max(amount, biggest.get(name, 0))
        return biggest

    def most(self, name: str) -> int:
        return self._greatest.most(name)

    def fits(self, node: str, request: Request, *, gone: Collection[str] = ()) -> bool:
        """Returns whether ``node`` takes ``request``, all its resources together. ``gone``: UIDs of pods
        whose units, and whose holds, are taken for free."""
        node_ledger = self._nodes.get(node)
        return node_ledger is not None and bool(node_ledger.choose_together(request, gone=gone))

    def answers(self, nodes: Iterable[str], request: Request) -> list[Answer]:
        """Returns for each of ``nodes`` whether ``request`` fits it, whoever asks: how well, or why not."""
        return self.index.answers(nodes, request)

    def unfit_reason(self, node: str, request: Request) -> UnfitReason:
        """To be asked only where ``request`` does not fit ``node``."""
        return node_unfit_reason(self._nodes.get(node), self._rooms.get(node), request)

    # Upkeep

    def _may_be_missed(self, uid: str, begun: float) -> bool:
        reservation = self.reservations.get(uid)
        is_confirmed = reservation and reservation.state is BindState.CONFIRMED
        return reservation is not None and (not is_confirmed or reservation.since >= begun)

    def _put(self, holder: Holder) -> None:
        """The pod's own hold ends: ``gone`` takes a pod's units and its hold for free together."""
        before = self._holders.get(holder.uid)
        if before == holder:
            return
        is_unreleased = holder.uid in self._unreleased
        if before is not None and before.counts_as(holder) and not is_unreleased:
            self._holders[holder.uid] = holder
            self._nodes[holder.node].replace(holder)
            self._listener.node_changed(holder.node)
            return
        if is_unreleased:
            self._free_unreleased(holder.uid)
        if before is not None and before.node != holder.node:
            self._earlier_nodes.setdefault(holder.uid, set()).add(before.node)
            self._earlier_nodes[holder.uid].discard(holder.node)
        self._holders[holder.uid] = holder
        self._node_ledger(holder.node).put(holder)
        self.end_hold(holder.uid)
        self._update_index(holder.node)
        self._count_on_one_node(holder.uid)

    def _count_legacy(self, node: str) -> None:
        share_node = self.share_node(node)
        for legacy, shares in self._legacy.known(share_node) if share_node else ():
            self._put(legacy_holder(legacy, shares, node))

    def _count_on_one_node(self, uid: str) -> None:
        """Once the kubelet of the node in its annotation has the pod, the pod counts on that node alone."""
        if uid in self._earlier_nodes and self._nodes[self._holders[uid].node].is_reported(uid):
            self._remove_from(self._earlier_nodes.pop(uid), uid)

    def _forget(self, uid: str) -> set[str]:
        """Returns the nodes on which the pod still counts."""
        self._legacy.drop(uid)
        holder = self._holders.pop(uid, None)
        return {holder.node, *self._earlier_nodes.pop(uid, ())} if holder else set()

    def _free_unreleased(self, uid: str) -> None:
        if pod := self._unreleased.pop(uid, None):
            self._delete_from(pod.nodes, uid, now=pod.since)
        self._listener.fits(uid)

    def _delete_from(self, nodes: Iterable[str], uid: str, *, now: float) -> None:
        """The pod is gone: what a plugin has told of it comes back."""
        for node in nodes:
            self._nodes[node].delete(uid, now=now)
            self._with_gone.add(node)
            self._update_index(node)

    def _remove_from(self, nodes: Iterable[str], uid: str) -> None:
        for node in nodes:
            self._nodes[node].remove(uid)
            self._update_index(node)

    def _node_ledger(self, node: str) -> NodeLedger:
        return self._nodes.setdefault(node, NodeLedger())

    @contextmanager
    def _many_changes(self) -> Iterator[None]:
        """Follows each node once, at the end: a whole list has several pods of every node."""
        changed = self._changed = {}
        try:
            yield
        finally:
            self._changed = None
            for node in changed:
                self._update_index(node)

    def _update_index(self, node: str) -> None:
        """Follows a change of ``node``, and forgets the node when nothing is left to know of it."""
        if self._changed is not None:
            self._changed[node] = None
            return
        self._listener.node_changed(node)
        self._cluster.follow(node)
        node_ledger = self._nodes[node]
        for hold in node_ledger.holds.values():
            ignorable = self.holds.ignorable_for(node, uid=hold.uid, priority=hold.priority)
            if node_ledger.choose_together(hold.request, gone=ignorable):
                self._listener.fits(hold.uid)
        if node_ledger.is_empty:
            del self._nodes[node]
            self._with_gone.discard(node)
