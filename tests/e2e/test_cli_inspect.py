"""``kubectl gpushare inspect``, ``pods``, ``namespaces`` and ``top`` as an administrator has them."""

import json
from collections.abc import Iterator

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.observe import PODS, Json, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.workloads import MEMORY, SLICE, create, pod

from gpushare_core.api.names import CORDON_ANNOTATION, SIMULATED_LOAD_ANNOTATION
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("two_modes")]

MEMORY_NODE, MIXED_NODE = "gpu-1", "gpu-2"


@pytest.fixture(scope="module")
def two_modes(product: Product) -> Iterator[None]:
    """A node that shares memory, and one in mode Mixed; what containers use is measured."""
    body = policy("default", nodes=[MEMORY_NODE], cards=2)
    mixed = policy("default", nodes=[MIXED_NODE], cards=3, mode="Mixed", slicesPerCard=2)
    body["spec"]["nodes"] += mixed["spec"]["nodes"]
    body["spec"]["plugin"] = {"measurement": {"scope": "Containers"}}
    with product.in_force(body):
        yield


def document(cluster: LocalCluster, *arguments: str) -> Json:
    done = gpushare(cluster, *arguments, "-o", "json")
    assert done.stderr == ""
    found: Json = json.loads(done.stdout)
    return found


def cards_held(cluster: LocalCluster, namespace: str) -> dict[str, Json]:
    """Returns pod -> the first card of which it holds anything and has it from its kubelet."""
    nodes = document(cluster, "inspect", "-n", namespace)["nodes"]
    cards = [card for node in nodes for card in node["cards"]]
    return {held["name"]: card for card in cards for held in card["holders"] if held["containers"]}


def run_pods(cluster: LocalCluster, namespace: str, *pods: Json) -> None:
    create(cluster, namespace, pods)
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda seen: len(seen) == len(pods) and all(map(is_running, seen)),
        what="all pods run",
    )


def until_told(cluster: LocalCluster, what: str, *words: str, command: list[str]) -> str:
    """Waits until the command says all of ``words``, and returns what it says."""
    told = [""]

    def is_told() -> bool:
        told[0] = gpushare(cluster, *command).stdout
        return all(word in told[0] for word in words)

    wait_until(what, is_told, interval=0.2, explain=lambda: told[0])
    return told[0]


@pytest.mark.usefixtures("books_agree")
def test_who_holds_what_of_which_card(cluster: LocalCluster, namespace: str) -> None:
    run_pods(
        cluster,
        namespace,
        pod("trainer", {"main": 10}, on=MEMORY_NODE),
        pod("slices", {"main": 2}, on=MIXED_NODE, resource=SLICE),
    )
    cards: dict[str, Json] = {}

    def are_shown() -> bool:
        cards.update(cards_held(cluster, namespace))
        return cards.keys() == {"trainer", "slices"}

    wait_until("both are shown", are_shown, interval=0.2)
    held = cards["trainer"]
    assert (held["heldUnits"], held["freeUnits"], held["units"]) == (10, 6, 16)
    assert held["notStartedUnits"] == 0
    assert cards["slices"]["serves"] == "Slices"
    command = ["inspect", MEMORY_NODE, "--card", str(held["index"])]
    until_told(cluster, "its use is measured", f"{namespace}/trainer: 10, uses 0 of 10Gi", command=command)
    assert gpushare(cluster, *command).returncode == 0
    shown = document(cluster, "inspect", "-n", namespace)["nodes"]
    assert [(node["name"], node["mode"], len(node["cards"])) for node in shown] == [
        (MEMORY_NODE, "Memory", 1),
        (MIXED_NODE, "Mixed", 2),
    ]
    sums_are_the_plugins(cluster)


def sums_are_the_plugins(cluster: LocalCluster) -> None:
    nodes = document(cluster, "inspect", MEMORY_NODE, MIXED_NODE)["nodes"]
    held = sum(holder["units"] for node in nodes for card in node["cards"] for holder in card["holders"])
    assert held == 12
    names = (MEMORY_NODE, MIXED_NODE)
    statuses = json.loads(cluster.kubectl("get", "gpusharenodes", *names, "-o", "json"))["items"]
    given = {card["uuid"]: card["allocatedUnits"] for node in statuses for card in node["status"]["cards"]}
    assert {card["uuid"]: card["heldUnits"] for node in nodes for card in node["cards"]} == given


def test_a_cordoned_card_is_a_problem_with_a_command(cluster: LocalCluster) -> None:
    cluster.kubectl("annotate", "gpusharenode", MEMORY_NODE, f"{CORDON_ANNOTATION}=1")
    try:
        command = ["inspect", "--problems"]
        text = until_told(cluster, "it is a problem", "card 1 is cordoned", command=command)
        assert f"kubectl gpushare uncordon {MEMORY_NODE} 1" in text
        assert gpushare(cluster, "inspect", "--problems").returncode == 1
    finally:
        cluster.kubectl("annotate", "gpusharenode", MEMORY_NODE, f"{CORDON_ANNOTATION}-")
    until_told(cluster, "it is none", "No problem on", command=["inspect", "--problems"])


def test_nodes_that_are_not_there(cluster: LocalCluster) -> None:
    done = gpushare(cluster, "inspect", MEMORY_NODE, "gpu-3", "gpu-9")
    assert done.returncode == 1
    assert "gpu-3: no policy shares its cards" in done.stdout
    assert "gpu-9: there is no node of this name" in done.stdout
    selected = document(cluster, "inspect", "-l", f"kubernetes.io/hostname={MIXED_NODE}")["nodes"]
    assert [node["name"] for node in selected] == [MIXED_NODE]


def test_a_quota_holds_a_namespace_to_so_many_units(cluster: LocalCluster, namespace: str) -> None:
    """By the command that ``namespaces`` prints."""
    printed = gpushare(cluster, "namespaces").stdout
    command = next(line.split() for line in printed.splitlines() if f"--hard=requests.{MEMORY}=" in line)
    create_quota = [word if word != "NAMESPACE" else namespace for word in command[1:]]
    create_quota[create_quota.index("-n") + 1] = namespace
    cluster.kubectl(*create_quota)
    await_counted(cluster, namespace)
    run_pods(cluster, namespace, pod("first", {"main": 16}), pod("second", {"main": 16}))
    with pytest.raises(LocalClusterError, match="exceeded quota"):
        create(cluster, namespace, [pod("third", {"main": 1})])
    text = until_told(
        cluster, "the quota is full", "32/32 memory FULL", command=["namespaces", "-n", namespace]
    )
    assert namespace in text


def await_counted(cluster: LocalCluster, namespace: str) -> None:
    """Before a controller has counted what is used, every pod is refused that asks for any of it."""

    def are_counted() -> bool:
        quotas = json.loads(cluster.kubectl("get", "quota", "-n", namespace, "-o", "json"))["items"]
        return bool(quotas) and all("used" in quota.get("status", {}) for quota in quotas)

    wait_until("the quota is counted", are_counted, interval=0.2)


def test_a_pod_that_waits_is_shown_with_how_to_ask_why(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [pod("big", {"main": 17})])
    words = ("Waiting", f"kubectl gpushare why big -n {namespace}")
    until_told(cluster, "it waits", *words, command=["pods", "-n", namespace])
    (waiting,) = document(cluster, "namespaces", "-n", namespace)["namespaces"]
    assert (waiting["waitingPods"], waiting["waitingUnits"]) == (1, {MEMORY: 17})


def test_use_past_what_was_asked_for_comes_first(cluster: LocalCluster, namespace: str) -> None:
    run_pods(
        cluster,
        namespace,
        pod("calm", {"main": 8}, on=MEMORY_NODE),
        pod("greedy", {"main": 2}, on=MEMORY_NODE),
    )
    for name, load in (("calm", "5Gi"), ("greedy", "4Gi")):
        cluster.kubectl("annotate", "pod", name, "-n", namespace, f"{SIMULATED_LOAD_ANNOTATION}={load}")
    command = ["top", "pods", "-n", namespace]
    text = until_told(cluster, "both uses are shown", "5Gi", "200%", command=command)
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["1", "container", "uses", "more", "than", "it", "asked", "for."]
    assert [line[0] for line in lines[2:4]] == ["greedy", "calm"]
    assert lines[2][-1] == "OVER"
    cards = document(cluster, "top", "cards", "-n", namespace)["cards"]
    assert sum(card["usedBytes"] for card in cards) == 9 * 2**30
