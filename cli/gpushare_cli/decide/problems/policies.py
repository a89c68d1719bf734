"""Conditions of policies that say that something is wrong: a table of their reasons."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.problems.facts import POLICIES, StatusFacts
from gpushare_cli.decide.problems.problem import NAME, Severity, StatusProblem
from gpushare_core.api.conditions import FALSE, TRUE
from gpushare_core.api.enums import Engine

READY, NODES_READY, SCHEDULER_CONFIGURED = "Ready", "NodesReady", "SchedulerConfigured"
CONFLICTED, UNIT_CHANGE_BLOCKED, DEGRADED = "Conflicted", "UnitChangeBlocked", "Degraded"
BOOKS_AGREE = "BooksAgree"
"""Condition types of a GPUSharePolicy. Source: the operator's ``policies/conditions.py``."""
DELETING = "Deleting"
NO_NODE_SHARES = "NoNodeShares"
"""Reason of ``SchedulerConfigured``: no node shares its cards. ``NodesReady`` says why."""

NO_POLICY = """\
kubectl apply -f - <<EOF
apiVersion: gpushare.io/v1alpha1
kind: GPUSharePolicy
metadata: {name: default}
spec:
  memoryUnit: 1Gi
  nodes:
  - selector: {matchLabels: {nvidia.com/gpu.present: "true"}}
    mode: Memory
    devices: {source: NVML}
EOF"""
"""The labels are those of GPU feature discovery. As ``config/samples/nvidia.yaml``."""

_DESCRIBE = f"kubectl describe gpusharepolicy {NAME}"
_EDIT = f"kubectl edit gpusharepolicy {NAME}"
_NODES = "kubectl get nodes --show-labels"
_PROBLEMS = "kubectl gpushare inspect --problems"
_JOBS = "kubectl -n {namespace} get jobs,pods -l app.kubernetes.io/component=hostctl"
_EXTENDERS = "kubectl -n {namespace} get pods -o wide -l app.kubernetes.io/component=extender"
_CONTROL_PLANES = "kubectl get nodes -l node-role.kubernetes.io/control-plane"
_SCHEDULERS = "kubectl -n {namespace} get pods -o wide -l app.kubernetes.io/component=scheduler"
_CALLS = "kubectl -n {namespace} get lease gpushare-extender-calls -o yaml"
_BUDGETS = "kubectl get poddisruptionbudgets -A"
_PLUGINS = f"kubectl -n {{namespace}} rollout status daemonset/gpushare-plugin-{NAME}"


class PolicyRow(NamedTuple):
    severity: Severity
    sentence: str
    command: str


_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

ROWS: Mapping[tuple[str, str], Mapping[str, PolicyRow]] = {
    (NODES_READY, FALSE): {
        "NoNodesSelected": PolicyRow(_ERROR, "it shares no node", _NODES),
        "NodesMissing": PolicyRow(_WARNING, "it names nodes that are not there", "kubectl get nodes"),
        "NodesNotReady": PolicyRow(_ERROR, "not all of its nodes share their cards", _PROBLEMS),
        "PluginsOutdated": PolicyRow(_NOTE, "its plugins are being replaced", _PLUGINS),
        "": PolicyRow(_ERROR, "not all of its nodes share their cards", _DESCRIBE),
    },
    (SCHEDULER_CONFIGURED, FALSE): {
        "ExtenderNotReady": PolicyRow(_ERROR, "the extender is not Ready: pods that ask wait", _EXTENDERS),
        "SchedulerNotReady": PolicyRow(_ERROR, "our own kube-scheduler is not Ready: pods wait", _SCHEDULERS),
        "RightsMissing": PolicyRow(_ERROR, "the operator lacks rights for the scheduler backend", _DESCRIBE),
        "Installing": PolicyRow(_WARNING, "kube-scheduler is being connected", _JOBS),
        "EditingConfigMap": PolicyRow(_WARNING, "Volcano's scheduler is being connected", _DESCRIBE),
        "DisconnectingFormerBackend": PolicyRow(_WARNING, "the former scheduler backend is leaving", _JOBS),
        "NeedsAttention": PolicyRow(_ERROR, "the scheduler is not connected: it needs a person", _JOBS),
        "InstallFailed": PolicyRow(_ERROR, "kube-scheduler could not be connected", _JOBS),
        "ConnectionLost": PolicyRow(_ERROR, "a kube-scheduler has lost its connection", _JOBS),
        "HostsUnlabelled": PolicyRow(_ERROR, "an edited control plane has lost its label", _CONTROL_PLANES),
        "NoControlPlane": PolicyRow(_ERROR, "no node with a kube-scheduler is found", _CONTROL_PLANES),
        "WaitingForCalls": PolicyRow(_ERROR, "no kube-scheduler has called the extender yet", _CALLS),
        "": PolicyRow(_ERROR, "the scheduler is not connected", _DESCRIBE),
    },
    (CONFLICTED, TRUE): {
        "": PolicyRow(_WARNING, "an older policy decides part of it", "kubectl get gpusharepolicies"),
    },
    (UNIT_CHANGE_BLOCKED, TRUE): {
        "": PolicyRow(_WARNING, "what it asks for now waits for pods to end", _PROBLEMS),
    },
    (DEGRADED, TRUE): {
        "InvalidSpec": PolicyRow(_ERROR, "its spec is not valid", _EDIT),
        "UnsupportedMode": PolicyRow(_ERROR, "it asks for what this version does not serve", _EDIT),
        "CardsUnhealthy": PolicyRow(_WARNING, "some of its cards are sick", _PROBLEMS),
        "RulesShadowed": PolicyRow(_WARNING, "some of its rules have no effect", _EDIT),
        "UnitTooFine": PolicyRow(_WARNING, "its unit is too fine for some nodes", _EDIT),
        "CardsOfferedTwice": PolicyRow(_ERROR, "another device plugin gives its cards away, too", _DESCRIBE),
        "PodsNotScheduled": PolicyRow(_WARNING, "no scheduler places some pods", _DESCRIBE),
        "WorkloadsRefused": PolicyRow(_ERROR, "an admission policy refuses programs of gpushare", _DESCRIBE),
        "IsolationNotInForce": PolicyRow(_WARNING, "some containers are not held to their share", _PROBLEMS),
        "EvictionsRefused": PolicyRow(_WARNING, "pods that are to be evicted are protected", _BUDGETS),
        "ChangesContested": PolicyRow(_WARNING, "somebody undoes what the operator writes", _DESCRIBE),
        "PodsRefused": PolicyRow(_ERROR, "the API server refuses pods of gpushare", _DESCRIBE),
        "": PolicyRow(_WARNING, "something is wrong with it", _DESCRIBE),
    },
    (BOOKS_AGREE, FALSE): {
        "": PolicyRow(_WARNING, "records of who holds what differ", "kubectl gpushare audit"),
    },
}
"""Type and status of a condition -> reason -> row; the one without a reason is for all others."""


def policy_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    policies = facts.policies
    if policies is None:
        return
    if not policies and facts.has_read(POLICIES):
        yield StatusProblem(
            severity=Severity.WARNING,
            reason="NoPolicy",
            kind="cluster",
            sentence="there is no GPUSharePolicy, so no card is shared; this one shares NVIDIA's cards",
            command=NO_POLICY,
        )
    for policy in policies:
        found = list(_of_policy(facts, policy))
        yield from found or _unready(policy)


def _waits_for(message: str) -> str:
    """Returns the end of what a policy says that is being deleted: what is still there."""
    _, word, remaining = message.rpartition("still there: ")
    return word + remaining


def _of_policy(facts: StatusFacts, policy: ObservedPolicy) -> Iterator[StatusProblem]:
    if policy.metadata.deletion_timestamp:
        ready = policy.condition(READY)
        row = PolicyRow(Severity.NOTE, "it is being deleted", f"kubectl get gpusharepolicy {NAME} --watch")
        yield _problem(policy, row, DELETING, _waits_for(ready.message if ready else ""))
        return
    if not policy.is_seen:
        row = PolicyRow(_ERROR, "no operator has seen what it asks for now", _DESCRIBE)
        yield _problem(policy, row, "NotSeen", "")
    for condition in policy.status.conditions or ():
        rows = ROWS.get((condition.type, condition.status))
        if rows and condition.reason != NO_NODE_SHARES:
            row = rows.get(condition.reason, rows[""])
            command = row.command.replace("{namespace}", facts.namespace)
            yield _problem(policy, row._replace(command=command), condition.reason, condition.message)
    yield from _engine_fallback(policy)


def _engine_fallback(policy: ObservedPolicy) -> Iterator[StatusProblem]:
    """Where a policy names engine Plugin and the other one places pods. Where it names none, either will do.
    That another policy decides is said in ``Conflicted``."""
    scheduler, conflicted = policy.condition(SCHEDULER_CONFIGURED), policy.condition(CONFLICTED)
    is_fallback = (policy.spec.scheduler.engine, policy.status.engine) == (Engine.PLUGIN, Engine.EXTENDER)
    is_overruled = conflicted is not None and conflicted.status == TRUE
    if is_fallback and not is_overruled and scheduler is not None and scheduler.status == TRUE:
        row = PolicyRow(_NOTE, "engine Extender places pods, not Plugin, which it asks for", _DESCRIBE)
        yield _problem(policy, row, "EngineFallback", scheduler.message)


def _unready(policy: ObservedPolicy) -> Iterator[StatusProblem]:
    """A policy that is not Ready though none of its known conditions says why."""
    ready = policy.condition(READY)
    if ready is None:
        row = PolicyRow(_ERROR, "no operator has reported on it", _DESCRIBE)
        yield _problem(policy, row, "NotReported", "")
    elif ready.status != TRUE:
        yield _problem(policy, PolicyRow(_ERROR, "it is not Ready", _DESCRIBE), ready.reason, ready.message)


def _problem(policy: ObservedPolicy, row: PolicyRow, reason: str, detail: str) -> StatusProblem:
    return StatusProblem(
        severity=row.severity,
        reason=reason,
        kind="policy",
        names=(policy.name,),
        policy=policy.name,
        sentence=row.sentence,
        detail=detail,
        command=row.command,
    )
