"""What IDs are to mean is recorded before the kubelet is told; an Allocate can come between."""

from typing import Any

import pytest
from tests.component.audit.scene import NODE, Scene, card
from tests.fakes.books import LONG, Pod
from tests.fakes.books_cluster import Cluster
from tests.samples.pod_shapes import SLICE
from tests.simulation.runner import may_be_taken_back

from gpushare_core.audit.difference import Difference, DifferenceKind


def overtake(scene: Scene, pod: Pod, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[Difference]]:
    """Has the next record overtaken by the admission of ``pod``.

    Returns the card that is the first one by that record, once it is written, and what is seen then.
    """
    store = Cluster._merge_status
    overtaken: list[str] = []
    seen: list[Difference] = []

    def merge(cluster: Cluster, name: str, body: Any, *, dry_run: bool) -> Any:
        written = store(cluster, name, body, dry_run=dry_run)
        if not dry_run and not overtaken:
            overtaken.append(body["status"]["cards"][0]["uuid"])
            cluster.bind_past_the_extender(pod, NODE)
            cluster.admit(pod)
            scene.node.clock.now += LONG
            seen.extend(difference for difference in scene.differences() if difference.kind.at_once)
        return written

    monkeypatch.setattr(Cluster, "_merge_status", merge)
    return overtaken, seen


def test_a_record_that_an_allocate_overtakes_is_taken_back_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a moment the status says that the pod's units lie on another card than it was told: found by
    ``make simulate`` (Mixed, seed 110). The card is the pod's own, and no list ever said otherwise."""
    scene = Scene()
    scene.node_with(16, 16)
    listed = dict(scene.node.kubelet.devices)
    overtaken, seen = overtake(scene, scene.create(4), monkeypatch)
    scene.find_cards(card(1, at=0), card(0, at=1))
    assert not scene.node.try_round()
    assert overtaken == ["n1-1"]
    assert {difference.kind for difference in seen} == {DifferenceKind.ENVIRONMENT_DIFFERS}
    scene.settle()
    assert scene.seen == []
    assert scene.node.kubelet.devices == listed


def test_by_such_a_record_two_slices_may_lie_on_one_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is taken back: found by ``make simulate`` (Slices, seed 6203)."""
    scene = Scene()
    scene.node_with(16, 16, mode="Slices", slicesPerCard=2)
    overtaken, seen = overtake(scene, scene.create(2, resource=SLICE), monkeypatch)
    scene.cluster.change_spec(NODE, {"mode": "Slices", "slicesPerCard": 4, "unitChange": "Keep"})
    scene.node.try_round()
    assert overtaken
    assert {difference.kind for difference in seen} == {
        DifferenceKind.ENVIRONMENT_DIFFERS,
        DifferenceKind.WRONG_SHAPE,
    }
    assert sorted(may_be_taken_back(seen)) == sorted(seen)
    scene.settle()
    assert scene.seen == []
