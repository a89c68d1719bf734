"""Row ``one-node``: a pod that fits exactly one of many nodes, all of which look well by their sums.

The cluster's own kube-scheduler counts attempts in its metrics; those of another one nobody may read from
here, so that with backend Dedicated it is watched whether a pod was ever refused.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.cluster.cluster_objects import NAMESPACE, Layout, node, node_name, pending_pod
from bench.cluster.concurrency import for_each
from bench.cluster.ground import Ground
from bench.cluster.waiting_pods import is_refused
from bench.fill_cluster import create_node, create_share_node
from bench.measuring.figures import Figure, NotMeasuredError, at_least
from bench.readings.prometheus_text import total

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.follow import Collection, Listed, follow
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

ATTEMPTS = "scheduler_pod_scheduling_attempts"
UNITS = 15
"""More than any card of the other nodes has left, and less than the sum of each of these nodes."""
PODS = 8
"""The one node has a card for each."""
BOUND_SECONDS = 90.0
POLL_SECONDS = 0.1
SETTLED_SECONDS = 2.0
"""Until the scheduler has heard of the nodes: in life they have been there for long."""


async def attempts(cluster: Ground) -> list[Figure]:
    """The most attempts that one of several such pods needed, by kube-scheduler's own count."""
    await cluster.only_objects()
    present, wanted = cluster.layout.nodes, max(cluster.size.one_of, cluster.layout.nodes)
    client = cluster.client
    added = range(present, wanted)
    try:
        await for_each(added, lambda index: _add(client, index, _held()))
        await _add(client, wanted, Layout(nodes=1, pods_per_node=0, full_every=wanted + 2))
        await asyncio.sleep(SETTLED_SECONDS)
        found = [await _placed(cluster, f"one-node-{number}") for number in range(PODS)]
    finally:
        await _remove_pods(client)
        await for_each(range(present, wanted + 1), lambda index: _remove(client, index))
    return attempt_figures(found, nodes=wanted + 1)


def attempt_figures(found: Sequence["Placed"], *, nodes: int) -> list[Figure]:
    fitting = f"of {len(found)} pods that fit one of {nodes:,} nodes"
    at_once = sum(not bind.was_refused for bind in found)
    counted = [bind.attempts for bind in found if bind.attempts is not None]
    return [
        Figure(f"bound at the first attempt {fitting}", at_once, "pods", at_least(len(found))),
        *([Figure(f"attempts {fitting}: most", max(counted))] if counted else []),
        Figure("create to bound: longest", max(bind.seconds for bind in found), "s"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """How one pod came to its node. ``attempts``: None where nobody counts them."""

    was_refused: bool
    attempts: float | None
    seconds: float
    """From create to bound."""


def _held() -> Layout:
    """Of a node whose cards are all in part taken, for speed by holders that the API server does not know."""
    return Layout(nodes=1)


async def _add(client: KubeClient, index: int, layout: Layout) -> None:
    uids = {pod.name: f"gone-{pod.name}" for pod in layout.pods(index)}
    await create_node(client, node(index, layout))
    await create_share_node(client, index, layout, uids)


async def _remove(client: KubeClient, index: int) -> None:
    for collection in (paths.NODES, paths.SHARE_NODES):
        try:
            await client.delete(f"{collection}/{node_name(index)}")
        except ApiError as error:
            if not error.is_not_found:
                raise


async def _remove_pods(client: KubeClient) -> None:
    for number in range(PODS):
        path = paths.pod_path(NAMESPACE, f"one-node-{number}")
        try:
            await client.send(ApiRequest(method="DELETE", path=path, body={"gracePeriodSeconds": 0}))
        except ApiError as error:
            if not error.is_not_found:
                raise


async def _placed(cluster: Ground, name: str) -> Placed:
    """Raises ``TimeoutError`` where it is not bound at all."""
    before = await cluster.scheduler_metrics()
    begun = time.monotonic()
    was_refused = await _until_bound(
        cluster.client, pending_pod(name, units=UNITS, scheduler=cluster.scheduler_name)
    )
    seconds = time.monotonic() - begun
    attempts = await _counted(cluster, before) if cluster.shows_attempts else None
    return Placed(was_refused=was_refused, attempts=attempts, seconds=seconds)


async def _until_bound(client: KubeClient, body: Json) -> bool:
    """Creates the pod once it is watched for. Returns whether it was refused before it was bound."""
    name = body["metadata"]["name"]
    collection = Collection(paths.pods(NAMESPACE), field_selector=f"metadata.name={name}")
    refused = False
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            async for event in follow(client, collection):
                if isinstance(event, Listed) and not event.items:
                    await client.create(paths.pods(NAMESPACE), body)
                    continue
                pods = event.items if isinstance(event, Listed) else [event.item]
                refused = refused or any(is_refused(pod) for pod in pods)
                if any(is_bound(pod) for pod in pods):
                    return refused
    except TimeoutError:
        raise TimeoutError(f"pod {name} is not bound after {BOUND_SECONDS:g} s") from None
    raise NotMeasuredError(f"nobody tells of pod {name} any more")


def is_bound(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


async def _counted(cluster: Ground, before: str) -> float:
    """Returns the attempts of the one pod since. The scheduler counts a moment after the binding.

    Raises:
        NotMeasuredError: the scheduler does not count it, or counts others, too.
    """
    for _ in range(round(BOUND_SECONDS / POLL_SECONDS)):
        after = await cluster.scheduler_metrics()
        pods = total(after, f"{ATTEMPTS}_count") - total(before, f"{ATTEMPTS}_count")
        if pods == 1:
            return total(after, f"{ATTEMPTS}_sum") - total(before, f"{ATTEMPTS}_sum")
        if pods > 1:
            raise NotMeasuredError(f"kube-scheduler placed {pods:g} pods meanwhile")
        await asyncio.sleep(POLL_SECONDS)
    raise NotMeasuredError("kube-scheduler does not count the pod")
