"""Why a pod waits, or why it runs where it runs: from the facts to what is said of them."""

import re

from msgspec.structs import replace

from gpushare_cli.decide.objects.pod_status import status_of
from gpushare_cli.decide.why.asked import served_resources
from gpushare_cli.decide.why.asks import resource_asks
from gpushare_cli.decide.why.attempts import attempts_of, words_of
from gpushare_cli.decide.why.causes.admission import REFUSES
from gpushare_cli.decide.why.causes.cards import CARDS_FIT
from gpushare_cli.decide.why.causes.quota import QUOTA_EXCEEDED
from gpushare_cli.decide.why.causes.resources import nodes_with_all
from gpushare_cli.decide.why.causes.table import CAUSES
from gpushare_cli.decide.why.cluster_facts import NODES
from gpushare_cli.decide.why.explanation import PodExplanation, WhyState
from gpushare_cli.decide.why.finding import Finding, Remedy
from gpushare_cli.decide.why.nearest import fitting_nodes
from gpushare_cli.decide.why.remedies.smaller_request import smaller_request
from gpushare_cli.decide.why.remedies.table import REMEDIES
from gpushare_cli.decide.why.running.placed import placed
from gpushare_cli.decide.why.situation import SHARE_NODES_NAME, PodSituation
from gpushare_cli.decide.why.words import seconds_text
from gpushare_cli.wording import listed


def explain(situation: PodSituation) -> PodExplanation:
    if situation.node or status_of(situation.pod).has_ended:
        return placed(situation)
    return _waiting(situation)


def _waiting(situation: PodSituation) -> PodExplanation:
    findings = sorted(
        (finding for cause in CAUSES for finding in cause(situation)),
        key=lambda finding: not finding.is_decisive,
    )
    state = _state(situation, findings)
    if state is WhyState.FITS and situation.exists:
        findings = [_with_hope(finding) for finding in findings]
    is_kept_out = any(finding.code == QUOTA_EXCEEDED for finding in findings)
    is_stuck = state is WhyState.WAITING and bool(situation.request.resources) and not is_kept_out
    return PodExplanation(
        namespace=situation.namespace,
        name=situation.name,
        uid=situation.kube_pod.metadata.uid,
        exists=situation.exists,
        state=state,
        answer=_answer(situation, state, findings),
        asks=resource_asks(situation),
        attempts=attempts_of(situation),
        findings=findings,
        remedies=_remedies(situation) if is_stuck else [],
        words=words_of(situation),
        unread={**situation.unread, **situation.cluster.unread},
    )


def _with_hope(finding: Finding) -> Finding:
    again = "A scheduler tries it again by itself, at the latest 5 minutes after the last time."
    return replace(finding, advice=[*finding.advice, again]) if finding.code == CARDS_FIT else finding


def _remedies(situation: PodSituation) -> list[Remedy]:
    """Of a pod that no node takes, whatever is free, only the pod itself is to be changed. Where cards have
    room, or no node serves what is asked for, nothing about cards helps."""
    served = served_resources(situation)
    if fitting_nodes(situation) or any(asked.name not in served for asked in situation.request.resources):
        return []
    if situation.is_impossible:
        return [remedy for remedy in smaller_request(situation) if remedy.helps]
    return [remedy for way in REMEDIES for remedy in way(situation)]


def _state(situation: PodSituation, findings: list[Finding]) -> WhyState:
    is_known = SHARE_NODES_NAME not in situation.unread
    if any(finding.is_decisive for finding in findings):
        return WhyState.WAITING
    if not is_known:
        return WhyState.UNKNOWN
    return WhyState.FITS if fitting_nodes(situation) else WhyState.WAITING


def _answer(situation: PodSituation, state: WhyState, findings: list[Finding]) -> str:
    subject = f"Pod {situation.namespace}/{situation.name}"
    if state is WhyState.UNKNOWN:
        return f"{subject} waits for an unknown reason: the GPUShareNodes cannot be read."
    if state is WhyState.FITS:
        return _fits(subject, situation)
    waits = f"{subject} waits{_since(situation)}" if situation.exists else f"{subject} would wait"
    if situation.cluster.refusal:
        waits = f"{subject} is refused by the API server"
    decisive = next((finding.sentence for finding in findings if finding.is_decisive), "")
    if decisive:
        return f"{waits}: {_continued(decisive.removeprefix(REFUSES))}"
    if not situation.request.resources:
        part = "asks for no shared cards: gpushare has no part in"
        return f"{waits}. It {part} that." if situation.exists else f"{subject} {part} where it runs."
    return f"{waits}: no node that it may go to shares cards."


def _since(situation: PodSituation) -> str:
    attempts = attempts_of(situation)
    return f" for {seconds_text(attempts.seconds)}" if attempts and attempts.since else ""


def _fits(subject: str, situation: PodSituation) -> str:
    nodes = listed(nodes_with_all(situation))
    if NODES in situation.cluster.unread:
        nodes += "; whether taints and selectors let it there cannot be known"
    if not situation.exists:
        return f"{subject} would get its cards now, on {nodes}."
    return f"{subject} waits{_since(situation)}, and its cards are there now, on {nodes}."


def _continued(sentence: str) -> str:
    """Returns ``sentence`` as what follows a colon. Names keep their case."""
    return sentence[:1].lower() + sentence[1:] if _BEGINNING.match(sentence) else sentence


_BEGINNING = re.compile(r"(An?|All|Cards?|Its?|No|Nodes?|Node\(s\)|Insufficient|Container|Fewer|Each|The) ")
