"""Manifests, GPUShareNodes and pods of any shape are simulated, or it is said that they cannot be read."""

import asyncio
import io
from argparse import ArgumentTypeError
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.card_api import card_api
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated
from tests.fuzz.strategies.yaml_text import damaged_yaml
from tests.samples.drained_cards import cards_of, deployment, manifest, policy_json, running

from gpushare_cli.changes.card_cordon import CardCordoning
from gpushare_cli.commands.time_argument import seconds_of
from gpushare_cli.decide.drain.card_tenants import tenants_of
from gpushare_cli.decide.drain.drain_plan import DrainSubject, drain_plan
from gpushare_cli.decide.ledger import bookings_of, observed_ledger
from gpushare_cli.decide.objects.kube_node import KubeNode, KubeNodeMeta
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.objects.workload import Document, workloads_of
from gpushare_cli.decide.simulation.policy_effect import policy_effect
from gpushare_cli.decide.simulation.redivision import readable_share_nodes, units_of
from gpushare_cli.decide.simulation.simulated_pod import readable_pods
from gpushare_cli.decide.simulation.simulation import SimulatedCluster, SimulationQuestion, simulate
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.manifests import documents_of, read_workloads
from gpushare_cli.gather.simulation.cluster_state import StateReader, read_cluster
from gpushare_cli.gather.simulation.policy_dry_run import claim_of, dry_run
from gpushare_cli.output.progress import Silence
from gpushare_core.kube.client import KubeClient
from gpushare_core.placement.units import MemoryUnit

WORKLOADS = [deployment("web", 4, 3), manifest("a", 3), {"kind": "List", "items": [manifest("b", 2)]}]
NODE = cards_of("n0", {"a": 3}, {"b": 4})
NODE["status"]["cards"][0] |= {"lock": "Memory", "offers": {"memory": 16, "card": 1}}
POD = running("a", "n0", c0=3)
MANIFESTS = st.sampled_from(
    ["kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n", "a: &a [1]\nb: *a\n"]
)


@fuzzes(documents_of)
@given(damaged_yaml(MANIFESTS) | encoded(st.sampled_from(WORKLOADS).flatmap(mutated)))
def test_a_file_is_read_or_refused(content: str | bytes) -> None:
    text = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        read_workloads(["-"], namespace="default", stdin=io.BytesIO(text))
    except CannotLookError as error:
        assert str(error)


@fuzzes(workloads_of, simulate, few=60)
@given(st.sampled_from(WORKLOADS).flatmap(mutated), mutated(NODE))
def test_workloads_are_placed_or_refused(content: Any, node: Any) -> None:
    try:
        workloads = workloads_of([Document(source="file", content=content)], namespace="default")
    except CannotLookError:
        return
    unit = MemoryUnit.parse("512Mi")
    for asked in (None, unit):
        question = SimulationQuestion(workloads=workloads, unit=asked, units_before=units_of([NODE]))
        share_nodes = [msgspec.json.encode(node)] if has_name(node) else []
        simulate(SimulatedCluster(share_nodes=share_nodes), question)


def has_name(node: Any) -> bool:
    """Every object of the API server has a name."""
    try:
        return isinstance(node["metadata"]["name"], str)
    except (TypeError, KeyError):
        return False


@fuzzes(policy_effect, claim_of, few=60)
@given(mutated(policy_json("a", ["n0", "n1"], unit="512Mi")), mutated(NODE))
def test_a_policy_of_any_shape_has_an_effect(policy: Any, node: Any) -> None:
    present = {each["metadata"]["name"]: each for each in readable_share_nodes([msgspec.json.encode(node)])}
    if has_name(policy):
        nodes = {name: KubeNode(metadata=KubeNodeMeta(name=name)) for name in ("n0", "n1")}
        cluster = SimulatedCluster(share_nodes=[msgspec.json.encode(node)] if has_name(node) else [])
        policy_effect([claim_of(policy)], nodes, present, ledger=cluster.ledger())


@fuzzes(drain_plan, tenants_of, readable_pods, few=60)
@given(mutated(POD), mutated(NODE))
def test_a_pod_of_any_shape_is_planned(pod: Any, node: Any) -> None:
    try:
        observed = msgspec.convert(node, ObservedShareNode)
    except msgspec.ValidationError:
        return
    cluster = SimulatedCluster(share_nodes=[msgspec.json.encode(node)])
    pods = readable_pods([pod])
    tenants = tenants_of(observed.cards, observed_ledger(observed, bookings_of(pods)))
    subject = DrainSubject(
        node=observed.name,
        uuids=[card.uuid for card in observed.cards],
        tenants=tenants,
        pods=pods,
        budgets=(),
        is_forced=False,
    )
    assert {planned.key for planned in drain_plan(subject, cluster)} == {tenant.key for tenant in tenants}


@fuzzes(read_cluster, StateReader.waiting, CardCordoning.read, dry_run, few=15)
@given(mutated(NODE), mutated({**POD, "spec": {**POD["spec"], "nodeName": ""}}))
def test_what_the_api_server_has_is_read_or_refused(node: Any, pod: Any) -> None:
    asyncio.run(read_all(node, pod))


async def read_all(node: Any, pod: Any) -> None:
    if not has_name(node) or not has_name(pod) or "spec" not in node or not isinstance(pod.get("spec"), dict):
        return
    async with card_api(NODE) as api:
        api.nodes = {}
        async with KubeClient(api.credentials()) as client:
            share_nodes = [msgspec.Raw(msgspec.json.encode(node))]
            cordoning = CardCordoning(client=client, progress=Silence(), node="n0", timeout=0.0)
            for reading in (
                read_cluster(client, share_nodes, without=[node["metadata"]["name"]]),
                cordoning.read(),
                dry_run(client, policy_json("a", ["n0"])),
            ):
                try:
                    await reading
                except CannotLookError as error:
                    assert str(error)


@fuzzes(seconds_of)
@given(st.text(alphabet="0123456789.smhneinf-+ e", max_size=8))
def test_a_time_is_read_or_refused(text: str) -> None:
    try:
        assert 0 < seconds_of(text) <= 24 * 3600
    except ArgumentTypeError as error:
        assert "is no time" in str(error)
