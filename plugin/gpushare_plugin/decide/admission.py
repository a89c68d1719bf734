"""Which pod the kubelet asks for: it does not say.

It admits one pod after the other, and a pod that is being admitted is listed by PodResources already, though
still without devices. So the pod in question is the listed one that asks for units and lacks some. Source:
``HandlePodAdditions`` and ``devicemanager.ManagerImpl.devicesToAllocate`` of the kubelet (1.36).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpushare_plugin.decide.holdings import Books
from gpushare_plugin.decide.pods import Pod, PodName, Pods


@dataclass(frozen=True, slots=True)
class Grant:
    """What a pod was given: the card, and for how many of its containers."""

    card: str
    containers: int = 1


Grants = Mapping[str, Grant]
"""By the pod's UID."""


def unknown_names(books: Books, pods: Pods) -> list[PodName]:
    """Listed pods without units of which nobody knows yet whether they ask for some.

    A deleted pod may have been followed by another one of the same name.
    """
    return [
        name
        for name, holding in books.pods.items()
        if not holding.units and (name not in pods or pods[name].ask is None or pods[name].deleting)
    ]


def admitted_now(books: Books, pods: Pods, grants: Grants, size: int) -> Pod | None:
    """The pod for one of whose containers ``size`` units are asked, by a listing made during the call."""
    listed = (pods[name] for name in books.pods if name in pods)
    lacking = [pod for pod in listed if size in _lacking(pod, books)]
    return min(lacking, key=lambda pod: _order(pod, grants), default=None)


def admitted_next(books: Books, pods: Pods, grants: Grants, size: int) -> Pod | None:
    """The pod that is most likely meant, when PodResources do not answer: by order of arrival.

    Raises nothing and promises nothing: what comes out wrong is repaired from the kubelet's books later.
    """
    waiting = (pod for pod in pods.values() if not books.holds(pod.name) and not _is_done(pod, grants))
    fitting = [pod for pod in waiting if size in _asked(pod)]
    return min(fitting, key=lambda pod: _order(pod, grants), default=None)


def _lacking(pod: Pod, books: Books) -> Iterator[int]:
    """Units of the containers that hold none yet; nothing for a pod that has what it asked for.

    Of a pod whose ordinary init containers alone ask, nothing tells that it was admitted.
    """
    if pod.ask is None:
        yield from () if books.holds(pod.name) else _asked(pod)
        return
    shown = books.pods[pod.name].containers
    complete = pod.ask.visible and all(shown.get(name) for name in pod.ask.visible)
    if not complete:
        asked = pod.ask.request.containers.items()
        yield from (units for name, units in asked if not shown.get(name))


def _asked(pod: Pod) -> Iterable[int]:
    """By the spec, or while that was not read by the annotation."""
    if pod.ask is not None:
        return pod.ask.request.containers.values()
    containers = pod.allocation.containers if pod.allocation else {}
    return [sum(shares.values()) for shares in containers.values()]


def _is_done(pod: Pod, grants: Grants) -> bool:
    grant = grants.get(pod.uid)
    return grant is not None and grant.containers >= len(list(_asked(pod)))


def _order(pod: Pod, grants: Grants) -> tuple[bool, bool, bool, str, str, str]:
    """Those of which PodResources tell, then one that was begun, then by the time of the promise."""
    promised = pod.allocation.at if pod.allocation else ""
    unseen = pod.ask is not None and not pod.ask.visible
    begun = pod.uid in grants and not _is_done(pod, grants)
    return (pod.deleting, unseen, not begun, promised or pod.created, pod.created, pod.uid)
