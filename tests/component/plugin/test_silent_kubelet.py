"""A plugin that starts while the kubelet is away: what pods have stays in the status until it answers."""

from tests.component.audit.scene import NODE, Scene

from gpushare_core.text.json_object import Json


def holders(scene: Scene) -> list[tuple[int, list[str]]]:
    """Units in use and pods of each card, by the status."""
    cards: list[Json] = scene.cluster.share_nodes[NODE]["status"]["cards"]
    return [(card["allocatedUnits"], [pod["name"] for pod in card["pods"]]) for card in cards]


def test_what_pods_have_is_in_use_although_nobody_can_list_it() -> None:
    scene = Scene()
    node = scene.node_with(16)
    scene.run(4)
    orphan = scene.run(8)
    scene.delete_by_force(orphan)
    node.look()
    node.kubelet.silent = True
    node.start_plugin()
    node.look()
    assert holders(scene) == [(12, ["pod-1", "pod-2"])]
    node.kubelet.silent = False
    scene.release()
    scene.settle()
    assert holders(scene) == [(4, ["pod-1"])]
    assert scene.seen == []


def test_what_was_given_just_before_the_silence_stays_in_use_when_its_pod_is_deleted() -> None:
    """The last answer is of the moment at which the pod was being admitted: the checkpoint has its units."""
    scene = Scene()
    node = scene.node_with(16)
    pod = scene.promise(8)
    scene.admit(pod)
    node.kubelet.silent = True
    node.look()
    scene.delete_by_force(pod)
    node.look()
    assert holders(scene) == [(8, ["pod-1"])]
    node.kubelet.silent = False
    scene.release()
    scene.settle()
    assert holders(scene) == [(0, [])]
    assert scene.seen == []
