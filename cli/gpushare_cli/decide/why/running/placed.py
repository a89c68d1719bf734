"""A pod that has a node, or has ended: where it is, on which cards, beside whom, and what keeps it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpushare_cli.decide.ledger import card_uuids
from gpushare_cli.decide.objects.pod_status import ContainerState, KnownStatus, status_of
from gpushare_cli.decide.why.asks import resource_asks
from gpushare_cli.decide.why.attempts import words_of
from gpushare_cli.decide.why.explanation import (
    CardOfPod,
    ContainerWords,
    Neighbour,
    PodExplanation,
    WhyState,
)
from gpushare_cli.decide.why.finding import Finding, decisive
from gpushare_cli.decide.why.running.choice import choice_sentences
from gpushare_cli.decide.why.running.isolation import isolation_sentences
from gpushare_cli.decide.why.situation import SHARE_NODES_NAME, PodSituation
from gpushare_cli.decide.why.words import seconds_since, seconds_text
from gpushare_cli.wording import listed
from gpushare_core.api.enums import MeasurementScope
from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import Meaning
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.ledger.node_sums import Share


def placed(situation: PodSituation) -> PodExplanation:
    status = status_of(situation.pod)
    state = WhyState.RUNNING if status.phase == "Running" else WhyState.BOUND
    state = WhyState.ENDED if status.has_ended else state
    cards = [] if state is WhyState.ENDED else [*held_cards(situation)]
    return PodExplanation(
        namespace=situation.namespace,
        name=situation.name,
        uid=situation.kube_pod.metadata.uid,
        state=state,
        answer=_answer(situation, state, status, cards),
        asks=resource_asks(situation),
        node=situation.node,
        cards=cards,
        choice=choice_sentences(situation, cards) if cards else [],
        isolation=[] if state is WhyState.ENDED else isolation_sentences(situation),
        findings=[*refused_by_kubelet(situation)],
        containers=[*_containers_that_do_not_run(status)],
        words=words_of(situation),
        unread={**situation.unread, **situation.cluster.unread},
    )


def refused_by_kubelet(situation: PodSituation) -> Iterator[Finding]:
    """Source: ``UnexpectedAdmissionError`` of ``k8s.io/kubernetes/pkg/kubelet/cm/devicemanager``."""
    if status_of(situation.pod).reason == "UnexpectedAdmissionError":
        yield decisive(
            "RefusedByKubelet",
            (
                "Its kubelet refused it when it came: its units were not available at that moment, or the"
                " plugin of the node was not registered."
            ),
            "A Deployment or Job makes a new pod by itself; a pod without one has to be created again:",
            f"kubectl delete pod -n {situation.namespace} {situation.name}",
        )


def held_cards(situation: PodSituation) -> Iterator[CardOfPod]:
    """Yields what the pod has of its node's cards: as its annotation and its GPUShareNode say, the larger."""
    uid, node = situation.kube_pod.metadata.uid, situation.ledger.node(situation.node)
    if node is None:
        return
    cards = {card.uuid: card for card in node.cards()}
    for uuid in card_uuids(node):
        shares = sorted(share for share in node.shares(uuid) if share.units)
        units = next((share.units for share in shares if share.uid == uid), 0)
        if units:
            yield _held(situation, node, uuid, units=units, card=cards.get(uuid), shares=shares)


def _held(
    situation: PodSituation,
    node: NodeLedger,
    uuid: str,
    *,
    units: int,
    card: Card | None,
    shares: Sequence[Share],
) -> CardOfPod:
    uid = situation.kube_pod.metadata.uid
    meaning, used = _meaning(situation, node, uuid), _used(situation, uuid)
    return CardOfPod(
        node=situation.node,
        index=card.index if card else None,
        uuid=uuid,
        units=units,
        unit=node.share_node.unit_of(meaning[0]) if node.share_node and meaning else "",
        memory_bytes=_bytes(units, meaning),
        used_bytes=used.get(uid),
        card_units=card.units if card else None,
        free_units=max(0, card.free) if card else None,
        neighbours=[_neighbour(share, used.get(share.uid)) for share in shares if share.uid != uid],
    )


def _neighbour(share: Share, used: int | None) -> Neighbour:
    return Neighbour(namespace=share.namespace, name=share.name, units=share.units, used_bytes=used)


def _meaning(situation: PodSituation, node: NodeLedger, uuid: str) -> Meaning | None:
    """Returns what the pod's units of a card are: by its annotation, else by what the card serves."""
    holder = situation.ledger.holder(situation.kube_pod.metadata.uid)
    if holder and (meaning := holder.meaning_of(uuid)):
        return meaning
    resource = node.lock_of(uuid)
    return node.share_node.meaning_of(resource) if node.share_node and resource else None


def _bytes(units: int, meaning: Meaning | None) -> int | None:
    return units * meaning[1] if meaning and meaning[0] is ResourceClass.MEMORY else None


def _used(situation: PodSituation, uuid: str) -> Mapping[str, int]:
    """Returns pod UID -> bytes in use on the card; nothing where use is not measured by container."""
    observed = situation.share_nodes.get(situation.node)
    if observed is None or observed.spec.measurement.scope != MeasurementScope.CONTAINERS:
        return {}
    used: Counter[str] = Counter()
    for card in observed.cards:
        for share in (card.pods or ()) if card.uuid == uuid else ():
            used[share.uid] += _quantity(share.used_memory)
    return used


def _quantity(text: str) -> int:
    try:
        return parse_memory(text)
    except ValueError:
        return 0


def _answer(situation: PodSituation, state: WhyState, status: KnownStatus, cards: list[CardOfPod]) -> str:
    subject = f"Pod {situation.namespace}/{situation.name}"
    if state is WhyState.ENDED:
        return _ended(subject, status)
    where = f"on {situation.node}{_on_cards(cards)}"
    if not situation.request.resources and not cards:
        where = f"on {situation.node} without shared cards: it asks for none"
    elif not cards and SHARE_NODES_NAME in situation.unread:
        where = f"on {situation.node}; on which card cannot be known without its GPUShareNode"
    elif not cards:
        where = f"on {situation.node}, and neither its annotation nor the GPUShareNode names a card of it"
    if situation.kube_pod.metadata.deletion_timestamp:
        return f"{subject} is ending {where}: what it has is free once its kubelet has released it."
    seconds = seconds_since(status.start_time or "", situation.now)
    since = f" for {seconds_text(seconds)}" if seconds is not None else ""
    if state is WhyState.RUNNING:
        return f"{subject} runs{since} {where}."
    has_not = "started all of its containers" if status.container_statuses else "admitted it"
    return f"{subject} is bound {where}, and its kubelet has not {has_not} yet{since}."


def _on_cards(cards: list[CardOfPod]) -> str:
    names = [str(card.index) if card.index is not None else card.uuid for card in cards]
    return f", card{'s' if len(names) > 1 else ''} {listed(names, 8)}" if names else ""


def _ended(subject: str, status: KnownStatus) -> str:
    if status.phase == "Succeeded":
        return f"{subject} has ended successfully, and holds no card any more."
    why = ": ".join(filter(None, (status.reason, status.message)))
    return f"{subject} has failed, and holds no card any more{f': {why}' if why else ''}."


def _containers_that_do_not_run(status: KnownStatus) -> Iterator[ContainerWords]:
    """Init containers that have ended well are as they should be."""
    for container in status.containers:
        for name, given in (container.state or {}).items():
            state = given or ContainerState()
            if name == "running" or state.reason == "Completed":
                continue
            yield ContainerWords(
                name=container.name, state=name, reason=state.reason or "", message=state.message or ""
            )
