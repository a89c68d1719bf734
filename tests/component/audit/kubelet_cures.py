"""More of what was mended: what kubelets admit container by container, in silence, or without knowing it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tests.component.audit.cures import Cure, Patch, nothing
from tests.component.audit.scene import Scene
from tests.fakes.books import LONG, Pod, run_now
from tests.samples.plugin import container
from tests.samples.pod_shapes import CARD, MEMORY, SLICE

from gpushare_core.api.names import MIRROR_ANNOTATION
from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_plugin import state
from gpushare_plugin.decide.admit.preferred_allocation import NothingFitsError
from gpushare_plugin.decide.held import allocations
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import StoredContainers
from gpushare_plugin.decide.held.kubelet_restart import PodsListedSinceRestart, with_unshown
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pods, read_pod
from gpushare_plugin.kubelet import allocator, assignment_reader


def count_forgotten_units_beside_those_that_are_seen(patch: Patch) -> None:
    def without_units(pod: Any, assigned: Any) -> list[str]:
        return allocations.containers_without_units(pod, assigned) if pod.running else []

    def as_seen(pod: Any, assignments: Any) -> Any:
        assignment = assignments.assigned.of(pod)
        has_units = assignment and assignments.assigned.has_units(pod)
        return allocations._seen_allocation(pod, assignment, assignments) if has_units else None

    patch.setattr(allocations, "lost_containers", without_units)
    patch.setattr(allocations, "pod_allocation", as_seen)


def a_pod_asks_besides_for_a_class_that_the_node_does_not_offer(scene: Scene) -> None:
    """Bound past the scheduler: its kubelet starts it without what it does not know."""
    scene.node_with(16)
    scene.node.kubelet.starts_without_unknown = True
    pod = scene.cluster.create([container("main", 12, MEMORY), container("side", 1, CARD)], [])
    scene.cluster.bind_past_the_extender(pod, scene.node.name)
    scene.admit(pod)
    scene.look()
    scene.look()
    scene.delete_by_force(pod)
    scene.release()
    scene.settle()


def believe_the_first_container_for_all(patch: Patch) -> None:
    patch.setattr(NodeLedger, "is_reported_in_full", NodeLedger.is_reported)


def a_pod_is_deleted_by_force_between_its_containers_admissions(scene: Scene) -> None:
    """What its later containers are given looked free, and was promised to the next pod."""
    scene.node_with(16)
    pod = scene.cluster.create([container("main", 4, MEMORY), container("side", 4, MEMORY)], [])
    assert scene.cluster.schedule(pod)
    scene.node.admit_container(pod, "main")
    scene.look()
    scene.delete_by_force(pod)
    scene.try_to_be_promised(12)
    scene.node.admit_container(pod, "side")
    scene.look()
    scene.must_not(DifferenceKind.OVER_COUNTED)
    scene.release()
    scene.admit_all()
    scene.settle()


def forget_what_was_answered_in_silence(patch: Patch) -> None:
    patch.setattr(allocator, "answered_classes", lambda *_: {})
    patch.setattr(allocations, "_unlisted_classes", nothing)


def two_classes_while_the_kubelet_is_silent(scene: Scene) -> None:
    scene.node_with(16, mode="Mixed", slicesPerCard=2)
    scene.node.kubelet.silent = True
    scene.look()
    scene.run_past_the_extender(4)
    scene.run_past_the_extender(1, resource=SLICE)
    scene.node.kubelet.silent = False
    scene.settle()


def believe_the_last_answer_alone(patch: Patch) -> None:
    patch.setattr(assignment_reader, "with_stored", lambda assigned, *_: assigned)


def a_kubelet_falls_silent_when_it_has_admitted_a_pod(scene: Scene) -> None:
    """It has answered last when it was about to, and the pod is deleted by force."""
    scene.node_with(16)
    pod = scene.promise(4)
    scene.admit(pod)
    scene.node.kubelet.silent = True
    scene.look()
    scene.delete_by_force(pod)
    scene.look()
    scene.node.kubelet.silent = False
    scene.release()
    scene.settle()


def believe_a_kubelet_that_has_lost_its_checkpoint(patch: Patch) -> None:
    patch.setattr(assignment_reader, "lost_assignments", lambda *_: {})


def a_pod_without_annotation(scene: Scene) -> Pod:
    """Bound past the extender, and read but not annotated yet when its kubelet forgets it."""
    pod = scene.create(4)
    scene.cluster.bind_past_the_extender(pod, scene.node.name)
    scene.admit(pod)
    scene.node.clock.now += LONG
    run_now(scene.node.reader.read())
    return pod


def the_kubelet_starts_without_its_checkpoint(scene: Scene) -> None:
    """It has heard of all when the plugin looks."""
    scene.node.kubelet.lose_checkpoint()
    scene.node.kubelet.restart()
    scene.node.kubelet.unheard.clear()
    scene.look()


def end(scene: Scene, pod: Pod) -> None:
    scene.delete_by_force(pod)
    scene.release()
    scene.settle()


def it_forgets_a_pod_without_annotation(scene: Scene) -> None:
    scene.node_with(16)
    pod = a_pod_without_annotation(scene)
    the_kubelet_starts_without_its_checkpoint(scene)
    scene.run_past_the_extender(16)
    scene.look()
    end(scene, pod)


def believe_the_api_server_that_a_name_is_the_older_pods(patch: Patch) -> None:
    patch.setattr(PodAssignment, "is_unheard_of", lambda *_: False)


def it_forgets_the_newer_of_two_pods_of_a_name(scene: Scene) -> None:
    """The plugin is cut off from the API server, and has heard of the older one alone."""
    scene.node_with(16)
    older, node = a_pod_without_annotation(scene), scene.node
    scene.delete_by_force(older)
    scene.release()
    newer = scene.cluster.create_again(older)
    node.state.put_pod(read_pod(older.body, GPUSHARE.allocation_annotation, RESOURCES))
    node.admit(newer)
    node.clock.now += LONG
    run_now(node.reader.read())
    the_kubelet_starts_without_its_checkpoint(scene)
    newer.phase, newer.body["status"] = "Running", older.body["status"]
    scene.cluster.show(newer)
    scene.look()
    scene.run_past_the_extender(16)
    scene.look()
    end(scene, newer)


def believe_whoever_says_to_be_a_mirror(patch: Patch) -> None:
    def of_whoever_may_follow(
        listed: AssignedDevices,
        before: AssignedDevices,
        shown: PodsListedSinceRestart,
        pods: Pods,
        *,
        stored: Mapping[str, StoredContainers],
    ) -> AssignedDevices:
        known = with_unshown(listed, before, shown, pods, stored=stored)
        awaited = (
            pod for pod in pods.values() if shown.may_still_be_listed(pod.name, known=not pod.static_uid)
        )
        uids = {pod.kubelet_uid for pod in awaited} & before.stored.keys()
        return replace(known, stored={**{uid: before.stored[uid] for uid in uids}, **known.stored})

    patch.setattr(assignment_reader, "with_unshown", of_whoever_may_follow)


def it_forgets_a_pod_and_another_one_says_to_be_its_mirror(scene: Scene) -> None:
    """The kubelet never starts that one, and has not heard of all when the plugin looks."""
    scene.node_with(16)
    annotated, pod = scene.run(4), a_pod_without_annotation(scene)
    forged = scene.create(0)
    forged.body["metadata"]["annotations"][MIRROR_ANNOTATION] = pod.uid
    scene.cluster.bind_past_the_extender(forged, scene.node.name)
    scene.node.kubelet.lose_checkpoint()
    scene.node.kubelet.restart()
    scene.node.kubelet.unheard.discard(pod.name)
    scene.look()
    scene.node.kubelet.unheard.clear()
    scene.cluster.leave(forged)
    scene.look()
    scene.run_past_the_extender(12)
    scene.look()
    scene.delete_by_force(annotated)
    end(scene, pod)


def believe_no_record(patch: Patch) -> None:
    patch.setattr(state, "recorded_holdings", lambda *_: {})


def it_forgets_a_pod_whose_annotation_went(scene: Scene) -> None:
    """As with the mirror of a static pod, while the plugin is restarted."""
    scene.node_with(16)
    a_pod_loses_its_annotation(scene, next_units=16)


def it_forgets_that_a_card_serves_a_class(scene: Scene) -> None:
    scene.node_with(16, mode="Mixed", slicesPerCard=2)
    a_pod_loses_its_annotation(scene, next_units=1, next_resource=SLICE)


def a_pod_loses_its_annotation(scene: Scene, *, next_units: int, next_resource: str = MEMORY) -> None:
    pod = scene.run(4)
    del pod.body["metadata"]["annotations"][GPUSHARE.allocation_annotation]
    scene.node.start_plugin()
    the_kubelet_starts_without_its_checkpoint(scene)
    scene.run_past_the_extender(next_units, resource=next_resource)
    scene.look()
    end(scene, pod)


def believe_the_likeliest_pod(patch: Patch) -> None:
    whoever = allocator.Allocator._admitted_pods

    async def likeliest(self: allocator.Allocator, units: int) -> Sequence[Any]:
        return (await whoever(self, units))[:1]

    patch.setattr(allocator.Allocator, "_admitted_pods", likeliest)


def it_forgets_two_pods_and_starts_one_anew(scene: Scene) -> None:
    """It says how many units it wants, and not for whom."""
    scene.node_with(16, 16)
    older, younger = scene.run(16), scene.run(16)
    the_kubelet_starts_without_its_checkpoint(scene)
    with suppress(NothingFitsError):
        scene.node.admit_container(younger, "main")
        scene.node.kubelet.forgotten.discard(younger.name)
    scene.must_not(DifferenceKind.OVER_CAPACITY)
    for pod in (older, younger):
        scene.delete_by_force(pod)
    scene.release()
    scene.settle()


def give_a_container_what_others_of_its_pod_run_with(patch: Patch) -> None:
    def cards_named_last(self: Any, pod: Any, *_: object) -> frozenset[str]:
        return frozenset(self._preferred_cards(pod))

    patch.setattr(allocator, "running_beside", lambda *_, **__: {})
    patch.setattr(allocator.Allocator, "_pod_cards", cards_named_last)


def restart(scene: Scene, pod: Pod, container: str) -> None:
    """Then all of its containers have units again."""
    scene.node.admit_container(pod, container)
    scene.node.kubelet.forgotten.discard(pod.name)
    scene.look()


def count_init_containers_that_have_ended(patch: Patch) -> None:
    patch.setattr(allocations, "has_lost_ended_inits", lambda *_: False)


def it_forgets_a_large_init_container_and_starts_the_other_one_anew(scene: Scene) -> None:
    """The init container has ended, and the kubelet gives to others what it had beyond that."""
    scene.node_with(16)
    pod, kubelet = scene.run(4, inits=[container("init", 12)]), scene.node.kubelet
    the_kubelet_starts_without_its_checkpoint(scene)
    _, given = kubelet.pods[pod.name]
    del given["init"]
    restart(scene, pod, "main")
    kubelet.write_checkpoint()
    scene.run_past_the_extender(12)
    scene.look()
    end(scene, pod)


def it_forgets_a_pod_on_two_cards_and_starts_one_container_anew(scene: Scene) -> None:
    """One card was sick when that container restarted, and the other container was given its units last."""
    node = scene.node_with(16, 16)
    pod = scene.cluster.create([container("main", 9), container("side", 3)], [])
    assert scene.cluster.schedule(pod)
    scene.admit(pod)
    scene.look()
    the_kubelet_starts_without_its_checkpoint(scene)
    node.start_plugin()
    node.cards.set_health("n1-0", healthy=False)
    scene.look()
    restart(scene, pod, "side")
    node.cards.set_health("n1-0", healthy=True)
    node.let_cards_return()
    the_kubelet_starts_without_its_checkpoint(scene)
    node.start_plugin()
    scene.look()
    restart(scene, pod, "main")
    other = scene.run(7)
    the_kubelet_starts_without_its_checkpoint(scene)
    restart(scene, pod, "side")
    for member in (pod, other):
        scene.delete_by_force(member)
    scene.release()
    scene.settle()


KUBELET_CURES: Sequence[Cure] = (
    Cure(
        name="a-lost-init-container-has-ended",
        was="A kubelet lost its checkpoint; once main restarted its ended init counted again: 24 of 16",
        take_out=count_init_containers_that_have_ended,
        provoke=it_forgets_a_large_init_container_and_starts_the_other_one_anew,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="what-others-of-its-pod-run-with",
        was="A container of a pod on two cards restarted, and was given what another one ran with: 19 of 16",
        take_out=give_a_container_what_others_of_its_pod_run_with,
        provoke=it_forgets_a_pod_on_two_cards_and_starts_one_container_anew,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="whose-container-a-forgetful-kubelet-starts-anew",
        was="A restarting container of 16 units got those of another pod: 32 of 16 (issue 10)",
        take_out=believe_the_likeliest_pod,
        provoke=it_forgets_two_pods_and_starts_one_anew,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="what-a-kubelet-listed-before-it-forgot",
        was="A kubelet lost its checkpoint: who had no annotation counted nothing, 20 of 16 (issue 10)",
        take_out=believe_a_kubelet_that_has_lost_its_checkpoint,
        provoke=it_forgets_a_pod_without_annotation,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="which-of-two-pods-of-a-name-is-the-newer-one",
        was="A kubelet forgot a pod of which the plugin had not heard, but of its namesake: 20 of 16",
        take_out=believe_the_api_server_that_a_name_is_the_older_pods,
        provoke=it_forgets_the_newer_of_two_pods_of_a_name,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="no-mirror-but-that-which-is-listed",
        was="Who said to be the mirror of a pod that its kubelet forgot made the plugin forget it: 20 of 16",
        take_out=believe_whoever_says_to_be_a_mirror,
        provoke=it_forgets_a_pod_and_another_one_says_to_be_its_mirror,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="the-record-of-what-a-kubelet-forgot",
        was="The same where the plugin was restarted, too: nobody read the record (issue 10)",
        take_out=believe_no_record,
        provoke=it_forgets_a_pod_whose_annotation_went,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="the-class-of-what-a-kubelet-forgot",
        was="The same in mode Mixed: the card was given to a second class (issue 10)",
        take_out=believe_no_record,
        provoke=it_forgets_that_a_card_serves_a_class,
        kind=DifferenceKind.TWO_CLASSES,
        card="n1-0",
    ),
    Cure(
        name="what-a-node-does-not-offer-counts-nothing",
        was="A pod that asked besides for a class its node does not offer counted twice: 24 of 16 (issue 10)",
        take_out=count_forgotten_units_beside_those_that_are_seen,
        provoke=a_pod_asks_besides_for_a_class_that_the_node_does_not_offer,
        kind=DifferenceKind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="a-departure-waits-for-all-containers",
        was="A pod deleted by force between two containers' admissions freed what the second got (issue 10)",
        take_out=believe_the_first_container_for_all,
        provoke=a_pod_is_deleted_by_force_between_its_containers_admissions,
        kind=DifferenceKind.OVER_COUNTED,
        card="n1-0",
    ),
    Cure(
        name="what-was-given-just-before-a-silence",
        was="A pod deleted by force right after a kubelet had admitted it and gone away had nothing any more",
        take_out=believe_the_last_answer_alone,
        provoke=a_kubelet_falls_silent_when_it_has_admitted_a_pod,
        kind=DifferenceKind.RELEASED_EARLY,
        card="n1-0",
        pod="default/pod-1",
    ),
    Cure(
        name="one-class-a-card-in-silence",
        was="While PodResources were silent a card of mode Mixed was given to a second class (issue 8)",
        take_out=forget_what_was_answered_in_silence,
        provoke=two_classes_while_the_kubelet_is_silent,
        kind=DifferenceKind.TWO_CLASSES,
        card="n1-0",
    ),
)
