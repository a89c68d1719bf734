"""What people see of a card that is drained: before, and after."""

from collections.abc import Iterator
from datetime import timedelta

from rich.console import RenderableType

from gpushare_cli.decide.drain.drain_report import DrainAction, DrainedPod, DrainOutcome, DrainReport
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import PageTable, Shrink, TableColumn
from gpushare_cli.wording import age_text, counted, listed

_COLUMNS = (
    TableColumn(header="pod", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="units", is_number=True),
    TableColumn(header="controller", shrink=Shrink.FOLD, min_width=12),
    TableColumn(header="what happens", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="then", shrink=Shrink.FOLD, min_width=16),
)
_ACTIONS = {
    DrainAction.EVICT: "is evicted",
    DrainAction.ENDING: "is ending already",
    DrainAction.STAYS: "stays: it belongs to its node",
    DrainAction.NEEDS_FORCE: "needs --force: nobody creates it again",
    DrainAction.UNKNOWN: "unknown to the API server; its kubelet keeps the units",
    DrainAction.CAME: "it came after the list of pods to evict was made",
}


def drain_view(report: DrainReport, page: OutputPage) -> Iterator[RenderableType]:
    if report.outcome in (DrainOutcome.DRY_RUN, DrainOutcome.REFUSED):
        yield from plan_view(report, page)
    match report.outcome:
        case DrainOutcome.DRY_RUN:
            yield sentence("Nothing was changed.")
        case DrainOutcome.REFUSED:
            yield from _refused(report)
        case DrainOutcome.DECLINED:
            yield sentence("Nothing was changed.")
        case _:
            yield from _done(report, page)


def plan_view(report: DrainReport, page: OutputPage) -> Iterator[RenderableType]:
    """What would be done."""
    going = [pod for pod in report.pods if pod.action is DrainAction.EVICT]
    pods = counted(len(going), "pod")
    moved = f"{pods} {'is' if len(going) == 1 else 'are'} evicted" if report.pods else "no pod is on it"
    yield heading(f"{_cards(report)}: no new pod comes, and {moved}.")
    if report.pods:
        yield ""
        yield PageTable(_COLUMNS, map(_row, report.pods), page=page)
        yield ""
    for pod in report.pods:
        if pod.replacement is not None and not pod.replacement.fits:
            yield sentence(f"In place of {pod.text} one would wait: {pod.replacement.reason}")
    protected = [pod for pod in going if pod.budget]
    if protected:
        names = listed(f"{pod.text} ({pod.budget})" for pod in protected)
        yield sentence(
            f"PodDisruptionBudgets do not let these go at present, so they are tried again: {names}"
        )
    if any(pod.replacement for pod in report.pods):
        yield sentence(
            "Where the new pods land is simulated and not promised; not considered:"
            f" {'; '.join(report.not_considered)}."
        )


def _cards(report: DrainReport) -> str:
    indices = [str(card.index) for card in report.cards]
    return f"{'Card' if len(indices) == 1 else 'Cards'} {', '.join(indices)} of {report.node}"


def _row(pod: DrainedPod) -> tuple[str, ...]:
    return (pod.text, str(pod.units), pod.controller or "-", _what_happens(pod), _then(pod))


def _what_happens(pod: DrainedPod) -> str:
    lost = "; its emptyDir volumes are lost" if pod.has_local_data and pod.action is DrainAction.EVICT else ""
    return _ACTIONS[pod.action] + lost


def _then(pod: DrainedPod) -> str:
    placed = pod.replacement
    if pod.action is DrainAction.EVICT and not pod.controller:
        return "nobody creates it again"
    if placed is None:
        return "-"
    if not placed.fits:
        return "a new one waits"
    cards = ", ".join(str(card.index) for card in placed.cards)
    return f"a new one on {placed.node} card {cards}"


def _refused(report: DrainReport) -> Iterator[RenderableType]:
    lonely = [pod.text for pod in report.pods if pod.action is DrainAction.NEEDS_FORCE]
    yield sentence(
        f"Nothing was changed: {listed(lonely)} would be gone for good, because no controller creates"
        f" {'it' if len(lonely) == 1 else 'them'} again. To evict such pods, too:"
    )
    yield to_type(f"kubectl gpushare drain-card {report.node} {_indices(report)} --force")


def _done(report: DrainReport, page: OutputPage) -> Iterator[RenderableType]:
    gone = counted(sum(pod.is_gone for pod in report.pods), "pod")
    took = f"in {age_text(timedelta(seconds=report.seconds))}"
    if report.outcome is DrainOutcome.DRAINED:
        yield heading(
            f"{_cards(report)}: drained, {gone} moved away {took}. No unit is taken, no new pod comes."
        )
    elif report.outcome is DrainOutcome.INTERRUPTED:
        closed = "stays" if all(card.cordoned for card in report.cards) else "may be"
        yield heading(f"Interrupted: {_cards(report)} {closed} cordoned, {gone} moved away.")
    else:
        stays = "It stays" if len(report.cards) == 1 else "They stay"
        yield heading(f"{_cards(report)}: not drained {took}. {stays} cordoned.")
    yield from _left(report, page)
    yield ""
    if report.problem:
        yield sentence(report.problem)
    if ending := [pod for pod in report.staying if _is_ending(pod)]:
        yield sentence("To see why a pod does not end, such as a finalizer:")
        yield to_type(f"kubectl get pod -n {ending[0].namespace} {ending[0].name} -o yaml")
    if report.outcome is not DrainOutcome.DRAINED:
        yield sentence("To go on:")
        is_forced = any(pod.action is DrainAction.EVICT and not pod.controller for pod in report.pods)
        force = " --force" if is_forced else ""
        yield to_type(f"kubectl gpushare drain-card {report.node} {_indices(report)}{force}")
    yield sentence("To let new pods come again:")
    yield to_type(f"kubectl gpushare uncordon {report.node} {_indices(report)}")


def _left(report: DrainReport, page: OutputPage) -> Iterator[RenderableType]:
    columns = (*_COLUMNS[:2], TableColumn(header="why", shrink=Shrink.FOLD, min_width=24))
    units = sum(card.allocated_units for card in report.cards)
    if report.staying:
        yield ""
        rows = [(pod.text, pod.units, _why_left(pod)) for pod in report.staying]
        yield PageTable(columns, rows, page=page)
    elif units:
        yield sentence(f"{counted(units, 'unit')} taken, and the plugin names no pod that has them:")
        yield to_type(f"kubectl describe gpusharenode {report.node}")


def _why_left(pod: DrainedPod) -> str:
    if pod.budget:
        return f"PodDisruptionBudget {pod.budget} does not let it go"
    if pod.problem:
        return f"not evicted: {pod.problem}"
    if _is_ending(pod):
        return "it is ending"
    return "it was not evicted" if pod.action is DrainAction.EVICT else _ACTIONS[pod.action]


def _is_ending(pod: DrainedPod) -> bool:
    return pod.is_evicted or pod.action is DrainAction.ENDING


def _indices(report: DrainReport) -> str:
    return " ".join(str(card.index) for card in report.cards)
