"""Shares of cards by dynamic resource allocation: claims of consumable capacity, which a stock kube-scheduler
places."""

import asyncio
import time

from bench.cluster.cluster_objects import NAMESPACE, Layout, node_name
from bench.cluster.concurrency import for_each
from bench.measuring.figures import NotMeasuredError

from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json

GROUP = "/apis/resource.k8s.io/v1"
CLASSES, SLICES = f"{GROUP}/deviceclasses", f"{GROUP}/resourceslices"
CLAIMS = f"{GROUP}/namespaces/{NAMESPACE}/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/{NAMESPACE}/resourceclaimtemplates"
NAME, DRIVER, CAPACITY = "bench-card", "cards.bench.example", "memory"
FIRST_MINOR = 36
"""The first Kubernetes 1.x that has consumable capacity without a feature gate."""
GONE_SECONDS = 300.0
POLL_SECONDS = 0.2


def device_class() -> Json:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {"metadata": {"name": NAME}, "spec": {"selectors": [selector]}}


def template(units: int) -> Json:
    """What kube-controller-manager makes the claim of each pod from."""
    capacity = {"requests": {CAPACITY: f"{units}Gi"}}
    request = {"name": "card", "exactly": {"deviceClassName": NAME, "capacity": capacity}}
    return {"metadata": {"name": NAME}, "spec": {"spec": {"devices": {"requests": [request]}}}}


def resource_slice(index: int, layout: Layout) -> Json:
    """The cards of a node, each with what its pods leave free of it: those have no claims."""
    name, used = node_name(index), [0] * layout.cards
    for pod in layout.pods(index):
        used[pod.card] += pod.units
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(card, layout.card_units - held) for card, held in enumerate(used)],
        },
    }


def _device(card: int, free: int) -> Json:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    return {
        "name": f"card-{card}",
        "allowMultipleAllocations": True,
        "capacity": {CAPACITY: {"value": f"{free}Gi", "requestPolicy": policy}},
    }


def with_claim(pod: Json) -> Json:
    """Returns ``pod`` with a claim of its own for a share of a card."""
    (container,) = pod["spec"]["containers"]
    resources = {**container["resources"], "claims": [{"name": "card"}]}
    claims = [{"name": "card", "resourceClaimTemplateName": NAME}]
    containers = [{**container, "resources": resources}]
    return {**pod, "spec": {**pod["spec"], "containers": containers, "resourceClaims": claims}}


async def offer(client: KubeClient, layout: Layout, *, units: int) -> None:
    """Creates everything by which pods can claim ``units`` of a card of the nodes that only exist as objects.

    Raises:
        NotMeasuredError: the API server does not know consumable capacity.
    """
    await client.create(CLASSES, device_class())
    await client.create(TEMPLATES, template(units))
    await for_each(range(layout.nodes), lambda index: _add_slice(client, index, layout))


async def _add_slice(client: KubeClient, index: int, layout: Layout) -> None:
    created = await client.create(SLICES, resource_slice(index, layout))
    if not created["spec"]["devices"][0].get("allowMultipleAllocations"):
        raise NotMeasuredError("the API server drops consumable capacity: it wants DRAConsumableCapacity")


async def all_gone(client: KubeClient) -> None:
    """Returns when the claims of pods that are gone are gone, too: until then they hold cards.

    Raises:
        NotMeasuredError: some stay.
    """
    deadline = time.monotonic() + GONE_SECONDS
    while left := len((await client.get(CLAIMS))["items"]):
        if time.monotonic() > deadline:
            raise NotMeasuredError(f"{left} claims of pods that are gone are left after {GONE_SECONDS:g} s")
        await asyncio.sleep(POLL_SECONDS)
