"""Which pod the kubelet is admitting: it does not say.

The kubelet admits one pod after the other, and PodResources list a pod while it is being admitted, though
without devices. So it is the listed pod that asks for units and lacks some: neither PodResources nor the
checkpoint have them, and we did not name units for all of its containers. Source: ``HandlePodAdditions`` and
``devicemanager.ManagerImpl.devicesToAllocate`` of the kubelet (1.36).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from gpushare_core.placement.requests import PodRequest
from gpushare_plugin.decide.held.allocations import containers_without_units, is_known
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, PodName, Pods
from gpushare_plugin.decide.held.preferred_cards import PreferredCards
from gpushare_plugin.decide.units.errors import UnusableUnitsError


def pods_to_read(assigned: AssignedDevices, pods: Pods) -> list[PodName]:
    """Returns the listed pods without units of which it is not known yet whether they ask for some.

    A deleted pod may have been followed by another one of the same name.
    """
    return [
        name
        for name, assignment in assigned.pods.items()
        if name == assignment.name and not assignment.has_units
        if name not in pods or pods[name].request is None or pods[name].deleting
    ]


def has_pod_unknown_to_api(assigned: AssignedDevices, pods: Pods, candidates: Sequence[Pod] = ()) -> bool:
    """Whether the kubelet may be admitting a pod that is none of ``candidates`` and that the API server does
    not know: static pods are admitted before their mirrors are made. A container of such a pod is listed
    without units; its others may have theirs already."""
    unknown = (pod for pod in assigned.pods.values() if _may_be_unknown(pod, assigned, pods, candidates))
    return any(not pod.has(container) for pod in unknown for container in pod.containers)


def _may_be_unknown(
    listed: PodAssignment, assigned: AssignedDevices, pods: Pods, candidates: Sequence[Pod]
) -> bool:
    """Whether the API server may know another pod of the name. It has the mirror of a former static pod for a
    while: that pod had units, and a kubelet lists it without units only where it has lost them. A candidate
    that lost units is known: a later pod of its file asks for other units, or gets what it had."""
    if not is_known(listed, pods):
        return True
    pod = pods[listed.name]
    asks = bool(pod.static_uid and pod.request and pod.request.running_containers)
    is_candidate = pod in candidates and assigned.lost_of(pod) is not None
    return asks and not listed.has_units and not is_candidate


def candidates_by_list(
    assigned: AssignedDevices, pods: Pods, preferred: PreferredCards, units: int, *, resource: str = ""
) -> list[Pod]:
    """Returns the listed pods with a container that lacks ``units``, the likeliest first.

    ``assigned``: as listed during the kubelet's call. ``resource``: the name of what the kubelet asks for;
    empty where that does not matter.
    """
    names = (name for name in assigned.pods if name in pods and name not in assigned.unshown)
    listed = (pods[name] for name in names if assigned.of(pods[name]))
    lacking = (pod for pod in listed if units in _lacking(pod, assigned, preferred, resource=resource))
    return sorted(lacking, key=lambda pod: _order(pod, assigned, preferred))


def pods_without_units(assigned: AssignedDevices, pods: Pods) -> list[PodName]:
    """Returns the listed pods that ask for units, lack some, and are not known to run. Either they are being
    admitted, or they run and the kubelet has lost its checkpoint; the phase of the pod tells."""
    return [
        pod.name
        for pod in pods.values()
        if not pod.running and pod.request and pod.request.containers and assigned.of(pod)
        if not assigned.has_units(pod) or containers_without_units(pod, assigned)
    ]


def candidates_by_arrival(
    assigned: AssignedDevices, pods: Pods, preferred: PreferredCards, units: int, *, resource: str = ""
) -> list[Pod]:
    """Returns the pods that may be being admitted, the likeliest first, while PodResources do not answer.

    It can be the wrong one; the annotations are repaired by what the kubelet assigned later.
    """
    waiting = (pod for pod in pods.values() if not assigned.has_units(pod) and not _is_served(pod, preferred))
    fitting = [pod for pod in waiting if units in _requested(pod, resource)]
    return sorted(fitting, key=lambda pod: _order(pod, assigned, preferred))


def _lacking(
    pod: Pod, assigned: AssignedDevices, preferred: PreferredCards, *, resource: str
) -> Iterator[int]:
    """Yields the units of each container that has none yet; nothing for a pod that has what it asked for.

    Of ordinary init containers the checkpoint alone shows whether they have units. Without it they have, if
    we named units as often as the kubelet had to ask. A kubelet that has lost them asks for them once more,
    though these containers have ended.
    """
    request = pod.request
    if request is None:
        yield from () if assigned.has_units(pod) else _requested(pod, resource)
        return
    if request.crowded_containers:  # to be refused, and so to be found
        yield from (units for asked in request.resources for units in asked.containers.values())
        return
    listed, stored = assigned.pods[pod.name], assigned.stored_of(pod)
    seen = {name for name in request.containers if listed.has(name) or name in stored}
    if len(seen) < len(request.containers) and _is_served(pod, preferred) and not assigned.lost_of(pod):
        seen |= request.init_containers
    lacking = {name: units for name, units in request.containers.items() if name not in seen}
    if not lacking:
        return
    running = request.running_containers
    if not (running and running.keys().isdisjoint(lacking)):
        yield from _asking(request, lacking, resource).values()


def _asking(request: PodRequest, containers: Mapping[str, int], resource: str) -> Mapping[str, int]:
    """Returns those of ``containers`` that ask for ``resource``; all where it is empty."""
    if not resource:
        return containers
    asking = {name for asked in request.resources if asked.name == resource for name in asked.containers}
    return {name: units for name, units in containers.items() if name in asking}


def _requested(pod: Pod, resource: str) -> Collection[int]:
    """Returns the units of each container: by the spec, or by the annotation until the spec was read."""
    if pod.request is not None:
        return _asking(pod.request, pod.request.containers, resource).values()
    containers = pod.allocation.containers if pod.allocation else {}
    return [sum(shares.values()) for shares in containers.values()]


def _is_served(pod: Pod, preferred: PreferredCards) -> bool:
    """Whether GetPreferredAllocation was answered as often as the kubelet calls it for this pod."""
    calls = sum(map(_calls, pod.request.parts)) if pod.request else len(_requested(pod, ""))
    return pod.uid in preferred and preferred[pod.uid].containers >= calls


def _calls(request: PodRequest) -> int:
    """Returns for how many containers the kubelet calls GetPreferredAllocation, by a request of one resource.

    Not for those that find enough in what the ordinary init containers before them leave. Source:
    ``devicesToReuse`` of ``devicemanager.ManagerImpl.Allocate``.
    """
    calls = left = 0
    for name, units in request.containers.items():
        calls += units > left
        left = max(left, units) if name in request.init_containers else max(0, left - units)
    return calls


def _order(
    pod: Pod, assigned: AssignedDevices, preferred: PreferredCards
) -> tuple[bool, bool, bool, bool, str, str, str]:
    """Returns the sort key by which the likeliest pod comes first: 1. new pods; 2. pods that are not being
    deleted; 3. pods with containers that PodResources list; 4. a pod that was begun; 5. the oldest promise.

    A pod that has started is admitted again only after a reboot of its node, or where the kubelet has lost
    its checkpoint and a container restarts.
    """
    promised = pod.allocation.at if pod.allocation else ""
    unseen = pod.request is not None and not pod.request.running_containers
    begun = pod.uid in preferred and not _is_served(pod, preferred)
    known = pod.started or _is_served(pod, preferred) or assigned.lost_of(pod) is not None
    return (known, pod.deleting, unseen, not begun, promised or pod.created, pod.created, pod.uid)


def require_not_listed(numbers: Iterable[int], assigned: AssignedDevices) -> None:
    """Raises ``UnusableUnitsError`` where a listed container has some of ``numbers``.

    A kubelet can forget for a moment what it has given away. Units that an ordinary init container lends are
    not listed. Source: ``ManagerImpl.UpdateAllocatedDevices``.
    """
    asked = {*numbers}
    block = range(min(asked, default=0), max(asked, default=-1) + 1)
    listed = (pod for name, pod in assigned.pods.items() if name not in assigned.unshown)
    for pod in (pod for pod in listed if _reaches_into(block, pod)):
        if met := asked.intersection(chain.from_iterable(pod.containers.values())):
            raise UnusableUnitsError(
                f"the kubelet chose {len(met)} units that a container of {pod.name} has: create the pod again"
            )


def _reaches_into(block: range, listed: PodAssignment) -> bool:
    """Whether units of a container may be in ``block``: they are ascending."""
    held = (container for container in listed.containers.values() if container)
    return any(numbers[0] < block.stop and numbers[-1] >= block.start for numbers in held)
