"""Pods that fit a node that kube-scheduler has not looked at, and how it is made to look there. Pure.

Beyond 100 nodes kube-scheduler looks only at some of them for a pod, at others the next time
(``numFeasibleNodesToFind``). A refused pod rests until something in the cluster changes. The pod's own status
changes when kube-scheduler writes another sentence there. So as long as a node has room that it has not
offered, each refusal says something else.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.fit.candidates import may_be_sampled
from gpushare_core.scheduling.fit.filter import FilterResult, fitting_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.decide.remembered_pods import RememberedPods

MAX_PODS = 16384
"""Each takes about 0.4 KiB. Where more pods search at a time, each is forgotten before it is tried again: it
begins anew, and is never known to search in vain."""
ROUNDS = 2
"""How often kube-scheduler is to go round all nodes: others may be scheduled between two attempts."""
SAME_NODES = 3
"""After so many attempts with the same nodes kube-scheduler is taken to look at all that the pod may go to:
the room is elsewhere, such as where its node selector does not let it."""
REMEMBERED_SECONDS = 240.0
"""kube-scheduler tries every pod again after 5 minutes: then the search begins anew."""
ATTEMPT_SECONDS = 1.0
"""In which kube-scheduler asks after a refusal whom to evict."""
SPARED_SECONDS = 15.0
"""For so long others are spared while a search goes on. A more important pod must not wait for the end of a
search where kube-scheduler lets the pod wait between two attempts, or where other nodes have room again and
again."""
AT_ONCE, A_SECOND = 200, 5.0
"""Attempts that find nothing, of all pods together: each keeps kube-scheduler from all other pods, 15 ms of
1,000 nodes and more of 5,000. One pod goes round 5,000 nodes twice with 22 of them."""


@dataclass(slots=True)
class TokenBucket:
    """A token is an attempt: ``AT_ONCE`` of them, and then ``A_SECOND``."""

    left: float = AT_ONCE
    since: float = 0.0

    def take(self, *, now: float, is_urgent: bool) -> bool:
        """Returns whether a token was left. An urgent attempt takes one in advance, up to ``AT_ONCE``: after
        many of them others must not stand still for minutes."""
        self.left = min(AT_ONCE, self.left + A_SECOND * max(0.0, now - self.since))
        self.since = now
        if self.left < 1.0 and not is_urgent:
            return False
        self.left = max(self.left - 1.0, -AT_ONCE)
        return True

    def give_back(self, attempts: int) -> None:
        self.left = min(AT_ONCE, self.left + attempts)


@dataclass(slots=True)
class _Search:
    begun: float
    fitting: int = 0
    """Nodes that the pod fitted at its last refusal."""
    attempts: int = 0
    """Those asked for. Never fewer than before: the words would be those of an earlier refusal."""
    before: int = 0
    """How many of them came before this search."""
    offered: int = 0
    """Hash of the nodes that it was offered last."""
    same: int = 0
    """How often it was offered these nodes, one time after the other."""
    has_others: bool = False
    """Whether it was offered other nodes in this search."""
    has_ended: bool = False
    """Whether another attempt would have been of no use at the last refusal."""
    retry_since: float = float("-inf")
    """When kube-scheduler was made to try the pod again, at its last attempt; long ago where it was not."""

    def refused(self, *, fitting: int, offered: int, now: float) -> None:
        """Begins anew when the search is old, or the pod fits more nodes than before."""
        is_old = now - self.begun > REMEMBERED_SECONDS
        if is_old or fitting > self.fitting:
            self.begun = now if is_old else self.begun
            self.before, self.has_others = self.attempts, False
        is_same = self.same > 0 and offered == self.offered
        self.has_others = self.has_others or (self.same > 0 and not is_same)
        self.same = self.same + 1 if is_same else 1
        self.fitting, self.offered, self.retry_since = fitting, offered, float("-inf")

    def is_of_use(self, *, most: int) -> bool:
        """Returns whether another attempt, of at most ``most``, may see other nodes."""
        return self.attempts - self.before < most and (self.has_others or self.same <= SAME_NODES)


class SampledPods:
    """By pod UID. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self, most: int = MAX_PODS) -> None:
        self._tokens = TokenBucket()
        self._searches = RememberedPods[_Search](most)
        self._forgotten = 0
        """The most attempts of a search that was forgotten. Searches that begin later count on from there:
        their pod may be the same, and has to be refused in other words than at that time."""

    def searched(
        self,
        result: FilterResult,
        *,
        ledger: Ledger,
        uid: str,
        request: PodRequest,
        names: Collection[str],
        now: float,
    ) -> FilterResult:
        """Returns what to answer for a pod that fits none of the nodes ``names``: ``result``, in other words
        than at the refusal before if the pod is to be tried again."""
        if not may_be_sampled(len(names)):
            return result  # such as the nominated one, which is asked about before the others
        fitting = 0 if result.is_for_good else len(fitting_nodes(ledger, uid=uid, request=request))
        if not fitting:
            self._searches.pop(uid, None)
            return result
        search = self._search(uid, now=now)
        search.refused(fitting=fitting, offered=hash(frozenset(names)), now=now)
        most = ROUNDS * (len(ledger.greatest[request.resources[0].name]) // len(names) + 1)
        search.has_ended = not search.is_of_use(most=most)
        is_urgent = ledger.holds.get(uid) is not None  # others were evicted for it, and the hold ends
        if search.has_ended or not self._tokens.take(now=now, is_urgent=is_urgent):
            return result
        search.attempts, search.retry_since = search.attempts + 1, now
        return _numbered(result, search.attempts)

    def is_to_try_again(self, uid: str, *, now: float) -> bool:
        """Returns whether kube-scheduler tries the pod again after this attempt, for it may fit other nodes:
        then it needs no other pod's place."""
        if (search := self._searches.get(uid)) is None:
            return False
        return now - search.retry_since <= ATTEMPT_SECONDS and now - search.begun <= SPARED_SECONDS

    def has_ended(self, uid: str) -> bool:
        """Returns whether kube-scheduler is known to have looked at all nodes that it will offer the pod."""
        search = self._searches.get(uid)
        return search is not None and search.has_ended

    def settled(self, uid: str) -> None:
        """The pod fits a node that it is offered."""
        if search := self._searches.pop(uid, None):
            self._tokens.give_back(search.attempts - search.before)

    def _search(self, uid: str, *, now: float) -> _Search:
        search = self._searches.get(uid) or _Search(now, attempts=self._forgotten, before=self._forgotten)
        if forgotten := self._searches.remember(uid, search):
            self._forgotten = max(self._forgotten, forgotten[1].attempts)
        return search


def _numbered(result: FilterResult, attempt: int) -> FilterResult:
    remark = f" (others with room are looked for, attempt {attempt})"
    return replace(
        result,
        failed={name: message + remark for name, message in result.failed.items()},
        unresolvable={name: message + remark for name, message in result.unresolvable.items()},
    )
