"""Giving up nominations that cannot help their pods, by what the API server says of the node."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.decide.preemption.nomination import fits_now, given_up_reason, hold_for, is_doubtful
from gpushare_extender.evictions.node_pods import NodePodReader

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Nominations:
    """Of pods that fit nowhere."""

    ledger: Ledger
    reader: NodePodReader
    ending: EndingPods
    clock: Callable[[], float]

    async def given_up(self, pod: KubePod, request: PodRequest) -> str:
        """Returns why ``pod`` is not to be nominated any longer; empty where it has no nomination, may get
        its node, or the API server does not answer. What the pod waits for there is held for it from then on,
        also by an extender that did not choose the victims."""
        if not is_doubtful(self.ledger, pod, request):
            return ""
        node = pod.nominated_node
        try:
            pods = await self.reader.pods_now(node)
        except (ApiError, UnreachableError) as error:
            _log.warning(
                "cannot read which pods of the node are terminating: %s", error, extra={"node": node}
            )
            return ""
        ending = self.ending.of(node, pods, now=self.clock())
        if reason := given_up_reason(self.ledger, pod, request, ending=ending):
            _log.info("%s", reason, extra={"pod": str(pod.reference), "node": node})
            return reason
        if not fits_now(self.ledger, pod, request, node=node):
            hold_for(self.ledger, pod, request, node=node, ending=ending, now=self.clock())
        return ""
