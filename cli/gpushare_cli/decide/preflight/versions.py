"""The versions of the API server and of the kubelets."""

from typing import NamedTuple

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.node_groups import grouped_nodes, groups_text, known_answer, places
from gpushare_cli.wording import counted
from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.kubernetes_minors import NEWEST, OLDEST, RANGE, KubernetesSupport, minor_of, support_of

MAX_MINORS_OLDER = 3
"""Of a kubelet. Source: https://kubernetes.io/releases/version-skew-policy/#kubelet"""


def server_answer(facts: PreflightFacts) -> PreflightAnswer:
    version = facts.kubernetes
    match support_of(version):
        case KubernetesSupport.SUPPORTED:
            return PreflightAnswer(verdict=Verdict.OK, found=f"{version}; supported are {RANGE}")
        case KubernetesSupport.TOO_OLD:
            return PreflightAnswer(
                verdict=Verdict.MISSING,
                found=f"{version}, which is older than {OLDEST}",
                to_do=f"Upgrade the cluster: gpushare supports Kubernetes {RANGE}.",
            )
        case KubernetesSupport.NOT_TESTED:
            return PreflightAnswer(
                verdict=Verdict.NOTE,
                found=f"{version}, which is not tested: it is newer than {NEWEST}",
                to_do="Look for a newer gpushare, or try it on a few nodes first.",
            )
        case KubernetesSupport.UNKNOWN:
            return PreflightAnswer(
                verdict=Verdict.UNKNOWN,
                found=f"the API server calls its version {version!r}",
                to_do=f"See that it is one of {RANGE}.",
                command="kubectl version",
            )


def kubelets_answer(facts: PreflightFacts) -> PreflightAnswer:
    groups = grouped_nodes(facts.nodes, lambda node: node.machine.kubelet_version)
    if not groups:
        return PreflightAnswer(verdict=Verdict.NOTE, found="there are no nodes")
    skews = {version: _skew(version, facts.kubernetes) for version in groups}
    found = groups_text({f"{version}{skews[version].remark}": names for version, names in groups.items()})
    wrong = tuple(
        sorted(name for version, names in groups.items() if skews[version].is_wrong for name in names)
    )
    if not wrong:
        return known_answer(found, groups.get(UNKNOWN, ()))
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=found,
        to_do=f"Bring the kubelets of {places(wrong)} to the API server's version.",
        nodes=wrong,
    )


class KubeletSkew(NamedTuple):
    remark: str = ""
    """In brackets; empty where there is nothing to say."""
    is_wrong: bool = False


def _skew(kubelet: str, server: str) -> KubeletSkew:
    ours, theirs = minor_of(kubelet), minor_of(server)
    if kubelet == UNKNOWN:
        return KubeletSkew()
    if ours is None:
        return KubeletSkew(" (not a version)", is_wrong=True)
    if theirs is None:
        return KubeletSkew()
    if ours > theirs:
        return KubeletSkew(" (newer than the API server)", is_wrong=True)
    if ours < OLDEST:
        return KubeletSkew(f" (older than {OLDEST})", is_wrong=True)
    older = theirs.minor - ours.minor
    if not older:
        return KubeletSkew()
    remark = f" ({counted(older, 'minor')} older than the API server)"
    return KubeletSkew(remark, is_wrong=older > MAX_MINORS_OLDER)
