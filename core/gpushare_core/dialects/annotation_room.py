"""How much room a pod's annotations leave for ours. Pure.

Kubernetes allows 256 KiB of annotations on a pod, keys and values together. It does not check a Binding
against that, but every later write to the pod: the status of a pod that was bound with more can never change
again. So whoever writes to a pod looks first. Source: ``TotalAnnotationSizeLimitB`` of apimachinery.
"""

from collections.abc import Mapping

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest

MAX_BYTES = 256 * 1024
"""Of all annotations of a pod."""
ROOM_BYTES = 64 * 1024
"""Of these, kept free for our annotations: admission refuses pods that bring more than the rest."""
MAX_CONTAINERS = 128
"""Of a pod that may ask for our resources: with one card each they need a third of ``ROOM_BYTES``."""
MAX_ANNOTATIONS = 1024
"""Of a pod that asks for our resources: admission would take too long to sum up more."""

MAX_CARDS = 64
"""Of one node: an inventory lists no more."""
_CONTAINER_BYTES = 63 + len('"":{},')
"""A container's name is a DNS label."""
_SHARE_BYTES = 63 + len('"":1000000,')
"""A card, with the longest name that an inventory may give it, and units of it."""
_UNIT_BYTES = 63 + len('"":"",') + 20
"""A card of another unit than the first one, and that unit."""
_FIXED_BYTES = 2048
"""Everything else: keys, the node's name (253), UID, time, unit, CPU, memory, and a dialect's annotations."""


def size_of(annotations: Mapping[str, str]) -> int:
    """Returns the bytes of ``annotations`` as Kubernetes counts them."""
    return sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items())


def size_beside_ours(annotations: Mapping[str, str]) -> int:
    """Returns the bytes of all but our own annotation, which a Binding replaces, even on a copied pod."""
    own = Dialect.allocation_annotation
    return size_of({key: text for key, text in annotations.items() if key != own})


def worst_size(request: PodRequest) -> int:
    """Returns the most bytes that the annotations of a Binding take on any node, and those that the plugin
    adds once the pod has its units."""
    containers = sum(len(asked.containers) for asked in request.resources)
    cards = sum(_max_cards(asked, asked.total) for asked in request.resources)
    shares = sum(
        _max_cards(asked, container) for asked in request.resources for container in asked.containers.values()
    )
    other_units = cards if len(request.resources) > 1 else 0
    return (
        _FIXED_BYTES
        + containers * _CONTAINER_BYTES
        + (shares + cards) * _SHARE_BYTES
        + other_units * _UNIT_BYTES
    )


def _max_cards(asked: ResourceRequest, amount: int) -> int:
    """Returns on how many cards ``amount`` may lie."""
    return 1 if asked.resource is ResourceClass.MEMORY else min(amount, MAX_CARDS)


def lack_of_room(present: int, needed: int) -> str:
    """Returns why ``needed`` bytes do not fit a pod with annotations of ``present`` bytes; empty if they
    fit."""
    if present + needed <= MAX_BYTES:
        return ""
    fewer = ", or ask for cards in fewer containers" if needed > ROOM_BYTES else ""
    return (
        f"the pod has {present} bytes of annotations, and gpushare writes up to {needed} more, of"
        f" {MAX_BYTES} that Kubernetes allows: remove annotations from the pod, or shorten them{fewer}"
    )
