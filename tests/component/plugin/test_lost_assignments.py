"""Pods that run on with units of which their kubelet knows nothing any more, and no annotation tells."""

import pytest
from tests.component.plugin.test_kubelet_restart import all_pods
from tests.fakes.api_server import PODS, status
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.api.names import MIRROR_ANNOTATION
from gpushare_core.api.share_node import PodShare
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube.paths import SHARE_NODES, pod_path
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.units.unit_ids import known_numbers
from gpushare_plugin.devices.simulated.source import card_uuid
from gpushare_plugin.kubelet import registration

MEMORY, SLICE, CARD = GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource
FIRST, SECOND = card_uuid(NODE, 0), card_uuid(NODE, 1)
RUNNING = {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}

modes = pytest.mark.parametrize("mode", ["Memory", "Mixed"])


async def shared_cards(node: Node, mode: str, count: int) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": count, "memory": "16Gi"}]}
    node.share(mode=mode, slicesPerCard=2, devices=devices)
    await node.until(
        "the cards", lambda: [card.units for card in node.share_node.status.cards] == [16] * count
    )
    # They are recorded first, and taken back for a pod that comes before the kubelet has the list.
    await node.kubelet.until("their units in the list", lambda it: len(it.devices_of(MEMORY)) == 16 * count)
    await lists(node, 3 if mode == "Mixed" else 1)
    await node.until_registered()


async def one_card(node: Node, mode: str) -> None:
    await shared_cards(node, mode, count=1)


def mirror(name: str, units: int, *, static: str = "hash-1", uid: str = "mirror-1") -> Json:
    """What the API server shows of a static pod."""
    pod = pod_json(name, container(units=units), uid=uid)
    pod["metadata"]["annotations"] = {MIRROR_ANNOTATION: static}
    return pod | {"status": RUNNING}


async def static_pod(node: Node, units: int = 12) -> None:
    """It runs, and is in all books."""
    await node.run_pod(mirror("static", units))
    await node.until("its annotation", lambda: node.allocation("static") is not None)
    await node.until("its status", lambda: node.on_cards() == {"static": {FIRST: units}})


async def forgetful_restart(node: Node, *names: str) -> None:
    """The kubelet has lost its checkpoint; the containers of pods with these ``names`` run on."""
    served = len(node.kubelet.plugins)
    await node.kubelet.stop()
    for name in names:
        node.kubelet.forget_units(name_of(name))
    await node.kubelet.start()
    await lists(node, served)


async def lost_without_mirror(node: Node, mode: str) -> None:
    """A static pod, of whose units neither its kubelet nor an annotation tells any more."""
    await one_card(node, mode)
    await static_pod(node)
    await forgetful_restart(node, "static")
    await all_pods(node)
    delete_mirror(node)


async def lost_while_both_are_away(node: Node, mode: str) -> int:
    """The same, with plugin and kubelet still to be started; returns how many resources were served."""
    await one_card(node, mode)
    await static_pod(node)
    served = len(node.kubelet.plugins)
    await node.stop_plugin()
    await node.kubelet.stop()
    node.kubelet.forget_units(name_of("static"))
    delete_mirror(node)
    return served


async def lists(node: Node, served: int) -> None:
    """Of so many resources the kubelet has one: it starts pods without what it does not know."""
    await node.kubelet.until(
        f"{served} lists", lambda it: len(it.plugins) == served and not it.awaits_devices
    )


def delete_mirror(node: Node, name: str = "static") -> None:
    node.api.delete(PODS, name, "default")


async def must_not_fit(node: Node, units: int, resource: str = MEMORY) -> None:
    """The kubelet has room for it by its own books."""
    with pytest.raises(AdmissionError):
        await node.run_pod(pod_json("other", container(units=units, resource=resource)))
    delete_mirror(node, "other")


@modes
async def test_a_static_pod_keeps_its_units_when_its_mirror_is_made_anew(node: Node, mode: str) -> None:
    await lost_without_mirror(node, mode)
    node.api.put(PODS, mirror("static", 12, uid="mirror-2"))
    await must_not_fit(node, 8)
    await node.until("its annotation", lambda: node.allocation("static") is not None)
    assert node.on_cards() == {"static": {FIRST: 12}}
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    assert "default/static" in node.message("LedgerInSync")
    await must_not_fit(node, 8)
    if mode == "Mixed":
        await must_not_fit(node, 1, SLICE)


@modes
async def test_it_keeps_them_while_it_has_no_mirror(node: Node, mode: str) -> None:
    await lost_without_mirror(node, mode)
    await node.until("that in the status", lambda: [holder.orphaned for holder in holders(node)] == [True])
    assert node.on_cards() == {"static": {FIRST: 12}}
    await must_not_fit(node, 8)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    if mode == "Mixed":
        await must_not_fit(node, 1, SLICE)


def holders(node: Node) -> list[PodShare]:
    return [pod for card in node.share_node.status.cards for pod in card.pods]


@modes
async def test_the_kubelet_cannot_take_them_without_asking(node: Node, mode: str) -> None:
    """As by an alignment to NUMA nodes where a pod needs all that is free on one of them."""
    await one_card(node, mode)
    await static_pod(node)
    await forgetful_restart(node, "static")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    every = [*node.kubelet.devices_of(MEMORY)]
    with pytest.raises(AdmissionError, match="containers run with 12 of them"):
        await node.kubelet.allocate(MEMORY, every)
    await node.kubelet.allocate(MEMORY, every[:4])
    await node.kubelet.allocate(MEMORY, every[4:])  # its own container that restarts


@modes
async def test_a_pod_that_was_never_annotated_keeps_them(node: Node, mode: str) -> None:
    """Bound by name: the API server refuses what the plugin would write."""
    await one_card(node, mode)
    node.api.fail("PATCH", pod_path("default", "bare"), *[status(403)] * 1000)
    await node.run_pod(pod_json("bare", container(units=12)) | {"status": RUNNING})
    await node.until("its status", lambda: node.on_cards() == {"bare": {FIRST: 12}})
    assert node.allocation("bare") is None
    await forgetful_restart(node, "bare")
    await all_pods(node)
    await must_not_fit(node, 8)
    assert node.on_cards() == {"bare": {FIRST: 12}}
    if mode == "Mixed":
        await must_not_fit(node, 1, SLICE)


@modes
async def test_the_record_tells_it_where_the_plugin_was_restarted_too(node: Node, mode: str) -> None:
    served = await lost_while_both_are_away(node, mode)
    node.api.put(PODS, mirror("static", 12, uid="mirror-2"))
    await node.kubelet.start()
    await node.start_plugin()
    await all_pods(node)
    await lists(node, served)
    await node.until("its annotation", lambda: node.allocation("static") is not None)
    assert node.on_cards() == {"static": {FIRST: 12}}
    await must_not_fit(node, 8)


@modes
async def test_they_are_free_when_it_has_ended(node: Node, mode: str) -> None:
    await lost_without_mirror(node, mode)
    await node.until("that in the status", lambda: [holder.orphaned for holder in holders(node)] == [True])
    node.kubelet.pods.pop(name_of("static"))
    await node.until("the end of it", lambda: node.on_cards() == {})
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    await node.run_pod(pod_json("next", container(units=16)))


@modes
async def test_a_pod_that_ended_has_none_where_the_kubelet_lists_it_without_units(
    node: Node, mode: str
) -> None:
    """As kubelets before 1.34 do, which refuse pods at their start that they had admitted before."""
    await one_card(node, mode)
    pod = pod_json("web", container(units=12))
    await node.run_pod(pod | {"status": RUNNING})
    await node.until("its status", lambda: node.on_cards() == {"web": {FIRST: 12}})
    await forgetful_restart(node, "web")
    node.api.put(PODS, pod | {"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}})
    await node.until("the end of it", lambda: node.on_cards() == {})
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    await node.run_pod(pod_json("next", container(units=16)))


async def test_another_static_pod_of_its_name_has_nothing_of_it(node: Node) -> None:
    await lost_without_mirror(node, "Memory")
    await node.until("that in the status", lambda: [holder.orphaned for holder in holders(node)] == [True])
    node.kubelet.pods.pop(name_of("static"))
    other = mirror("static", 2, static="hash-2", uid="mirror-2")
    await node.run_pod(other)
    await node.until("the other one", lambda: node.on_cards() == {"static": {FIRST: 2}})
    await node.run_pod(pod_json("next", container(units=14)))


async def test_a_container_that_is_started_anew_gets_its_card_again(node: Node) -> None:
    await lost_without_mirror(node, "Memory")
    node.api.put(PODS, mirror("static", 12, uid="mirror-2"))
    await node.until("its annotation", lambda: node.allocation("static") is not None)
    variables = await node.kubelet.restart_container(name_of("static"), "main", 12)
    assert variables["GPUSHARE_CARD"] == FIRST
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    assert node.on_cards() == {"static": {FIRST: 12}}


async def test_a_static_pod_that_nobody_knows_yet_is_not_taken_for_its_container(node: Node) -> None:
    """It is admitted before its mirror is made, and asks for as many units."""
    await one_card(node, "Memory")
    await static_pod(node)
    await forgetful_restart(node, "static")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(mirror("second", 12, static="hash-2", uid="mirror-2"))


async def test_nor_is_its_second_container_when_the_first_has_units(node: Node) -> None:
    await one_card(node, "Memory")
    await static_pod(node, 4)
    await node.run_pod(pod_json("other", container(units=11)) | {"status": RUNNING})
    await forgetful_restart(node, "static")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    second = pod_json("second", container(units=1), container("side", 4), uid="mirror-2")
    second["metadata"]["annotations"] = {MIRROR_ANNOTATION: "hash-2"}
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(second)


async def test_nor_is_one_whose_file_was_written_anew(node: Node) -> None:
    """The mirror of the former one stays until that has ended."""
    await one_card(node, "Memory")
    await static_pod(node, 4)
    await forgetful_restart(node, "static")
    await all_pods(node)
    await node.run_pod(mirror("second", 2, static="hash-2", uid="mirror-2"))
    await node.run_pod(pod_json("other", container(units=10)) | {"status": RUNNING})
    await node.until("all in the status", lambda: allocated(node) == 16)
    node.kubelet.pods.pop(name_of("second"))
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(mirror("second", 4, static="hash-3", uid="mirror-3"))


async def test_nor_is_such_a_one_where_the_former_ones_units_are_lost_too(node: Node) -> None:
    await one_card(node, "Memory")
    await static_pod(node, 4)
    await node.run_pod(mirror("second", 2, static="hash-2", uid="mirror-2"))
    await node.run_pod(pod_json("other", container(units=10)) | {"status": RUNNING})
    await node.until("all in the status", lambda: allocated(node) == 16)
    await forgetful_restart(node, "static", "second", "other")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    node.kubelet.pods.pop(name_of("second"))
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(mirror("second", 4, static="hash-3", uid="mirror-3"))


@modes
async def test_the_record_tells_it_while_the_mirror_is_away(node: Node, mode: str) -> None:
    """The kubelet makes the mirror anew a moment after the plugin has read of it."""
    served = await lost_while_both_are_away(node, mode)
    await node.kubelet.start()
    await node.start_plugin()
    await all_pods(node)
    await lists(node, served)
    await node.until("that in the status", lambda: [holder.orphaned for holder in holders(node)] == [True])
    await must_not_fit(node, 8)
    node.api.put(PODS, mirror("static", 12, uid="mirror-2"))
    await node.until("its annotation", lambda: node.allocation("static") is not None)
    assert node.on_cards() == {"static": {FIRST: 12}}
    await must_not_fit(node, 8)


@pytest.mark.parametrize("units", [0, 2])
async def test_a_file_that_was_written_anew_while_the_plugin_was_away(node: Node, units: int) -> None:
    """The record knows the former pod by its mirror."""
    await one_card(node, "Memory")
    await static_pod(node)
    await node.stop_plugin()
    node.kubelet.pods.pop(name_of("static"))
    delete_mirror(node)
    other = mirror("static", units, static="hash-2", uid="mirror-2")
    node.api.put(PODS, other)
    node.kubelet.served_by_another_plugin(other, {}, {}, MEMORY)
    await node.start_plugin()
    await node.until_registered()
    await node.until("the former one's end", lambda: node.on_cards() == {})
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    assert node.allocation("static") is None
    await node.run_pod(pod_json("next", container(units=16)))


async def test_the_record_tells_what_the_kubelet_forgot_while_another_plugin_served(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "WATCHDOG_PERIOD", 0.05)
    await one_card(node, "Memory")
    successor = Node(node.kubelet, node.api)
    await successor.start_plugin()
    await node.until("it to stand by", lambda: is_displaced(node))
    await static_pod(node)
    await forgetful_restart(node, "static")
    await all_pods(node)
    await displaced_by(successor, node)
    delete_mirror(node)
    node.api.put(PODS, mirror("static", 12, uid="mirror-2"))
    await successor.until("its annotation", lambda: node.allocation("static") is not None)
    delete_mirror(node)
    registrations = node.kubelet.registrations
    await successor.stop_plugin()
    await node.kubelet.until("its return", lambda it: it.registrations > registrations)
    await node.until_registered()
    assert node.on_cards() == {"static": {FIRST: 12}}
    await must_not_fit(node, 8)


async def displaced_by(successor: Node, node: Node) -> None:
    """A kubelet that was restarted takes either of the two."""
    await node.until("one of them to stand by", lambda: is_displaced(node) or is_displaced(successor))
    if is_displaced(successor):
        await successor.stop_plugin()
        await successor.start_plugin()
        await node.until("it to stand by", lambda: is_displaced(node))


async def test_a_container_that_is_started_anew_gets_no_card_that_its_neighbour_runs_with(node: Node) -> None:
    """The kubelet does not say which of the two it is, and each has a card of its own."""
    two = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
    node.share(mode="Mixed", slicesPerCard=2, devices=two)
    await node.kubelet.until("its cards in the list", lambda it: len(it.devices_of(CARD)) == 2)
    await lists(node, 3)
    await node.until_registered()
    await node.run_pod(
        pod_json("twins", container("main", 1, CARD), container("side", 1, CARD)) | {"status": RUNNING}
    )
    await node.until("its status", lambda: len(node.on_cards().get("twins", {})) == 2)
    await node.until("its annotation", lambda: node.allocation("twins") is not None)
    await forgetful_restart(node, "twins")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    for name in ("main", "side"):
        with pytest.raises(AdmissionError):
            await node.kubelet.restart_container(name_of("twins"), name, 1)


def is_displaced(node: Node) -> bool:
    return node.agent is not None and "standing by" in node.agent.readiness_problem()


@pytest.mark.parametrize("annotated", [True, False], ids=["annotated", "by its listing alone"])
async def test_an_init_container_that_is_admitted_once_more_lends_its_units(
    node: Node, *, annotated: bool
) -> None:
    """A kubelet that has lost all asks anew for a container that has ended, and for none that runs."""
    await one_card(node, "Memory")
    if not annotated:
        node.api.fail("PATCH", pod_path("default", "staged"), *[status(403)] * 1000)
    staged = pod_json("staged", container(units=2), inits=(container("first", 3),))
    await node.run_pod(staged | {"status": RUNNING})
    await node.until("its status", lambda: allocated(node) == 3)
    await forgetful_restart(node, "staged")
    await all_pods(node)
    await node.kubelet.restart_container(name_of("staged"), "first", 3)
    await node.run_pod(pod_json("next", container(units=13)))
    await node.until("a full card", lambda: "next" in node.on_cards())
    said = [it["status"].get("cards", []) for it in node.api.history(SHARE_NODES)]
    sums = [card["allocatedUnits"] for cards in said for card in cards]
    assert max(sums) == sums[-1] == 16


async def test_an_init_container_that_runs_keeps_its_units(node: Node) -> None:
    """The kubelet asks for the others, which did not run when it started, and not for this one."""
    await one_card(node, "Memory")
    staged = pod_json("staged", container(units=2), inits=(container("first", 12),))
    await node.run_pod(staged | {"status": {"phase": "Pending", "startTime": RUNNING["startTime"]}})
    await node.until("its status", lambda: allocated(node) == 12)
    await forgetful_restart(node, "staged")
    await all_pods(node)
    await node.kubelet.restart_container(name_of("staged"), "main", 2)
    await must_not_fit(node, 8)
    await node.until("its status", lambda: allocated(node) == 12)
    await node.run_pod(pod_json("next", container(units=4)))


async def test_an_init_container_may_take_all_that_is_left_of_its_card(node: Node) -> None:
    """Nothing is lost: the pod is being admitted, and what it lacks still is nobody else's."""
    await one_card(node, "Memory")
    node.kubelet.aligns = True
    inits = (container("first", 8), container("second", 16))
    await node.run_pod(pod_json("staged", container(), inits=inits))
    await node.until("its status", lambda: allocated(node) == 16)


def allocated(node: Node) -> int:
    return sum(sums(node).values())


async def two_cards(node: Node, mode: str) -> None:
    await shared_cards(node, mode, count=2)


async def run_on(node: Node, card: str, name: str, *containers: Json, inits: tuple[Json, ...] = ()) -> None:
    """Runs a pod that the extender has bound to ``card``."""
    units = {init["name"]: int(init["resources"]["limits"][MEMORY]) for init in (*inits, *containers)}
    told = annotation(
        {container: {card: count} for container, count in units.items()}, cards={card: max(units.values())}
    )
    await node.run_pod(pod_json(name, *containers, inits=inits, annotation=told) | {"status": RUNNING})


def sums(node: Node) -> dict[str, int]:
    return {card.uuid: card.allocated_units for card in node.share_node.status.cards}


@modes
async def test_whichever_pod_it_asks_for_no_card_is_given_beyond_its_capacity(node: Node, mode: str) -> None:
    """It asks for a container that has ended, and the container of another pod runs on with as many units."""
    await two_cards(node, mode)
    await run_on(node, FIRST, "older", container(units=3))
    await run_on(node, FIRST, "others", container(units=13))
    await run_on(node, SECOND, "staged", container(units=2), inits=(container("first", 3),))
    await node.until("all in the status", lambda: sums(node) == {FIRST: 16, SECOND: 3})
    await forgetful_restart(node, "older", "others", "staged")
    await all_pods(node)
    variables = await node.kubelet.restart_container(name_of("staged"), "first", 3)
    assert variables["GPUSHARE_CARD"] == SECOND
    await node.run_pod(pod_json("next", container(units=13)))
    await node.until("full cards", lambda: sums(node) == {FIRST: 16, SECOND: 16})


def close(node: Node, *, units: range) -> None:
    """The kubelet takes these units for sick ones, and all others for healthy ones."""
    for unit in node.kubelet.devices:
        (number,) = known_numbers([unit])
        node.kubelet.devices[unit] = "Unhealthy" if number in units else "Healthy"


async def forgets_pair(node: Node) -> None:
    await forgetful_restart(node, "pair")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))


async def pair_on_two_cards(node: Node) -> None:
    """12 units run on the second card, and 3 on the first one: the second was sick when they restarted. The
    kubelet has lost both, and the plugin does not know any more which card it has named for them."""
    await two_cards(node, "Memory")
    await run_on(node, SECOND, "pair", container(units=12), container("side", 3))
    await node.until("it in the status", lambda: sums(node) == {FIRST: 0, SECOND: 15})
    await forgets_pair(node)
    await node.restart_plugin()
    await lists(node, 1)
    close(node, units=range(16, 32))
    await node.kubelet.restart_container(name_of("pair"), "side", 3)
    await node.until("another card of its own", lambda: sums(node) == {FIRST: 3, SECOND: 12})
    close(node, units=range(0))
    await forgets_pair(node)
    await node.restart_plugin()
    await lists(node, 1)


async def restarts(node: Node, name: str, units: int) -> str:
    """Returns the card that the container of the pair was given."""
    return (await node.kubelet.restart_container(name_of("pair"), name, units))["GPUSHARE_CARD"]


async def test_a_container_gets_nothing_of_what_another_one_of_its_pod_runs_with(node: Node) -> None:
    """That one restarted before, and its card was named last."""
    await pair_on_two_cards(node)
    assert await restarts(node, "main", 12) == SECOND
    await run_on(node, SECOND, "other", container(units=4))
    await node.until("a full card", lambda: sums(node) == {FIRST: 3, SECOND: 16})
    await forgets_pair(node)
    assert await restarts(node, "side", 3) == FIRST
    await node.until("the same in the status", lambda: sums(node) == {FIRST: 3, SECOND: 16})


@pytest.mark.parametrize("order", [("main", "side"), ("side", "main")], ids="-".join)
async def test_each_container_of_a_pod_on_two_full_cards_gets_its_own_again(
    node: Node, order: tuple[str, ...]
) -> None:
    """What the other one runs with needs no room beside it."""
    await pair_on_two_cards(node)
    await run_on(node, FIRST, "first", container(units=13))
    await run_on(node, SECOND, "second", container(units=4))
    await node.until("full cards", lambda: sums(node) == {FIRST: 16, SECOND: 16})
    own = {"main": (12, SECOND), "side": (3, FIRST)}
    for name in order:
        units, card = own[name]
        assert await restarts(node, name, units) == card
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    assert sums(node) == {FIRST: 16, SECOND: 16}


@pytest.mark.parametrize("order", [("main", "side"), ("side", "main")], ids="-".join)
async def test_as_many_slices_as_gib_of_one_pod_are_told_apart(node: Node, order: tuple[str, ...]) -> None:
    """Both cards are full: there is room for its containers on their own cards alone."""
    await two_cards(node, "Mixed")
    both = pod_json("both", container(units=1), container("side", 1, SLICE))
    await node.run_pod(both | {"status": RUNNING})
    await node.run_pod(pod_json("memory", container(units=15)) | {"status": RUNNING})
    await node.run_pod(pod_json("slice", container(units=1, resource=SLICE)) | {"status": RUNNING})
    await node.until("all in the status", lambda: len(node.on_cards()) == 3)
    before = node.on_cards()
    await forgetful_restart(node, "both")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    for name in order:
        await node.kubelet.restart_container(name_of("both"), name, 1)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    assert node.on_cards() == before


async def test_of_two_pods_on_one_full_card_each_gets_its_units_again(node: Node) -> None:
    await one_card(node, "Memory")
    for name in ("one", "other"):
        await node.run_pod(pod_json(name, container(units=8)) | {"status": RUNNING})
    await node.until("both in the status", lambda: allocated(node) == 16)
    await forgetful_restart(node, "one", "other")
    await all_pods(node)
    for name in ("other", "one"):
        variables = await node.kubelet.restart_container(name_of(name), "main", 8)
        assert variables["GPUSHARE_CARD"] == FIRST
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    assert node.on_cards() == {"one": {FIRST: 8}, "other": {FIRST: 8}}


async def test_of_two_pods_on_full_cards_none_is_given_the_units_of_the_other(node: Node) -> None:
    """It cannot be told which one restarts: the container waits, rather than that two run on one card."""
    await two_cards(node, "Memory")
    await run_on(node, FIRST, "older", container(units=16))
    await run_on(node, SECOND, "younger", container(units=16))
    await node.until("both in the status", lambda: allocated(node) == 32)
    await forgetful_restart(node, "older", "younger")
    await all_pods(node)
    with pytest.raises(AdmissionError):
        await node.kubelet.restart_container(name_of("younger"), "main", 16)
    node.end_pod("older")
    await node.until("the older one's end", lambda: node.on_cards() == {"younger": {SECOND: 16}})
    variables = await node.kubelet.restart_container(name_of("younger"), "main", 16)
    assert variables["GPUSHARE_CARD"] == SECOND
