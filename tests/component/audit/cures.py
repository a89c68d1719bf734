"""What led to over-commitments, or to books that disagree, before it was mended: each cure can be taken out.

A row takes one cure out by putting in its place what the code did before, plays what provoked the defect, and
says which difference the auditor has to name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.component.audit.scene import NODE, Scene, card
from tests.fakes.books import run_now
from tests.samples.plugin import container
from tests.samples.pod_shapes import SLICE

from gpushare_core import allocation_annotation as core_allocation
from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube.errors import ApiError
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects import holder as ledger_holder
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import ShareNodeCard
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.lease import BindLease
from gpushare_extender.bind.stale_reservations import StaleReservations
from gpushare_plugin.decide.held import allocations
from gpushare_plugin.decide.held.kubelet_restart import PodsListedSinceRestart
from gpushare_plugin.decide.held.pods import read_metadata
from gpushare_plugin.decide.offer import offering
from gpushare_plugin.decide.units import layout
from gpushare_plugin.kubelet import allocator, assignment_reader
from gpushare_plugin.kubelet.allocator import Allocator
from gpushare_plugin.reconcile import status_writer
from gpushare_plugin.reconcile.status_writer import StatusWriter
from gpushare_plugin.state import PluginState

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """One defect, and how it comes back."""

    name: str
    was: str
    """What was wrong."""
    take_out: Callable[[Patch], None]
    provoke: Callable[[Scene], None]
    kind: DifferenceKind
    card: str = ""
    """That the auditor has to name; empty where the difference is of no single card."""
    pod: str = ""
    node: str = NODE


def nothing(*_: object, **__: object) -> tuple[()]:
    return ()


# The meaning of unit IDs


def believe_no_granted_units(patch: Patch) -> None:
    patch.setattr(offering, "stored_granted_units", lambda _: [])
    patch.setattr(offering, "annotated_granted_units", nothing)
    patch.setattr(offering, "pods_without_evidence", nothing)
    patch.setattr(offering, "contradicting", nothing)
    patch.setattr(allocations, "_stored_shares", lambda _, numbers, of: of.shares(numbers))


def policy_applied_anew_with_a_larger_card(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12), scene.run(12)
    scene.cluster.delete_policy(NODE)
    scene.find_cards(card(0, 28), card(1))
    scene.cluster.apply_policy(NODE, scene.spec)
    scene.node.start_plugin()
    scene.settle()


def send_before_it_is_recorded(patch: Patch) -> None:
    async def record(*_: object) -> None:
        """The status followed some time after the list."""

    patch.setattr(StatusWriter, "record", record)


def another_card_comes_first_while_no_status_is_stored(scene: Scene) -> None:
    scene.node_with(16)
    scene.find_cards(card(1, at=0), card(0, at=1))
    scene.cluster.refuses_statuses = True
    scene.node.try_round()
    pod = scene.promise(4)
    scene.admit(pod)
    scene.must_not(DifferenceKind.UNKNOWN_UNIT)
    scene.cluster.refuses_statuses = False
    scene.settle()


def write_over_any_status(patch: Patch) -> None:
    def of_any_version(share_node: GPUShareNode, status: NodeStatus) -> Json:
        return {"metadata": {"uid": share_node.metadata.uid}, "status": status.to_json()}

    patch.setattr(status_writer, "in_place_of", of_any_version)


def a_status_is_stored_after_a_newer_one(scene: Scene) -> None:
    """The connection broke before the API server had carried out the first write."""
    scene.node_with(16)
    scene.admit(scene.promise(4))
    scene.cluster.refuses_statuses = True
    scene.node.try_round()
    scene.cluster.refuses_statuses = False
    scene.run(4)
    scene.cluster.store_unanswered()
    scene.settle()


def change_the_unit_under_pods(patch: Patch) -> None:
    patch.setattr(offering, "unit_in_force", lambda desired, *_: (desired, ()))
    patch.setattr(offering, "granted_unit", lambda *_: next(iter(_[0])))
    believe_no_granted_units(patch)


def unit_changes_while_a_pod_runs(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12), scene.run(12)
    scene.cluster.change_spec(NODE, {"memoryUnit": "2Gi"})
    scene.settle()


def let_cards_move(patch: Patch) -> None:
    """Cards were laid out as they were found, whoever held units of them."""
    patch.setattr(offering, "keep_places", lambda present, _, held: tuple(present))  # noqa: ARG005
    patch.setattr(offering, "lay_out", laid_out)
    patch.setattr(offering, "agrees", lambda *_: True)
    patch.setattr(offering, "has_sizes", lambda *_: True)


def laid_out(cards: Any, unit: Any, *, reserved: int, **_: object) -> layout.Layout:
    return layout.lay_out(cards, unit, reserved=reserved)


def a_card_vanishes_under_pods(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12), scene.run(12)
    scene.find_cards(card(1))
    scene.settle()


def a_card_grows_under_pods(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12), scene.run(12)
    scene.find_cards(card(0, 24), card(1))
    scene.settle()


def let_indices_shift(patch: Patch) -> None:
    let_cards_move(patch)


def cards_are_found_in_another_order(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12), scene.run(12)
    scene.find_cards(card(1, at=0), card(0, at=1))
    scene.settle()


# Who is admitted, and what he has


def believe_pod_resources_alone(patch: Patch) -> None:
    found = allocations._found_allocation

    def as_listed(pod: Any, request: Any, assignment: Any, assignments: Any) -> Any:
        return found(pod, request, assignment, assignments) if assignment.units else None

    patch.setattr(allocations, "_found_allocation", as_listed)
    leave_out_what_is_not_complete(patch)


def leave_out_what_is_not_complete(patch: Patch) -> None:
    patch.setattr(allocations, "_shown_allocation", lambda *_: None)


def a_pod_that_the_kubelet_showed_first_cannot_be_read(scene: Scene) -> None:
    scene.node_with(16)
    pod = scene.create(12)
    scene.cluster.bind_past_the_extender(pod, NODE)
    scene.admit(pod)
    scene.node.state.drop_pod(pod.name, pod.uid)
    scene.look()
    scene.node.state.put_pod(read_metadata(pod.body, GPUSHARE.allocation_annotation))
    scene.look()
    scene.cluster.show(pod)
    scene.settle()


def an_init_container_alone_has_units(scene: Scene) -> None:
    scene.node_with(16)
    scene.run(0, inits=[container("init", 4)])
    scene.settle()


def forget_what_the_kubelet_forgets(patch: Patch) -> None:
    patch.setattr(allocations, "lost_containers", nothing)


def checkpoint_lost_under_a_pod(scene: Scene) -> None:
    scene.node_with(16)
    pod = scene.run(4)
    scene.node.kubelet.lose_checkpoint()
    scene.look()
    scene.run_past_the_extender(16)
    scene.look()
    scene.delete_by_force(pod)
    scene.release()
    scene.settle()


def forget_orphans(patch: Patch) -> None:
    patch.setattr(allocations, "orphaned_allocations", nothing)


def a_pod_deleted_by_force(scene: Scene) -> None:
    scene.node_with(16)
    pod = scene.run(12)
    scene.delete_by_force(pod)
    scene.settle()
    scene.release()
    scene.settle()


def count_annotations_alone(patch: Patch) -> None:
    patch.setattr(ShareNodeCard, "units_in_use", lambda _, booked: sum(booked.values()))


def free_at_once_what_left(patch: Patch) -> None:
    patch.setattr(Ledger, "pod_deleted", lambda self, uid, *, now: self.drop_pod(uid))  # noqa: ARG005


def a_pod_deleted_by_force_as_soon_as_it_is_admitted(scene: Scene) -> None:
    scene.node_with(16)
    pod = scene.promise(12)
    scene.admit(pod)
    scene.delete_by_force(pod)
    scene.release()
    scene.settle()


def know_pods_by_name(patch: Patch) -> None:
    def by_name(listed: Any, _entries: Any, _before: Any, pods: Any, **_: Any) -> Any:
        named = {name: pods[name].uid if name in pods else "" for name in listed.pods}
        known = {name: replace(each, uid=named[name]) for name, each in listed.pods.items()}
        return replace(listed, pods=known)

    patch.setattr(assignment_reader, "identify", by_name)


def a_pod_is_recreated_under_its_name(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12)
    old = scene.run(8)
    scene.delete_by_force(old)
    scene.cluster.create_again(old)
    scene.look()
    scene.must_not(DifferenceKind.ORPHAN_MARK)
    scene.release()
    scene.settle()


def leave_annotations_as_they_are(patch: Patch) -> None:
    patch.setattr("gpushare_plugin.decide.report.annotation_repairs.plan_repairs", nothing)


def two_pods_are_swapped(scene: Scene) -> None:
    scene.node_with(16, 16)
    first, second = scene.promise(12), scene.promise(12)
    scene.node.kubelet.silent = True
    scene.admit(second)
    scene.admit(first)
    scene.node.kubelet.silent = False
    scene.settle()


def take_what_the_kubelet_calls_free(patch: Patch) -> None:
    patch.setattr(Allocator, "_taken", nothing)
    patch.setattr(allocator, "require_not_listed", nothing)


def the_kubelet_forgets_for_a_moment(scene: Scene) -> None:
    scene.node_with(16, 16)
    scene.run(12)
    pod = scene.promise(4)
    scene.node.kubelet.forgetful = True
    scene.admit(pod)
    scene.node.kubelet.forgetful = False
    scene.settle()


# The extender's sums


def believe_any_annotation(patch: Patch) -> None:
    def decode(text: str, *, uid: str) -> Any:
        return replace(core_allocation._DECODER.decode(text), uid=uid)

    patch.setattr(ledger_holder, "decode_allocation", decode)


def a_copy_of_another_pod(scene: Scene) -> None:
    scene.node_with(16)
    scene.run(8)
    copied = dict(next(iter(scene.cluster.pods.values())).body["metadata"]["annotations"])
    pod = scene.create(0)
    pod.body["metadata"]["annotations"] = copied
    scene.cluster.bind_past_the_extender(pod, NODE)
    scene.agree()


def believe_where_an_annotation_says(patch: Patch) -> None:
    def put(self: Ledger, holder: Any) -> None:
        if before := self._holders.get(holder.uid):
            self._remove_from({before.node}, holder.uid)
        self._holders[holder.uid] = holder
        self._node_ledger(holder.node).put(holder)
        self._update_index(holder.node)

    patch.setattr(Ledger, "_put", put)


def an_annotation_is_forged_to_another_node(scene: Scene) -> None:
    scene.node_with(16)
    scene.node_with(16, name="n2")
    pod = scene.promise(12)
    other = "n2" if pod.node == NODE else NODE
    scene.admit(pod)
    true = dict(pod.body["metadata"]["annotations"])
    forged = true[GPUSHARE.allocation_annotation].replace(f'"{pod.node}', f'"{other}')
    scene.cluster.annotate(pod, {GPUSHARE.allocation_annotation: forged})
    scene.step()
    scene.settle()


def forget_what_a_list_missed(patch: Patch) -> None:
    patch.setattr(Ledger, "_may_be_missed", lambda self, uid, begun: self.reservations.is_unconfirmed(uid))  # noqa: ARG005
    free_at_once_what_left(patch)


def a_list_begun_before_a_bind(scene: Scene) -> None:
    scene.node_with(16)
    begun = scene.cluster.now
    scene.cluster.now += 1
    pod = scene.create(12)
    scene.cluster.schedule_unseen(pod)
    scene.cluster.ledger.replace_pods([], begun=begun)
    scene.must_not(DifferenceKind.UNCOUNTED)
    scene.cluster.show(pod)
    scene.admit(pod)
    scene.settle()


def keep_reservations_for_ever(patch: Patch) -> None:
    patch.setattr(StaleReservations, "_stale", lambda _: [])


def a_bind_ends_in_a_defect(scene: Scene) -> None:
    scene.node_with(16)
    ledger = scene.cluster.ledger
    request = PodRequest(resources=scene.create(4).request.resources)
    ledger.reserve(PodReference("default", "lost", "uid-lost"), node=NODE, request=request)
    ledger.reservations.abandon("uid-lost", now=0.0)
    timing = BindTiming(clock=lambda: 1000.0)
    stale = StaleReservations(NobodyThere(), ledger, timing)  # type: ignore[arg-type]
    for name in stale._stale():
        run_now(stale._release_if_void(name))
    ledger.free_unreleased(now=2000.0)
    scene.settle()


class NobodyThere:
    """An API server without pods."""

    async def read(self, *_: object, **__: object) -> None:
        raise ApiError(404, "NotFound", "no such pod")


def bind_without_reading_again(patch: Patch) -> None:
    patch.setattr(BindLease, "_is_up_to_date", property(lambda _: True))


def another_extender_takes_over(scene: Scene) -> None:
    """It has not seen yet what the one before it bound."""
    scene.node_with(16)
    cluster, before = scene.cluster, scene.cluster.ledger
    cluster.restart_extender()
    after, cluster.ledger = cluster.ledger, before
    cluster.schedule_unseen(scene.create(12))
    cluster.ledger = after
    lease = BindLease(None, "", "west", lambda: read_again(scene))  # type: ignore[arg-type]
    lease._lease = HeldLease()  # type: ignore[assignment]
    run_now(lease.hold())
    cluster.schedule_unseen(scene.create(12))
    scene.must_not(DifferenceKind.OVER_COUNTED)
    cluster.restart_extender()
    for pod in [*cluster.bound_to(NODE)]:
        cluster.show(pod)
        cluster.admit(pod)
    scene.settle()


class HeldLease:
    """It was somebody else's until now."""

    holding = 1

    def lasts(self, _seconds: float) -> bool:
        return True


async def read_again(scene: Scene) -> None:
    scene.cluster.restart_extender()


# One name, two pods


def forget_by_name(patch: Patch) -> None:
    drop = PluginState.drop_pod
    patch.setattr(PluginState, "drop_pod", lambda self, name, _: drop(self, name, self.pods[name].uid))


def the_end_of_a_pod_is_told_late(scene: Scene) -> None:
    """After its successor of the same name was seen."""
    scene.node_with(16)
    old = scene.run(8)
    scene.delete_by_force(old)
    scene.release()
    new = scene.cluster.create_again(old)
    scene.admit(new)
    scene.node.state.drop_pod(old.name, old.uid)
    scene.settle()


# A kubelet that is away


def believe_that_nobody_has_anything(patch: Patch) -> None:
    patch.setattr(PluginState, "unshown_holders", frozenset())


def believe_every_list(patch: Patch) -> None:
    patch.setattr(PodsListedSinceRestart, "may_still_be_listed", lambda *_, **__: False)


def the_plugin_starts_while_the_kubelet_is_away(scene: Scene) -> None:
    scene.node_with(16)
    scene.run(12)
    scene.node.kubelet.silent = True
    scene.node.start_plugin()
    scene.look()
    scene.node.kubelet.silent = False
    scene.settle()


def a_restarted_kubelet_lists_nobody_at_first(scene: Scene) -> None:
    scene.node_with(16)
    scene.run(12)
    scene.node.kubelet.restart()
    scene.look()
    scene.look()
    scene.node.kubelet.unheard.clear()
    scene.settle()


# Cards of two classes


def serve_whoever_asks(patch: Patch) -> None:
    patch.setattr(Allocator, "_require_open", nothing)
    patch.setattr(Allocator, "_locks", lambda *_: {})
    patch.setattr(allocator, "node_locks", lambda *_: {})


def two_classes_before_the_list_follows(scene: Scene) -> None:
    scene.node_with(16, mode="Mixed", slicesPerCard=2)
    scene.run_past_the_extender(4)
    scene.run_past_the_extender(1, resource=SLICE)
    scene.settle()


CURES: Sequence[Cure] = (
    Cure(
        name="witnesses-of-unit-ids",
        was="A policy applied anew laid its cards out anew: IDs in use meant another card (issue 7, A1)",
        take_out=believe_no_granted_units,
        provoke=policy_applied_anew_with_a_larger_card,
        kind=DifferenceKind.ENVIRONMENT_DIFFERS,
        pod="default/pod-2",
    ),
    Cure(
        name="recorded-before-sent",
        was="The kubelet had a list whose meaning no status told (A2)",
        take_out=send_before_it_is_recorded,
        provoke=another_card_comes_first_while_no_status_is_stored,
        kind=DifferenceKind.UNKNOWN_UNIT,
        pod="default/pod-1",
    ),
    Cure(
        name="a-late-status-undoes-no-newer-one",
        was="A write of the status that nobody waited for any more took a pod out of the status again",
        take_out=write_over_any_status,
        provoke=a_status_is_stored_after_a_newer_one,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-2",
    ),
    Cure(
        name="unit-stays-under-pods",
        was="A new unit gave the IDs that pods held another size",
        take_out=change_the_unit_under_pods,
        provoke=unit_changes_while_a_pod_runs,
        kind=DifferenceKind.ENVIRONMENT_DIFFERS,
        pod="default/pod-2",
    ),
    Cure(
        name="vanished-card-keeps-its-place",
        was="Cards that were not found any more gave their numbers to others (A1)",
        take_out=let_cards_move,
        provoke=a_card_vanishes_under_pods,
        kind=DifferenceKind.ENVIRONMENT_DIFFERS,
        pod="default/pod-1",
    ),
    Cure(
        name="grown-card-keeps-its-size",
        was="A card that changed its size moved the numbers of those after it",
        take_out=let_cards_move,
        provoke=a_card_grows_under_pods,
        kind=DifferenceKind.ENVIRONMENT_DIFFERS,
        pod="default/pod-2",
    ),
    Cure(
        name="shifted-index-moves-no-card",
        was="Cards found in another order swapped their numbers",
        take_out=let_indices_shift,
        provoke=cards_are_found_in_another_order,
        kind=DifferenceKind.ENVIRONMENT_DIFFERS,
        pod="default/pod-1",
    ),
    Cure(
        name="init-containers-hold-units",
        was="A pod whose ordinary init containers alone ask was being admitted for ever (A3)",
        take_out=believe_pod_resources_alone,
        provoke=an_init_container_alone_has_units,
        kind=DifferenceKind.UNCOUNTED,
        card="n1-0",
    ),
    Cure(
        name="annotations-know-what-a-checkpoint-lost",
        was="After the loss of a checkpoint units in use were given out again: 20 of 16 (A4)",
        take_out=forget_what_the_kubelet_forgets,
        provoke=checkpoint_lost_under_a_pod,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="what-the-kubelet-shows-is-in-the-status",
        was="A pod whose spec could not be read counted for nothing, and had counted as an orphan before",
        take_out=leave_out_what_is_not_complete,
        provoke=a_pod_that_the_kubelet_showed_first_cannot_be_read,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="orphans-are-in-the-status",
        was="A pod deleted by force left the books while the kubelet had its units (A5)",
        take_out=forget_orphans,
        provoke=a_pod_deleted_by_force,
        kind=DifferenceKind.UNCOUNTED,
        card="n1-0",
    ),
    Cure(
        name="extender-counts-what-the-status-says",
        was="The extender counted annotations alone, and promised an orphan's units (A5)",
        take_out=count_annotations_alone,
        provoke=a_pod_deleted_by_force,
        kind=DifferenceKind.UNCOUNTED,
        card="n1-0",
    ),
    Cure(
        name="departures-count-until-the-plugin-told",
        was="A pod that left before its plugin told of it was free at once: 24 of 16 were promised (A5)",
        take_out=free_at_once_what_left,
        provoke=a_pod_deleted_by_force_as_soon_as_it_is_admitted,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="books-are-by-uid",
        was="A recreated web-0 was taken for its predecessor, whose units it did not have (A5)",
        take_out=know_pods_by_name,
        provoke=a_pod_is_recreated_under_its_name,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-1",
        pod="default/pod-2",
    ),
    Cure(
        name="swapped-pods-are-repaired",
        was="Two pods of one size that came out swapped stayed on each other's card in two books of four",
        take_out=leave_annotations_as_they_are,
        provoke=two_pods_are_swapped,
        kind=DifferenceKind.SHARES_DIFFER,
        pod="default/pod-1",
    ),
    Cure(
        name="units-being-taken-are-nobody-elses",
        was="While a pod ended the kubelet offered the units of one that was being admitted",
        take_out=take_what_the_kubelet_calls_free,
        provoke=the_kubelet_forgets_for_a_moment,
        kind=DifferenceKind.GRANTED_TWICE,
        pod="default/pod-2",
    ),
    Cure(
        name="annotation-of-another-pod",
        was="A copy of a pod counted with the other's annotation (A7, B13)",
        take_out=believe_any_annotation,
        provoke=a_copy_of_another_pod,
        kind=DifferenceKind.FORGED,
        pod="default/pod-2",
    ),
    Cure(
        name="a-forged-node-frees-nothing",
        was="An annotation that named another node freed the units where the pod runs (A7)",
        take_out=believe_where_an_annotation_says,
        provoke=an_annotation_is_forged_to_another_node,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="a-list-misses-what-began-later",
        was="A list that had begun before a bind ended made the extender forget it",
        take_out=forget_what_a_list_missed,
        provoke=a_list_begun_before_a_bind,
        kind=DifferenceKind.UNCOUNTED,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="one-class-a-card",
        was="Before the next list the kubelet gave a card of mode Mixed to a second class",
        take_out=serve_whoever_asks,
        provoke=two_classes_before_the_list_follows,
        kind=DifferenceKind.TWO_CLASSES,
        card="n1-0",
    ),
    Cure(
        name="reservations-that-nobody-confirms-end",
        was="A reservation stranded by an internal error was kept for ever (A13)",
        take_out=keep_reservations_for_ever,
        provoke=a_bind_ends_in_a_defect,
        kind=DifferenceKind.RESERVED,
        card="n1-0",
        pod="default/lost",
    ),
    Cure(
        name="a-new-extender-reads-before-it-binds",
        was="Two extenders promised one card: 24 of 16 (A8)",
        take_out=bind_without_reading_again,
        provoke=another_extender_takes_over,
        kind=DifferenceKind.OVER_COUNTED,
        card="n1-0",
    ),
    Cure(
        name="a-late-end-is-of-its-own-pod",
        was="The deletion of web-0 that was told late made the plugin forget the next web-0 (A5)",
        take_out=forget_by_name,
        provoke=the_end_of_a_pod_is_told_late,
        kind=DifferenceKind.ORPHAN_MARK,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="an-absent-kubelet-keeps-what-it-has",
        was="A plugin that started while the kubelet was away wrote that nobody has anything (issue 10)",
        take_out=believe_that_nobody_has_anything,
        provoke=the_plugin_starts_while_the_kubelet_is_away,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="a-restarted-kubelet-keeps-what-it-has",
        was="A kubelet that was restarted lists nobody at first: all its units looked free (issue 10)",
        take_out=believe_every_list,
        provoke=a_restarted_kubelet_lists_nobody_at_first,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-1",
    ),
)
