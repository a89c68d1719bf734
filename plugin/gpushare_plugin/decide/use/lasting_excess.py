"""Since when a container has more memory of a card than it asked for, so that its pod may be evicted for it.

An excess begins with the measurement that shows it, and ends with the first one that does not: who has given
back what was too much has done what the Event asked for. Where nothing can be measured nothing is known, and
the time begins anew.
"""

from collections.abc import Mapping
from datetime import datetime

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.api.timestamps import rfc3339
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse

ExcessSince = Mapping[ContainerShare, str]
"""Times as ``metav1.Time``."""


def recorded_excess(status: NodeStatus) -> ExcessSince:
    """Returns what a plugin wrote before: one that starts goes on from there."""
    return {
        ContainerShare(PodName(share.namespace, share.name), share.uid, share.container, card.uuid): since
        for card in status.cards
        for share in card.pods
        if (since := share.exceeded_since)
    }


def excess_since(
    before: ExcessSince,
    measured: MeasuredUse | None,
    allowed: Mapping[ContainerShare, int],
    *,
    now: datetime,
) -> ExcessSince:
    """``measured``: None before the first measurement, until which ``before`` stays. ``allowed``: bytes that
    a container may have above what it asked for, where that is not 0."""
    if measured is None:
        return before
    if measured.problem:
        return {}
    return {
        share: before.get(share) or rfc3339(now)
        for share, used in measured.containers.items()
        if share in measured.requested and used > measured.requested[share] + allowed.get(share, 0)
        if share.card in measured.cards
    }
