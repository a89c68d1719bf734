"""Which pods would have to go so that the pod fits, and why they are not evicted for it."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.nearest import nearest_card, unfit_nodes
from gpushare_cli.decide.why.remedies.trial import cards_text, chosen_cards
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import amount
from gpushare_cli.wording import listed
from gpushare_core.placement.requests import ResourceClass, ResourceRequest
from gpushare_core.scheduling.ledger.unfit_reason import Refusal, UnfitReason
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.disruption_budgets import violating
from gpushare_core.scheduling.preemption.victims import Eviction, NodeWithout, evictable, find_eviction

MAX_COMMANDS = 4
ABOVE_ALL = 2**31
"""A priority above all that there are."""


@dataclass(frozen=True, slots=True)
class NodeInTheWay:
    """A node that the pod would fit if some of its pods went."""

    situation: PodSituation
    without: NodeWithout
    pods: Sequence[BoundPod]

    @property
    def name(self) -> str:
        return self.without.name

    @property
    def ending(self) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.pods if pod.is_terminating)

    @property
    def may_evict(self) -> bool:
        """Whether the node's policy lets pods be evicted."""
        share_node = self.without.ledger.share_node
        return share_node is not None and share_node.preempts

    @property
    def is_offered(self) -> bool:
        """Whether kube-scheduler looks at the node at all: not where the node has less of a resource than is
        asked for, whoever has it. A card of mode Mixed that serves one class has nothing of the others."""
        return all(asked.total <= self._capacity(asked) for asked in self.situation.request.resources)

    def _capacity(self, asked: ResourceRequest) -> int:
        ledger = self.without.ledger
        cards = ledger.share_node.cards if ledger.share_node else ()
        return sum(
            card.units_of(asked.resource)
            for card in cards
            if card.is_open and ledger.lock_of(card.uuid) in (None, asked.resource)
        )

    def allowed(self, *, below: int) -> Eviction | None:
        """Returns what a pod of priority ``below`` may have evicted, budgets honoured."""
        budgets = self.situation.budgets or ()
        return find_eviction(
            self.without, evictable(self.pods, below=below), gone=self.ending, budgets=budgets
        )

    def any_at_all(self) -> Eviction | None:
        """Returns the least that has to go, whoever it is; pods that would come back only if need be."""
        staying = [pod for pod in self.pods if not pod.is_terminating]
        gone_for_good = [pod for pod in staying if not pod.comes_back]
        for pods in (gone_for_good, staying):
            ways = (pods, [pod for pod in pods if pod.uid in self._on_nearest_card()])
            found = (find_eviction(self.without, some, gone=self.ending) for some in ways)
            if evictions := [eviction for eviction in found if eviction]:
                return min(evictions, key=lambda eviction: (len(eviction.victims), self._freed(eviction)))
        return None

    def _on_nearest_card(self) -> set[str]:
        asked = self.situation.request.resources[0]
        miss = nearest_card(self.name, self.without.ledger, asked)
        return {share.uid for share in miss.holders} if miss else set()

    def _freed(self, eviction: Eviction) -> int:
        return sum(sum(self.units(pod).values()) for pod in eviction.victims)

    def units(self, pod: BoundPod) -> dict[ResourceClass, int]:
        """Returns what the pod has of the node's cards, by the class that each card serves."""
        units: Counter[ResourceClass] = Counter()
        for card in self.without.ledger.cards():
            resource = self.without.ledger.lock_of(card.uuid) or self.situation.request.resources[0].resource
            shares = self.without.ledger.shares(card.uuid)
            units[resource] += sum(share.units for share in shares if share.uid == pod.uid)
        return {resource: held for resource, held in units.items() if held}

    def cards_after(self, eviction: Eviction) -> str:
        gone = {pod.uid for pod in eviction.victims} | self.ending
        return cards_text(chosen_cards(self.without.ledger, self.situation.request, gone=gone))

    def victims_text(self, victims: Sequence[BoundPod]) -> str:
        shown = [f"{pod.pod} ({self._units_text(pod)}, priority {pod.priority})" for pod in victims]
        return listed(shown)

    def _units_text(self, pod: BoundPod) -> str:
        held = (amount(units, resource) for resource, units in self.units(pod).items())
        return " and ".join(held) or "no cards"


def evictions(situation: PodSituation) -> Iterator[Remedy]:
    nodes = [*_nodes(situation)]
    if waited := next((node for node in nodes if node.without.fits(node.ending)), None):
        yield _ending(waited)
        return
    below = situation.kube_pod.priority
    offered = [node for node in nodes if node.is_offered]
    evicting = [node for node in offered if node.may_evict]
    ways = (_cheapest((node, node.allowed(below=below)) for node in some) for some in (evicting, offered))
    if found := next(filter(None, ways), None):
        yield from _preemption(*found)
    elif found := _cheapest((node, node.any_at_all()) for node in nodes):
        yield from _by_hand(*found)
        yield from _higher_priority(offered, found)
    elif nodes:
        yield Remedy(
            code="PodsGone",
            helps=False,
            sentence=(
                f"Deleting pods: on {listed([node.name for node in nodes])} pods are in the way that the API"
                " server no longer has; their kubelet has to release their units."
            ),
        )
    elif _is_too_small(unfit_nodes(situation).values()):
        yield Remedy(
            code="PodsGone",
            helps=False,
            sentence="Deleting pods, or a higher priority: it would not fit if all other pods were gone.",
        )


def _is_too_small(reasons: Collection[UnfitReason]) -> bool:
    """Whether there are too small cards, and no others that it would fit without their pods."""
    kinds = {reason.kind for reason in reasons}
    return Refusal.CARDS_TOO_SMALL in kinds and not any(reason.resolvable for reason in reasons)


def _nodes(situation: PodSituation) -> Iterator[NodeInTheWay]:
    for name, pods in situation.neighbours.items():
        if ledger := situation.ledger.node(name):
            yield NodeInTheWay(situation, NodeWithout(name, ledger, situation.request), pods)


def _cheapest(
    found: Iterator[tuple[NodeInTheWay, Eviction | None]],
) -> tuple[NodeInTheWay, Eviction] | None:
    some = [(node, eviction) for node, eviction in found if eviction is not None]
    return min(some, key=lambda pair: pair[1].cost, default=None)


def _ending(node: NodeInTheWay) -> Remedy:
    names = listed([str(pod.pod) for pod in node.pods if pod.is_terminating])
    cards = cards_text(chosen_cards(node.without.ledger, node.situation.request, gone=node.ending))
    return Remedy(
        code="EndingPods",
        helps=True,
        nodes=[node.name],
        pods=[str(pod.pod) for pod in node.pods if pod.is_terminating],
        sentence=f"Wait: {names} on {node.name} is ending, and leaves room on {cards}.",
    )


def _preemption(node: NodeInTheWay, eviction: Eviction) -> Iterator[Remedy]:
    """Others have a lower priority: they are evicted, unless somebody forbids it."""
    victims, pod = node.victims_text(eviction.victims), node.situation.kube_pod
    after = f"on {node.name}, which makes room on {node.cards_after(eviction)}"
    if node.situation.budgets is None:
        after += " (unless a PodDisruptionBudget forbids it, which cannot be known)"
    if pod.spec.preemption_policy == "Never":
        sentence = (
            "A PriorityClass with preemptionPolicy PreemptLowerPriority in place of Never: it would have"
            f" {victims} evicted {after}."
        )
        yield Remedy(code="PreemptionPolicy", helps=True, **_of(node, eviction), sentence=sentence)
        return
    if not node.may_evict:
        yield _preemption_off(node, eviction, f"it would have {victims} evicted {after}")
        return
    first = "Wait" if node.situation.exists else "Create it"
    yield Remedy(
        code="Preemption",
        helps=True,
        **_of(node, eviction),
        sentence=(
            f"{first}: by its priority {pod.priority} it has {victims} evicted {after}; that takes"
            f" {max((victim.grace for victim in eviction.victims), default=0)} s at most once it has begun."
        ),
    )


def _of(node: NodeInTheWay, eviction: Eviction) -> dict[str, Any]:
    """Returns where, and who goes, for programs."""
    return {"nodes": [node.name], "pods": [str(pod.pod) for pod in eviction.victims]}


def _preemption_off(node: NodeInTheWay, eviction: Eviction, effect: str) -> Remedy:
    observed = node.situation.share_nodes.get(node.name)
    policy = observed.spec.policy if observed else "of that node"
    body = '{"spec":{"placement":{"preemption":"Enabled"}}}'
    return Remedy(
        code="PreemptionDisabled",
        helps=True,
        **_of(node, eviction),
        sentence=f"placement.preemption Enabled in policy {policy}, where it is Disabled: {effect}.",
        commands=[f"kubectl patch gpusharepolicy {policy} --type=merge -p '{body}'"] if observed else [],
    )


def _by_hand(node: NodeInTheWay, eviction: Eviction) -> Iterator[Remedy]:
    victims = eviction.victims
    reasons = [*_why_not_evicted(node, victims)]
    where = f"{node.name} {node.cards_after(eviction)}"
    why = f" Not evicted for it: {'; '.join(reasons)}." if reasons else ""
    stay_gone = not any(pod.comes_back for pod in victims)
    yield Remedy(
        code="PodsGone",
        helps=stay_gone,
        **_of(node, eviction),
        sentence=f"Without {node.victims_text(victims)} it would fit {where}.{why}",
        commands=[
            f"kubectl delete pod -n {pod.pod.namespace} {pod.pod.name}"
            for pod in victims[:MAX_COMMANDS]
            if stay_gone
        ],
    )


def _higher_priority(
    nodes: Sequence[NodeInTheWay], by_hand: tuple[NodeInTheWay, Eviction]
) -> Iterator[Remedy]:
    """Tries what a priority above that of all others would bring."""
    evicting = [node for node in nodes if node.may_evict]
    pod = by_hand[0].situation.kube_pod
    if not evicting or pod.spec.preemption_policy == "Never":
        return
    found = _cheapest((node, node.allowed(below=ABOVE_ALL)) for node in evicting)
    if found is None:
        highest = max((victim.priority for victim in by_hand[1].victims), default=0)
        if highest >= pod.priority:
            yield Remedy(
                code="HigherPriority",
                helps=False,
                sentence=f"A priority above {highest}: nothing that may be evicted makes room.",
            )
        return
    node, eviction = found
    highest = max(victim.priority for victim in eviction.victims)
    if highest < pod.priority:
        return
    yield Remedy(
        code="HigherPriority",
        helps=True,
        **_of(node, eviction),
        sentence=(
            f"A priority above {highest} (it has {pod.priority}): then pods such as"
            f" {listed([str(victim.pod) for victim in eviction.victims])} would be evicted for it."
        ),
        commands=["kubectl get priorityclasses"],
    )


def _why_not_evicted(node: NodeInTheWay, victims: Sequence[BoundPod]) -> Iterator[str]:
    if not node.is_offered:
        yield "for pods of another class nobody is evicted in mode Mixed"
    own = node.situation.kube_pod.priority
    equal = [str(pod.pod) for pod in victims if pod.priority >= own]
    if equal:
        yield f"the priority of {listed(equal)} is not below its own, {own}"
    back = [str(pod.pod) for pod in victims if pod.comes_back]
    if back:
        yield f"{listed(back)} would run there again at once (of a DaemonSet, or static)"
    budgets = node.situation.budgets
    if budgets is None:
        yield "whether a PodDisruptionBudget protects them cannot be known"
    elif protected := violating(victims, budgets):
        names = [
            f"{budget.metadata.namespace}/{budget.metadata.name}"
            for budget in budgets
            if any(budget.counts(pod) for pod in protected)
        ]
        yield f"PodDisruptionBudget {listed(names)} protects {listed([str(pod.pod) for pod in protected])}"
