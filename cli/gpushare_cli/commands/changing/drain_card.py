"""``drain-card``: a card is taken out, and its pods are moved."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.changing.cordon import add_node_and_cards, cordoning_of
from gpushare_cli.commands.command import Command, Session
from gpushare_cli.commands.time_argument import seconds_of, whole_number_of
from gpushare_cli.decide.drain.drain_report import DrainReport
from gpushare_cli.output.consent import Consent
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Cordons the card, evicts its pods, and waits until all units of the card are free. First it shows each pod,
and where its controller's new pod would run, and asks.

It evicts by the Eviction API. If a PodDisruptionBudget keeps a pod, it names the pod and tries again until
the timeout. Static pods and pods of DaemonSets stay, as with kubectl drain. It evicts a pod without a
controller only with --force. It does not evict a pod that came after the list was shown, but names it: run
the command again. Ctrl-C leaves the card cordoned.

Exit status: 0 the card is free, 1 something stays, 2 no such node or card, 130 Ctrl-C."""
TIMEOUT_SECONDS = 300.0


def _add_arguments(parser: ArgumentParser) -> None:
    add_node_and_cards(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and change nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--force", action="store_true", help="also evict pods without a controller")
    parser.add_argument(
        "--grace-period",
        type=whole_number_of,
        metavar="SECONDS",
        help="time for each pod to end; default: as the pod says",
    )
    parser.add_argument(
        "--timeout",
        type=seconds_of,
        default=TIMEOUT_SECONDS,
        metavar="TIME",
        help="for the whole drain, such as 90s or 10m (default: 5m)",
    )
    parser.add_argument(
        "--reason",
        default="",
        metavar="TEXT",
        help="the reason; kept in the annotation gpushare.io/cordon-reason",
    )


async def _find(session: Session, options: Namespace) -> DrainReport:
    from gpushare_cli.changes.card_drain import CardDrain, DrainOptions
    from gpushare_cli.views.drain import plan_view

    question = Consent.of(options)
    if not options.dry_run:
        question.require_somebody()

    async def agrees(plan: DrainReport) -> bool:
        session.progress.done()
        return await question.agrees(lambda page: plan_view(plan, page))

    drain = CardDrain(
        client=session.client,
        progress=session.progress,
        cordoning=cordoning_of(session, options),
        options=DrainOptions(
            dry_run=options.dry_run,
            timeout=options.timeout,
            grace_period=options.grace_period,
            is_forced=options.force,
            reason=options.reason,
        ),
    )
    return await drain.run(options.cards, agrees)


def _view(report: DrainReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.drain import drain_view

    return drain_view(report, page)


DRAIN_CARD_COMMAND = Command(
    name="drain-card",
    summary="take a card out of use: keep new pods off it, and move its pods away",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare drain-card gpu-2 3 --dry-run",
        "kubectl gpushare drain-card gpu-2 3",
        'kubectl gpushare drain-card gpu-2 3 --yes --timeout 10m --reason "bad fan"',
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
