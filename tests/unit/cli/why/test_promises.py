"""Every promise of ``why`` is kept: what it says would help is done to the objects, and the filter by which
the extender decides is asked again. What it says would not help is tried as well."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.samples.why import CARD, MEMORY, SLICE, bound_pods, pod_json, share_node_json, situation

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.explanation import WhyState
from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.nearest import nearest_nodes
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget, violating
from gpushare_core.text.json_object import Json

MODES = {"Memory": (8, 16), "Slices": (2,), "Exclusive": (1,), "Mixed": (16,)}
LOCKS = {"Memory": 16, "Slices": 2, "Exclusive": 1}
TAINT = {"key": "team", "value": "ml", "effect": "NoSchedule"}


@dataclass(frozen=True)
class World:
    """A cluster as the API server has it."""

    pod: Json
    nodes: tuple[Json, ...]
    kube_nodes: tuple[Json, ...]
    bound: dict[str, list[Json]]
    """Node -> its pods."""
    budgets: tuple[Json, ...]

    def facts(self) -> PodSituation:
        known = {node["metadata"]["name"]: msgspec.convert(node, KubeNode) for node in self.kube_nodes}
        made = situation(
            self.pod,
            self.nodes,
            cluster=ClusterFacts(nodes=known),
            budgets=[msgspec.convert(budget, Budget) for budget in self.budgets],
        )
        neighbours = {name: bound_pods(*self.bound.get(name, ())) for name in nearest_nodes(made)}
        return replace(made, neighbours=neighbours)


def takers(world: World, pod: Json, nodes: Iterable[Json]) -> list[str]:
    """Returns the nodes that the extender passes, of those to which taints and selectors let the pod."""
    ledger = Ledger()
    ledger.replace_share_nodes(read_share_node(msgspec.json.encode(node)) for node in nodes)
    kube_pod = situation(pod).kube_pod
    request = kube_pod.request(ledger.resources)
    names = world.facts().allowed_nodes
    if not request.resources:
        return []
    size = kube_pod.version.annotations_size
    return filter_nodes(ledger, names, uid="own", request=request, annotations_size=size).passing


def without(nodes: Iterable[Json], gone: set[str]) -> list[Json]:
    """Returns the GPUShareNodes once their plugins have seen these pods (namespace/name) go."""
    left = copy.deepcopy(list(nodes))
    for node in left:
        for card in node["status"]["cards"]:
            card["pods"] = [pod for pod in card["pods"] if f"{pod['namespace']}/{pod['name']}" not in gone]
            card["allocatedUnits"] = sum(pod["units"] for pod in card["pods"])
            if not card["pods"]:
                card.pop("lock", None)
    return left


def with_cards(nodes: Iterable[Json], name: str, indices: set[int], **changed: Any) -> list[Json]:
    left = copy.deepcopy(list(nodes))
    for node in left:
        for card in node["status"]["cards"]:
            if node["metadata"]["name"] == name and card["index"] in indices:
                card.update(changed)
    return left


def asking(pod: Json, resource: str, units: int) -> Json:
    """Returns ``pod`` with so many units of the resource, all containers together."""
    less = copy.deepcopy(pod)
    left = units
    for container in less["spec"]["containers"]:
        limits = container["resources"]["limits"]
        if resource in limits:
            given = min(left, int(limits[resource]))
            left -= given
            limits[resource] = str(given)
    return less


# Random clusters


@st.composite
def worlds(draw: st.DrawFn) -> World:
    names = [f"gpu-{number}" for number in range(draw(st.integers(1, 3)))]
    bound: dict[str, list[Json]] = {name: [] for name in names}
    nodes = tuple(draw(share_nodes(name, bound[name])) for name in names)
    kube_nodes = tuple(draw(kube_node(name)) for name in names)
    budget = {
        "metadata": {"name": "b", "namespace": "ml"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
        "status": {"disruptionsAllowed": draw(st.integers(0, 1))},
    }
    budgets = draw(st.sampled_from([(), (budget,)]))
    return World(draw(asked_pods()), nodes, kube_nodes, bound, budgets)


@st.composite
def kube_node(draw: st.DrawFn, name: str) -> Json:
    taints = [TAINT] if draw(st.integers(0, 3)) == 0 else []
    labels = {"kubernetes.io/hostname": name}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": {"pods": "110"}},
    }


@st.composite
def asked_pods(draw: st.DrawFn) -> Json:
    amounts = {MEMORY: st.integers(1, 18), SLICE: st.integers(1, 4), CARD: st.integers(1, 3)}
    containers: dict[str, Any] = {}
    first = draw(st.sampled_from(sorted(amounts)))
    for name in ["main", "side"][: draw(st.integers(1, 2))]:
        resources = {first if draw(st.booleans()) else draw(st.sampled_from(sorted(amounts)))}
        if draw(st.integers(0, 9)) == 0:
            resources.add(draw(st.sampled_from(sorted(amounts))))
        containers[name] = {resource: draw(amounts[resource]) for resource in sorted(resources)}
    pod = pod_json(**containers)
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
    pod["spec"]["priority"] = draw(st.sampled_from([0, 5, 20]))
    pod["spec"]["preemptionPolicy"] = draw(st.sampled_from(["PreemptLowerPriority"] * 3 + ["Never"]))
    if draw(st.integers(0, 7)) == 0:
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-0"}
    return pod


@st.composite
def share_nodes(draw: st.DrawFn, name: str, bound: list[Json]) -> Json:
    mode = draw(st.sampled_from(sorted(MODES)))
    cards = []
    for index in range(draw(st.integers(1, 3))):
        lock = draw(st.sampled_from(sorted(LOCKS))) if mode == "Mixed" else mode
        units = draw(st.sampled_from(MODES[mode]))
        room = min(units, LOCKS[lock])
        pods: list[Json] = []
        while room and draw(st.integers(0, 3)):
            given = draw(st.integers(1, room))
            room -= given
            owner = _holder(draw, name, bound, several=lock == "Exclusive")
            pods.append({"namespace": "ml", "name": owner, "uid": f"uid-{owner}", "units": given})
        card = {
            "index": index,
            "uuid": f"GPU-{name}-{index}",
            "memory": "16Gi",
            "units": units,
            "health": draw(st.sampled_from(["Healthy"] * 4 + ["Unhealthy"])),
            "cordoned": draw(st.sampled_from([False] * 3 + [True])),
            "allocatedUnits": sum(pod["units"] for pod in pods),
            "pods": pods,
        }
        if mode == "Mixed":
            card["offers"] = {"memory": 16, "slice": 2, "card": 1}
            if pods:
                card["lock"] = lock
        cards.append(card)
    preemption = draw(st.sampled_from(["Enabled", "Enabled", "Disabled"]))
    return share_node_json(name, *cards, mode=mode, preemption=preemption)


def _holder(draw: st.DrawFn, node: str, bound: list[Json], *, several: bool) -> str:
    """Returns the name of a pod: one of the node's already, if it may have several cards, or a new one."""
    if several and bound and draw(st.booleans()):
        return str(bound[-1]["metadata"]["name"])
    name = f"{node}-p{len(bound)}"
    pod = pod_json(name, main={MEMORY: 1})
    pod["spec"] |= {"priority": draw(st.sampled_from([0, 0, 10])), "nodeName": node}
    if draw(st.integers(0, 5)) == 0:
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "controller": True}]
    if draw(st.integers(0, 7)) == 0:
        pod["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    pod["metadata"]["labels"] = {"app": draw(st.sampled_from("ab"))}
    bound.append(pod)
    return name


# The promises


ENOUGH = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@ENOUGH
@given(worlds())
def test_every_promise_is_kept(world: World) -> None:
    report, passing = explain(world.facts()), takers(world, world.pod, world.nodes)
    assert (report.state is WhyState.FITS) == bool(passing), report
    if report.state is not WhyState.FITS:
        assert any(finding.is_decisive for finding in report.findings), report
    for remedy in report.remedies:
        PROMISES[remedy.code](world, remedy)


def _smaller(world: World, remedy: Remedy) -> None:
    for asked in world.facts().request.resources:
        tried = range(asked.total - 1, 0, -1)
        fits = {units: takers(world, asking(world.pod, asked.name, units), world.nodes) for units in tried}
        if not remedy.helps:
            assert not any(fits.values()), (remedy, fits)
        elif f" of {asked.name}" in remedy.sentence:
            most = remedy.units or 0
            assert remedy.nodes == fits[most], (remedy, fits)
            assert not any(fits[units] for units in tried if units > most), (remedy, fits)


def _uncordon(world: World, remedy: Remedy) -> None:
    if remedy.helps:
        ((name, indices),) = _commands(remedy).items()
        assert name in takers(world, world.pod, with_cards(world.nodes, name, indices, cordoned=False)), (
            remedy
        )
        return
    opened = world.nodes
    for name in world.facts().allowed_nodes:
        opened = tuple(with_cards(opened, name, {0, 1, 2}, cordoned=False))
    assert not takers(world, world.pod, opened), remedy


def _commands(remedy: Remedy) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for command in remedy.commands:
        words = [word for word in command.split() if not word.startswith("--")]
        found.setdefault(words[3], set()).add(int(words[4]))
    return found


def _mend(world: World, remedy: Remedy) -> None:
    (name,) = remedy.nodes
    mended = with_cards(world.nodes, name, _commands(remedy)[name], health="Healthy")
    if "and uncordon" in remedy.sentence:
        mended = with_cards(mended, name, _commands(remedy)[name], cordoned=False)
    assert name in takers(world, world.pod, mended), remedy


def _another(world: World, remedy: Remedy) -> None:
    """A node of the same kind has another name; its taints are the same unless it is said that they must not
    be, and its cards are new."""
    kinds = [node["metadata"]["name"] for node in world.nodes]
    if remedy.helps:
        (name,) = [name for name in kinds if f"like {name} " in remedy.sentence]
        but = "but without the taint team=ml:NoSchedule" in remedy.sentence
        assert _new_node_takes(world, name, taints=[] if but else None), remedy
        assert but != _new_node_takes(world, name), remedy
    else:
        assert not any(_new_node_takes(world, name) for name in kinds), remedy


def _new_node_takes(world: World, name: str, *, taints: list[Json] | None = None) -> bool:
    number = next(n for n, node in enumerate(world.nodes) if node["metadata"]["name"] == name)
    (new,) = without([world.nodes[number]], {f"ml/{pod['metadata']['name']}" for pod in world.bound[name]})
    new["metadata"] = {"name": "gpu-new"}
    for card in new["status"]["cards"]:
        card.update(health="Healthy", cordoned=False)
    spec = world.kube_nodes[number]["spec"] if taints is None else {"taints": taints}
    kube = {"metadata": {"name": "gpu-new", "labels": {"kubernetes.io/hostname": "gpu-new"}}, "spec": spec}
    alone = replace(world, nodes=(new,), kube_nodes=(kube,), bound={})
    return bool(takers(alone, world.pod, [new]))


def _gone(world: World, remedy: Remedy) -> None:
    ending = {
        f"ml/{pod['metadata']['name']}"
        for pods in world.bound.values()
        for pod in pods
        if pod["metadata"].get("deletionTimestamp")
    }
    if remedy.pods:
        assert takers(world, world.pod, without(world.nodes, {*remedy.pods, *ending})), remedy
    else:
        everybody = {f"ml/{pod['metadata']['name']}" for pods in world.bound.values() for pod in pods}
        assert not takers(world, world.pod, without(world.nodes, everybody)), remedy


def _evicted(world: World, remedy: Remedy) -> None:
    """By the rules of the extender: only less important pods, budgets honoured, none that comes back."""
    _gone(world, remedy)
    (name,) = remedy.nodes
    victims = [pod for pod in bound_pods(*world.bound[name]) if str(pod.pod) in remedy.pods]
    assert len(victims) == len(remedy.pods)
    budgets = world.facts().budgets or ()
    assert not violating(victims, budgets), remedy
    assert not any(pod.comes_back or pod.is_terminating for pod in victims), remedy
    preempts = next(node for node in world.nodes if node["metadata"]["name"] == name)["spec"]["preemption"]
    assert (preempts == "Enabled") or remedy.code in ("PreemptionDisabled", "PreemptionPolicy"), remedy
    assert (world.facts().kube_pod.spec.preemption_policy != "Never") or remedy.code == "PreemptionPolicy", (
        remedy
    )
    if remedy.code != "HigherPriority":
        assert all(pod.priority < world.facts().kube_pod.priority for pod in victims), remedy
    else:
        level = int(remedy.sentence.partition("A priority above ")[2].partition(" ")[0])
        assert all(pod.priority <= level for pod in victims), remedy


def _priority(world: World, remedy: Remedy) -> None:
    if remedy.helps:
        _evicted(world, remedy)
        return
    budgets = world.facts().budgets or ()
    for node in world.nodes:
        name = node["metadata"]["name"]
        if node["spec"]["preemption"] == "Enabled" and node["spec"]["mode"] != "Mixed":
            pods = bound_pods(*world.bound[name])
            assert not _possible(world, pods, budgets), (name, remedy)


def _possible(world: World, pods: Sequence[BoundPod], budgets: Sequence[Budget]) -> list[str]:
    """Returns whom a pod of the highest priority could have evicted."""
    ending = {str(pod.pod) for pod in pods if pod.is_terminating}
    able = [pod for pod in pods if not (pod.is_terminating or pod.comes_back)]
    for count in range(len(able) + 1):
        for some in combinations(able, count):
            names = {str(pod.pod) for pod in some}
            if not violating(some, budgets) and takers(
                world, world.pod, without(world.nodes, names | ending)
            ):
                return sorted(names)
    return []


def _nothing(world: World, remedy: Remedy) -> None:
    """No promise."""


PROMISES = {
    "SmallerRequest": _smaller,
    "Uncordon": _uncordon,
    "Mend": _mend,
    "AnotherNode": _another,
    "PodsGone": _gone,
    "EndingPods": _gone,
    "Preemption": _evicted,
    "PreemptionPolicy": _evicted,
    "PreemptionDisabled": _evicted,
    "HigherPriority": _priority,
    "FreeElsewhere": _nothing,
    "QueueAhead": _nothing,
}
