"""Row ``candidates``: what it brings to offer fewer of the nodes that fit, and what others lose by it."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.cluster.bench_cluster import UNITS, BenchCluster, bound
from bench.cluster.cluster_objects import NAMESPACE, RARE_IMAGE, ZONES, has_rare_image, node_name, zone
from bench.cluster.concurrency import for_each
from bench.measuring.figures import Figure
from bench.schedule_throughput import Throughput, measure

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

PODS = 60
"""That prefer some nodes: few enough to have room on those all together."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """Of ``PODS`` pods each: how many run where their image is, and how unevenly zones have the others."""

    at_image: int
    skew: int
    """Pods of the zone with the most, less those of the zone with the fewest."""


async def offers(cluster: BenchCluster) -> list[Figure]:
    """By how many nodes pods are offered: how many are bound in a second, and what becomes of preferences."""
    await cluster.only_objects()
    client, numbers = cluster.client, cluster.size.candidates
    rates: dict[int, list[float]] = {number: [] for number in numbers}
    found: dict[int, Preferences] = {}
    try:
        for repeat in range(cluster.size.repeats):
            for number in numbers:
                await _offer(client, cluster.layout.nodes, number)
                rates[number].append((await _bound(cluster)).rate)
                if not repeat:
                    found[number] = await _preferences(cluster, units=UNITS)
    finally:
        await _offer(client, cluster.layout.nodes, None)
    return offer_figures(rates, found, plain=await _preferences(cluster, units=0))


async def _bound(cluster: BenchCluster) -> Throughput:
    return bound(await measure(cluster.client, pods=cluster.size.pods, units=UNITS))


def offer_figures(
    rates: Mapping[int, Sequence[float]], found: Mapping[int, Preferences], *, plain: Preferences
) -> list[Figure]:
    figures = list[Figure]()
    for number, measured in rates.items():
        offered = f"{number or 'all'} offered"
        figures.append(Figure(f"{offered}: shared pods", statistics.median(measured), "pods/s"))
        figures.extend(_preference_figures(offered, found[number]))
    return [*figures, *_preference_figures("plain pods", plain)]


def _preference_figures(whose: str, found: Preferences) -> list[Figure]:
    return [
        Figure(f"{whose}: of {PODS} that run where their image is", found.at_image, "pods"),
        Figure(f"{whose}: skew of {PODS} over {ZONES} zones", found.skew, "pods"),
    ]


async def _offer(client: KubeClient, nodes: int, number: int | None) -> None:
    """Has every GPUShareNode say how many are offered; None: what is offered where nothing is said."""
    change = {"spec": {"candidates": number}}
    await for_each(range(nodes), lambda node: client.merge(f"{paths.SHARE_NODES}/{node_name(node)}", change))


async def _preferences(cluster: BenchCluster, *, units: int) -> Preferences:
    with_image = await _nodes_of(cluster, units=units, asking=with_rare_image)
    spread = await _nodes_of(cluster, units=units, asking=spread_over_zones)
    return preferences(cluster.layout.nodes, with_image=with_image, spread=spread)


def preferences(nodes: int, *, with_image: Sequence[str], spread: Sequence[str]) -> Preferences:
    """``with_image``, ``spread``: nodes of pods that ask for the image, and that ask to be spread."""
    having = {node_name(node) for node in filter(has_rare_image, range(nodes))}
    zones = {node_name(node): zone(node) for node in range(nodes)}
    counts = Counter(dict.fromkeys(zones.values(), 0))
    counts.update(zones[name] for name in spread)
    return Preferences(
        sum(name in having for name in with_image), max(counts.values()) - min(counts.values())
    )


async def _nodes_of(cluster: BenchCluster, *, units: int, asking: Callable[[Json], Json]) -> list[str]:
    """Returns where pods were bound, a name for each."""
    names: list[str] = []

    async def look(selector: str) -> None:
        request = ApiRequest(path=paths.pods(NAMESPACE), params={"labelSelector": selector})
        pods = await cluster.client.send(request)
        names.extend(pod["spec"]["nodeName"] for pod in pods["items"])

    bound(await measure(cluster.client, pods=PODS, units=units, look=look, asking=asking))
    return names


def with_rare_image(pod: Json) -> Json:
    """Image locality is a score of kube-scheduler, weight 1."""
    containers = [{**container, "image": RARE_IMAGE} for container in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def spread_over_zones(pod: Json) -> Json:
    """A constraint that is a wish: a score of kube-scheduler, weight 2."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": pod["metadata"]["labels"]},
    }
    return {**pod, "spec": {**pod["spec"], "topologySpreadConstraints": [constraint]}}
