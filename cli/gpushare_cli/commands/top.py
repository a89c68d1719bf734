"""``top``: how much memory is really used, beside what was asked for."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.use.top_report import TopOf, TopReport, TopSort, top_report
from gpushare_cli.output.page import OutputPage
from gpushare_core.api.timestamps import rfc3339

DESCRIPTION = """\
Shows how much memory nodes, cards or the containers of pods use, beside what was asked for. Containers
that use more than they asked for come first, with the word OVER, and with the time at which they are evicted
where their policy says so. What holds a container to its memory is beside it, where a policy asks for that.
On a terminal it is drawn anew every two seconds until Ctrl-C; --once, and a pipe, get one answer.

Figures are those of the GPUShareNodes, which are written when a card's has moved by a twentieth of its
memory, or a container's by a quarter of what it asked for; exact ones are in the metrics of the plugins.
"?" is not measured: GPUSharePolicy spec.plugin.measurement.scope is Off, Cards (the default, without
containers) or Containers."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "of",
        nargs="?",
        type=TopOf,
        choices=[*TopOf],
        default=TopOf.CARDS,
        metavar="nodes|cards|pods",
        help="default: cards; pods are those of a namespace (-n, -A)",
    )
    parser.add_argument("--once", action="store_true", help="one answer, on a terminal as well")
    parser.add_argument(
        "--sort",
        type=TopSort,
        choices=[*TopSort],
        default=TopSort.USED,
        help="the most first; share is used of asked; default: used",
    )


async def _find(session: Session, options: Namespace) -> TopReport:
    from gpushare_cli.gather.shared_cards import read_shared_nodes

    session.progress.doing("reading GPUShareNodes")
    shared = await read_shared_nodes(session.client)
    namespace = session.namespace if options.of is TopOf.PODS else options.namespace
    return top_report(
        shared.nodes,
        of=options.of,
        sort=options.sort,
        looked_at=rfc3339(session.now()),
        namespace="" if session.all_namespaces else namespace,
        unmeasured=shared.unmeasured,
        unread=shared.reading.unread,
    )


def _view(report: TopReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.top import top_view

    return top_view(report, page)


TOP_COMMAND = Command(
    name="top",
    summary="show how much memory is really used, beside what was asked for",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare top",
        "kubectl gpushare top pods -A --once",
        "kubectl gpushare top nodes --sort share",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_live=True,
)
