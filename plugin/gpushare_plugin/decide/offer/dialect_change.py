"""When other names take effect. The kubelet knows units by the name of their resource: under another name it
would give the same units again."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pods


def dialect_in_force(
    desired: Dialect, served: Dialect | None, pods: Pods, assigned: AssignedDevices
) -> tuple[Dialect, tuple[str, ...]]:
    """Returns the dialect to serve, and the pods, for people, that hold units by its names and keep
    ``desired`` from being served.

    ``served``: the dialect that was served until now. Where that is not known, as after a policy was deleted
    and applied anew, it is the one by whose names most pods hold units of ours. Units that another plugin
    gave out count as held where they go by the names of ``served``.
    """
    held = [*_held_names(pods, assigned)]
    served = served or _most_held(held, desired)
    leaving = served.resources.keys() - desired.resources.keys()
    blocking = [names.pod for names in held if names.every & leaving]
    return (served, tuple(sorted(blocking))) if blocking else (desired, ())


def recorded_dialect(status: NodeStatus) -> Dialect | None:
    """Returns the dialect that the plugin wrote to the status before it was restarted; None where it wrote
    nothing. A plugin that wrote no dialect knew only ours."""
    return DIALECTS.get(status.dialect or GPUSHARE.name) if status.memory_unit else None


@dataclass(frozen=True, slots=True)
class _HeldNames:
    """Extended resources of which one pod has units, or was promised some."""

    own: frozenset[str]
    """Of units of ours."""
    every: frozenset[str]
    pod: str
    """For people."""


def _held_names(pods: Pods, assigned: AssignedDevices) -> Iterator[_HeldNames]:
    listed = {assignment.uid for assignment in assigned.pods.values()}
    for assignment in assigned.pods.values():
        stored = assigned.stored.get(assignment.uid, {}).values()
        own = assignment.names | {entry.name for entry in stored if entry.numbers}
        foreign = {unit.name for units in assignment.foreign.values() for unit in units}
        yield _HeldNames(own, own | foreign, str(assignment.name))
    for uid, entries in assigned.stored.items():
        if uid not in listed:
            names = frozenset(entry.name for entry in entries.values())
            yield _HeldNames(names, names, f"the pod with the UID {uid}")
    for pod in pods.values():
        if not assigned.has_units(pod) and pod.allocation and pod.request:
            asked = frozenset(resource.name for resource in pod.request.resources)
            yield _HeldNames(frozenset(), asked, str(pod.name))


def _most_held(held: list[_HeldNames], desired: Dialect) -> Dialect:
    """Returns ``desired`` where no other dialect has more pods."""
    pods: Counter[str] = Counter()
    for names in held:
        pods.update(dialect.name for dialect in DIALECTS.values() if names.own & dialect.resources.keys())
    return max(DIALECTS.values(), key=lambda dialect: (pods[dialect.name], dialect is desired))
