"""Whether gpushare is installed, and its operator at work."""

from collections.abc import Iterator
from datetime import timedelta

from gpushare_cli.decide.problems.facts import OPERATOR_DEPLOYMENT, OPERATOR_LEASE, PROGRAM_PODS, StatusFacts
from gpushare_cli.decide.problems.problem import NAME, Severity, StatusProblem
from gpushare_cli.wording import age_text
from gpushare_core.api.plugin_heartbeat import SILENT_SECONDS

INSTALL = "kubectl apply -k manifests/"
CLOCKS_DIFFER = timedelta(seconds=30)
"""A client's clock may be wrong by so much before it says that a Lease has run out."""
OPERATOR_PODS = "kubectl -n {namespace} get pods -l app.kubernetes.io/component=operator"
EXTENDER = "extender"


def installation_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    yield from _missing_kinds(facts)
    yield from _operator(facts)
    yield from _extenders(facts)
    yield from _silent_plugins(facts)


def is_operator_at_work(facts: StatusFacts) -> bool:
    return facts.lease is not None and facts.lease.is_held(facts.now, CLOCKS_DIFFER)


def is_operator_away(facts: StatusFacts) -> bool:
    """Whether it is known that what policies say is old."""
    is_scaled_away = facts.deployment is not None and not facts.deployment.spec.replicas
    return is_scaled_away or (facts.has_read(OPERATOR_LEASE) and not is_operator_at_work(facts))


def _cluster(
    *, reason: str, sentence: str, command: str, detail: str = "", severity: Severity = Severity.ERROR
) -> StatusProblem:
    return StatusProblem(
        severity=severity, reason=reason, kind="cluster", sentence=sentence, detail=detail, command=command
    )


def _missing_kinds(facts: StatusFacts) -> Iterator[StatusProblem]:
    if facts.policies is None:
        sentence = "gpushare is not installed here: the API server knows no GPUSharePolicy"
        yield _cluster(reason="NotInstalled", sentence=sentence, command=INSTALL)
    elif facts.nodes is None:
        sentence = "the API server knows no GPUShareNode, only GPUSharePolicies: apply the CRDs again"
        yield _cluster(reason="KindMissing", sentence=sentence, command=INSTALL)


def _operator(facts: StatusFacts) -> Iterator[StatusProblem]:
    if facts.policies is None:
        return
    deployment = facts.deployment
    if deployment is None and facts.has_read(OPERATOR_DEPLOYMENT):
        sentence = "no operator is installed: nothing that policies ask for is done"
        yield _cluster(reason="OperatorMissing", sentence=sentence, command=INSTALL)
    elif deployment is not None and deployment.spec.replicas == 0:
        yield _cluster(
            reason="OperatorScaledDown",
            sentence="the operator is scaled to 0: policies have no effect, and what they say is old",
            command=f"kubectl -n {facts.namespace} scale deployment/{deployment.metadata.name} --replicas=2",
        )
    elif deployment is not None and deployment.status.ready_replicas == 0:
        yield _cluster(
            reason="OperatorNotReady",
            sentence="no operator is Ready: policies have no effect, and what they say is old",
            detail=_trouble(facts, "operator"),
            command=OPERATOR_PODS.replace("{namespace}", facts.namespace),
        )
    else:
        yield from _leader(facts)


def _trouble(facts: StatusFacts, component: str) -> str:
    pods = (pod for pod in facts.pods if pod.metadata.component == component and not pod.is_ready)
    return next((f"pod {pod.metadata.name}: {pod.trouble}" for pod in pods), "")


def _leader(facts: StatusFacts) -> Iterator[StatusProblem]:
    if not is_operator_away(facts):
        return
    renewed = facts.lease.renewed if facts.lease else None
    since = f": its Lease was renewed last {age_text(facts.now - renewed)} ago" if renewed else ""
    yield _cluster(
        reason="NoOperatorAtWork",
        sentence=f"no operator is at work{since}, if the clock here is right",
        detail=_trouble(facts, "operator"),
        command=f"kubectl -n {facts.namespace} logs deployment/gpushare-operator --all-pods --tail=20",
    )


def _extenders(facts: StatusFacts) -> Iterator[StatusProblem]:
    if not facts.has_read(PROGRAM_PODS):
        return
    for pod in facts.pods:
        if pod.metadata.component == EXTENDER and not (pod.is_ready or pod.is_over):
            yield StatusProblem(
                severity=Severity.ERROR,
                reason="ExtenderNotReady",
                kind="pod",
                names=(f"{pod.metadata.namespace}/{pod.metadata.name}",),
                sentence="the extender is not Ready: pods that ask for units wait",
                detail=pod.trouble,
                command=f"kubectl -n {facts.namespace} describe pods -l app.kubernetes.io/component=extender",
            )


def _silent_plugins(facts: StatusFacts) -> Iterator[StatusProblem]:
    """The operator looks after these while it is at work."""
    latest = timedelta(seconds=SILENT_SECONDS) + CLOCKS_DIFFER
    for node in facts.nodes or ():
        lease = facts.heartbeats.get(node.name)
        if lease and lease.renewed and facts.now - lease.renewed > latest:
            yield StatusProblem(
                severity=Severity.ERROR,
                reason="PluginSilent",
                kind="node",
                names=(node.name,),
                policy=node.policy,
                sentence="the plugin does not report, and no operator notices",
                detail=f"it last reported {age_text(facts.now - lease.renewed)} ago",
                command=f"kubectl -n {facts.namespace} get pods --field-selector spec.nodeName={NAME}",
            )
