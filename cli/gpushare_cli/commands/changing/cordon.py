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
No new pod comes to a cordoned card; the pods on it stay, and are shown. To move them as well, use drain-card.
It is written into the annotation gpushare.io/cordon of the GPUShareNode, by the card's UUID; cards that are
named there already stay cordoned. It waits until the plugin of the node has taken it over, for 30 seconds.

Exit status: 0 it is in force, 1 the plugin has not taken it over, 2 no such node or card."""
_UNDO_DESCRIPTION = """\
New pods come to the card again; other cordoned cards stay as they are. A sick card stays closed until it is
well.

Exit status: 0 it is in force, 1 the plugin has not taken it over, 2 no such node or card."""


def add_node_and_cards(parser: ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="a node that shares its cards")
    parser.add_argument("cards", nargs="+", metavar="CARD", help="index or UUID, as inspect shows them")


def _add_arguments(parser: ArgumentParser) -> None:
    add_node_and_cards(parser)
    parser.add_argument("--dry-run", action="store_true", help="show who is on the card, and change nothing")


def _add_cordon_arguments(parser: ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="why; kept in the annotation gpushare.io/cordon-reason"
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
    summary="let no new pod come to a card; its pods stay",
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
    summary="let new pods come to a card again",
    description=_UNDO_DESCRIPTION,
    examples=("kubectl gpushare uncordon gpu-2 3",),
    add_arguments=_add_arguments,
    find=_uncordon,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
