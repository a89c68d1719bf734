"""``kubectl gpushare simulate`` against an API server, and beside a real extender."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.component.cli.commands import printed, run_command
from tests.fakes.api_server import status
from tests.fakes.card_api import CardApi, card_api
from tests.fakes.following_extender import FollowingExtender, following
from tests.samples.drained_cards import cards_of, deployment, manifest, policy_json, running
from tests.samples.extender import ANNOTATION, pod_json

from gpushare_cli.decide.simulation.policy_change import NodeChange, NodeEffect
from gpushare_cli.decide.simulation.redivision import divided
from gpushare_cli.decide.simulation.simulation_report import SimulatedPlacement, SimulationReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import MAX_NODES_WITH_PODS, bound_to
from gpushare_cli.report import ExitStatus
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.request import METADATA_LIST
from gpushare_core.placement.units import parse_node_unit
from gpushare_core.text.json_object import Json

NODES = (
    cards_of("gpu-1", {"a": 4}, {"b": 10}),
    cards_of("gpu-2", {}, {"c": 15}),
    cards_of("gpu-3", {"d": 16}, {"e": 1}),
)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(*objects: Json, name: str = "manifests.json") -> str:
        file = tmp_path / name
        whole = objects[0] if len(objects) == 1 else {"kind": "List", "items": [*objects]}
        file.write_text(json.dumps(whole))
        return str(file)

    return written


async def simulate(api: CardApi, *arguments: str) -> SimulationReport:
    async with KubeClient(api.credentials()) as client:
        report = await run_command(client, "simulate", *arguments)
    assert isinstance(report, SimulationReport)
    assert api.stored == []
    return report


def places(report: SimulationReport) -> list[tuple[str, str, list[int]]]:
    return [(each.name, each.node, [card.index for card in each.cards]) for each in report.placements]


async def scheduled(extender: FollowingExtender, pod: Json, nodes: list[str]) -> tuple[str, list[str]]:
    """Lets the extender place ``pod`` as kube-scheduler does. Returns node and cards; without a node the
    reasons."""
    names = await extender.filter(pod, *nodes)
    if not names:
        answer = await extender.caller.post("/gpushare/filter", {"Pod": pod, "NodeNames": nodes})
        reasons = {**answer.get("FailedNodes", {}), **answer.get("FailedAndUnresolvableNodes", {})}
        return "", [*reasons.values()]
    async with (
        ClientSession() as session,
        session.post(
            extender.caller.server.make_url("/gpushare/prioritize"), json={"Pod": pod, "NodeNames": names}
        ) as response,
    ):
        scores = await response.json()
    best = min(scores, key=lambda score: (-score["Score"], score["Host"]))["Host"]
    assert await extender.bind(pod, best) == ""
    bound = extender.api.pod(pod["metadata"]["name"])
    return best, sorted(json.loads(bound["metadata"]["annotations"][ANNOTATION])["cards"])


@pytest.mark.parametrize("strategy", ["Binpack", "Spread"])
async def test_pods_land_where_the_extender_puts_them(write: Any, strategy: str) -> None:
    units = [3, 16, 2, 6, 6, 12, 1, 14, 6, 5, 20]
    nodes = [{**node, "spec": {**node["spec"], "strategy": strategy}} for node in NODES]
    async with card_api(*nodes) as api:
        file = write(*(manifest(f"p{place}", amount) for place, amount in enumerate(units)))
        report = await simulate(api, "-f", file)
        async with following(api) as extender:
            await extender.until("the lists", lambda: not extender.health.not_listed())
            for place, amount in enumerate(units):
                simulated = report.placements[place]
                pod = pod_json(f"p{place}", units=amount, uid=f"simulated:p{place}")
                await compare(extender, pod, simulated, nodes=["gpu-1", "gpu-2", "gpu-3"])
    assert {placement.fits for placement in report.placements} == {True, False}


async def compare(
    extender: FollowingExtender, pod: Json, simulated: SimulatedPlacement, *, nodes: Sequence[str]
) -> None:
    node, cards = await scheduled(extender, pod, [*nodes])
    assert simulated.node == node
    if node:
        assert sorted(card.uuid for card in simulated.cards) == cards
    else:
        assert {*cards} <= {obstacle.message for obstacle in simulated.obstacles}


DIVISIONS = {"Memory": "1Gi", "Slices": "1/4 card", "Exclusive": "1 card", "Mixed": "1Gi, 1/4 card, 1 card"}


def any_node(name: str, chance: Random) -> Json:
    """A node of any mode; one in four is closed by a taint, as is seen by its name."""
    mode = chance.choice([*DIVISIONS])
    loads: list[dict[str, int]] = [
        {f"{name}-{card}": chance.randrange(1, 17)} if mode == "Memory" and chance.random() < 0.6 else {}
        for card in range(chance.randrange(1, 5))
    ]
    share_node = cards_of(name, *loads, mode=mode, strategy=chance.choice(["Binpack", "Spread"]))
    for card in share_node["status"]["cards"]:
        card["cordoned"] = chance.random() < 0.1
        card["health"] = chance.choice(["Healthy"] * 9 + ["Unhealthy"])
    return divided(share_node, parse_node_unit(DIVISIONS[mode]))


def any_containers(chance: Random) -> dict[str, list[Json]]:
    kind = chance.choice(["memory", "memory", "slice", "card"])
    most = {"memory": 12, "slice": 4, "card": 2}[kind]

    def container(name: str) -> Json:
        limits = {f"gpushare.io/{kind}": str(chance.randrange(1, most + 1))}
        return {"name": name, "resources": {"limits": limits if chance.random() < 0.8 else {}}}

    first = container("first") | chance.choice([{}, {"restartPolicy": "Always"}])
    asking = {"name": "main", "resources": {"limits": {f"gpushare.io/{kind}": "1"}}}
    return {
        "containers": [asking, *(container(f"c{n}") for n in range(chance.randrange(3)))],
        "initContainers": [first] if chance.random() < 0.3 else [],
    }


@pytest.mark.parametrize("seed", range(8))
async def test_any_pods_land_on_any_nodes_where_the_extender_puts_them(write: Any, seed: int) -> None:
    chance = Random(seed)  # noqa: S311  # no secret
    nodes = [any_node(f"gpu-{place}", chance) for place in range(5)]
    pods = [{**pod_json(f"p{n}", uid=f"u{n}"), "spec": any_containers(chance)} for n in range(25)]
    async with card_api(*nodes) as api:
        api.add_node("gpu-4", unschedulable=True)
        api.add_node("gpu-3", taints=[{"key": "away", "effect": "NoSchedule"}])
        report = await simulate(api, "-f", write(*({"kind": "Pod", **pod} for pod in pods)))
        async with following(api) as extender:
            await extender.until("the lists", lambda: not extender.health.not_listed())
            for pod, simulated in zip(pods, report.placements, strict=True):
                await compare(extender, pod, simulated, nodes=["gpu-0", "gpu-1", "gpu-2"])
    assert {placement.fits for placement in report.placements} == {True, False}


async def test_a_deployment_in_words(write: Any) -> None:
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(deployment("web", 12, 4)))
    assert report.exit_status is ExitStatus.NO
    text = printed(report, "simulate", "-f", "x")
    assert text.startswith("3 of 4 pods fit, on 3 of 3 nodes with cards; 1 would stay pending.")
    assert "default/web-4" in text
    assert "3 insufficient GPU memory in one card: asked 12, largest free 6" in text
    assert "Nothing was created or changed." in text
    assert report.names == ["pod/web-1", "pod/web-2", "pod/web-3"]


async def test_many_pods_are_shown_by_workload(write: Any) -> None:
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(deployment("web", 1, 40)))
    text = printed(report, "simulate", "-f", "x")
    assert "default/Deployment web" in text
    assert "default/web-39" not in text
    assert "default/web-39" in printed(report, "simulate", "-f", "x", "-o", "wide")


async def test_what_the_document_has(write: Any) -> None:
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(manifest("p", 3)))
    (placement,) = json.loads(printed(report, "simulate", "-f", "x", "-o", "json"))["placements"]
    assert placement["node"] == "gpu-1"
    reason = "tightest card that fits"
    assert placement["cards"] == [{"index": 1, "uuid": "gpu-1-1", "units": 3, "reason": reason}]
    assert placement["asked"] == [{"resource": "gpushare.io/memory", "units": 3, "unit": "1Gi"}]
    assert report.exit_status is ExitStatus.GOOD


async def test_waiting_pods_come_first_where_that_is_asked_for(write: Any) -> None:
    waiting = pod_json("waiting", units=16)
    async with card_api(*NODES, waiting) as api:
        file = write(manifest("new", 16))
        alone, both = await simulate(api, "-f", file), await simulate(api, "-f", file, "--waiting")
    assert places(alone) == [("new", "gpu-2", [0])]
    assert any("1 pod with a request for cards waits already" in remark for remark in alone.remarks)
    assert places(both) == [("waiting", "gpu-2", [0]), ("new", "", [])]


async def test_the_pods_of_a_node_that_is_taken_out_move() -> None:
    pods = [running("a", "gpu-1", c0=4), running("b", "gpu-1", owner="DaemonSet", c1=10)]
    async with card_api(*NODES, *pods) as api:
        report = await simulate(api, "--without", "gpu-1")
        with pytest.raises(CannotLookError, match="node none shares no cards"):
            await simulate(api, "--without", "none")
    (moved,) = report.placements
    assert (moved.name, moved.moved_from, moved.uid) == ("a", "gpu-1", "uid-a")
    assert moved.node in ("gpu-2", "gpu-3")
    assert "pod default/b: it belongs to node gpu-1" in report.left_out[0]


async def test_another_unit_keeps_the_bytes_of_those_who_run(write: Any) -> None:
    async with card_api(cards_of("gpu-1", {"a": 10})) as api:
        report = await simulate(
            api, "--unit", "256Mi", "-f", write(manifest("small", 24), manifest("one", 1))
        )
        with pytest.raises(CannotLookError, match="--unit"):
            await simulate(api, "--unit", "big")
    assert places(report) == [("small", "gpu-1", [0]), ("one", "", [])]
    assert [(each.unit, each.units) for each in report.units_before] == [("1Gi", 16)]
    assert [(each.unit, each.units) for each in report.units_after] == [("256Mi", 64)]
    assert "Numbers in pods stay what they are and mean another amount: 1 is 256Mi, 24 is 6Gi then." in (
        report.remarks
    )
    anew = "To ask for the same memory as now, change these pods: 4 in place of 1, 96 in place of 24."
    assert anew in report.remarks


async def test_another_unit_says_what_becomes_of_each_node() -> None:
    async with card_api(cards_of("gpu-1", {"a": 10}), cards_of("gpu-2", {})) as api:
        report = await simulate(api, "--unit", "256Mi")
    assert [(node.node, node.effect) for node in report.unit_changes] == [
        ("gpu-1", NodeEffect.WAITS),
        ("gpu-2", NodeEffect.DIVIDES),
    ]
    text = printed(report, "simulate", "--unit", "256Mi")
    assert "With units of 256Mi: 1 node changes at once, 1 node waits for its pods." in text
    assert "In the way on gpu-1: default/a 10" in text
    assert "mean another amount: 4 is 1Gi then." in text
    assert "change these pods: 16 in place of 4." in text


UNIT = {"--unit": "512Mi", "--policy": ""}


async def changes(api: CardApi, question: str, file: str) -> dict[str, NodeChange]:
    """What another unit, asked for by an option or by a policy, would do to each node."""
    report = await simulate(api, question, UNIT[question] or file)
    found = report.policy.nodes if report.policy else report.unit_changes
    return {change.node: change for change in found}


@pytest.mark.parametrize("question", [*UNIT])
@pytest.mark.parametrize("phase", ["Pending", "Running"])
@pytest.mark.parametrize(
    "nodes", [pytest.param(2, id="few nodes"), pytest.param(MAX_NODES_WITH_PODS + 1, id="many nodes")]
)
async def test_a_pod_is_in_the_way_before_its_plugin_reports_it(
    write: Any, question: str, phase: str, nodes: int
) -> None:
    early = {**running("early", "gpu-0", c0=4), "status": {"phase": phase}}
    names = [f"gpu-{place}" for place in range(nodes)]
    async with card_api(*(cards_of(name, {}) for name in names), early) as api:
        api.policies["default"] = policy_json("default", names)
        file = write(policy_json("default", names, unit="512Mi"), name="policy.json")
        found = await changes(api, question, file)
    assert [(pod.name, pod.units) for pod in found["gpu-0"].pods] == [("early", 4)]
    assert found["gpu-0"].effect is NodeEffect.WAITS
    assert {found[name].effect for name in names[1:]} == {NodeEffect.DIVIDES}


async def test_a_pod_that_runs_takes_its_card_before_its_plugin_reports_it(write: Any) -> None:
    async with card_api(cards_of("gpu-1", {}), running("early", "gpu-1", c0=4)) as api:
        report = await simulate(api, "-f", write(manifest("p", 13)))
    assert places(report) == [("p", "", [])]


async def test_a_pod_that_runs_moves_before_its_plugin_reports_it() -> None:
    early = running("early", "gpu-1", c0=4)
    async with card_api(cards_of("gpu-1", {}), cards_of("gpu-2", {}), early) as api:
        report = await simulate(api, "--without", "gpu-1")
    assert places(report) == [("early", "gpu-2", [0])]


async def test_units_that_nobody_is_named_for_are_in_the_way() -> None:
    node = cards_of("gpu-1", {})
    node["status"]["cards"][0]["allocatedUnits"] = 3
    async with card_api(node) as api:
        report = await simulate(api, "--unit", "512Mi")
    assert [change.effect for change in report.unit_changes] == [NodeEffect.WAITS]
    text = " ".join(printed(report, "simulate", "--unit", "512Mi").split())
    assert "In the way on gpu-1: units that are taken, and the plugin names no pod that has them" in text


async def test_pods_without_a_uid_are_in_the_way_by_their_names() -> None:
    node = cards_of("gpu-1", {"a": 4, "b": 2})
    for pod in node["status"]["cards"][0]["pods"]:
        pod |= {"uid": "", "orphaned": True}
    async with card_api(node) as api:
        (change,) = (await simulate(api, "--unit", "512Mi")).unit_changes
    assert [(pod.name, pod.units) for pod in change.pods] == [("a", 4), ("b", 2)]


@pytest.mark.parametrize(
    "nodes", [pytest.param(1, id="few nodes"), pytest.param(MAX_NODES_WITH_PODS + 1, id="many nodes")]
)
async def test_that_pods_cannot_be_read_is_said_once(nodes: int) -> None:
    async with card_api(*(cards_of(f"gpu-{place}", {}) for place in range(nodes))) as api:
        api.fail("GET", paths.PODS, *[status(403, "you may not")] * (2 * nodes + 2))
        report = await simulate(api, "--unit", "512Mi")
    missing = [said for said in report.remarks if said.startswith("Pods that were bound a moment ago may be")]
    assert len(missing) == 1


async def test_of_many_nodes_metadata_of_pods_are_read_where_cards_seem_unused() -> None:
    names = [f"gpu-{place}" for place in range(MAX_NODES_WITH_PODS + 1)]
    nodes = [cards_of(name, {} if name < "gpu-3" else {name: 4}) for name in names]
    unused = [name for name in names if name < "gpu-3"]
    async with card_api(*nodes) as api:
        await simulate(api, "--unit", "512Mi")
    read = [seen for seen in api.requests("GET", paths.PODS) if "spec.nodeName=gpu" in str(seen.query)]
    assert {seen.query["fieldSelector"] for seen in read} == {*map(bound_to, unused)}
    assert {seen.accept for seen in read} == {METADATA_LIST}


async def test_a_unit_that_is_larger_than_the_cards() -> None:
    async with card_api(cards_of("gpu-1", {})) as api:
        text = printed(await simulate(api, "--unit", "32Gi"), "simulate", "--unit", "32Gi")
    assert "A unit is larger than a card then: no pod would get anything of such cards." in text


def with_policy(api: CardApi) -> None:
    api.policies["default"] = policy_json("default", ["gpu-1", "gpu-2", "gpu-3"])


async def test_a_policy_before_it_is_applied(write: Any) -> None:
    changed = write(policy_json("default", ["gpu-1", "gpu-2", "gpu-4"], unit="512Mi"), name="policy.json")
    nodes = (NODES[0], cards_of("gpu-2", {}, {}), NODES[2])
    async with card_api(*nodes) as api:
        with_policy(api)
        api.add_node("gpu-4")
        report = await simulate(api, "--policy", changed, "-f", write(manifest("p", 20)))
    change = report.policy
    assert change is not None
    assert (change.is_new, change.checked_by, change.refusal) == (False, "APIServer", "")
    assert {node.node: node.effect for node in change.nodes} == {
        "gpu-1": NodeEffect.WAITS,
        "gpu-2": NodeEffect.DIVIDES,
        "gpu-3": NodeEffect.LOSES,
        "gpu-4": NodeEffect.GAINS,
    }
    assert [(pod.name, pod.units) for pod in change.nodes[0].pods] == [("a", 4), ("b", 10)]
    assert report.placements[0].node in ("gpu-2", "gpu-4")
    text = printed(report, "simulate", "--policy", "x")
    assert "1 node begins to share, 1 node stops sharing, 1 node changes at once" in text
    assert "In the way on gpu-1: default/a 4, default/b 10" in text
    assert "As long as those pods run: " in text
    assert "Once they are gone: " in text


def isolating(memory: str) -> Json:
    policy = policy_json("default", ["gpu-1", "gpu-2", "gpu-3"])
    (rule,) = policy["spec"]["nodes"]
    rule |= {"devices": {"source": "Inventory"}, "isolation": {"memory": memory}}
    return policy


async def test_a_policy_that_switches_isolation_on_moves_nothing(write: Any) -> None:
    async with card_api(*NODES) as api:
        api.policies["default"] = isolating("None")
        for name in ("gpu-1", "gpu-2", "gpu-3"):
            api.add_node(name)
        report = await simulate(api, "--policy", write(isolating("Hook"), name="policy.json"))
    assert report.policy is not None
    assert {node.effect for node in report.policy.nodes} == {NodeEffect.SETTINGS}
    assert {(node.before.isolation, node.after.isolation) for node in report.policy.nodes} == {("", "Hook")}
    assert report.units_before == report.units_after
    text = " ".join(printed(report, "simulate", "--policy", "x").split())
    assert "Isolation Hook would hold pods that come to gpu-1, gpu-2, gpu-3 from then on." in text
    assert "Whether a node can have it is not known here" in text
    assert "Pods that run go on with what they have, and where they are." in text


async def test_a_policy_that_switches_isolation_off(write: Any) -> None:
    nodes = [cards_of(name, {"a": 4}, isolation={"memory": "Hook"}) for name in ("gpu-1", "gpu-2", "gpu-3")]
    async with card_api(*nodes) as api:
        api.policies["default"] = isolating("Hook")
        for node in nodes:
            api.add_node(node["metadata"]["name"])
        report = await simulate(api, "--policy", write(isolating("None"), name="policy.json"))
    assert report.policy is not None
    assert {node.effect for node in report.policy.nodes} == {NodeEffect.SETTINGS}
    text = " ".join(printed(report, "simulate", "--policy", "x").split())
    assert "Pods that come to gpu-1, gpu-2, gpu-3 from then on would have no isolation." in text


async def test_a_policy_whose_nodes_an_older_one_has(write: Any) -> None:
    late = write(policy_json("late", ["gpu-1"]), name="policy.json")
    async with card_api(*NODES) as api:
        with_policy(api)
        api.add_node("gpu-1")
        report = await simulate(api, "--policy", late)
    assert report.policy is not None
    assert report.policy.lost == {"gpu-1": "default"}
    assert "It does not get gpu-1: policy default is older, and has it." in printed(
        report, "simulate", "--policy", "x"
    )


async def test_a_policy_that_no_node_belongs_to(write: Any) -> None:
    nowhere = write(policy_json("nowhere", ["gpu-9"]), name="policy.json")
    async with card_api(*NODES) as api:
        text = printed(await simulate(api, "--policy", nowhere), "simulate", "--policy", "x")
    assert "No node shares its cards by it" in text


async def test_a_misspelt_field_of_a_policy_is_refused_as_by_kubectl(write: Any) -> None:
    async with card_api(*NODES) as api:
        await simulate(api, "--policy", write(policy_json("new", ["gpu-1"]), name="policy.json"))
        (dry_run,) = api.requests("POST", paths.POLICIES)
    assert dry_run.query["fieldValidation"] == "Strict"


async def test_a_policy_that_the_api_server_refuses(write: Any) -> None:
    changed = write(policy_json("default", ["gpu-1"]), name="policy.json")
    async with card_api(*NODES) as api:
        with_policy(api)
        api.fail("PUT", f"{paths.POLICIES}/default", status(422, "memoryUnit must be a whole number"))
        report = await simulate(api, "--policy", changed, "-f", write(manifest("p", 1)))
    assert report.exit_status is ExitStatus.NO
    assert not report.placements
    text = printed(report, "simulate", "--policy", "x")
    assert text == "The API server refuses policy default:\n  memoryUnit must be a whole number\n"


async def test_who_may_not_change_policies_gets_the_clients_reading(write: Any) -> None:
    changed = write(policy_json("new", ["gpu-4"]), name="policy.json")
    async with card_api(*NODES) as api:
        with_policy(api)
        api.add_node("gpu-4")
        api.fail("POST", paths.POLICIES, status(403, "you may not"))
        report = await simulate(api, "--policy", changed)
    assert report.policy is not None
    assert (report.policy.is_new, report.policy.checked_by) == (True, "Client")
    gained = [node.node for node in report.policy.nodes if node.effect is NodeEffect.GAINS]
    assert gained == ["gpu-4"]
    assert any("read by this client, which knows fewer rules" in remark for remark in report.remarks)


async def test_a_file_without_a_policy_is_refused(write: Any) -> None:
    async with card_api(*NODES) as api:
        with pytest.raises(CannotLookError, match="one GPUSharePolicy, and there are 0"):
            await simulate(api, "--policy", write(manifest("p", 1)))


async def test_what_cannot_be_read_is_said(write: Any) -> None:
    file = write(manifest("p", 3))
    async with card_api(*NODES) as api:
        api.fail("GET", paths.NODES, status(403, "you may not"))
        report = await simulate(api, "-f", file)
        assert any(
            "Labels, taints, CPU and memory of nodes are not considered" in each for each in report.remarks
        )
        assert report.exit_status is ExitStatus.GOOD
        api.fail("GET", paths.SHARE_NODES, status(404, "the server could not find the requested resource"))
        with pytest.raises(CannotLookError, match="see that gpushare is installed"):
            await simulate(api, "-f", file)
        with pytest.raises(CannotLookError, match="nothing to simulate"):
            await simulate(api)


async def test_cpu_and_memory_count_as_in_kube_scheduler(write: Any) -> None:
    """The nodes have 8 CPUs each, and each pod requests a half."""
    large = manifest("large", 1)
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(large))
    (placement,) = report.placements
    assert [(each.nodes, each.message) for each in placement.obstacles] == [(3, "Insufficient cpu")]


async def test_init_containers_count_in_cpu_as_in_kube_scheduler(write: Any) -> None:
    """The largest one or the others together, whichever is more."""
    pod = manifest("p", 1, initContainers=[{"name": "i", "resources": {"requests": {"cpu": "9"}}}])
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(pod))
    assert report.placements[0].reason == "3 Insufficient cpu"


async def test_what_the_api_server_would_not_take_is_not_placed(write: Any) -> None:
    """YAML reads a bare true as no text."""
    async with card_api(*NODES) as api:
        with pytest.raises(CannotLookError, match="Expected `str"):
            await simulate(api, "-f", write(manifest("p", 1, nodeSelector={"gpu": True})))


async def test_a_file_that_is_named_twice_counts_once(write: Any) -> None:
    async with card_api(*NODES) as api:
        file = write(manifest("p", 1))
        report = await simulate(api, "-f", file, "-f", file)
    assert len(report.placements) == 1


async def test_a_name_that_nobody_knows_is_said(write: Any) -> None:
    pod = manifest("p", 1)
    pod["spec"]["containers"][0]["resources"]["limits"] = {"gpushare.io/gpu": "1"}
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(pod))
    assert report.left_out == ["Pod p: it asks for no share of a card, but for gpushare.io/gpu"]


async def test_what_a_policy_cannot_reach_is_said(write: Any) -> None:
    policy = policy_json("default", ["gpu-1", "gpu-2", "gpu-3", "gpu-33"])
    async with card_api(*NODES) as api:
        with_policy(api)
        report = await simulate(api, "--policy", write(policy))
        assert "The policy names nodes that are not there: gpu-33." in report.remarks
        api.policies["default"]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        refused = await simulate(api, "--policy", write(policy))
    assert refused.policy is not None
    assert "being deleted" in refused.policy.refusal


async def test_a_gated_pod_stays_pending(write: Any) -> None:
    async with card_api(*NODES) as api:
        report = await simulate(
            api, "-f", write(manifest("p", 1, schedulingGates=[{"name": "wait.example"}]))
        )
    assert "scheduling gate wait.example" in report.placements[0].reason


async def test_a_pod_that_asks_for_no_card_is_left_out(write: Any) -> None:
    plain = manifest("plain", 1)
    plain["spec"]["containers"][0]["resources"] = {}
    async with card_api(*NODES) as api:
        report = await simulate(api, "-f", write(plain))
    assert report.left_out == ["Pod plain: it asks for no share of a card"]
    assert report.exit_status is ExitStatus.GOOD
