"""More of what was mended: what kubelets admit container by container, in silence, or without knowing it."""

from collections.abc import Sequence
from typing import Any

from tests.component.audit.cures import Cure, Patch, nothing
from tests.component.audit.scene import Scene
from tests.samples.plugin import container
from tests.samples.pod_shapes import CARD, MEMORY, SLICE

from gpushare_core.audit.difference import Kind
from gpushare_extender.ledger.node_ledger import NodeLedger
from gpushare_plugin.decide import allocations
from gpushare_plugin.kubelet import allocator


def count_forgotten_units_beside_those_that_are_seen(patch: Patch) -> None:
    def without_units(pod: Any, assigned: Any) -> list[str]:
        return allocations.containers_without_units(pod, assigned) if pod.running else []

    def as_seen(pod: Any, assignments: Any) -> Any:
        assignment = assignments.assigned.of(pod)
        has_units = assignment and assignments.assigned.has_units(pod)
        return allocations._seen_allocation(pod, assignment, assignments) if has_units else None

    patch.setattr(allocations, "forgotten_containers", without_units)
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
    scene.must_not(Kind.OVER_COUNTED)
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


KUBELET_CURES: Sequence[Cure] = (
    Cure(
        name="what-a-node-does-not-offer-counts-nothing",
        was="A pod that asked besides for a class its node does not offer counted twice: 24 of 16 (issue 10)",
        take_out=count_forgotten_units_beside_those_that_are_seen,
        provoke=a_pod_asks_besides_for_a_class_that_the_node_does_not_offer,
        kind=Kind.OVER_CAPACITY,
        card="n1-0",
    ),
    Cure(
        name="a-departure-waits-for-all-containers",
        was="A pod deleted by force between two containers' admissions freed what the second got (issue 10)",
        take_out=believe_the_first_container_for_all,
        provoke=a_pod_is_deleted_by_force_between_its_containers_admissions,
        kind=Kind.OVER_COUNTED,
        card="n1-0",
    ),
    Cure(
        name="one-class-a-card-in-silence",
        was="While PodResources were silent a card of mode Mixed was given to a second class (issue 8)",
        take_out=forget_what_was_answered_in_silence,
        provoke=two_classes_while_the_kubelet_is_silent,
        kind=Kind.TWO_CLASSES,
        card="n1-0",
    ),
)
