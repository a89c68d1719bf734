"""``completion SHELL``: a script with which a shell completes our commands."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.completion_script import SCRIPTS, CompletionScript, completion_script
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Prints a script with which a shell completes commands, options, and the names
of nodes, cards, pods and policies after kubectl-gpushare.

After `kubectl gpushare` kubectl 1.26 and newer completes them itself. It runs
the program kubectl_complete-gpushare, which must be in PATH, like
kubectl-gpushare. pipx and uv put both there. After an installation by krew, or
from the archive, link it yourself:

  program=$(readlink -f "$(command -v kubectl-gpushare)")
  ln -s "$(dirname "$program")/kubectl_complete-gpushare" ~/.local/bin/"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=[*SCRIPTS], help="the shell")


async def _find(_session: Session, options: Namespace) -> CompletionScript:
    return completion_script(options.shell)


def _view(report: CompletionScript, _page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.output.lines import WholeLine

    return map(WholeLine, report.script.splitlines())


COMPLETION_COMMAND = Command(
    name="completion",
    summary="print a script with which a shell completes kubectl-gpushare",
    description=DESCRIPTION,
    examples=(
        "source <(kubectl gpushare completion bash)",
        'kubectl gpushare completion zsh > "${fpath[1]}/_kubectl-gpushare"',
        "kubectl gpushare completion fish | source",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
    can_watch=False,
    needs_cluster=False,
)
