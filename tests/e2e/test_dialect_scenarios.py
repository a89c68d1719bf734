"""The published scenario of each replaced system, number by number, with its own names, on the real cluster.

What pods and people then see is read by tools that know the replaced system only.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.e2e.books import INSPECT
from tests.e2e.observe import PODS, Json, condition, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, named, policy
from tests.e2e.workloads import create, pod
from tests.fakes.replaced_tools import (
    CardUse,
    kubectl_inspect_gpushare,
    read_aliyun_inspect,
    read_annotations,
    read_gcu_inspect,
)
from tests.samples.dialects import MEMORY_RESOURCE

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.dialects.table import DIALECTS
from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Pods one after the other, each with the memory it asks for, and where it has to be."""

    dialect: str
    unit: str
    card: str
    """Memory of each card."""
    cards: int
    pods: Mapping[str, tuple[int, str, int]]
    """Name -> units, node, index of the card; no node for a pod that has to wait."""


GCU = {"p4": (4, "gpu-1", 0), "p8": (8, "gpu-1", 0), "p12": (12, "gpu-1", 1), "p20": (20, "", -1)}


def gcushare(unit: str, factor: int) -> Scenario:
    """8 cards of 16 GB: 4 and 8 GB on card 0, 12 GB on card 1, 20 GB nowhere."""
    pods = {name: (units * factor, node, card) for name, (units, node, card) in GCU.items()}
    return Scenario(dialect="enflame.com", unit=unit, card="16G", cards=8, pods=pods)


SCENARIOS = [
    pytest.param(gcushare("1G", 1), id="GCUShare, 1 GB"),
    pytest.param(gcushare("100M", 10), id="GCUShare, 0.1 GB"),
    pytest.param(gcushare("10M", 100), id="GCUShare, 0.01 GB"),
    pytest.param(
        Scenario(
            dialect="aliyun.com",
            unit="1Gi",
            card="15Gi",
            cards=2,
            pods={"a": (9, "gpu-1", 0), "b": (8, "gpu-1", 1), "c": (2, "gpu-1", 0), "d": (6, "gpu-1", 1)},
        ),
        id="Aliyun",
    ),
]


@pytest.fixture
def speaking(product: Product) -> Iterator[Callable[[Scenario, list[str]], None]]:
    """Applies a policy for some nodes; afterwards it is taken back."""

    def apply(scenario: Scenario, nodes: list[str]) -> None:
        body = policy("default", nodes=nodes, unit=scenario.unit, cards=scenario.cards, memory=scenario.card)
        body["spec"]["dialect"] = scenario.dialect
        product.apply(body)
        product.await_ready("default")

    yield apply
    product.delete("default")


def run(cluster: LocalCluster, namespace: str, name: str, body: Json) -> Json:
    """Run a pod, and return it."""
    create(cluster, namespace, [body])
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, name) and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
        describe=lambda pods: [pod.get("status") for pod in pods if named(pod, name)],
    )
    return next(pod for pod in pods if named(pod, name))


def refusal(cluster: LocalCluster, namespace: str, name: str) -> str:
    def message(pods: Any) -> str:
        found = [pod for pod in pods if named(pod, name)]
        return str(condition(found[0], "PodScheduled").get("message", "")) if found else ""

    pods = watch_until(
        cluster, PODS.format(namespace=namespace), lambda pods: bool(message(pods)), what=f"{name} is refused"
    )
    return message(pods)


def inspect(cluster: LocalCluster, path: str) -> str:
    """What the system's own tool is answered, on a control-plane node."""
    url = f"https://127.0.0.1:{EXTENDER_PORT}{path}"
    answer = cluster.node_exec("control-plane-1", [sys.executable, "-c", INSPECT, url])
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def environment(cluster: LocalCluster, namespace: str, name: str) -> Mapping[str, str]:
    return cluster.container(namespace=namespace, pod=name, container="main").env


def assigned(pods: list[Json], dialect: str) -> bool:
    """Whether every pod that runs says, in the words of its system, that it has its card."""
    keys = [key for key in DIALECTS[dialect].codec.assignment_keys if key.lower().endswith("assigned")]
    running = [pod for pod in pods if is_running(pod)]
    return all(pod["metadata"].get("annotations", {}).get(key) == "true" for pod in running for key in keys)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_published_scenario(
    cluster: LocalCluster,
    namespace: str,
    speaking: Callable[[Scenario, list[str]], None],
    scenario: Scenario,
) -> None:
    speaking(scenario, ["gpu-1"])
    resource = MEMORY_RESOURCE[scenario.dialect]
    for name, (units, node, index) in scenario.pods.items():
        body = pod(name, {"main": units}, resource=resource)
        if not node:
            create(cluster, namespace, [body])
            assert f"asked {units}, largest free" in refusal(cluster, namespace, name)
            continue
        run(cluster, namespace, name, body)
        seen = environment(cluster, namespace, name)
        assert (seen["GPUSHARE_CARD_INDEX"], seen["GPUSHARE_UNITS"]) == (str(index), str(units))
        if scenario.dialect == "aliyun.com":
            told = (seen["ALIYUN_COM_GPU_MEM_IDX"], seen["ALIYUN_COM_GPU_MEM_CONTAINER"])
            assert told == (str(index), str(units))
            assert seen["NVIDIA_VISIBLE_DEVICES"] == seen["GPUSHARE_CARD"], "UUIDs, not the index"
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: assigned(list(pods), scenario.dialect),
        what="what runs is annotated as assigned",
    )
    check_annotations(pods, scenario)
    check_inspect(cluster, scenario)


def check_annotations(pods: list[Json], scenario: Scenario) -> None:
    running = [pod for pod in pods if is_running(pod)]
    for body in running:
        units, _, index = scenario.pods[body["metadata"]["name"]]
        read = read_annotations(scenario.dialect, body["metadata"]["annotations"])
        found = {value for key, value in read.items() if not key.lower().endswith("time")}
        assert {units, index, True} <= found
    if scenario.dialect == "aliyun.com":
        capacity = {
            "aliyun.com/gpu-count": str(scenario.cards),
            "aliyun.com/gpu-mem": str(15 * scenario.cards),
        }
        node = {"metadata": {"name": "gpu-1"}, "status": {"capacity": capacity}}
        assert kubectl_inspect_gpushare([node], pods)["gpu-1"] == used_by_card(scenario)


def used_by_card(scenario: Scenario) -> dict[int, int]:
    used = dict.fromkeys(range(scenario.cards), 0)
    for units, node, index in scenario.pods.values():
        if node:
            used[index] += units
    return used


def check_inspect(cluster: LocalCluster, scenario: Scenario) -> None:
    row = DIALECTS[scenario.dialect]
    read = {"aliyun.com": read_aliyun_inspect, "enflame.com": read_gcu_inspect}[scenario.dialect]
    seen: dict[str, dict[int, CardUse]] = read(inspect(cluster, row.inspect_path))
    assert [*seen] == ["gpu-1"]
    assert {index: card.used for index, card in seen["gpu-1"].items()} == used_by_card(scenario)
    assert read(inspect(cluster, f"{row.inspect_path}/gpu-1")) == seen
    with pytest.raises(LookupError):
        read(inspect(cluster, f"{row.inspect_path}/gpu-9"))


def test_volcano_1024_and_1024_on_one_card_and_8000_on_the_second_node(
    cluster: LocalCluster, namespace: str, speaking: Callable[[Scenario, list[str]], None]
) -> None:
    """Our extender schedules; Volcano's own scheduler is another test's matter."""
    scenario = Scenario(dialect="volcano.sh", unit="1Mi", card="8128Mi", cards=1, pods={})
    speaking(scenario, ["gpu-1", "gpu-2"])
    resource = MEMORY_RESOURCE["volcano.sh"]
    for name, units, on in (("a", 1024, "gpu-1"), ("b", 1024, "gpu-1"), ("c", 8000, None)):
        found = run(cluster, namespace, name, pod(name, {"main": units}, resource=resource, on=on))
        assert found["spec"]["nodeName"] == (on or "gpu-2")
        seen = environment(cluster, namespace, name)
        assert (seen["VOLCANO_GPU_ALLOCATED"], seen["VOLCANO_GPU_MEMORY_TOTAL"]) == (str(units), "8128")
        assert read_annotations("volcano.sh", found["metadata"]["annotations"])["volcano.sh/gpu-index"] == [0]
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: assigned(list(pods), "volcano.sh"),
        what="what runs is annotated as assigned",
    )


def test_a_pod_that_outlives_its_policy_is_counted_when_that_comes_back(
    cluster: LocalCluster, product: Product, namespace: str, speaking: Callable[[Scenario, list[str]], None]
) -> None:
    """It is counted when the policy comes back."""
    scenario = Scenario(dialect="aliyun.com", unit="1Gi", card="16Gi", cards=2, pods={})
    speaking(scenario, ["gpu-1"])
    running = run(
        cluster, namespace, "stays", pod("stays", {"main": 4}, resource=MEMORY_RESOURCE["aliyun.com"])
    )
    product.delete("default")
    speaking(scenario, ["gpu-1"])
    again = run(cluster, namespace, "next", pod("next", {"main": 14}, resource=MEMORY_RESOURCE["aliyun.com"]))
    stays = cluster.kubectl("get", "pod", "stays", "-n", namespace, "-o", "jsonpath={.metadata.uid}")
    assert stays == running["metadata"]["uid"]
    index = read_annotations("aliyun.com", again["metadata"]["annotations"])["ALIYUN_COM_GPU_MEM_IDX"]
    assert index == 1, "card 0 has 12 units left"
