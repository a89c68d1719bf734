"""``top``: how much memory is really used, beside what was asked for."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.use.top_report import TopOf, TopReport, TopSort, top_report
from gpushare_cli.output.page import OutputPage
from gpushare_core.api.timestamps import rfc3339

DESCRIPTION = """\
Shows how much memory nodes, cards or containers use, beside what pods asked for. Containers that use more
than they asked for come first, marked OVER, with the time of their eviction if their policy evicts. Where a
policy asks for isolation it shows what limits a container. On a terminal it refreshes every two seconds
until Ctrl-C; with --once, or into a pipe, it prints once.

The figures are from the GPUShareNodes. Plugins write them when a card's figure has changed by a twentieth
of its memory, or a container's by a quarter of what it asked for; the plugins' metrics are exact. "?" is
not measured: see GPUSharePolicy spec.plugin.measurement.scope (Off, Cards, which is the default and has no
containers, or Containers)."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "of",
        nargs="?",
        type=TopOf,
        choices=[*TopOf],
        default=TopOf.CARDS,
        metavar="nodes|cards|pods",
        help="default: cards; for pods choose a namespace (-n, -A)",
    )
    parser.add_argument("--once", action="store_true", help="print once, also on a terminal")
    parser.add_argument(
        "--sort",
        type=TopSort,
        choices=[*TopSort],
        default=TopSort.USED,
        help="the largest first; share is used of asked; default: used",
    )


async def _find(session: Session, options: Namespace) -> TopReport:
    from gpushare_cli.gather.shared_cards import read_shared_nodes

    session.progress.doing("reading GPUShareNodes")
    namespace = session.namespace if options.of is TopOf.PODS else options.namespace
    namespace = "" if session.all_namespaces else namespace
    scope = session.pod_scope(namespace if options.of is TopOf.PODS else "")
    shared = await read_shared_nodes(session.client, scope)
    return top_report(
        shared.nodes,
        of=options.of,
        sort=options.sort,
        looked_at=rfc3339(session.now()),
        namespace=namespace,
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
