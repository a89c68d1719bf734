"""What people see of pods and namespaces that hold units."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.holders.namespaces_report import (
    NamespaceHolding,
    NamespacesReport,
    QuotaLimit,
)
from gpushare_cli.decide.holders.pod_holding import HolderPhase, PodHolding
from gpushare_cli.decide.holders.pods_report import PodsReport
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, Shrink, TableColumn
from gpushare_cli.views.card_tables import (
    amount_text,
    isolation_text,
    notes,
    nothing,
    over_text,
    rows_shown,
    units_text,
    use_text,
)
from gpushare_cli.wording import age_since, counted, memory_text
from gpushare_core.text.printable import printable

MAX_HINTS = 5
"""Waiting pods of which it is said how to ask why, and pods of which it is said that they are evicted."""
EXAMPLE_UNITS = 32

_STYLES = {HolderPhase.WAITING: "yellow", HolderPhase.ORPHANED: "red", HolderPhase.TERMINATING: "dim"}

_POD_COLUMNS = (
    TableColumn(header="namespace", shrink=Shrink.FOLD, min_width=9),
    TableColumn(header="pod", shrink=Shrink.FOLD, min_width=12),
    TableColumn(header="state"),
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=10),
    TableColumn(header="cards", shrink=Shrink.FOLD, min_width=5),
    TableColumn(header="units", shrink=Shrink.FOLD, min_width=9),
    TableColumn(header="used/asked", is_number=True),
    TableColumn(header="isolation", shrink=Shrink.FOLD, min_width=9, only_filled=True),
    TableColumn(header="age", is_number=True),
    TableColumn(header="waits for", only_wide=True),
    TableColumn(header="uid", only_wide=True),
)
_NAMESPACE_COLUMNS = (
    TableColumn(header="namespace", shrink=Shrink.FOLD, min_width=12),
    TableColumn(header="pods", is_number=True),
    TableColumn(header="cards", is_number=True),
    TableColumn(header="units held", shrink=Shrink.FOLD, min_width=9),
    TableColumn(header="used/asked", is_number=True),
    TableColumn(header="waiting", shrink=Shrink.FOLD, min_width=12),
    TableColumn(header="quota: used/hard", shrink=Shrink.FOLD, min_width=16),
)


def pods_view(report: PodsReport, page: OutputPage) -> Iterable[RenderableType]:
    if not report.pods:
        where = f"in namespace {report.namespace}" if report.namespace else "in the cluster"
        yield heading(nothing(f"No pod {where} holds units of a card or asks for them", report.unread))
        if report.namespace:
            yield to_type("kubectl gpushare pods -A")
    else:
        yield from _pods(report, page)
    yield from notes(report.unmeasured, report.unread)


def _pods(report: PodsReport, page: OutputPage) -> Iterator[RenderableType]:
    shown, now = rows_shown(report.pods, page), datetime.fromisoformat(report.looked_at)
    columns, skip = (_POD_COLUMNS[1:], 1) if report.namespace else (_POD_COLUMNS, 0)
    yield PageTable(columns, [_pod_row(pod, now)[skip:] for pod in shown], page=page)
    if len(shown) < len(report.pods):
        yield sentence(f"{len(report.pods) - len(shown):,} more: -o wide shows all, -n those of a namespace.")
    evicted = [pod for pod in report.pods if pod.evicted_from]
    if evicted:
        yield ""
    for pod in evicted[:MAX_HINTS]:
        over = over_text(pod.exceeded_since, pod.evicted_from, report.looked_at)
        yield sentence(f"{pod.namespace}/{pod.name} has more memory than it asked for: {over}.", style="red")
    waiting = [pod for pod in report.pods if pod.state is HolderPhase.WAITING]
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        yield ""
        yield sentence(f"{counted(len(waiting), 'pod')} {verb}. Why:", style="yellow")
        for pod in waiting[:MAX_HINTS]:
            yield to_type(f"kubectl gpushare why {pod.name} -n {pod.namespace}")


def _pod_row(pod: PodHolding, now: datetime) -> Sequence[Cell]:
    return (
        pod.namespace,
        pod.name,
        Text(pod.state.value, _STYLES[pod.state]) if pod.state in _STYLES else pod.state.value,
        pod.node or "-",
        ",".join(str(card.index) for card in pod.cards) or "-",
        units_text(pod.units),
        use_text(pod.used_bytes, pod.asked_bytes, exceeds=pod.exceeds) if pod.holds else "-",
        isolation_text(pod.isolation, lacks=pod.lacks_isolation),
        age_since(pod.created, now) if pod.created else "?",
        pod.waits_for,
        pod.uid,
    )


def namespaces_view(report: NamespacesReport, page: OutputPage) -> Iterable[RenderableType]:
    if report.namespaces:
        yield PageTable(_NAMESPACE_COLUMNS, map(_namespace_row, report.namespaces), page=page)
    else:
        none = "No namespace holds units of a card, waits for them, or has a quota of them"
        yield heading(nothing(none, report.unread))
    yield from notes(report.unmeasured, report.unread)
    yield from _quota_advice(report)


def _namespace_row(namespace: NamespaceHolding) -> Sequence[Cell]:
    waiting = f"{counted(namespace.waiting_pods, 'pod')}: {units_text(namespace.waiting_units)}"
    return (
        namespace.name,
        namespace.pods,
        namespace.cards,
        units_text(namespace.units) or "-",
        f"{amount_text(namespace.used_bytes)}/{memory_text(namespace.asked_bytes)}"
        if namespace.pods
        else "-",
        Text(waiting, "yellow") if namespace.waiting_pods else "-",
        _quota_text(namespace.quotas),
    )


def _quota_text(quotas: Sequence[QuotaLimit] | None) -> Text:
    if quotas is None:
        return Text("?")
    text = ", ".join(f"{limit.used_units}/{limit.hard_units} {_word(limit)}" for limit in quotas)
    is_full = any(limit.used_units >= limit.hard_units for limit in quotas)
    return Text(printable(f"{text} FULL" if is_full else text or "none"), "yellow" if is_full else "")


def _word(limit: QuotaLimit) -> str:
    return units_text({limit.resource: 0}).removeprefix("0 ")


def _quota_advice(report: NamespacesReport) -> Iterator[RenderableType]:
    """The command for each resource that nodes serve: a quota of a name that nobody asks for holds nobody."""
    if not report.quota_keys:
        return
    free = [namespace.name for namespace in report.namespaces if not namespace.quotas]
    name = free[0] if free else "NAMESPACE"
    yield ""
    yield sentence(f"To hold a namespace to {EXAMPLE_UNITS} units:")
    for key in report.quota_keys:
        yield to_type(f"kubectl create quota gpu -n {name} --hard={key}={EXAMPLE_UNITS}")
