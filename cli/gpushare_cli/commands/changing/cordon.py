"""``cordon`` and ``uncordon``: cards that take no new pods."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.drain.cordon_report import CordonReport
from gpushare_cli.output.page import OutputPage

if TYPE_CHECKING:
    from gpushare_cli.changes.card_cordon import CardCordoning

CONFIRM_SECONDS = 30.0
"""A plugin that runs needs less than two."""

_DESCRIPTION = """\
Keeps new pods off a card. The pods on it stay, and are listed; drain-card moves them.

The command writes the card's UUID into the annotation gpushare.io/cordon of the GPUShareNode, beside cards
that are there already, and waits up to 30 seconds until the node's plugin has applied it.

Exit status: 0 it is in force, 1 the plugin has not applied it yet, 2 no such node or card."""
_UNDO_DESCRIPTION = """\
Lets new pods on the card again; other cordoned cards stay cordoned. A sick card stays closed
until it is healthy.

Exit status: 0 it is in force, 1 the plugin has not applied it yet, 2 no such node or card."""


def add_node_and_cards(parser: ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="a node that shares its cards")
    parser.add_argument("cards", nargs="+", metavar="CARD", help="index or UUID, as inspect shows them")


def _add_arguments(parser: ArgumentParser) -> None:
    add_node_and_cards(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="show the pods on the card, and change nothing"
    )


def _add_cordon_arguments(parser: ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument(
        "--reason",
        default="",
        metavar="TEXT",
        help="the reason; kept in the annotation gpushare.io/cordon-reason",
    )


def cordoning_of(session: Session, options: Namespace) -> "CardCordoning":
    from gpushare_cli.changes.card_cordon import CardCordoning

    return CardCordoning(
        client=session.client, progress=session.progress, node=options.node, timeout=CONFIRM_SECONDS
    )


async def _cordon(session: Session, options: Namespace) -> CordonReport:
    cordoning = cordoning_of(session, options)
    return await cordoning.run(options.cards, is_cordon=True, reason=options.reason, dry_run=options.dry_run)


async def _uncordon(session: Session, options: Namespace) -> CordonReport:
    cordoning = cordoning_of(session, options)
    return await cordoning.run(options.cards, is_cordon=False, dry_run=options.dry_run)


def _view(report: CordonReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.cordon import cordon_view

    return cordon_view(report, page)


CORDON_COMMAND = Command(
    name="cordon",
    summary="keep new pods off a card; its pods stay",
    description=_DESCRIPTION,
    examples=(
        "kubectl gpushare cordon gpu-2 3",
        'kubectl gpushare cordon gpu-2 3 --reason "fan is loud, ticket 4711"',
        "kubectl gpushare cordon gpu-2 0 1 --dry-run",
    ),
    add_arguments=_add_cordon_arguments,
    find=_cordon,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
UNCORDON_COMMAND = Command(
    name="uncordon",
    summary="allow new pods on a card again",
    description=_UNDO_DESCRIPTION,
    examples=("kubectl gpushare uncordon gpu-2 3",),
    add_arguments=_add_arguments,
    find=_uncordon,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
