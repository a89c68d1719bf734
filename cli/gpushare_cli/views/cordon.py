"""What people see of cards that were cordoned or uncordoned."""

from collections.abc import Iterator

from rich.console import RenderableType

from gpushare_cli.decide.drain.cordon_report import CardCordon, CordonReport
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import PageTable, Shrink, TableColumn
from gpushare_cli.wording import counted

_TENANTS = (
    TableColumn(header="card", is_number=True),
    TableColumn(header="pod", shrink=Shrink.FOLD, min_width=20),
    TableColumn(header="units", is_number=True),
    TableColumn(header="remark", shrink=Shrink.FOLD),
)


def cordon_view(report: CordonReport, page: OutputPage) -> Iterator[RenderableType]:
    for card in report.cards:
        yield heading(_sentence(report, card))
        if card.reason:
            yield sentence(f"Reason: {card.reason}", indent=2)
        if card.is_sick and not report.is_cordon:
            yield sentence(f"None comes while it is {card.health}: {card.health_reason}", indent=2)
    if not report.is_dry_run and not report.is_confirmed:
        yield from _unconfirmed(report)
    yield from _tenants(report, page)
    yield from _next(report)


def _sentence(report: CordonReport, card: CardCordon) -> str:
    name = f"Card {card.index} of {report.node} ({card.uuid})"
    done = "cordoned" if report.is_cordon else "uncordoned"
    means = "no new pod gets it" if report.is_cordon else "new pods get it again"
    if report.is_dry_run:
        same = f"is {done} already" if not report.is_changed else f"would be {done}"
        return f"{name} {same}: {means}. Nothing was changed."
    already = "" if report.is_changed else " already"
    return f"{name} is {done}{already}: {means}."


def _unconfirmed(report: CordonReport) -> Iterator[RenderableType]:
    yield ""
    yield sentence(
        f"The plugin on {report.node} has not taken that over within {report.seconds:.0f} seconds. It will as"
        " soon as it runs. To see whether it does:"
    )
    yield to_type(
        "kubectl get pods -n gpushare-system -l app.kubernetes.io/component=plugin"
        f" --field-selector spec.nodeName={report.node}"
    )


def _tenants(report: CordonReport, page: OutputPage) -> Iterator[RenderableType]:
    rows = [
        (card.index, f"{pod.namespace}/{pod.name}", pod.units, "orphaned" if pod.orphaned else "")
        for card in report.cards
        for pod in card.pods
    ]
    yield ""
    yield from map(sentence, report.unread)
    if rows:
        pods = len({pod.key for card in report.cards for pod in card.pods})
        yield sentence(f"{counted(pods, 'pod')} {'has' if pods == 1 else 'have'} units there:")
        yield PageTable(_TENANTS, rows, page=page)
    elif not report.unread:
        yield sentence("No pod has units there.")


def _next(report: CordonReport) -> Iterator[RenderableType]:
    if report.is_dry_run:
        return
    cards = " ".join(str(card.index) for card in report.cards)
    yield ""
    if report.is_cordon and any(card.pods for card in report.cards):
        yield sentence("To move these pods away:")
        yield to_type(f"kubectl gpushare drain-card {report.node} {cards}")
    if report.is_cordon:
        yield sentence("To have it serve again:" if len(report.cards) == 1 else "To have them serve again:")
        yield to_type(f"kubectl gpushare uncordon {report.node} {cards}")
