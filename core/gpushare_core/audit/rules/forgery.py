"""I5: nothing that a pod's author writes changes any book."""

from collections.abc import Iterator, Mapping

from gpushare_core.audit.difference import ANNOTATION, LEDGER, STATUS, Difference, DifferenceKind
from gpushare_core.audit.records import NodeRecords, PodRecord
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.dialects.dialect import Dialect


def forgeries(
    records: NodeRecords, claims: Mapping[str, Claim], held: Mapping[str, int]
) -> Iterator[Difference]:
    """Yields the pods for which a book counts more units than they ask for, by an annotation alone.

    ``held``: UID -> units that the kubelet holds for the pod.
    """
    for uid, pod in (records.pods or {}).items():
        if pod.request is None or pod.ended or not pod.annotations:
            continue
        claim = claims.get(uid)
        believed = claim.total if claim and claim.justified else 0
        most = max(pod.request.total, held.get(uid, 0), believed)
        for teller, counted in _counted(records, uid).items():
            if counted > most:
                yield _forged(records, pod, teller, counted, claim)


def _counted(records: NodeRecords, uid: str) -> dict[str, int]:
    """Returns book -> units that it counts for the pod.

    For the status, the units of the largest container: containers may lend each other units.
    """
    counted = {}
    if records.ledger is not None:
        shares = (share for card in records.ledger.cards for share in card.shares)
        counted[LEDGER] = sum(share.units for share in shares if share.pod.uid == uid)
    if records.share_node is not None:
        units: dict[str, int] = {}
        for card in records.share_node.cards:
            for holder in card.holders:
                if holder.key.pod.uid == uid:
                    units[holder.key.container] = units.get(holder.key.container, 0) + holder.units
        counted[STATUS] = max(units.values(), default=0)
    return counted


def _forged(
    records: NodeRecords, pod: PodRecord, teller: str, counted: int, claim: Claim | None
) -> Difference:
    asked = pod.request.total if pod.request else 0
    said = claim.total if claim else 0
    return Difference.of_pod(
        records,
        pod.key,
        DifferenceKind.FORGED,
        f"{pod.key} asks for {asked} units, {ANNOTATION} {Dialect.allocation_annotation} says"
        f" {said}, and {teller} counts {counted}: its author has written the annotation, which keeps units"
        " from others; delete the pod, and see that the admission policies of the installation are there",
    )
