"""Simulation as arithmetic: nothing is placed twice, nothing is lost, another unit keeps bytes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples.dialects import asking, left_by
from tests.samples.drained_cards import cards_of, deployment, manifest, policy_json, running
from tests.samples.extender import ANNOTATION, annotation

from gpushare_cli.decide.ledger import booking_of, ledger_of
from gpushare_cli.decide.objects.kube_node import KubeNode, KubeNodeMeta
from gpushare_cli.decide.objects.workload import Document, workloads_of
from gpushare_cli.decide.simulation.policy_change import NodeEffect
from gpushare_cli.decide.simulation.policy_effect import PolicyClaim, PolicyEffect, policy_effect
from gpushare_cli.decide.simulation.redivision import (
    divided,
    total_units,
    with_memory_unit,
    without_pods,
)
from gpushare_cli.decide.simulation.simulation import (
    SimulatedCluster,
    SimulationQuestion,
    simulate,
)
from gpushare_cli.decide.simulation.simulation_report import SimulationReport
from gpushare_core.api.enums import Mode
from gpushare_core.api.policy import PolicySpec
from gpushare_core.placement.units import MemoryUnit, parse_node_unit
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, PolicyObject, ShareNodeObject
from gpushare_operator.decide.nodes.node_assignment import Claimants, assign_node

GI = 2**30
card_loads = st.lists(st.integers(0, 16), min_size=1, max_size=4)
clusters = st.lists(card_loads, min_size=1, max_size=4)
requests = st.lists(st.integers(1, 20), max_size=12)


def nodes_of(loads: Sequence[Sequence[int]], **spec: Any) -> list[Json]:
    return [
        cards_of(
            f"n{place}",
            *({f"p{place}-{index}": held} if held else {} for index, held in enumerate(cards)),
            **spec,
        )
        for place, cards in enumerate(loads)
    ]


def question(*objects: Json) -> SimulationQuestion:
    documents = [Document(source="test", content=content) for content in objects]
    return SimulationQuestion(workloads=workloads_of(documents, namespace="default"))


def simulated(nodes: Sequence[Json], units: Sequence[int]) -> SimulationReport:
    cluster = SimulatedCluster(share_nodes=[msgspec.json.encode(node) for node in nodes])
    return simulate(cluster, question(*(manifest(f"q{place}", each) for place, each in enumerate(units))))


@settings(max_examples=60, deadline=None)
@given(clusters, requests, st.sampled_from(["Binpack", "Spread"]))
def test_no_card_gets_more_than_it_has_and_who_waits_fits_nowhere(
    loads: list[list[int]], units: list[int], strategy: str
) -> None:
    nodes = nodes_of(loads, strategy=strategy)
    report = simulated(nodes, units)
    free = {
        f"n{place}-{card}": 16 - held for place, held_ in enumerate(loads) for card, held in enumerate(held_)
    }
    for asked, placement in zip(units, report.placements, strict=True):
        if placement.fits:
            (card,) = placement.cards
            assert card.units == asked
            free[card.uuid] -= asked
            assert free[card.uuid] >= 0
        else:
            assert max(free.values()) < asked
    assert report == simulated(nodes, units)


@settings(max_examples=40, deadline=None)
@given(card_loads, st.sampled_from(["256Mi", "512Mi", "1Gi", "3Gi", "1G", "100M"]))
def test_another_unit_keeps_bytes(loads: list[int], unit: str) -> None:
    (node,) = nodes_of([loads])
    parsed = MemoryUnit.parse(unit)
    after = with_memory_unit(node, parsed)
    for before, card in zip(node["status"]["cards"], after["status"]["cards"], strict=True):
        assert card["units"] == 16 * GI // parsed.size
        held = before["allocatedUnits"] * GI
        assert held <= card["allocatedUnits"] * parsed.size < held + parsed.size
        assert card["allocatedUnits"] == sum(pod["units"] for pod in card["pods"])


@given(clusters)
def test_pods_that_are_gone_leave_what_the_others_have(loads: list[list[int]]) -> None:
    node = nodes_of(loads)[0]
    after = without_pods(node, {"uid-p0-0"})
    assert after["status"]["cards"][0]["allocatedUnits"] == 0
    assert after["status"]["cards"][1:] == node["status"]["cards"][1:]


def test_a_card_of_mode_mixed_is_divided_class_by_class() -> None:
    node = divided(cards_of("n0", {}), parse_node_unit("1Gi, 1/4 card, 1 card"))
    assert total_units(node) == {"memory": 16, "slice": 4, "card": 1}
    after = with_memory_unit(node, MemoryUnit.parse("512Mi"))
    assert total_units(after) == {"memory": 32, "slice": 4, "card": 1}
    ledger = ledger_of([read_share_node(msgspec.json.encode(after))])
    assert ledger.biggest()["gpushare.io/memory"] == 32


def test_a_node_that_shares_no_memory_keeps_its_units() -> None:
    node = divided(cards_of("n0", {}), parse_node_unit("1/4 card"))
    assert with_memory_unit(node, MemoryUnit.parse("512Mi")) == node


def claim(policy: Json, created: str = "2026-01-01T00:00:00Z") -> PolicyClaim:
    spec = PolicySpec.model_validate(policy["spec"])
    return PolicyClaim(name=policy["metadata"]["name"], created=created, spec=spec)


def kube_nodes(*names: str) -> dict[str, KubeNode]:
    return {name: KubeNode(metadata=KubeNodeMeta(name=name)) for name in names}


def effect_of(
    claims: Sequence[PolicyClaim],
    *share_nodes: Json,
    nodes: Sequence[str] = ("n0", "n1", "n2"),
    bound: Sequence[Json] = (),
) -> PolicyEffect:
    named = {node["metadata"]["name"]: node for node in share_nodes}
    cluster = SimulatedCluster(share_nodes=[*map(msgspec.json.encode, share_nodes)], booked=bookings(bound))
    return policy_effect(claims, kube_nodes(*nodes), named, ledger=cluster.ledger())


def bookings(pods: Sequence[Json]) -> list[PodUpdate]:
    return [booking_of(msgspec.json.encode(pod)) for pod in pods]


def effects(claims: Sequence[PolicyClaim], *share_nodes: Json) -> dict[str, NodeEffect]:
    return {change.node: change.effect for change in effect_of(claims, *share_nodes).changes}


def under(policy: Json, name: str, *held: dict[str, int]) -> Json:
    """The GPUShareNode that the operator makes of it."""
    spec = PolicySpec.model_validate(policy["spec"])
    node = cards_of(name, *held)
    return {**node, "spec": spec.of_node(policy["metadata"]["name"], spec.nodes[0]).to_json()}


def test_the_policy_that_is_there_changes_nothing() -> None:
    policy = policy_json("a", ["n0"])
    assert effects([claim(policy)], under(policy, "n0", {"p": 3})) == {"n0": NodeEffect.NONE}


def test_the_older_policy_keeps_a_node() -> None:
    older, younger = policy_json("b", ["n0"]), policy_json("a", ["n0", "n1"], unit="512Mi")
    claims = [claim(younger, "2026-02-01T00:00:00Z"), claim(older)]
    assert effects(claims, under(older, "n0", {})) == {"n0": NodeEffect.NONE, "n1": NodeEffect.GAINS}


@pytest.mark.parametrize(
    ("spec", "held", "effect"),
    [
        ({"unit": "512Mi"}, {}, NodeEffect.DIVIDES),
        ({"unit": "512Mi"}, {"p": 1}, NodeEffect.WAITS),
        ({"unit": "1024Mi"}, {"p": 1}, NodeEffect.SETTINGS),
        ({"unit": "512Mi", "unitChange": "Keep"}, {"p": 1}, NodeEffect.KEEPS),
        ({"dialect": "aliyun.com"}, {}, NodeEffect.DIVIDES),
        ({"dialect": "aliyun.com"}, {"p": 1}, NodeEffect.WAITS),
        ({"placement": {"strategy": "Spread"}}, {"p": 1}, NodeEffect.SETTINGS),
    ],
)
def test_what_a_change_does_to_a_node(spec: Any, held: dict[str, int], effect: NodeEffect) -> None:
    before = policy_json("a", ["n0"])
    after = policy_json("a", ["n0"], **spec)
    assert effects([claim(after)], under(before, "n0", held)) == {"n0": effect}


def a_copy(name: str, of: str) -> Json:
    """A pod that brings the annotation of its original."""
    pod = running(name, "n0")
    pod["metadata"]["annotations"] = {ANNOTATION: annotation(of, node="n0", c0=4)}
    return pod


def terminating(pod: Json) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-02T00:00:00Z"}}


def renamed(pod: Json, **metadata: str) -> Json:
    return {**pod, "metadata": {**pod["metadata"], **metadata}}


def bound_to_another(pod: Json) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeName": "n1"}}


BOOKED = [
    pytest.param({}, running("p", "n0", c0=4), [("p", 4)], id="by annotation alone"),
    pytest.param({"p": 4}, running("p", "n0", c0=4), [("p", 4)], id="in both"),
    pytest.param({"p": 2}, running("p", "n0", c0=4), [("p", 4)], id="by annotation more"),
    pytest.param({"p": 4}, running("p", "n0", c0=2), [("p", 4)], id="by the GPUShareNode more"),
    pytest.param({"q": 1}, running("p", "n0", c0=4), [("p", 4), ("q", 1)], id="another pod is reported"),
    pytest.param({}, terminating(running("p", "n0", c0=4)), [("p", 4)], id="terminating"),
    pytest.param({}, a_copy("p", of="original"), [], id="an annotation of another pod"),
    pytest.param({}, running("p", "n1", c0=4), [], id="on another node"),
    pytest.param({}, bound_to_another(running("p", "n0", c0=4)), [("p", 4)], id="bound elsewhere"),
    pytest.param(
        {"p": 2},
        renamed(running("twin", "n0", c0=4), name="p", namespace="other"),
        [("p", 2), ("p", 4)],
        id="of the same name in another namespace",
    ),
    pytest.param(
        {"p": 2}, renamed(running("new", "n0", c0=4), name="p"), [("p", 4), ("p", 2)], id="made anew"
    ),
]
"""What the GPUShareNode of n0 says, a bound pod, and who holds units of n0."""


@pytest.mark.parametrize(("held", "pod", "holders"), BOOKED)
def test_a_policy_waits_for_whoever_has_units_as_the_engine_counts_them(
    held: dict[str, int], pod: Json, holders: list[tuple[str, int]]
) -> None:
    before, after = policy_json("a", ["n0"]), policy_json("a", ["n0"], unit="512Mi")
    present = under(before, "n0", held)
    (change,) = effect_of([claim(after)], present, nodes=["n0"], bound=[pod]).changes
    assert [(pod.name, pod.units) for pod in change.pods] == holders
    assert change.effect is (NodeEffect.WAITS if holders else NodeEffect.DIVIDES)


@pytest.mark.parametrize(("held", "pod", "holders"), BOOKED)
def test_another_unit_waits_for_whoever_has_units_as_the_engine_counts_them(
    held: dict[str, int], pod: Json, holders: list[tuple[str, int]]
) -> None:
    share_nodes = [msgspec.json.encode(cards_of("n0", held))]
    cluster = SimulatedCluster(share_nodes=share_nodes, booked=bookings([pod]))
    (change,) = simulate(cluster, SimulationQuestion(unit=MemoryUnit.parse("512Mi"))).unit_changes
    assert [(pod.name, pod.units) for pod in change.pods] == holders
    assert change.effect is (NodeEffect.WAITS if holders else NodeEffect.DIVIDES)


def test_a_pod_of_a_replaced_system_is_in_the_way_by_its_own_annotations() -> None:
    node = cards_of("n0", {}, dialect="aliyun.com")
    node["status"]["dialect"] = "aliyun.com"
    pod = asking({"aliyun.com": 4}, "old", node="n0", annotations=left_by("aliyun.com"))
    cluster = SimulatedCluster(share_nodes=[msgspec.json.encode(node)], booked=bookings([pod]))
    (change,) = simulate(cluster, SimulationQuestion(unit=MemoryUnit.parse("512Mi"))).unit_changes
    assert [(pod.name, pod.units) for pod in change.pods] == [("old", 4)]
    assert change.effect is NodeEffect.WAITS


def test_a_policy_that_cannot_be_read_keeps_what_it_has() -> None:
    present = under(policy_json("a", ["n0"]), "n0", {})
    unreadable = PolicyClaim(name="a", created="2026-01-01T00:00:00Z", spec=None)
    newer = claim(policy_json("b", ["n0"]), "2026-02-01T00:00:00Z")
    assert effects([newer, unreadable], present) == {"n0": NodeEffect.NONE}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Memory", "Off", "Exclusive", "unreadable", "elsewhere"]),
            st.sampled_from(["KubeScheduler", "Volcano"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["", "a", "b", "c", "d"]),
)
def test_the_operator_gives_the_node_to_the_same_policy(asked: list[tuple[str, str]], has: str) -> None:
    objects = []
    for place, (mode, backend) in enumerate(asked):
        body = policy_json("abcd"[place], ["n1" if mode == "elsewhere" else "n0"])["spec"]
        body |= {"scheduler": {"backend": backend}, "dialect": "volcano.sh"}
        body["nodes"][0]["mode"] = mode if mode in {*map(str, Mode)} else "Memory"
        spec = None if mode == "unreadable" else PolicySpec.model_validate(body)
        name = "abcd"[place]
        objects.append(
            PolicyObject(name=name, uid=name, created=f"2026-01-0{place + 1}T00:00:00Z", spec=spec)
        )
    share = ShareNodeObject(name="n0", owners=(has,), spec={"policy": has}) if has else None
    state = ObservedState("n0", NodeObject(name="n0"), share)
    given = {
        policy.name: assign_node(state, Claimants(policy, tuple(objects[:place])))
        for place, policy in enumerate(objects)
    }
    owners = [name for name, got in given.items() if got.is_sharing or got.waits_for]
    claims = [PolicyClaim(name=each.name, created=each.created, spec=each.spec) for each in objects]
    present = [cards_of("n0", {}, policy=has)] if has else []
    after = effect_of(claims, *present, nodes=["n0"]).share_nodes
    assert [node["spec"]["policy"] for node in after] == owners


def test_a_node_that_waits_takes_no_new_pod() -> None:
    before, after = policy_json("a", ["n0"]), policy_json("a", ["n0"], unit="512Mi")
    present = under(before, "n0", {"p": 3})
    (coming,) = effect_of([claim(after)], present, nodes=["n0"]).share_nodes
    (placement,) = simulated([coming], [1]).placements
    assert "take no new pods until the pods with units of 1Gi are gone" in placement.reason


def test_pods_of_a_deployment_are_alike() -> None:
    cluster = SimulatedCluster(share_nodes=[msgspec.json.encode(cards_of("n0", {}, {}))])
    report = simulate(cluster, question(deployment("web", 4, 9)))
    assert Counter(placement.node for placement in report.placements) == {"n0": 8, "": 1}
    assert {placement.workload for placement in report.placements} == {"Deployment web"}
