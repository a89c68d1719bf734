"""Every mode in every dialect: four nodes, each in a mode of its own, speak one dialect after the other.

The names, annotations and variables are those that the systems publish, and not read from the product's
tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.e2e.books import Key, read_books
from tests.e2e.connection import CARDS, of_all_modes
from tests.e2e.fixtures import await_agreement, own_namespace
from tests.e2e.observe import NODES, PATIENCE, PODS, Json, condition, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, named
from tests.e2e.test_dialects import LABELS
from tests.e2e.workloads import create, pod

from gpushare_core.dialects.table import ANNOTATION_KEYS
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import NodeConfig

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

MEMORY, SLICE, CARD = "memory", "slice", "card"
NODE = {"Memory": "gpu-1", "Slices": "gpu-2", "Exclusive": "gpu-3", "Mixed": "gpu-4"}
UNITS = {"Memory": 16, "Slices": 2, "Exclusive": 1, "Mixed": 86}
"""Of a card; in mode Mixed units of memory."""

OUR_SLICE, OUR_CARD = "gpushare.io/slice", "gpushare.io/card"
RESOURCES: Mapping[str, Mapping[str, str]] = {
    "gpushare.io": {MEMORY: "gpushare.io/memory", SLICE: OUR_SLICE, CARD: OUR_CARD},
    "aliyun.com": {MEMORY: "aliyun.com/gpu-mem", SLICE: OUR_SLICE, CARD: OUR_CARD},
    "volcano.sh": {MEMORY: "volcano.sh/gpu-memory", SLICE: OUR_SLICE, CARD: "volcano.sh/gpu-number"},
    "enflame.com": {MEMORY: "enflame.com/gcu-memory", SLICE: OUR_SLICE, CARD: OUR_CARD},
    "tuya.com": {MEMORY: "tuya.com/vcuda-memory", SLICE: "tuya.com/sgpu", CARD: "nvidia.com/gpu"},
}
COUNTS = {
    "aliyun.com": "aliyun.com/gpu-count",
    "volcano.sh": "volcano.sh/gpu-number",
    "enflame.com": "enflame.com/gcu-count",
}
NODE_LABELS = {"aliyun.com": {"gpushare": "true"}, "enflame.com": {"enflame.com/gcushare": "true"}}
ALL_NAMES = {name for names in RESOURCES.values() for name in names.values()} | set(COUNTS.values())

TIME = "nanoseconds since 1970"
ANNOTATIONS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("aliyun.com", MEMORY): {
        "ALIYUN_COM_GPU_MEM_IDX": "{index}",
        "ALIYUN_COM_GPU_MEM_POD": "{units}",
        "ALIYUN_COM_GPU_MEM_DEV": "{card_units}",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": TIME,
    },
    ("volcano.sh", MEMORY): {
        "volcano.sh/gpu-index": "{index}",
        "volcano.sh/predicate-time": TIME,
        "volcano.sh/gpu-assigned": "true",
    },
    ("volcano.sh", CARD): {
        "volcano.sh/gpu-index": "{index}",
        "volcano.sh/predicate-time": TIME,
        "volcano.sh/gpu-assigned": "true",
    },
    ("enflame.com", MEMORY): {
        "enflame.com/gcu-device-id": "{index}",
        "enflame.com/gcu-device-memory": "{card_units}",
        "enflame.com/gcu-device-memory-request": "{units}",
        "enflame.com/gcu-device-assigned": "true",
        "enflame.com/gcu-device-assign-time": TIME,
    },
}
"""Of a pod that runs, by dialect and class; a system that is not named here says nothing on pods."""
VARIABLES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("aliyun.com", MEMORY): {
        "ALIYUN_COM_GPU_MEM_IDX": "{index}",
        "ALIYUN_COM_GPU_MEM_POD": "{units}",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "{units}",
        "ALIYUN_COM_GPU_MEM_DEV": "{card_units}",
    },
    ("volcano.sh", MEMORY): {
        "VOLCANO_GPU_ALLOCATED": "{mib}",
        "VOLCANO_GPU_MEMORY_TOTAL": "{card_mib}",
        "VOLCANO_GPU_TOTAL": "{card_mib}",
    },
}
SYSTEMS_VARIABLES = ("ALIYUN_", "VOLCANO_")


@dataclass(frozen=True, slots=True)
class Ask:
    """What one pod asks for on the node of ``mode``, and how many cards that has to lie on."""

    pod: str
    mode: str
    kind: str
    amount: int
    cards: int

    def body(self, dialect: str) -> Json:
        resource = RESOURCES[dialect][self.kind]
        return pod(self.pod, {"main": self.amount}, resource=resource, on=NODE[self.mode])


ASKS = [
    Ask("memory", "Memory", MEMORY, 12, cards=1),
    Ask("slices", "Slices", SLICE, 3, cards=3),
    Ask("cards", "Exclusive", CARD, 3, cards=3),
]
MIXED = HALVES, TEN, WHOLE = (
    Ask("mixed-halves", "Mixed", SLICE, 2, cards=2),
    Ask("mixed-memory", "Mixed", MEMORY, 10, cards=1),
    Ask("mixed-card", "Mixed", CARD, 1, cards=1),
)
Offered = tuple[int, int, int]
"""Cards, slices and units of memory of the node in mode Mixed."""

UNLOCKED: Offered = (4, 8, 344)
TUYAS_TABLE: Sequence[tuple[Sequence[Ask], Offered]] = [
    ([HALVES], (2, 8, 172)),
    ([TEN], (1, 6, 172)),
    ([WHOLE], (1, 4, 86)),
]
"""Pods that come, and what is offered then."""
ALL_AT_ONCE: Sequence[tuple[Sequence[Ask], Offered]] = [(MIXED, (1, 4, 86))]

TOO_MANY = {
    "Memory": Ask("too-much-memory", "Memory", MEMORY, 17, cards=0),
    "Slices": Ask("too-many-slices", "Slices", SLICE, 5, cards=0),
    "Exclusive": Ask("too-many-cards", "Exclusive", CARD, 5, cards=0),
    "Mixed": Ask("too-much-mixed", "Mixed", MEMORY, 87, cards=0),
}
REFUSALS = {
    "Memory": "1 insufficient GPU memory in one card: asked 17, largest free 16, biggest card 16",
    "Slices": "1 insufficient GPU slices: needs 5 cards with a free slice, has 4, of 4 in all",
    "Exclusive": "1 Insufficient {resource}",  # kube-scheduler's own: the node's sum tells it
    "Mixed": "1 insufficient GPU memory in one card: asked 87, largest free 86, biggest card 86",
}


NOTHING: Mapping[str, Mapping[str, Any]] = {"labels": {}, "capacity": {}, "allocatable": {}}
FORGOTTEN_AFTER = 600.0
"""Seconds. A kubelet shows for five minutes what a plugin offered that was not running at the end; on a busy
machine it writes that late."""


def shown(node: Json) -> dict[str, Any]:
    """What of dialects a node shows: labels, and names of resources in capacity and allocatable.

    For five minutes kubelets write back zeros under names that were offered before; they count as nothing.
    """
    return {
        "labels": {key: value for key, value in node["metadata"]["labels"].items() if key in LABELS},
        "capacity": amounts(node["status"]["capacity"]),
        "allocatable": amounts(node["status"]["allocatable"]),
    }


def amounts(quantities: Mapping[str, str]) -> dict[str, int]:
    return {name: int(text) for name, text in quantities.items() if name in ALL_NAMES and text != "0"}


def expected(dialect: str, mode: str, mixed: Offered = UNLOCKED) -> dict[str, Any]:
    offered = {
        "Memory": {MEMORY: CARDS * UNITS["Memory"]},
        "Slices": {SLICE: CARDS * UNITS["Slices"]},
        "Exclusive": {CARD: CARDS},
        "Mixed": dict(zip((CARD, SLICE, MEMORY), mixed, strict=True)),
    }[mode]
    count = {COUNTS[dialect]: CARDS} if dialect in COUNTS else {}
    names = {**count, **{RESOURCES[dialect][kind]: amount for kind, amount in offered.items()}}
    labels = {"gpushare.io/dialect": dialect, **NODE_LABELS.get(dialect, {})}
    return {"labels": labels, "capacity": names, "allocatable": names}


def await_shown(
    cluster: LocalCluster, node: str, wanted: Mapping[str, Any], *, seconds: float = PATIENCE
) -> None:
    watch_until(
        cluster,
        NODES,
        lambda nodes: any(named(present, node) and shown(present) == wanted for present in nodes),
        what=f"{node} shows {wanted} and nothing else",
        seconds=seconds,
        describe=lambda nodes: [shown(present) for present in nodes if named(present, node)],
    )


@pytest.fixture(scope="module")
def four_nodes(cluster: LocalCluster, product: Product) -> Iterator[None]:
    """A node for each mode, which shows nothing of dialects before and after."""
    cluster.add_node(NodeConfig(NODE["Mixed"]))
    cluster.wait_ready()
    for node in NODE.values():
        await_shown(cluster, node, NOTHING, seconds=FORGOTTEN_AFTER)
    yield
    product.delete("speaks")
    for node in NODE.values():
        # A kubelet that was busy when a plugin ended may keep all that it offered, and not zeros.
        await_shown(cluster, node, NOTHING, seconds=FORGOTTEN_AFTER)
    cluster.remove_node(NODE["Mixed"])


@pytest.fixture(scope="module", params=RESOURCES)
def dialect(request: pytest.FixtureRequest, product: Product, four_nodes: None) -> str:
    """All nodes speak it."""
    del four_nodes
    product.apply(of_all_modes("speaks", request.param, NODE))
    product.await_ready("speaks")
    return str(request.param)


@pytest.fixture(scope="module")
def turn(cluster: LocalCluster, dialect: str) -> Iterator[str]:
    """The namespace of the pods in this dialect."""
    del dialect
    with own_namespace(cluster) as name:
        yield name


@pytest.fixture(scope="module")
def refusals(cluster: LocalCluster, turn: str, dialect: str) -> dict[str, str]:
    """What is said of pods, by mode, that ask for one more than fits; on nodes of which nothing is in use."""
    create(cluster, turn, [ask.body(dialect) for ask in TOO_MANY.values()])

    def messages(pods: Sequence[Json]) -> dict[str, str]:
        said = {pod["metadata"]["name"]: condition(pod, "PodScheduled").get("message") for pod in pods}
        return {mode: text for mode, ask in TOO_MANY.items() if (text := said.get(ask.pod))}

    seen = watch_until(
        cluster,
        PODS.format(namespace=turn),
        lambda pods: len(messages(pods)) == len(TOO_MANY),
        what="every pod that asks for too much is refused",
        describe=lambda pods: [pod["status"] for pod in pods],
    )
    return messages(seen)


@pytest.fixture(scope="module")
def running(cluster: LocalCluster, turn: str, dialect: str, refusals: Mapping[str, str]) -> str:
    """The namespace, where the pods of the modes of one class run, at once and beside refused ones."""
    del refusals
    run(cluster, turn, dialect, ASKS)
    return turn


def run(cluster: LocalCluster, namespace: str, dialect: str, asks: Sequence[Ask]) -> None:
    create(cluster, namespace, [ask.body(dialect) for ask in asks])
    names = {ask.pod for ask in asks}
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: names <= {pod["metadata"]["name"] for pod in pods if is_running(pod)},
        what=f"{sorted(names)} run",
        describe=lambda pods: [pod["status"] for pod in pods if pod["metadata"]["name"] in names],
    )


@pytest.mark.parametrize("mode", NODE)
def test_a_node_shows_the_names_of_the_dialect_and_no_others(
    cluster: LocalCluster, dialect: str, mode: str
) -> None:
    """Nor those of the dialect that had its turn before."""
    await_shown(cluster, NODE[mode], expected(dialect, mode))


@pytest.mark.parametrize("mode", NODE)
def test_one_too_many_waits_and_says_why(refusals: Mapping[str, str], dialect: str, mode: str) -> None:
    resource = RESOURCES[dialect][TOO_MANY[mode].kind]
    assert REFUSALS[mode].format(resource=resource) in refusals[mode]


@pytest.mark.parametrize("ask", [pytest.param(ask, id=ask.mode) for ask in ASKS])
def test_a_pod_has_its_cards_and_is_told_in_the_words_of_the_dialect(
    cluster: LocalCluster, running: str, dialect: str, ask: Ask
) -> None:
    check(cluster, running, dialect, ask)


def test_each_card_of_mixed_is_locked_to_one_class_and_given_back(
    cluster: LocalCluster, running: str, dialect: str
) -> None:
    """By the table that Tuya publishes: line by line in its words, its last line in those of others."""
    table = TUYAS_TABLE if dialect == "tuya.com" else ALL_AT_ONCE
    for asks, offered in table:
        run(cluster, running, dialect, asks)
        await_shown(cluster, NODE["Mixed"], expected(dialect, "Mixed", offered))
    for ask in MIXED:
        check(cluster, running, dialect, ask)
    await_agreement(cluster, running)
    before = [UNLOCKED, *(offered for _, offered in table[:-1])]
    for (asks, _), offered in zip(reversed(table), reversed(before), strict=True):
        cluster.kubectl("delete", "pod", "-n", running, *(ask.pod for ask in asks))
        await_shown(cluster, NODE["Mixed"], expected(dialect, "Mixed", offered))
    await_agreement(cluster, running)


def check(cluster: LocalCluster, namespace: str, dialect: str, ask: Ask) -> None:
    """Checks what the pod's container and annotations say."""
    cards = read_books(cluster, namespace).environment[Key(namespace, ask.pod, "main")].cards
    assert len(cards) == len(set(cards)) == ask.cards
    told = cluster.container(namespace=namespace, pod=ask.pod, container="main").env
    visible = "" if dialect == "enflame.com" else told["GPUSHARE_CARD"]
    assert told.get("NVIDIA_VISIBLE_DEVICES", "") == visible, "UUIDs, not indexes"
    variables = in_words(VARIABLES.get((dialect, ask.kind), {}), ask, told)
    assert {key: text for key, text in told.items() if key.startswith(SYSTEMS_VARIABLES)} == variables
    annotations = in_words(ANNOTATIONS.get((dialect, ask.kind), {}), ask, told)
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, ask.pod) and annotated(pod) == annotations for pod in pods),
        what=f"{ask.pod} has the annotations {annotations} and none of other dialects",
        describe=lambda pods: [annotated(pod) for pod in pods if named(pod, ask.pod)],
    )
    assert {pod["spec"]["nodeName"] for pod in pods if named(pod, ask.pod)} == {NODE[ask.mode]}


def in_words(patterns: Mapping[str, str], ask: Ask, told: Mapping[str, str]) -> dict[str, str]:
    """Returns what a dialect says of the pod; ``told``: the environment of its container."""
    card_units = UNITS[ask.mode]
    facts = {
        "index": told["GPUSHARE_CARD_INDEX"],
        "units": ask.amount,
        "card_units": card_units,
        "mib": ask.amount * 1024,
        "card_mib": card_units * 1024,
    }
    return {key: pattern.format(**facts) for key, pattern in patterns.items()}


def annotated(pod: Json) -> dict[str, str]:
    """Returns the annotations of all dialects but ours, which the books read; every time is ``TIME``."""
    annotations = pod["metadata"].get("annotations", {})
    return {
        key: TIME if key.lower().endswith("time") and text.isdecimal() else text
        for key, text in annotations.items()
        if key in ANNOTATION_KEYS and key != "gpushare.io/allocation"
    }
