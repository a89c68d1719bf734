"""Which admission policies the API server serves, and in which version."""

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.distributions import recommended_backend
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_core.api.enums import Backend

VALIDATING = "validatingadmissionpolicies"
MUTATING = "mutatingadmissionpolicies"
STABLE = "v1"
"""The version that our manifests are written in."""
PREFERENCE = (STABLE, "v1beta1", "v1alpha1")


def admission_answer(facts: PreflightFacts) -> PreflightAnswer:
    validating, mutating = _version(facts, VALIDATING), _version(facts, MUTATING)
    found = (
        f"ValidatingAdmissionPolicy {validating or 'is not served'},"
        f" MutatingAdmissionPolicy {mutating or 'is not served'}"
    )
    if validating != STABLE:
        return PreflightAnswer(
            verdict=Verdict.MISSING,
            found=found,
            to_do="Have the API server serve ValidatingAdmissionPolicy v1: gpushare's manifests need it.",
            command="kubectl api-resources --api-group=admissionregistration.k8s.io",
        )
    if mutating == STABLE:
        return PreflightAnswer(verdict=Verdict.OK, found=found)
    if recommended_backend(facts) is not Backend.DEDICATED:
        return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; only backend Dedicated uses the latter")
    if mutating:
        return PreflightAnswer(
            verdict=Verdict.NOTE,
            found=found,
            to_do=f"For backend Dedicated write {mutating} instead of v1 in manifests/dedicated/pods.yaml.",
        )
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=found,
        to_do="With backend Dedicated, pods that ask for cards have to say schedulerName: gpushare-scheduler"
        " themselves; install it without pods.yaml.",
        command="kubectl apply -k manifests/dedicated/scheduler/",
    )


def _version(facts: PreflightFacts, kind: str) -> str:
    return next((version for version in PREFERENCE if kind in facts.admission.get(version, ())), "")
