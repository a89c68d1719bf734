"""Which versions run, as they themselves say."""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from msgspec import Struct

from gpushare_cli.decide.objects.installed import ProgramPod
from gpushare_cli.decide.problems.facts import StatusFacts, UnreadPart
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.report import CommandReport, ExitStatus
from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.text.whole_number import whole_number

CLIENT, OPERATOR, PLUGIN, EXTENDER = "client", "operator", "plugin", "extender"
SCHEDULER, HOSTCTL = "scheduler", "hostctl"
_COMPONENTS = (OPERATOR, EXTENDER, SCHEDULER)
"""Component labels of pods that name the program in them."""


class ProgramVersion(Struct, frozen=True, kw_only=True, rename="camel"):
    program: str
    version: str
    count: int | None = 1
    """Of pods, nodes, or hosts; None: not known."""


class VersionReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "VersionReport"
    client: str
    kubernetes: str
    """As the API server says it: such as ``v1.36.3``; empty: not known."""
    programs: tuple[ProgramVersion, ...] = ()
    """Those in the cluster."""
    problems: tuple[StatusProblem, ...] = ()
    """What does not fit together, and what may be surprising."""
    unread: tuple[UnreadPart, ...] = ()

    @property
    def exit_status(self) -> ExitStatus:
        if any(problem.severity is not Severity.NOTE for problem in self.problems):
            return ExitStatus.NO
        return ExitStatus.CANNOT_LOOK if self.unread else ExitStatus.GOOD


def program_versions(facts: StatusFacts) -> tuple[ProgramVersion, ...]:
    """Returns them in the order of programs, the most frequent version of each first."""
    running = Counter(
        (_program(pod), pod.metadata.version or UNKNOWN)
        for pod in facts.pods
        if pod.metadata.component in _COMPONENTS and not pod.is_over
    )
    if facts.deployment is not None and not any(program == OPERATOR for program, _ in running):
        running[OPERATOR, facts.deployment.metadata.version or UNKNOWN] = 0
    running.update((PLUGIN, node.status.plugin_version or UNKNOWN) for node in facts.nodes or ())
    found = [
        ProgramVersion(program=program, version=version, count=count)
        for (program, version), count in running.items()
    ]
    order = (OPERATOR, PLUGIN, EXTENDER, SCHEDULER, HOSTCTL)
    found += _hostctl(facts)
    return tuple(sorted(found, key=lambda row: (order.index(row.program), -(row.count or 0), row.version)))


def _program(pod: ProgramPod) -> str:
    """With engine Extender a second kube-scheduler is Kubernetes' own, with our extender in its pod."""
    return EXTENDER if pod.runs_extender else pod.metadata.component


def _hostctl(facts: StatusFacts) -> Iterable[ProgramVersion]:
    """As policies say it: what ran last on each host. All policies say the same."""
    texts = (policy.status.versions.hostctl for policy in facts.policies or ())
    text = next(filter(None, texts), "")
    for part in filter(None, text.split(", ")):
        version, _, count = part.partition(" (")
        yield ProgramVersion(program=HOSTCTL, version=version, count=whole_number(count.rstrip(")")) or None)
