"""``inspect``: the cards of nodes, who holds what of them, and what is wrong."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.inspection.inspection import (
    CardInspection,
    InspectionChoice,
    InspectionSort,
    card_inspection,
)
from gpushare_cli.output.page import OutputPage
from gpushare_core.api.timestamps import rfc3339

DESCRIPTION = """\
Shows each card as a bar: which pods hold how much of it, what they use, and whether the card is sick,
cordoned, or closed to new pods. The amounts are those by which gpushare places pods.

Where a policy asks for isolation, each pod shows what limits its memory: Hook, Driver, or no isolation (the
pod started before that; a new pod in its place has it). -o wide shows the limit of each container.

Of more than 16 nodes it shows a line each. To see their cards name nodes, choose cards by --card or -n, or
use -o wide. Amounts are units of the node's mode; "?" is an amount that is not measured. With more than 50
nodes a pod that has just started may be missing until the plugin reports it.

Exit status: 1 a named node or card does not exist, or --problems finds one; 2 it could not look, or
--problems finds none but could not read everything."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="default: every node that shares its cards")
    parser.add_argument("--card", default="", metavar="CARD", help="only the card with this index or UUID")
    parser.add_argument(
        "-l", "--selector", default="", metavar="SELECTOR", help="only nodes with these labels, as in kubectl"
    )
    parser.add_argument(
        "--sort",
        type=InspectionSort,
        choices=[*InspectionSort],
        default=InspectionSort.NAME,
        help="the largest first; default: by name",
    )
    parser.add_argument("--problems", action="store_true", help="show only what is wrong, and what to do")


async def _find(session: Session, options: Namespace) -> CardInspection:
    from gpushare_cli.decide.inspection.node_reader import shared_nodes
    from gpushare_cli.gather.shared_cards import missing_nodes, read_labelled_nodes, read_shared_cards

    session.progress.doing("reading GPUShareNodes")
    reading = await read_shared_cards(session.client, scope=session.pod_scope(), nodes=options.nodes)
    labelled = await read_labelled_nodes(session.client, options.selector) if options.selector else None
    nodes = shared_nodes(reading)
    present = {node.name for node in nodes}
    choice = InspectionChoice(
        names=options.nodes,
        labelled=labelled,
        card=options.card,
        namespace="" if options.all_namespaces else options.namespace,
        only_problems=options.problems,
        sort=options.sort,
    )
    missing = await missing_nodes(session.client, options.nodes, present.__contains__)
    time = rfc3339(session.now())
    return card_inspection(nodes, choice, time=time, missing=missing, unread=reading.unread)


def _view(report: CardInspection, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.inspection import inspection_view

    return inspection_view(report, page)


INSPECT_COMMAND = Command(
    name="inspect",
    summary="show cards as bars: who holds what, what is used, what is free, what is wrong",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare inspect",
        "kubectl gpushare inspect gpu-2 --card 3",
        "kubectl gpushare inspect gpu-2 -o wide   # with limits of containers",
        "kubectl gpushare inspect --problems",
        "kubectl gpushare inspect -n team-a --sort used",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
)
