"""Versions that do not fit together. Source: ``docs/upgrade.md``: any program may be one release older or
newer than the others."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.decide.version import CLIENT, HOSTCTL, OPERATOR, PLUGIN, ProgramVersion, program_versions
from gpushare_cli.wording import counted
from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.kubernetes_minors import RANGE, KubernetesSupport, support_of
from gpushare_core.text.whole_number import whole_number

_RELEASE = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})")
_APPLY = "kubectl apply -k manifests/"


class Release(NamedTuple):
    """A version without what changes nothing about how programs fit together."""

    major: int
    minor: int


def release_of(version: str) -> Release | None:
    """
    >>> release_of("0.2.1"), release_of("v1.36.3"), release_of("main")
    (Release(major=0, minor=2), Release(major=1, minor=36), None)
    """
    found = _RELEASE.match(version)
    return Release(whole_number(found[1]), whole_number(found[2])) if found else None


def skew_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    yield from _kubernetes(facts)
    programs = program_versions(facts)
    operators = [row for row in programs if row.program == OPERATOR]
    if operators:
        ours = operators[0].version
        client = ProgramVersion(program=CLIENT, version=facts.client_version)
        for row in (*operators[1:], *programs[len(operators) :], client):
            yield from _beside_operator(row, ours)


def _kubernetes(facts: StatusFacts) -> Iterator[StatusProblem]:
    match support_of(facts.kubernetes):
        case KubernetesSupport.TOO_OLD:
            text = f"Kubernetes {facts.kubernetes} is too old: gpushare needs {RANGE}"
            yield _problem(Severity.ERROR, "KubernetesTooOld", text, "kubectl version")
        case KubernetesSupport.NOT_TESTED:
            text = f"Kubernetes {facts.kubernetes} is newer than what gpushare was tested with: {RANGE}"
            yield _problem(Severity.NOTE, "KubernetesNotTested", text, "kubectl version")


def _beside_operator(row: ProgramVersion, operator: str) -> Iterator[StatusProblem]:
    if row.version == operator or UNKNOWN in (row.version, operator):
        return  # a program that has not answered is a problem of its own
    one, other = release_of(row.version), release_of(operator)
    who = _who(row)
    if one is None or other is None:
        text = f"{who} of version {row.version}, the operator of {operator}: whether they fit is not known"
        yield _problem(Severity.NOTE, "VersionUnknown", text, "kubectl gpushare version")
    elif one.major != other.major or abs(one.minor - other.minor) > 1:
        text = f"{who} of version {row.version}, more than one release from the operator's {operator}"
        yield _problem(Severity.ERROR, "VersionSkew", text, _cure(row, operator))
    elif row.program != HOSTCTL:
        text = f"{who} of version {row.version}, the operator of {operator}: they fit, as during an upgrade"
        yield _problem(Severity.NOTE, "VersionsDiffer", text, _cure(row, operator))


def _who(row: ProgramVersion) -> str:
    if row.program == CLIENT:
        return "this client is"
    if row.program == PLUGIN:
        return f"the plugins of {counted(row.count or 0, 'node')} are"
    return f"{row.program} is" if row.program == HOSTCTL else f"the {row.program} is"


def _cure(row: ProgramVersion, operator: str) -> str:
    if row.program == CLIENT:
        return f"pipx install --force kubectl-gpushare=={operator}"
    return f"{_APPLY}   # of the version that all shall have; see docs/upgrade.md"


def _problem(severity: Severity, reason: str, sentence: str, command: str) -> StatusProblem:
    return StatusProblem(severity=severity, reason=reason, kind="cluster", sentence=sentence, command=command)
