"""What kube-scheduler with the plugin counts on each card, asked inside the network of its node."""

import asyncio
import contextlib
import http.client
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bench.readings import node_network

from chaos.quiet import is_true
from chaos.world import SYSTEM, World
from gpushare_core.api.names import COMPONENT_LABEL
from gpushare_core.audit.readers import read_scheduler_ledger
from gpushare_core.audit.records import LedgerRecord, PodKey
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.paths import pods
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json
from gpushare_localcluster.errors import LocalClusterError

PORT = 10259
PATH = "/configz"
COMPONENT = "scheduler"


class Replica(NamedTuple):
    pod: str
    node: str


async def read_schedulers(
    world: World, names: Mapping[str, PodKey]
) -> dict[str, Mapping[str, LedgerRecord] | None]:
    """Returns pod -> its sums, by node; None for a pod that is Ready and does not tell them. Any of them may
    lead next, so all have to be right. Raises ``ApiError`` or ``UnreachableError``.

    ``names``: as for ``read_ledger``.
    """
    selector = {"labelSelector": f"{COMPONENT_LABEL}={COMPONENT}"}
    listed = await world.client.send(ApiRequest(path=pods(SYSTEM), params=selector))
    replicas = [*ready(listed["items"])]
    read = await asyncio.gather(*(asyncio.to_thread(_read, world, replica, names) for replica in replicas))
    return {replica.pod: sums for replica, sums in zip(replicas, read, strict=True)}


def ready(listed: Iterable[Json]) -> Iterator[Replica]:
    """Yields the pods that serve."""
    for pod in listed:
        if is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]:
            yield Replica(pod["metadata"]["name"], pod["spec"]["nodeName"])


def _read(world: World, replica: Replica, names: Mapping[str, PodKey]) -> Mapping[str, LedgerRecord] | None:
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException, LocalClusterError):
        token = from_kubeconfig(world.cluster.kubeconfig).token()
        shown = node_network.read(
            world.cluster.node_pid(replica.node),
            PORT,
            PATH,
            tls=node_network.trusting_anybody(),
            headers={"Authorization": f"Bearer {token}"},
        )
        return read_scheduler_ledger(json.loads(shown), names)
    return None
