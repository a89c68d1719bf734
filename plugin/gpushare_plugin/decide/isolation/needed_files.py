"""Which files of limits containers need: they have them mounted, and mount them again when they restart."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gpushare_core.api.enums import MemoryIsolation
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import PodName, Pods


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFiles:
    identities: frozenset[str] = frozenset()
    pods: tuple[str, ...] = ()
    """Namespaces and names of the pods that have them."""
    complete: bool = False
    """Whether no other file is needed: a kubelet that cannot be asked, or has not listed all pods since its
    start, may still know of containers."""


def needed_files(assigned: AssignedDevices, pods: Pods, *, listed: bool) -> NeededFiles:
    """Returns what the kubelet's checkpoint says of pods that have not ended.

    ``listed``: PodResources answer, and have listed all pods since the kubelet's start.
    """
    given = [*_given(assigned)]
    return NeededFiles(
        identities=frozenset(identity for _, identity in given if identity),
        pods=_named({uid for uid, _ in given}, assigned, pods),
        complete=listed and all(identity for _, identity in given) and not _has_doubtful(assigned),
    )


def _given(assigned: AssignedDevices) -> Iterator[tuple[str, str]]:
    """Yields UID of a pod -> identity of one of its containers with the hook, empty where it is unknown."""
    for uid, containers in assigned.stored.items():
        for entry in containers.values():
            if entry.isolation and entry.isolation.kind is MemoryIsolation.HOOK:
                yield uid, entry.isolation.identity


def _named(uids: Collection[str], assigned: AssignedDevices, pods: Pods) -> tuple[str, ...]:
    if not uids:
        return ()
    names = {pod.kubelet_uid: name for name, pod in pods.items()}
    names.update((pod.uid, name) for name, pod in assigned.pods.items() if pod.uid)
    return tuple(sorted({str(names.get(uid, PodName("", uid))) for uid in uids}))


def _has_doubtful(assigned: AssignedDevices) -> bool:
    """Whether a container runs of which the checkpoint does not say what it was given."""
    if assigned.checkpoint_problem or assigned.unshown or assigned.lost:
        return True
    return any(
        numbers and container not in assigned.stored.get(pod.uid, {})
        for pod in assigned.pods.values()
        for container, numbers in pod.containers.items()
    )
