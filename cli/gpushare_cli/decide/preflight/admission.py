"""Which admission policies the API server serves, and in which version."""

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.distributions import recommended_backend
from gpushare_cli.decide.preflight.facts import ADMISSION_VERSIONS, MUTATING, VALIDATING, PreflightFacts
from gpushare_core.api.enums import Backend

STABLE = ADMISSION_VERSIONS[0]


def admission_answer(facts: PreflightFacts) -> PreflightAnswer:
    validating, mutating = facts.admission_version(VALIDATING), facts.admission_version(MUTATING)
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
            to_do=f"Write {mutating} before you apply manifests/dedicated/; the chart takes what is served.",
            command=f"sed -i 's#k8s.io/v1$#k8s.io/{mutating}#' manifests/dedicated/pods.yaml",
        )
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=found,
        to_do="With backend Dedicated, pods that ask for cards have to say schedulerName: gpushare-scheduler"
        " themselves.",
    )
