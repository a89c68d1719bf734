"""On which card the foreign units of a container lie: as the container was told, else as annotated."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import StoredContainers
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, Pods
from gpushare_plugin.decide.units.foreign_units import ForeignUnits, dialect_of


def locate(
    assigned: AssignedDevices, before: AssignedDevices, pods: Pods, names: Collection[str]
) -> AssignedDevices:
    """Returns ``assigned`` with the cards of the foreign units that are of the extended resources ``names``.

    Units of other resources are another plugin's affair and left out. What was known ``before`` stays, also
    of a pod that the API server does not know any more.
    """
    by_uid = _by_uid(assigned, pods)
    entries = {uid: _located_entries(pod, by_uid.get(uid), names) for uid, pod in assigned.stored.items()}
    stored = {uid: pod for uid, pod in entries.items() if pod}
    located = replace(assigned, stored=stored, foreign_names=frozenset(names))
    listed = {
        name: _with_located(assignment, located, by_uid.get(assignment.uid), before, names)
        for name, assignment in assigned.pods.items()
    }
    return replace(located, pods=listed)


def _with_located(
    assignment: PodAssignment,
    assigned: AssignedDevices,
    pod: Pod | None,
    before: AssignedDevices,
    names: Collection[str],
) -> PodAssignment:
    """What the checkpoint says of a container comes before what is listed: it knows init containers, too."""
    stored = {name: entry.foreign for name, entry in assigned.stored.get(assignment.uid, {}).items()}
    if not assignment.foreign and not any(stored.values()):
        return assignment
    former = (known for known in before.pods.values() if known.name == assignment.name)
    earlier = next((known.foreign for known in former if known.uid == assignment.uid), {})
    listed = {
        name: _annotated(name, _known_before(units, earlier.get(name, ())), pod, names)
        for name, units in assignment.foreign.items()
        if not stored.get(name)
    }
    return replace(assignment, foreign={name: units for name, units in {**listed, **stored}.items() if units})


def _by_uid(assigned: AssignedDevices, pods: Pods) -> dict[str, Pod]:
    """Returns the pods by the UIDs that the kubelet has. Whoever makes a pod can annotate it as the mirror of
    any other one, so a UID is that of, the first that applies:
    1. the pod that has it itself;
    2. the pod whose name the kubelet lists with it;
    3. the pod that claims to be the mirror."""
    claimed = {pod.static_uid: pod for pod in pods.values() if pod.static_uid}
    named = ((assignment.uid, pods.get(name)) for name, assignment in assigned.pods.items())
    listed = {uid: pod for uid, pod in named if pod and pod.kubelet_uid == uid}
    return {**claimed, **listed, **{pod.uid: pod for pod in pods.values() if not pod.static_uid}}


def _located_entries(entries: StoredContainers, pod: Pod | None, names: Collection[str]) -> StoredContainers:
    if all(entry.numbers and not entry.foreign for entry in entries.values()):
        return entries
    located = {
        container: replace(entry, foreign=_annotated(container, entry.foreign, pod, names))
        if entry.foreign
        else entry
        for container, entry in entries.items()
    }
    return {container: entry for container, entry in located.items() if entry.numbers or entry.foreign}


def _known_before(
    units: Iterable[ForeignUnits], before: Collection[ForeignUnits]
) -> tuple[ForeignUnits, ...]:
    known = {unit.key: unit for unit in before}
    return tuple(
        replace(unit, card=unit.card or known[unit.key].card, size=unit.size or known[unit.key].size)
        if unit.key in known
        else unit
        for unit in units
    )


def _annotated(
    container: str, units: Iterable[ForeignUnits], pod: Pod | None, names: Collection[str]
) -> tuple[ForeignUnits, ...]:
    return tuple(
        unit if unit.card or pod is None else replace(unit, card=_annotated_card(container, unit, pod))
        for unit in units
        if unit.name in names
    )


def _annotated_card(container: str, units: ForeignUnits, pod: Pod) -> str:
    """Returns the single card that annotations name for the container: ours before the replaced system's."""
    cards: Collection[str | int] = pod.allocation.containers.get(container, {}) if pod.allocation else ()
    if not cards and (legacy := pod.legacy(dialect_of(units.name).codec)):
        cards = legacy.containers.get(container, {}) or legacy.cards
    return str(next(iter(cards))) if len(cards) == 1 else ""
