"""Whether gpushare is installed, what its namespace admits, and whether who asks may install it."""

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_core.api.conditions import UNKNOWN

ENFORCE = "pod-security.kubernetes.io/enforce"
PRIVILEGED = "privileged"
OWN_QUOTAS = ("gpushare", "gpushare-hostctl")
"""Of ``manifests/resource-quota.yaml``."""


def installed_answer(facts: PreflightFacts) -> PreflightAnswer:
    own, deployment = facts.own, facts.own.deployment
    if own.has_crds and deployment is not None:
        return PreflightAnswer(
            verdict=Verdict.OK,
            found=f"version {deployment.metadata.version or UNKNOWN} is installed in {own.namespace}",
        )
    if deployment is None and not own.has_crds:
        return PreflightAnswer(
            verdict=Verdict.OK, found="not installed yet: docs/install.md, when nothing is missing"
        )
    lacking = "no operator" if own.has_crds else "no CRDs"
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=f"installed in part: there are {lacking}",
        to_do="Install all of it, or remove the rest: docs/install.md.",
        command="kubectl apply -k manifests/",
    )


def namespace_answer(facts: PreflightFacts) -> PreflightAnswer:
    name, found = facts.own.namespace, facts.own.namespace_object
    if found is None:
        return PreflightAnswer(
            verdict=Verdict.OK, found=f"{name} is not there yet; the installation makes it"
        )
    level = (found.metadata.labels or {}).get(ENFORCE, "")
    if level not in ("", PRIVILEGED):
        return PreflightAnswer(
            verdict=Verdict.MISSING,
            found=f"{name} admits pods of level {level} alone",
            to_do="Let it admit privileged pods: plugins mount folders of their host.",
            command=f"kubectl label namespace {name} {ENFORCE}={PRIVILEGED} --overwrite",
        )
    said = (
        f"admits pods of level {PRIVILEGED}"
        if level
        else "has no level of Pod Security: the cluster's counts"
    )
    others = sorted(
        quota.metadata.name for quota in facts.own.quotas if quota.metadata.name not in OWN_QUOTAS
    )
    if others:
        return PreflightAnswer(
            verdict=Verdict.NOTE,
            found=f"{name} {said}, and has the ResourceQuota {', '.join(others)}",
            to_do="See that it leaves room for a plugin on every node of a policy.",
            command=f"kubectl -n {name} describe resourcequota",
        )
    return PreflightAnswer(verdict=Verdict.OK, found=f"{name} {said}")


def rights_answer(facts: PreflightFacts) -> PreflightAnswer:
    lacking = [right for right, is_allowed in facts.own.rights.items() if not is_allowed]
    if not lacking:
        return PreflightAnswer(verdict=Verdict.OK, found="you may install gpushare")
    found = f"you may not {', '.join(lacking)}"
    if facts.own.has_crds:
        return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; only installing and upgrading takes that")
    return PreflightAnswer(
        verdict=Verdict.MISSING,
        found=found,
        to_do="Ask a cluster administrator to install it, or for these rights.",
        command="kubectl auth can-i --list",
    )
