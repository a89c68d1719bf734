"""I3: all books have the same units for every container; sums and locks are in ``sums``."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare_core.audit.difference import (
    ANNOTATION,
    CHECKPOINT,
    LOOK_AT_PLUGIN,
    PODRESOURCES,
    STATUS,
    Difference,
    DifferenceKind,
    shares_text,
)
from gpushare_core.audit.holdings import Holding, distinct_numbers, shares_of
from gpushare_core.audit.records import ContainerKey, NodeRecords, PodKey, Shares
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.audit.unit_map import UnitMap

Container = tuple[str, str]
"""UID of the pod, name of the container."""


@dataclass(slots=True)
class Accounts:
    """The units of every container by each book; a book that was not read is left out."""

    of: dict[str, dict[Container, Shares]] = field(default_factory=dict)
    """Book -> container -> card UUID -> units."""
    names: dict[str, PodKey] = field(default_factory=dict)
    """UID -> pod."""

    def containers(self) -> list[Container]:
        return sorted({container for book in self.of.values() for container in book})


def accounts(
    records: NodeRecords, held: Iterable[Holding], claims: Mapping[str, Claim], units: UnitMap | None
) -> Accounts:
    """Returns what annotations, kubelet and status have, as far as they were read."""
    found = Accounts()
    if records.pods is not None:
        found.of[ANNOTATION] = _annotated(records, claims)
        found.names.update({uid: claim.pod.key for uid, claim in claims.items()})
    if units is not None and (records.resources is not None or records.checkpoint is not None):
        book = CHECKPOINT if records.resources is None else PODRESOURCES
        found.of[book] = {}
        for holding in held:
            found.names[_uid(holding)] = holding.key.pod
            found.of[book][_uid(holding), holding.key.container] = shares_of(holding.blocks(units))
    if records.share_node is not None and not records.share_node.problem:
        found.of[STATUS] = _reported(records, found.names)
    return found


def _uid(held: Holding) -> str:
    """Returns the pod's UID, or its name where no book has the UID."""
    return held.key.pod.uid or f"{held.key.pod}"


def _annotated(records: NodeRecords, claims: Mapping[str, Claim]) -> dict[Container, Shares]:
    return {
        (uid, container): {card: units for card, units in shares.items() if units}
        for uid, claim in claims.items()
        if claim.allocation.node == records.node and claim.justified
        for container, shares in claim.allocation.containers.items()
        if any(shares.values())
    }


def _reported(records: NodeRecords, names: dict[str, PodKey]) -> dict[Container, Shares]:
    found: dict[Container, dict[str, int]] = defaultdict(dict)
    for card in records.share_node.cards if records.share_node else ():
        for holder in card.holders:
            pod = holder.key.pod
            names.setdefault(pod.uid or f"{pod}", pod)
            found[pod.uid or f"{pod}", holder.key.container][card.uuid] = holder.units
    return dict(found)


def disagreements(records: NodeRecords, held: Iterable[Holding], accounts: Accounts) -> Iterator[Difference]:
    """Yields the containers for which books have different units, one difference for each container."""
    foreign = {(_uid(holding), holding.key.container) for holding in held if holding.foreign}
    for uid, container in accounts.containers():
        said = {
            book: entries.get((uid, container), {})
            for book, entries in accounts.of.items()
            if _speaks(records, book, uid, container, is_foreign=(uid, container) in foreign)
        }
        if len({tuple(sorted(shares.items())) for shares in said.values()}) > 1:
            yield _difference(records, accounts.names.get(uid, PodKey("", "", uid)), container, said)


def _speaks(records: NodeRecords, book: str, uid: str, container: str, *, is_foreign: bool) -> bool:
    """Whether ``book`` would have the container at all."""
    pod = (records.pods or {}).get(uid)
    if book == ANNOTATION:  # ended pods and those that were deleted by force have none that counts
        return pod is not None and not pod.ended
    if book in (PODRESOURCES, CHECKPOINT):
        return not is_foreign and _lists(records, uid, container)
    return True


def _lists(records: NodeRecords, uid: str, container: str) -> bool:
    """Whether the kubelet's books would have the container.

    PodResources list no ordinary init containers. Which containers those are is unknown for a pod that the
    API server does not have.
    """
    pod = (records.pods or {}).get(uid)
    if records.checkpoint is not None:
        return True
    return pod is not None and (pod.request is None or container not in pod.request.init_containers)


def _difference(records: NodeRecords, pod: PodKey, container: str, said: Mapping[str, Shares]) -> Difference:
    same: dict[str, list[str]] = defaultdict(list)
    for book, shares in said.items():
        same[shares_text(shares)].append(book)
    subjects = {text: " and ".join(books) for text, books in same.items()}
    plural = {text for text, name in subjects.items() if len(same[text]) > 1 or name == PODRESOURCES}
    words = "; ".join(
        f"{name} {'say' if text in plural else 'says'} {text}" for text, name in subjects.items()
    )
    cards = {card for shares in said.values() for card in shares}
    return Difference.of_pod(
        records,
        pod,
        DifferenceKind.SHARES_DIFFER,
        f"of {ContainerKey(pod, container)}: {words}. {_meaning(said)}",
        container=container,
        card=cards.pop() if len(cards) == 1 else "",
    )


def _meaning(said: Mapping[str, Shares]) -> str:
    kubelet = next((said[book] for book in (PODRESOURCES, CHECKPOINT) if book in said), None)
    if kubelet:
        return f"The kubelet is right: the plugin has to set the others right; {LOOK_AT_PLUGIN}"
    if kubelet is not None and not said.get(ANNOTATION) and said.get(STATUS):
        return f"The units are free by the kubelet and counted by {STATUS}; {LOOK_AT_PLUGIN}"
    if kubelet is not None:
        return (
            "The kubelet holds nothing for it: it is not admitted yet, or the kubelet has lost its units;"
            " if the pod runs, delete it, so that its controller creates it again"
        )
    return f"One of them is behind; {LOOK_AT_PLUGIN}"


def kubelet_disagreements(records: NodeRecords, held: Iterable[Holding]) -> Iterator[Difference]:
    """Yields the containers that have other units by PodResources than by the checkpoint."""
    if records.resources is None or records.checkpoint is None:
        return
    for holding in held:
        numbers = distinct_numbers(holding.stored or ())
        differ = numbers != (listed := distinct_numbers(holding.units)) and [*numbers] != [*listed]
        if holding.listed and holding.stored is not None and differ:
            yield Difference.of_container(
                records,
                holding.key,
                DifferenceKind.SHARES_DIFFER,
                f"of {holding.key}: {PODRESOURCES} list {len(holding.numbers)} units and {CHECKPOINT} has"
                f" {len(numbers)}, not the same ones: after a restart the kubelet would go by the checkpoint;"
                " if this stays, delete the pod",
            )


def orphan_marks(records: NodeRecords) -> Iterator[Difference]:
    """Yields the holders whose mark ``orphaned`` in the status is wrong: it means that the API server does
    not have the pod."""
    if records.pods is None or records.share_node is None:
        return
    for card in records.share_node.cards:
        for holder in card.holders:
            pod = records.pods.get(holder.key.pod.uid)
            is_there = pod is not None and not pod.ended
            if is_there is holder.orphaned:
                says = "does not have it" if holder.orphaned else "has it"
                truth = "has it" if is_there else "does not have it"
                yield Difference.of_pod(
                    records,
                    holder.key.pod,
                    DifferenceKind.ORPHAN_MARK,
                    f"{STATUS} says of {holder.key} that the API server {says}, and the API server {truth}:"
                    f" {LOOK_AT_PLUGIN}",
                    container=holder.key.container,
                    card=card.uuid,
                )
