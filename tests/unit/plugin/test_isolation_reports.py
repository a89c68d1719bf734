"""What is said of isolation: the node's word, conditions, Events, metrics, and which files are needed."""

from array import array
from dataclasses import replace
from typing import Any

import pytest
from tests.samples.plugin import GIB, assigned, by_name, card, container, layout, name_of, pod

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.plugin_heartbeat import IsolationFiles, isolation_files, read_isolation_files
from gpushare_core.api.plugin_heartbeat import heartbeat_lease as lease
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import CardStatus, Isolation, NodeStatus, PodShare
from gpushare_core.process.clock import utc_now
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, GivenIsolation
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.isolation.conditions import isolation_conditions, isolation_events
from gpushare_plugin.decide.isolation.hook import HOOK
from gpushare_plugin.decide.isolation.kind import (
    CardLimit,
    GrantedMemory,
    HookFacts,
    IsolatedShare,
    IsolationFacts,
    IsolationFinding,
)
from gpushare_plugin.decide.isolation.limits_file import limits_file
from gpushare_plugin.decide.isolation.needed_files import NeededFiles, needed_files
from gpushare_plugin.decide.isolation.node_isolation import (
    NONE_ASKED,
    NOT_DECIDED,
    IsolationDecision,
    beside_inventory,
    closed_without_isolation,
    decide_isolation,
    findings,
    given_kinds,
    isolated_shares,
)
from gpushare_plugin.decide.report.figures import isolation_figures
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse
from gpushare_plugin.decide.use.lasting_excess import excess_since, recorded_excess
from gpushare_plugin.devices.card import Equipment, HostMount, Reading

MIB = 2**20
NUMBERS = array("I", [0, 1])
GRANTED = GrantedMemory(
    numbers=NUMBERS,
    limits=(CardLimit(uuid="GPU-0", memory=2 * GIB),),
    context_memory=600 * MIB,
    folder="/isolation",
)
IDENTITY, WRITTEN = limits_file(GRANTED)
HOOKED = GivenIsolation(kind=MemoryIsolation.HOOK, identity=IDENTITY)
LACKING = Problem("LibraryMissing", "the image has no library: use another")
ASKED = Isolation(memory=MemoryIsolation.HOOK)
READY = IsolationDecision(asked=MemoryIsolation.HOOK)
SHARE = ContainerShare(name_of("a"), "uid-a", "main", "GPU-0")
ISOLATED = IsolatedShare(share=SHARE, given=HOOKED, numbers=NUMBERS, memory=2 * GIB)
HELD = [PodAllocation(pod("a", container(units=2)), {"main": {"GPU-0": 2}}, {"GPU-0": 2})]


def stored(given: GivenIsolation | None = HOOKED) -> AssignedDevices:
    entry = CheckpointEntry(uid="uid-a", container="main", numbers=NUMBERS, isolation=given)
    listed = assigned(a={"main": [0, 1]})
    (one,) = listed.pods.values()
    return replace(listed, pods={one.name: one.with_uid("uid-a")}, stored={"uid-a": {"main": entry}})


def facts(**hook: Any) -> IsolationFacts:
    return IsolationFacts(hook=HookFacts(**{"limits": {IDENTITY: WRITTEN}, **hook}))


def finding(**hook: Any) -> IsolationFinding:
    ((_, found),) = findings([ISOLATED], facts(**hook))
    return found


def states(decision: IsolationDecision, *found: IsolationFinding) -> list[tuple[str, str, str]]:
    pairs = [(ISOLATED, one) for one in found]
    return [(one.type, one.status, one.reason) for one in isolation_conditions(decision, pairs, [])]


def test_a_node_that_can_gives_the_kind_that_is_asked_for() -> None:
    decision = decide_isolation(ASKED, facts(), folder="/isolation")
    assert (decision.word, decision.choice.kind, decision.choice.context_memory) == ("Hook", HOOK, 600 * MIB)
    assert decide_isolation(None, facts(), folder="") is NONE_ASKED
    assert NONE_ASKED.word == "None"


def test_a_node_that_cannot_closes_its_cards_and_gives_nothing() -> None:
    decision = decide_isolation(ASKED, facts(problem=LACKING), folder="/isolation")
    assert (decision.word, decision.choice.kind.name) == ("Unavailable", MemoryIsolation.NONE)
    reading = Reading(cards=(card(0), card(1)))
    assert not any(card.is_open for card in closed_without_isolation(reading, decision).cards)
    assert closed_without_isolation(reading, READY) is reading


def test_where_nothing_is_asked_for_no_condition_is_there() -> None:
    assert states(NONE_ASKED, finding()) == []


def test_the_node_says_what_it_lacks_and_what_to_do() -> None:
    lacking = IsolationDecision(asked=MemoryIsolation.HOOK, problem=LACKING)
    (ready,) = isolation_conditions(lacking, [], [])
    assert (ready.type, ready.status, ready.reason) == ("IsolationReady", "False", "LibraryMissing")
    assert "use another" in ready.message


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        pytest.param({}, ("True", "InForce"), id="as it was given"),
        pytest.param({"limits": {}}, ("False", "IsolationNotInForce"), id="the file is gone"),
        pytest.param({"limits": {IDENTITY: b"x"}}, ("False", "IsolationNotInForce"), id="other bytes"),
        pytest.param({"missing": ("x.so",)}, ("False", "IsolationNotInForce"), id="the library is gone"),
        pytest.param({"problem": LACKING}, ("True", "InForce"), id="new containers alone cannot have it"),
        pytest.param(
            {"exceeding": frozenset({SHARE})}, ("False", "IsolationNotInForce"), id="it has more all the same"
        ),
        pytest.param({"read_problem": LACKING}, ("Unknown", "NotKnown"), id="nobody could look"),
    ],
)
def test_a_container_is_held_or_named(hook: Any, expected: tuple[str, str]) -> None:
    ready, in_force = states(READY, finding(**hook))
    assert ready == ("IsolationReady", "True", "Hook")
    assert in_force == ("IsolationInForce", *expected)


def test_a_container_whose_file_has_no_known_name_is_unknown() -> None:
    unnamed = replace(ISOLATED, given=replace(HOOKED, identity=""))
    ((_, found),) = findings([unnamed], facts())
    assert (found.in_force, found.limit) == (None, None)
    assert "the kubelet's checkpoint does not say" in found.seen


@pytest.mark.parametrize("path", ["/etc/ld.so.preload", "/etc/gpushare", "/opt", "/etc/gpushare/limits/x"])
def test_an_inventory_with_a_mount_in_the_way_closes_the_node(path: str) -> None:
    decision = decide_isolation(ASKED, facts(), folder="/isolation")
    equipped = replace(card(0), equipment=Equipment(mounts=(HostMount("/opt/vendor", path),)))
    found = beside_inventory(decision, Reading(cards=(card(1), equipped)))
    assert (found.word, found.choice.kind.name) == ("Unavailable", MemoryIsolation.NONE)
    assert found.problem
    assert f"mounts {path} into containers" in found.problem.message


@pytest.mark.parametrize("path", ["/etc/gpushare-vendor", "/opt/gpushare/lib/libother.so"])
def test_other_mounts_of_an_inventory_are_in_nobodys_way(path: str) -> None:
    decision = decide_isolation(ASKED, facts(), folder="/isolation")
    equipped = replace(card(0), equipment=Equipment(mounts=(HostMount("/opt/vendor", path),)))
    assert beside_inventory(decision, Reading(cards=(equipped,))) is decision
    in_the_way = replace(card(0), equipment=Equipment(mounts=(HostMount("/opt/vendor", "/etc"),)))
    assert beside_inventory(NONE_ASKED, Reading(cards=(in_the_way,))) is NONE_ASKED


def test_a_plugin_that_starts_knows_nothing_yet() -> None:
    recorded = ["Registered", "IsolationReady", "IsolationInForce"]
    found = [(one.type, one.status) for one in isolation_conditions(NOT_DECIDED, None, recorded)]
    assert found == [("IsolationReady", "Unknown"), ("IsolationInForce", "Unknown")]
    found = [(one.type, one.status) for one in isolation_conditions(READY, None, recorded)]
    assert found == [("IsolationReady", "True"), ("IsolationInForce", "Unknown")]


def test_an_event_is_written_when_a_share_is_not_held_any_more() -> None:
    broken = [(ISOLATED, finding(limits={}))]
    (event,) = isolation_events([], broken)
    assert (event.pod, event.reason, event.warning) == (name_of("a"), "IsolationNotInForce", True)
    assert "file of limits is gone" in event.note
    assert not isolation_events(broken, broken)
    assert not isolation_events([], [(ISOLATED, finding())])


@pytest.mark.parametrize(("memory", "is_told"), [(600 * MIB, True), (601 * MIB, False)])
def test_a_share_that_leaves_no_memory_beside_a_context_is_told(memory: int, is_told: bool) -> None:  # noqa: FBT001
    identity, written = limits_file(replace(GRANTED, limits=(CardLimit(uuid="GPU-0", memory=memory),)))
    small = replace(ISOLATED, given=replace(HOOKED, identity=identity), memory=memory)
    found = findings([small], facts(limits={identity: written}))
    _, in_force = isolation_conditions(READY, found, [])
    assert in_force.status == "True"
    told = [in_force.message, *(event.note for event in isolation_events([], found))]
    assert all(("a CUDA context, which counts as 600Mi" in message) is is_told for message in told), told
    assert [event.reason for event in isolation_events([], found)] == ["ShareTooSmall"] * is_told
    assert not isolation_events(found, found)


def test_metrics_have_the_limit_and_whether_it_is_in_force() -> None:
    samples = isolation_figures("gpu-1", [(ISOLATED, finding())])
    labels = ("gpu-1", "GPU-0", "default", "a", "main")
    assert [(sample.gauge.name, sample.value, tuple(sample.labels)) for sample in samples] == [
        ("gpushare_container_memory_limit_bytes", 2 * GIB, labels),
        ("gpushare_isolation_in_force", 1, labels),
    ]
    unknown = isolation_figures("gpu-1", [(ISOLATED, finding(read_problem=LACKING))])
    assert [*unknown] == []


def test_what_containers_were_given_is_read_from_the_checkpoint() -> None:
    assert isolated_shares(stored(), HELD, layout()) == [ISOLATED]
    assert isolated_shares(stored(None), HELD, layout()) == []
    assert given_kinds(stored(), HELD, NodeStatus()) == {("uid-a", "main"): "Hook"}
    assert given_kinds(stored(None), HELD, recorded()) == {}


def recorded(**fields: Any) -> NodeStatus:
    share = PodShare(namespace="default", name="a", uid="uid-a", container="main", units=2, isolation="Hook")
    shown = CardStatus(index=0, uuid="GPU-0", memory="16Gi", units=16, pods=[_with(share, **fields)])
    return NodeStatus(cards=[shown])


def _with(share: PodShare, **fields: Any) -> PodShare:
    return PodShare.from_json({**share.to_json(), **fields})


def test_what_the_kubelet_lost_stays_as_it_was_recorded() -> None:
    lost = assigned(a={"main": []})
    assert given_kinds(lost, HELD, recorded()) == {("uid-a", "main"): "Hook"}


def test_files_are_needed_by_containers_that_the_kubelet_has() -> None:
    needed = needed_files(stored(), by_name(pod("a")), listed=True)
    expected = NeededFiles(identities=frozenset({IDENTITY}), pods=("default/a",), complete=True)
    assert needed == expected


@pytest.mark.parametrize(
    ("devices", "listed"),
    [
        pytest.param(stored(), False, id="a kubelet that does not answer"),
        pytest.param(replace(stored(), checkpoint_problem="it is gone"), True, id="no checkpoint"),
        pytest.param(replace(stored(), stored={}), True, id="a container that the checkpoint does not have"),
        pytest.param(replace(stored(), unshown=frozenset({name_of("a")})), True, id="a kubelet that starts"),
        pytest.param(replace(stored(), lost={name_of("a"): HELD[0]}), True, id="units that it lost"),
        pytest.param(stored(replace(HOOKED, identity="")), True, id="a file whose name is not known"),
    ],
)
def test_in_doubt_other_files_may_be_needed(devices: AssignedDevices, listed: bool) -> None:  # noqa: FBT001
    assert not needed_files(devices, {}, listed=listed).complete


def measured(used: int, **more: Any) -> MeasuredUse:
    return MeasuredUse(cards={"GPU-0": used}, containers={SHARE: used}, requested={SHARE: 2 * GIB}, **more)


NOW = utc_now()


def since(use: MeasuredUse | None, *, before: str = "", allowed: int = 0) -> str:
    known = {SHARE: before} if before else {}
    return excess_since(known, use, {SHARE: allowed}, now=NOW).get(SHARE, "")


def test_an_excess_keeps_its_beginning_until_it_ends() -> None:
    begun = since(measured(3 * GIB))
    assert begun
    assert since(measured(4 * GIB), before="2026-11-26T07:00:00Z") == "2026-11-26T07:00:00Z"
    assert not since(measured(2 * GIB), before="2026-11-26T07:00:00Z")


def test_a_hooked_container_may_have_what_the_hook_cannot_count() -> None:
    assert not since(measured(2 * GIB + 600 * MIB), allowed=600 * MIB)
    assert since(measured(2 * GIB + 601 * MIB), allowed=600 * MIB)


def test_a_plugin_that_starts_goes_on_and_one_that_cannot_measure_begins_anew() -> None:
    before = recorded_excess(recorded(exceededSince="2026-11-26T07:00:00Z"))
    assert excess_since(before, None, {}, now=NOW) == {SHARE: "2026-11-26T07:00:00Z"}
    assert excess_since(before, measured(3 * GIB, problem=LACKING), {}, now=NOW) == {}
    elsewhere = replace(measured(3 * GIB), cards={})
    assert excess_since(before, elsewhere, {}, now=NOW) == {}


@pytest.mark.parametrize("count", [0, 1, 20, 23])
def test_a_lease_names_some_pods_and_counts_the_others(count: int) -> None:
    files = isolation_files([f"default/{number:02}" for number in range(count)])
    assert (len(files.pods), files.more) == (min(count, 20), max(0, count - 20))
    assert read_isolation_files(lease("gpu-1", "uid", NOW, files=files)) == files
    assert read_isolation_files(lease("gpu-1", "uid", NOW)) is None


def test_a_lease_belongs_to_the_policy_while_files_are_there() -> None:
    policy = {"apiVersion": "v1", "kind": "GPUSharePolicy", "name": "default", "uid": "uid-policy"}
    with_files = lease("gpu-1", "uid", NOW, files=IsolationFiles(), policy=policy)
    assert with_files["metadata"]["ownerReferences"] == [policy]
    (owner,) = lease("gpu-1", "uid", NOW, policy=policy)["metadata"]["ownerReferences"]
    assert owner["kind"] == "GPUShareNode"
    assert "ownerReferences" not in lease("gpu-1", "", NOW, files=IsolationFiles())["metadata"]
