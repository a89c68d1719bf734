"""Evictions of our own, against an API server that can be told to refuse."""

from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from msgspec import structs
from tests.fakes.api_server import DISRUPTION_BUDGETS, PODS, Answer, FakeApi, cut, status
from tests.fakes.preemption_world import World, a_world, preemptor_json, requested
from tests.samples.extender import holder_json, pod_json, pod_update, reference, share_node
from tests.samples.preemption import budget_json

from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.scheduling.fit.candidates import SAMPLE
from gpushare_core.scheduling.ledger.hold import HOLD_SECONDS
from gpushare_core.text.json_object import Json
from gpushare_extender.decide.preemption.queue import (
    EvictionRate,
    PreemptionQueue,
    Preemptor,
)
from gpushare_extender.evictions.preemptions import LOWEST_SECONDS, UNTRIED_SECONDS

EVICTION = "/api/v1/namespaces/default/pods/{}/eviction"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as made:
        yield made


async def test_the_least_important_pod_goes_and_the_card_is_held(world: World) -> None:
    world.refuse()
    await world.until("the preemptor's Event", lambda: ("Preempting", "p") in world.notes())
    assert world.evicted() == ["y"]
    assert world.held == [("uid-p", (("n1-1", 10),))]
    assert world.notes() == [("Preempted", "y"), ("Preempting", "p")]


async def test_what_the_pod_asks_of_another_plugin_does_not_matter(world: World) -> None:
    """``nvidia.com/gpu`` is ours only while a node serves it, and the filter has not counted it."""
    pod = preemptor_json()
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    world.api.put(PODS, pod)
    world.refuse()
    await world.until("y to go", lambda: world.evicted() == ["y"])


async def test_kube_scheduler_is_woken_when_the_victim_is_gone(world: World) -> None:
    world.refuse()
    await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
    assert world.woken == []
    world.remove_pod("y")
    assert world.woken == ["uid-p"]


async def test_while_victims_end_nothing_more_is_evicted(world: World) -> None:
    world.refuse()
    await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
    for _ in range(5):
        world.refuse()
        await world.run_for(8.0)
    assert world.calls() == ["y"]


async def test_after_a_restart_in_the_middle_it_waits_for_the_victim_and_holds_the_card(world: World) -> None:
    ending = world.api.pod("y")
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    world.api.put(PODS, ending)
    world.refuse()
    await world.until("a hold", lambda: bool(world.held))
    await world.run_for(10.0)
    assert (world.calls(), world.held) == ([], [("uid-p", (("n1-1", 10),))])


async def test_the_hold_ends_in_time(world: World) -> None:
    world.refuse()
    await world.until("a hold", lambda: bool(world.held))
    await world.run_for(HOLD_SECONDS)
    assert world.held
    world.remove_pod("y")
    world.preemptions.preemptors.settled("uid-p")
    await world.until("its end", lambda: not world.held, seconds=10.0)


async def test_what_is_free_is_not_held_for_as_long_as_victims_might_have_taken(world: World) -> None:
    victim = world.api.pod("y")
    victim["spec"]["terminationGracePeriodSeconds"] = 3600
    world.api.put(PODS, victim)
    world.refuse()
    await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
    await world.run_for(2 * HOLD_SECONDS)
    assert world.held
    world.remove_pod("y")
    world.preemptions.preemptors.settled("uid-p")
    await world.run_for(HOLD_SECONDS - 5.0)
    assert world.held
    await world.until("its end", lambda: not world.held, seconds=10.0)


async def test_what_is_free_is_held_until_kube_scheduler_has_tried_the_pod(world: World) -> None:
    """It may let one that was refused often wait for five minutes: others had been evicted in vain, and were
    again at the next refusal."""
    world.refuse()
    await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
    world.remove_pod("y")
    await world.run_for(300.0)
    assert world.held
    world.refuse()
    await world.run_for(HOLD_SECONDS - 5.0)
    assert world.held, "it may be on its way"
    await world.until("the end: something else keeps it from the node", lambda: not world.held, seconds=10.0)


async def test_nor_is_it_held_for_ever_for_a_pod_that_is_never_tried(world: World) -> None:
    world.refuse()
    await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
    world.remove_pod("y")
    await world.run_for(UNTRIED_SECONDS - 10.0)
    assert world.held
    await world.until("its end", lambda: not world.held, seconds=20.0)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda api: api.delete(PODS, "p", "default"), id="deleted"),
        pytest.param(lambda api: api.put(PODS, pod_json("p", uid="other", units=10)), id="made anew"),
        pytest.param(lambda api: api.put(PODS, pod_json("p", units=10, node="n2")), id="bound elsewhere"),
    ],
)
async def test_the_hold_ends_with_the_pod(world: World, change: Callable[[FakeApi], None]) -> None:
    world.refuse()
    await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
    change(world.api)
    await world.until("the end of the hold", lambda: not world.held, seconds=10.0)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"preemptionPolicy": "Never"}, id="never preempts"),
        pytest.param({"nodeName": "n2"}, id="bound meanwhile"),
        pytest.param({"priority": 3}, id="not as important as the caller said"),
    ],
)
async def test_the_pod_itself_is_asked_before_anything_is_evicted(world: World, spec: Json) -> None:
    world.api.put(PODS, preemptor_json(**{"priority": 10, **spec}))
    world.refuse()
    await world.run_for(30.0)
    assert (world.calls(), world.held) == ([], [])


async def test_nobody_is_evicted_for_a_pod_of_the_same_priority(world: World) -> None:
    world.api.put(PODS, preemptor_json(priority=1))
    world.refuse(priority=1)
    await world.run_for(30.0)
    assert world.calls() == []


async def test_nobody_is_evicted_where_the_policy_says_so(world: World) -> None:
    world.ledger.set_share_node(structs.replace(share_node("n1"), preempts=False))
    world.refuse()
    await world.run_for(30.0)
    assert world.calls() == []


async def test_nobody_is_evicted_for_a_pod_that_fits_meanwhile(world: World) -> None:
    world.refuse()
    world.remove_pod("x")
    await world.run_for(2.0)
    assert (world.calls(), world.woken) == ([], ["uid-p"])


async def test_nobody_is_evicted_yet_for_a_pod_that_may_be_offered_another_node(world: World) -> None:
    """kube-scheduler looks at some of many nodes at a time; nobody else is woken for that."""
    world.ledger.set_share_node(share_node("n2"))
    preemptor = Preemptor(reference("p"), requested("p", 10, 10), 10, ("n1",), SAMPLE)
    world.preemptions.preemptors.refused(preemptor, now=world.clock())
    await world.run_for(2.0)
    assert (world.calls(), world.woken, preemptor.attempts) == ([], [], 1)


async def test_who_was_offered_all_nodes_does_not_wait_for_others(world: World) -> None:
    """A pod whose node selector keeps it from the room there is waited for two and a half minutes."""
    world.ledger.set_share_node(share_node("n2"))
    world.preemptions.has_seen_all = {"uid-p"}.__contains__
    preemptor = Preemptor(reference("p"), requested("p", 10, 10), 10, ("n1",), SAMPLE)
    world.preemptions.preemptors.refused(preemptor, now=world.clock())
    await world.until("an eviction", lambda: world.calls() == ["y"], 3.0)


async def test_what_is_held_for_a_lesser_pod_is_room_for_one_that_may_be_offered_it(world: World) -> None:
    world.ledger.set_share_node(share_node("n2", 16))
    world.api.put(PODS, preemptor_json("lesser", priority=2))
    until, request = world.clock() + 60.0, requested("lesser", 16, 2)
    world.ledger.hold(reference("lesser"), node="n2", request=request, priority=2, until=until)
    preemptor = Preemptor(reference("p"), requested("p", 10, 10), 10, ("n1",), SAMPLE)
    world.preemptions.preemptors.refused(preemptor, now=world.clock())
    await world.run_for(3.0)
    assert world.calls() == []


async def test_kube_scheduler_is_left_alone_while_it_evicts(world: World) -> None:
    world.refuse()
    world.preemptions.preemptors.left_to_scheduler("uid-p", now=world.clock())
    await world.run_for(20.0)
    assert world.calls() == []
    await world.until("an eviction of our own, since it did not", lambda: world.calls() == ["y"], 60.0)


async def test_nobody_is_evicted_on_a_node_that_may_not_be_fit_any_more(world: World) -> None:
    """Long after the refusal kube-scheduler is woken first, and this one no longer tries the pod."""
    world.awake = False
    world.api.put(DISRUPTION_BUDGETS, budget_json())
    world.refuse()
    await world.run_for(20.0)
    world.api.objects[DISRUPTION_BUDGETS].clear()
    await world.until("kube-scheduler to be woken", lambda: bool(world.woken), 60.0)
    await world.run_for(20.0)
    assert world.calls() == []
    world.awake = True
    await world.until("an eviction", lambda: world.calls() == ["y"], 120.0)


async def test_for_one_as_important_as_those_that_end_nothing_is_held(world: World) -> None:
    ending = world.api.pod("y")
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    world.api.put(PODS, ending)
    world.api.put(PODS, preemptor_json(priority=1))
    world.refuse(priority=1)
    await world.run_for(20.0)
    assert (world.calls(), world.held) == ([], [])


async def test_nodes_without_lesser_pods_are_not_read_again_and_again(world: World) -> None:
    for name in ("p", "q", "r"):
        world.api.put(PODS, preemptor_json(name, priority=1))
        world.refuse(name=name, priority=1)
    await world.run_for(40.0)
    assert len(world.api.requests("GET", PODS)) == 1


async def test_a_lesser_pod_is_found_soon_on_the_last_of_a_hundred_nodes(world: World) -> None:
    """Looks at the next nodes had waited longer each time: minutes for 100 nodes, hours for 500."""
    names = [f"a{number:02}" for number in range(99)]
    for name in names:
        world.ledger.set_share_node(share_node(name, 16))
        world.ledger.set_pod(pod_update(f"uid-{name}", node=name, c0=9))
        pod = holder_json(name, units=9)
        pod["spec"].update(nodeName=name, priority=50)
        world.api.put(PODS, pod)
    preemptor = Preemptor(reference("p"), requested("p", 10, 10), 10, (*names, "n1"), 99)
    world.preemptions.preemptors.refused(preemptor, now=world.clock())
    await world.until("an eviction", lambda: world.calls() == ["y"], 15.0)
    assert len(world.api.requests("GET", PODS)) <= 100 + 1, "each node is read once, and the chosen one again"


async def test_nodes_that_are_gone_are_forgotten(world: World) -> None:
    """A cluster that scales has other nodes every day."""
    for name in ("n1", "n2", "n3"):
        world.ledger.set_share_node(share_node(name, 8))
        preemptor = Preemptor(reference("p"), requested("p", 10, 10), 10, (name,), 1)
        world.preemptions.preemptors.settled("uid-p")
        world.preemptions.preemptors.refused(preemptor, now=world.clock())
        await world.run_for(LOWEST_SECONDS + 1.0)
    assert [*world.preemptions._lowest] == ["n3"]


async def test_only_the_holder_of_the_lease_evicts() -> None:
    async def not_held() -> int:
        raise NotHeldError("another extender answers binds")

    async with a_world(not_held) as world:
        world.refuse()
        await world.run_for(30.0)
        assert (world.calls(), world.held) == ([], [])


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "x"}}, id="static"),
        pytest.param({"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}, id="DaemonSet"),
    ],
)
async def test_pods_that_come_back_at_once_stay(world: World, metadata: Json) -> None:
    pod = world.api.pod("y")
    pod["metadata"].update(metadata)
    world.api.put(PODS, pod)
    world.refuse()
    await world.until("an eviction", lambda: bool(world.calls()))
    assert world.calls() == ["x"]


class TestProtected:
    async def test_by_a_budget_that_is_known(self, world: World) -> None:
        pod = world.api.pod("y")
        pod["metadata"]["labels"] = {"app": "web"}
        world.api.put(PODS, pod)
        world.api.put(DISRUPTION_BUDGETS, budget_json(app="web"))
        world.refuse()
        await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
        assert world.calls() == ["x"]

    async def test_all_of_them_and_it_is_told_once(self, world: World) -> None:
        world.api.put(DISRUPTION_BUDGETS, budget_json())
        world.refuse()
        await world.until("the Event", lambda: ("PreemptionRefused", "p") in world.notes())
        await world.run_for(60.0)
        assert (world.calls(), world.held) == ([], [])
        assert world.notes() == [("PreemptionRefused", "p")]

    async def test_refused_by_the_eviction_api_the_next_best_goes(self, world: World) -> None:
        world.api.fail("POST", EVICTION.format("y"), status(429, "Cannot evict pod"))
        world.refuse()
        await world.until("an eviction", lambda: ("Preempting", "p") in world.notes())
        assert world.calls() == ["y", "x"]
        assert world.held == [("uid-p", (("n1-0", 10),))]
        assert ("PreemptionRefused", "p") in world.notes()

    async def test_refused_by_the_eviction_api_and_no_other(self, world: World) -> None:
        world.remove_pod("x")
        world.add_pod("x", priority=50, card=0, units=10)
        world.api.fail("POST", EVICTION.format("y"), status(429, "Cannot evict pod"))
        world.refuse()
        await world.until("the Event", lambda: ("PreemptionRefused", "p") in world.notes())
        await world.until("the end of the hold", lambda: not world.held)
        await world.run_for(20.0)
        assert world.calls() == ["y"]


@pytest.mark.parametrize("fault", [status(500), status(403), cut])
@pytest.mark.parametrize("path", [PODS, DISRUPTION_BUDGETS, "/api/v1/namespaces/default/pods/p"])
async def test_what_fails_is_tried_again(world: World, path: str, fault: Answer) -> None:
    world.api.fail("GET", path, fault)
    world.refuse()
    await world.until("an eviction", lambda: world.calls() == ["y"])


async def test_an_eviction_of_which_nothing_is_known_keeps_the_hold_and_is_looked_at_again(
    world: World,
) -> None:
    world.api.fail("POST", EVICTION.format("y"), cut)
    world.refuse()
    await world.until("a hold", lambda: bool(world.calls()))
    await world.until("the other attempt", lambda: world.evicted() == ["y"], 10.0)
    await world.run_for(10.0)
    assert (world.calls(), len(world.held)) == (["y", "y"], 1)


async def test_a_victim_that_is_gone_already_is_as_good(world: World) -> None:
    world.api.fail("POST", EVICTION.format("y"), status(404))
    world.refuse()
    await world.until("the Event", lambda: ("Preempting", "p") in world.notes())
    assert world.held


async def test_events_are_not_needed(world: World) -> None:
    for _ in range(2):
        world.api.fail("POST", "/apis/events.k8s.io/v1/namespaces/default/events", status(403))
    world.refuse()
    await world.until("an eviction", lambda: world.evicted() == ["y"])


async def test_no_more_are_evicted_than_the_rate_allows(world: World) -> None:
    world.preemptions.rate = EvictionRate(most=1)
    for victim in map(world.api.pod, ("x", "y")):
        victim["spec"]["terminationGracePeriodSeconds"] = 120
        world.api.put(PODS, victim)
    world.api.put(PODS, preemptor_json("q"))
    world.refuse()
    world.refuse(name="q")
    await world.until("the first", lambda: len(world.calls()) == 1)
    await world.run_for(40.0)
    assert len(world.calls()) == 1
    await world.until("the second", lambda: len(world.calls()) == 2, 60.0)
    assert sorted(uid for uid, _ in world.held) == ["uid-p", "uid-q"]


async def test_one_that_needs_many_to_go_has_its_turn_among_those_that_need_one(world: World) -> None:
    """p needs u and v to go; p1 to p9 have one pod in their way each, on other nodes."""
    world.preemptions.rate = EvictionRate(most=2)
    world.add_pod("u", priority=1, card=1, units=6)
    world.add_pod("v", priority=1, card=1, units=6)
    world.remove_pod("y")
    world.add_pod("x2", priority=50, card=0, units=6)
    world.api.put(PODS, preemptor_json(units=16))
    for number in range(1, 10):
        node, name = f"z{number}", f"p{number}"
        world.ledger.set_share_node(share_node(node, 16))
        world.ledger.set_pod(pod_update(f"uid-{node}", node=node, c0=10))
        pod = holder_json(node, units=10)
        pod["spec"].update(nodeName=node, priority=1)
        world.api.put(PODS, pod)
        world.api.put(PODS, preemptor_json(name))
        small = Preemptor(reference(name), requested(name, 10, 10), 10, (node,), 1)
        world.preemptions.preemptors.refused(small, now=world.clock())

    def wake(uid: str) -> None:
        known = {preemptor.pod.uid: preemptor for preemptor in world.preemptions.preemptors.due(now=1e9)}
        world.preemptions.preemptors.refused(known[uid], now=world.clock())

    world.preemptions.would_fit = wake
    world.refuse(units=16)
    await world.until("its turn", lambda: {"u", "v"} <= {*world.calls()}, seconds=150.0)
    assert len(world.calls()) < 9


async def test_whom_pods_make_room_that_end_already_waits_for_nobody_elses_turn(world: World) -> None:
    """Nobody is evicted for it: until the card is held any pod as important as those that end may take it."""
    ending = world.api.pod("y")
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    world.api.put(PODS, ending)
    rate = world.preemptions.rate = EvictionRate(most=2)
    rate.sent(now=world.clock())
    first = Preemptor(reference("q"), requested("q", 10, 10), 10, ("n1",), 1)
    assert not rate.allows(2, now=world.clock(), preemptor=first)
    world.refuse()
    await world.until("a hold", lambda: bool(world.held), seconds=5.0)
    assert world.calls() == []
    assert rate.is_next(first)


async def test_who_waits_for_its_turn_makes_no_way_for_others(world: World) -> None:
    """Looks that follow soon are none that nothing came of: after 40 s of them it was forgotten first."""
    queue = world.preemptions.preemptors = PreemptionQueue(most=1)
    rate = world.preemptions.rate = EvictionRate(most=1)
    rate.sent(now=world.clock())
    world.refuse()
    await world.run_for(50.0)
    assert world.calls() == []
    world.refuse(name="q")
    assert [preemptor.pod.name for preemptor in queue.due(now=1e9)] == ["p"]


async def test_two_that_wait_get_a_card_each(world: World) -> None:
    world.api.put(PODS, preemptor_json("q"))
    world.refuse()
    world.refuse(name="q")
    await world.until("both", lambda: len(world.held) == 2 and len(world.evicted()) == 2)
    assert len({cards for _, cards in world.held}) == 2
    assert sorted(world.calls()) == ["x", "y"]


async def test_nobody_is_evicted_for_a_pod_that_is_being_bound(world: World) -> None:
    """It fits while the look goes on: what it gets then is in nobody's way."""

    async def bound_meanwhile() -> int:
        if world.ledger.holder("uid-p") is None:
            world.remove_pod("x")
            world.ledger.reserve(reference("p"), node="n1", request=requested("p", 10, 10), priority=10)
        return 1

    world.preemptions.permit = bound_meanwhile
    world.refuse()
    await world.until("the bind", lambda: world.ledger.holder("uid-p") is not None)
    await world.run_for(20.0)
    assert (world.calls(), world.held) == ([], [])


async def test_no_more_are_evicted_once_the_pod_has_its_units(world: World) -> None:
    world.add_pod("z", priority=1, card=1, units=6)

    async def bound_elsewhere(_: web.Request) -> None:
        if world.ledger.holder("uid-p") is None:
            world.remove_pod("x")
            world.ledger.reserve(reference("p"), node="n1", request=requested("p", 16, 10), priority=10)

    for name in ("y", "z"):
        world.api.fail("POST", EVICTION.format(name), bound_elsewhere)
    world.api.put(PODS, preemptor_json(units=16))
    world.refuse(units=16)
    await world.until("the bind", lambda: world.ledger.holder("uid-p") is not None)
    await world.run_for(20.0)
    assert (len(world.calls()), world.held) == (1, [])


class TestEnding:
    def end(self, world: World, name: str, node: str = "n1") -> None:
        pod = world.api.pod(name)
        pod["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
        pod["spec"]["nodeName"] = node
        world.api.put(PODS, pod)

    async def test_one_that_never_ends_is_not_waited_for_for_ever(self, world: World) -> None:
        self.end(world, "y")
        world.refuse()
        await world.until("a hold", lambda: bool(world.held))
        assert world.calls() == []
        await world.until("another to go", lambda: world.calls() == ["x"], 200.0)
        assert world.held == [("uid-p", (("n1-0", 10),))]

    async def test_an_equal_one_that_never_ends_is_not_waited_for_either(self, world: World) -> None:
        self.end(world, "x")
        world.api.put(PODS, preemptor_json(priority=5))
        world.awake = False
        while not world.calls():
            assert world.clock() < 1200.0, "the other one does not go"
            world.refuse(priority=5)
            await world.run_for(8.0)
        assert world.calls() == ["y"]

    async def test_where_kube_scheduler_evicts_still_no_others_go(self, world: World) -> None:
        """Its victims may take longer than the pause after its answer, on a node that it does not offer."""
        world.add_pod("v", priority=1, card=0, units=1, labels={})
        world.ledger.drop_pod("uid-v")
        self.end(world, "v", node="n2")
        pod = preemptor_json()
        world.api.put(PODS, {**pod, "status": {"nominatedNodeName": "n2"}})
        world.refuse()
        await world.run_for(50.0)
        assert world.calls() == []
        await world.until("an eviction, for they do not end", lambda: world.calls() == ["y"], 200.0)


async def test_a_pod_that_is_gone_is_forgotten(world: World) -> None:
    world.api.put(DISRUPTION_BUDGETS, budget_json())
    world.refuse()
    await world.until("a look", lambda: bool(world.api.requests("GET", PODS)))
    world.api.delete(PODS, "p", "default")
    await world.run_for(100.0)
    looks = len(world.api.requests("GET", PODS))
    await world.run_for(1000.0)
    assert len(world.api.requests("GET", PODS)) == looks
