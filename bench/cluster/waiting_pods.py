"""Pods that no node takes: created all at once, and waited for until the scheduler has said so of each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bench.cluster.cluster_objects import NAMESPACE, pending_pod
from bench.cluster.concurrency import for_each

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.follow import Collection, Listed, follow
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

UNFIT_UNITS = 17
"""More than a card has, and less than nodes have in sum: the extender is asked about each of them."""
UNFIT_CPUS = 500
"""More than a node has."""
LABEL = "bench-unfit"
TRIED_SECONDS = 600.0
"""Until every pod was refused once."""
PAGE = 1000

Unfit = Callable[[str], Json]
"""Returns the pod of a name."""


def too_large_for_cards(scheduler: str, *, units: int = UNFIT_UNITS) -> Unfit:
    return lambda name: pending_pod(name, units=units, labels={LABEL: "yes"}, scheduler=scheduler)


def too_many_cpus(scheduler: str) -> Unfit:
    """Plain pods."""
    return lambda name: with_cpus(pending_pod(name, labels={LABEL: "yes"}, scheduler=scheduler), UNFIT_CPUS)


def with_cpus(pod: Json, cpus: int) -> Json:
    """Returns ``pod`` with another request and limit of CPU, in cores."""
    (container,) = pod["spec"]["containers"]
    amounts = {name: {**given, "cpu": str(cpus)} for name, given in container["resources"].items()}
    return {**pod, "spec": {**pod["spec"], "containers": [{**container, "resources": amounts}]}}


@asynccontextmanager
async def refused(client: KubeClient, count: int, unfit: Unfit) -> AsyncIterator[None]:
    """``count`` pods that were all refused at least once are there while entered.

    Raises:
        TimeoutError: they were not all refused in time.
    """
    names = [f"unfit-{index:05d}" for index in range(count)]
    try:
        await for_each(names, lambda name: client.create(paths.pods(NAMESPACE), unfit(name)))
        try:
            await asyncio.wait_for(_until_refused(client, count), TRIED_SECONDS)
        except TimeoutError:
            raise TimeoutError(f"{count:,} pods were not all refused within {TRIED_SECONDS:g} s") from None
        yield
    finally:
        await for_each(names, lambda name: remove_pod(client, name))


async def remove_pod(client: KubeClient, name: str) -> None:
    """Returns when the pod is gone from the API server, or was not there."""
    path = paths.pod_path(NAMESPACE, name)
    try:
        await client.send(ApiRequest(method="DELETE", path=path, body={"gracePeriodSeconds": 0}))
    except ApiError as error:
        if not error.is_not_found:
            raise


async def versions(client: KubeClient) -> set[str]:
    """Returns the resource versions of the pods that do not fit: another one for each write."""
    pages = client.pages(paths.pods(NAMESPACE), limit=PAGE, label_selector=f"{LABEL}=yes")
    return {pod["metadata"]["resourceVersion"] async for page in pages for pod in page.items}


async def _until_refused(client: KubeClient, count: int) -> None:
    """Returns once kube-scheduler has said of ``count`` pods that no node takes them."""
    found = set[str]()
    collection = Collection(paths.pods(NAMESPACE), label_selector=f"{LABEL}=yes")
    async for event in follow(client, collection):
        pods = event.items if isinstance(event, Listed) else [event.item]
        found.update(pod["metadata"]["name"] for pod in pods if is_refused(pod))
        if len(found) >= count:
            return


def is_refused(pod: Json) -> bool:
    """Returns whether kube-scheduler says that no node takes it."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(
        condition["type"] == "PodScheduled" and condition["status"] == "False" for condition in conditions
    )
