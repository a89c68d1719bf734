"""Whether a pod that a kubelet does not list has ended, or was not listed yet.

After its start a kubelet keeps what its checkpoint says until it has heard of all pods. Its PodResources list
those that it has heard of: none at first, then static pods, then the API server's, one by one.
Source: ``GetActivePods``, ``HandlePodAdditions``, ``ManagerImpl.UpdateAllocatedDevices`` (1.36).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.placement.modes.table import class_of_lock
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.allocations import is_known
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import StoredContainers
from gpushare_plugin.decide.held.pods import PodName, Pods

SETTLED_AFTER = 10.0
"""Seconds after which a kubelet has heard of all pods that it can hear of, whether it lists them or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsListedSinceRestart:
    """What one kubelet process has listed since its start, or since ours."""

    kubelet: str | None = None
    """Which process that is; None before any has answered."""
    since: float = 0.0
    """When it listed the first pod of the API server's, or first answered where there is none, in steady
    seconds. A kubelet may be cut off from the API server for long."""
    before: frozenset[PodName] = field(default_factory=frozenset)
    """What the process before it had listed."""
    names: frozenset[PodName] = field(default_factory=frozenset)
    """What it has listed at any time."""
    complete: bool = False
    """Whether it has heard of all pods that it can hear of."""

    def may_still_be_listed(self, name: PodName, *, known: bool) -> bool:
        """Whether a pod that is not listed now may be later, and has its units until then.

        ``known``: whether the API server has this very pod. Any other is gone once the kubelet has heard of
        all.
        """
        return name not in self.names and (known or not self.complete)

    def after(
        self, listed: AssignedDevices, before: AssignedDevices, pods: Pods | None, *, now: float
    ) -> "PodsListedSinceRestart":
        """Returns what is known after one answer more.

        ``before``: what was assigned by the answers before. ``pods``: of the API server; None until they are
        read.
        """
        shown = self
        if listed.kubelet != shown.kubelet:
            shown = PodsListedSinceRestart(kubelet=listed.kubelet, since=now, before=frozenset(before.pods))
        if pods is None:
            return replace(shown, names=shown.names | listed.pods.keys(), since=now)
        if shown.complete:
            return replace(shown, names=shown.names & pods.keys() | listed.pods.keys())
        expected = {pod.name for pod in pods.values() if pod.started or pod.name in shown.before}
        of_api_server = {name for name in expected if not pods[name].static_uid}
        was_cut_off = bool(of_api_server) and shown.names.isdisjoint(of_api_server)
        since, names = now if was_cut_off else shown.since, shown.names | listed.pods.keys()
        complete = now - since >= SETTLED_AFTER or (bool(of_api_server) and expected <= names)
        return replace(shown, since=since, names=names, complete=complete)


def with_unshown(
    listed: AssignedDevices,
    before: AssignedDevices,
    shown: PodsListedSinceRestart,
    pods: Pods,
    *,
    stored: Mapping[str, StoredContainers],
) -> AssignedDevices:
    """Returns what is ``listed``, and of what was assigned ``before`` the pods that may still be listed.

    ``stored``: all that the checkpoint says, also of pods that have ended. It counts for pods that may still
    be listed, whether they were listed before or not. It does not count for:
    1. a pod that is listed already: what the kubelet lost would look as if it had it still;
    2. a static pod that is not listed by a kubelet that has heard of all: anybody can annotate its mirror.
    """
    kept = {
        name: assignment
        for name, assignment in before.pods.items()
        if name not in listed.pods and shown.may_still_be_listed(name, known=is_known(assignment, pods))
    }
    awaited = (pod for pod in pods.values() if shown.may_still_be_listed(pod.name, known=not pod.static_uid))
    following = {pod.kubelet_uid for pod in awaited}
    # A pod that is listed without the units by which its UID is found may be the one of that name before.
    named_before = (pod for name, pod in before.pods.items() if name in listed.pods)
    known = {pod.uid for pod in (*listed.pods.values(), *named_before)}
    uids = following.union(assignment.uid for assignment in kept.values()) - known
    entries = {uid: stored.get(uid) or before.stored.get(uid, {}) for uid in uids}
    return replace(
        listed,
        pods={**listed.pods, **kept},
        stored={**{uid: containers for uid, containers in entries.items() if containers}, **listed.stored},
        unshown=frozenset(kept),
    )


def unshown_holders(
    status: NodeStatus, assigned: AssignedDevices, shown: PodsListedSinceRestart, pods: Pods
) -> frozenset[PodName]:
    """Returns the pods that have units by ``status`` alone, and that may still be listed."""
    holders = ((PodName(pod.namespace, pod.name), pod.uid) for card in status.cards for pod in card.pods)
    listed = {pod.uid for pod in assigned.pods.values() if pod.uid}
    return frozenset(
        name
        for name, uid in holders
        if name not in assigned.pods and uid not in listed
        if shown.may_still_be_listed(name, known=name in pods and pods[name].uid == uid)
    )


def recorded_locks(status: NodeStatus, holders: Collection[PodName]) -> dict[str, ResourceClass]:
    """Returns the class that cards serve by ``status`` where one of ``holders`` has units.

    Of a pod that was deleted by force nothing else says it: the API server does not know the pod, and only
    the kubelet knows which entries of the checkpoint have ended.
    """
    return {
        card.uuid: lock
        for card in status.cards
        if any(PodName(pod.namespace, pod.name) in holders for pod in card.pods)
        if (lock := class_of_lock(card.lock))
    }


def unshown_starters(assigned: AssignedDevices, shown: PodsListedSinceRestart, pods: Pods) -> list[PodName]:
    """Returns the pods that were admitted, ask for units, and may still be listed with some."""
    return [
        pod.name
        for pod in pods.values()
        if pod.started and pod.request and pod.request.containers and assigned.of(pod) is None
        if shown.may_still_be_listed(pod.name, known=True)
    ]
