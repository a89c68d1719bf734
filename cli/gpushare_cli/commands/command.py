"""What a command is, and what it is given to run with."""

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gpushare_cli.gather.lists import PodScope
from gpushare_cli.output.printer import View
from gpushare_cli.output.progress import ProgressLine
from gpushare_cli.report import CommandReport
from gpushare_core.kube.client import KubeClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The cluster that a person has chosen, for one run of a command."""

    client: KubeClient
    namespace: str
    """Of ``--namespace``, else of the kubeconfig's context, else ``default``."""
    all_namespaces: bool
    now: Callable[[], datetime]
    progress: ProgressLine
    """For what takes more than a second; shown on a terminal alone."""
    server: str = ""
    """URL of the API server."""
    announce: Callable[[CommandReport], None] = lambda _report: None
    """Prints a report while the command goes on."""

    def pod_scope(self, namespace: str = "") -> PodScope:
        """Returns whose pods to read: those of ``namespace``, empty for all that may be read."""
        return PodScope(namespace=namespace, own=self.namespace)


Find = Callable[[Session, Namespace], Awaitable[CommandReport]]
"""Reads, decides, and does what the command is there to do. Raises ``CannotLookError``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``find`` and ``view`` import what they need when they are called: imports are most of a start."""

    name: str
    summary: str
    """A line, for the list of commands; begins with a verb."""
    description: str
    """Paragraphs: what the command answers, what it does not, and exit statuses of its own."""
    examples: Sequence[str]
    """Command lines, from ``kubectl`` on."""
    add_arguments: Callable[[ArgumentParser], None]
    find: Find
    view: View
    is_namespaced: bool = True
    """Whether it takes ``-n`` and ``-A``."""
    can_watch: bool = True
    """Whether ``--watch`` makes sense: the command changes nothing."""
    needs_cluster: bool = True
    """Whether it logs in; ``find`` then may ask its session's client."""
    is_live: bool = False
    """Whether it watches on a terminal without being asked to, unless there is ``--once``."""
