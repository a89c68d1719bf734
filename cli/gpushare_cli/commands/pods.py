"""``pods``: which pods hold units of cards, or wait for them."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.holders.pods_report import PodSort, PodsReport, pods_report
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Shows the pods of a namespace that hold units of cards or wait for them: where they run, how many units they
hold, how much memory that is, and how much they use. Where a policy asks for isolation it also shows what
limits them: Hook, Driver or none.

"?" is an amount that is not measured. To see why a pod waits: kubectl gpushare why POD."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--sort",
        type=PodSort,
        choices=[*PodSort],
        default=PodSort.NAME,
        help="the largest or oldest first; default: by name",
    )


async def _find(session: Session, options: Namespace) -> PodsReport:
    import asyncio

    from gpushare_cli.decide.holders.pod_holding import pod_holdings
    from gpushare_cli.gather.pod_holders import read_known_pods
    from gpushare_cli.gather.shared_cards import read_shared_nodes

    session.progress.doing("reading GPUShareNodes and pods")
    namespace = "" if session.all_namespaces else session.namespace
    scope = session.pod_scope(namespace)
    unread: list[str] = []
    shared, known = await asyncio.gather(
        read_shared_nodes(session.client, scope), read_known_pods(session.client, scope, unread)
    )
    return pods_report(
        pod_holdings(shared.nodes, shared.reading, known),
        namespace=namespace,
        sort=options.sort,
        now=session.now(),
        unread=[*shared.reading.unread, *unread],
        unmeasured=shared.unmeasured,
    )


def _view(report: PodsReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.holders import pods_view

    return pods_view(report, page)


PODS_COMMAND = Command(
    name="pods",
    summary="show which pods hold units, which wait for them, and what they use",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare pods -n team-a",
        "kubectl gpushare pods -A --sort used",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
)
