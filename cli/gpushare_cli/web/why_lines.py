"""``why`` of a pod as the page shows it: the lines of the command's own view, each with what it is."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Raw, Struct
from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.why.explain import explain
from gpushare_cli.gather.why.pods import PodFinder
from gpushare_cli.gather.why.situation import read_situation
from gpushare_cli.output.lines import Paragraph, WholeLine
from gpushare_cli.output.page import OutputPage
from gpushare_cli.views.why import STEP, why_view
from gpushare_core.kube.client import KubeClient

PAGE = OutputPage(width=100)


class LineKind(StrEnum):
    HEADING = "heading"
    SENTENCE = "sentence"
    COMMAND = "command"


class WhyLine(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    kind: LineKind
    text: str
    indent: int = 0
    """Steps to the right."""


class WhyAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str
    name: str
    state: str
    """A ``WhyState``."""
    answer: str
    lines: list[WhyLine]
    """Below the answer."""


async def why_answer(
    client: KubeClient, namespace: str, name: str, *, now: datetime, share_nodes: Mapping[str, Raw] | None
) -> WhyAnswer:
    """``share_nodes``: by name, as the watch of the page has them; None: they are read.

    Raises ``CannotLookError`` where there is no such pod.
    """
    subject = await PodFinder(client=client, namespace=namespace).find([f"pod/{name}"], None)
    situation = await read_situation(client, subject.pod, exists=True, now=now, share_nodes=share_nodes)
    report = explain(situation)
    lines = [line for part in why_view(report, PAGE) if (line := _line(part)) is not None]
    return WhyAnswer(
        namespace=report.namespace,
        name=report.name,
        state=report.state,
        answer=report.answer,
        lines=lines[1:],
    )


def _line(part: RenderableType) -> WhyLine | None:
    if isinstance(part, WholeLine):
        text = part.text.strip()
        return WhyLine(kind=LineKind.COMMAND, text=text, indent=_steps(part.text.index(text)))
    if isinstance(part, Paragraph):
        return WhyLine(kind=LineKind.SENTENCE, text=part.text.plain, indent=_steps(part.indent))
    if isinstance(part, Text):
        return WhyLine(kind=LineKind.HEADING, text=part.plain)
    return None


def _steps(columns: int) -> int:
    return max(0, columns // STEP - 1)
