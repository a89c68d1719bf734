"""All questions of a preflight, in the order in which people read them, and the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from gpushare_cli.decide.preflight import facts as parts
from gpushare_cli.decide.preflight.admission import admission_answer
from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.cards import card_nodes, cards_answer, driver_answer, runtime_class_answer
from gpushare_cli.decide.preflight.distributions import distribution_answer, recognized, recommended_backend
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.installation import (
    installed_answer,
    namespace_answer,
    rights_answer,
)
from gpushare_cli.decide.preflight.machines import cgroups_answer, runtimes_answer, systems_answer
from gpushare_cli.decide.preflight.other_plugins import other_plugins_answer
from gpushare_cli.decide.preflight.scheduler import scheduler_answer
from gpushare_cli.decide.preflight.versions import kubelets_answer, server_answer
from gpushare_cli.decide.problems.facts import KUBERNETES, OPERATOR_DEPLOYMENT, UnreadPart
from gpushare_cli.report import CommandReport, ExitStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightQuestion:
    name: str
    needs: tuple[str, ...]
    """Parts without which the answer is not known."""
    answer: Callable[[PreflightFacts], PreflightAnswer]


QUESTIONS: Sequence[PreflightQuestion] = (
    PreflightQuestion(name="Kubernetes", needs=(KUBERNETES,), answer=server_answer),
    PreflightQuestion(name="kubelets", needs=(parts.NODES,), answer=kubelets_answer),
    PreflightQuestion(name="distribution", needs=(parts.NODES, parts.SCHEDULERS), answer=distribution_answer),
    PreflightQuestion(name="kube-scheduler", needs=(parts.NODES, parts.SCHEDULERS), answer=scheduler_answer),
    PreflightQuestion(name="admission", needs=(parts.ADMISSION_KINDS,), answer=admission_answer),
    PreflightQuestion(name="runtimes", needs=(parts.NODES,), answer=runtimes_answer),
    PreflightQuestion(name="systems", needs=(parts.NODES,), answer=systems_answer),
    PreflightQuestion(name="cgroups", needs=(parts.NODES,), answer=cgroups_answer),
    PreflightQuestion(name="cards", needs=(parts.NODES,), answer=cards_answer),
    PreflightQuestion(name="driver", needs=(parts.NODES,), answer=driver_answer),
    PreflightQuestion(name="RuntimeClass", needs=(parts.RUNTIME_CLASSES,), answer=runtime_class_answer),
    PreflightQuestion(
        name="other plugins", needs=(parts.NODES, parts.DAEMON_SETS), answer=other_plugins_answer
    ),
    PreflightQuestion(name="gpushare", needs=(parts.OWN_KINDS, OPERATOR_DEPLOYMENT), answer=installed_answer),
    PreflightQuestion(
        name="namespace", needs=(parts.OWN_NAMESPACE, parts.OWN_QUOTAS), answer=namespace_answer
    ),
    PreflightQuestion(name="rights", needs=(parts.RIGHTS,), answer=rights_answer),
)


class PreflightReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "PreflightReport"
    is_installed: bool
    kubernetes: str
    """As the API server says it: such as ``v1.36.3``; empty: not known."""
    distribution: str
    """Empty: not recognized."""
    recommended_backend: str
    """Empty: not known, because nodes or pods of kube-scheduler could not be read."""
    nodes: int
    card_nodes: tuple[str, ...] = ()
    """Nodes that are known to have cards of NVIDIA's."""
    answers: tuple[PreflightAnswer, ...] = ()
    unread: tuple[UnreadPart, ...] = ()

    @property
    def names(self) -> list[str]:
        return [f"node/{name}" for name in self.card_nodes]

    @property
    def exit_status(self) -> ExitStatus:
        if self.of(Verdict.MISSING):
            return ExitStatus.NO
        return ExitStatus.CANNOT_LOOK if self.unread else ExitStatus.GOOD

    def of(self, verdict: Verdict) -> list[PreflightAnswer]:
        return [answer for answer in self.answers if answer.verdict is verdict]


def preflight_report(facts: PreflightFacts) -> PreflightReport:
    unread = {part.part for part in facts.unread}
    knows_control_plane = not unread & {parts.NODES, parts.SCHEDULERS}
    found = recognized(facts) if knows_control_plane else None
    return PreflightReport(
        is_installed=facts.own.is_whole,
        kubernetes=facts.kubernetes,
        distribution=found.distribution.name if found else "",
        recommended_backend=recommended_backend(facts) if knows_control_plane else "",
        nodes=len(facts.nodes),
        card_nodes=tuple(node.name for node in card_nodes(facts)),
        answers=tuple(_answer(question, facts, unread) for question in QUESTIONS),
        unread=tuple(facts.unread),
    )


def _answer(question: PreflightQuestion, facts: PreflightFacts, unread: set[str]) -> PreflightAnswer:
    lacking = [part for part in question.needs if part in unread]
    if lacking:
        found = f"{', '.join(lacking)} could not be read"
        return PreflightAnswer(question=question.name, verdict=Verdict.UNKNOWN, found=found)
    return replace(question.answer(facts), question=question.name)
