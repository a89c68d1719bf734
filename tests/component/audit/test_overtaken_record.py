"""What IDs are to mean is recorded before the kubelet is told; an Allocate can come between."""

from typing import Any

import pytest
from tests.component.audit.scene import NODE, Scene, card
from tests.fakes.books import LONG
from tests.fakes.books_cluster import Cluster

from gpushare_core.audit.difference import Kind


def test_a_record_that_an_allocate_overtakes_is_taken_back_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a moment the status says that the pod's units lie on another card than it was told: found by
    ``make simulate`` (Mixed, seed 110). The card is the pod's own, and no list ever said otherwise."""
    scene = Scene()
    scene.node_with(16, 16)
    listed = dict(scene.node.kubelet.devices)
    pod, store = scene.create(4), Cluster._merge_status
    overtaken: list[str] = []
    seen: set[Kind] = set()

    def overtake(cluster: Cluster, name: str, body: Any, *, dry_run: bool) -> Any:
        written = store(cluster, name, body, dry_run=dry_run)
        if not dry_run and not overtaken:
            overtaken.append(body["status"]["cards"][0]["uuid"])
            cluster.bind_past_the_extender(pod, NODE)
            cluster.admit(pod)
            scene.node.clock.now += LONG
            seen.update(each.kind for each in scene.differences() if each.kind.at_once)
        return written

    monkeypatch.setattr(Cluster, "_merge_status", overtake)
    scene.find_cards(card(1, at=0), card(0, at=1))
    assert not scene.node.try_round()
    assert overtaken == ["n1-1"]
    assert seen == {Kind.ENVIRONMENT_DIFFERS}
    scene.settle()
    assert scene.seen == []
    assert scene.node.kubelet.devices == listed
