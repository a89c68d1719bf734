"""What people see of a simulation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType

from gpushare_cli.decide.simulation.policy_change import (
    ClassUnits,
    NodeChange,
    NodeEffect,
    NodeSharing,
    PolicyChange,
)
from gpushare_cli.decide.simulation.simulation_report import SimulatedPlacement, SimulationReport
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import PageTable, Shrink, TableColumn
from gpushare_cli.wording import MAX_SHOWN, counted, listed

MAX_ROWS = 30
"""Pods in a row each; of more a row stands for all of a workload that share a node."""
NOTHING = "-"
UNNAMED = "units that are taken, and the plugin names no pod that has them"

_PLACES = (
    TableColumn(header="pod", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="asks", is_number=True),
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="card"),
    TableColumn(header="why", shrink=Shrink.FOLD, min_width=24),
)
_GROUPS = (
    TableColumn(header="workload", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="asks", is_number=True),
    TableColumn(header="pods", is_number=True),
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="cards", shrink=Shrink.FOLD, min_width=8),
)
_CHANGES = (
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="now", shrink=Shrink.FOLD, min_width=10),
    TableColumn(header="then", shrink=Shrink.FOLD, min_width=10),
    TableColumn(header="what happens", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="pods", is_number=True),
)
_EFFECTS = {
    NodeEffect.GAINS: "begins to share its cards",
    NodeEffect.LOSES: "stops sharing its cards; its pods keep running",
    NodeEffect.DIVIDES: "changes at once",
    NodeEffect.WAITS: "takes no new pod until its pods with units are gone",
    NodeEffect.KEEPS: "keeps the former unit until its pods with units are gone",
    NodeEffect.SETTINGS: "same cards, other settings",
    NodeEffect.NONE: "nothing",
}
_SUMMARY = {
    NodeEffect.GAINS: ("begins to share", "begin to share"),
    NodeEffect.LOSES: ("stops sharing", "stop sharing"),
    NodeEffect.DIVIDES: ("changes at once", "change at once"),
    NodeEffect.WAITS: ("waits for its pods", "wait for their pods"),
    NodeEffect.KEEPS: ("keeps its former unit", "keep their former unit"),
    NodeEffect.SETTINGS: ("gets other settings", "get other settings"),
}
"""Of one node, of several."""


def simulation_view(report: SimulationReport, page: OutputPage) -> Iterator[RenderableType]:
    if report.policy is not None:
        yield from _policy(report.policy, page)
        if report.policy.refusal:
            return
    if report.unit_changes:
        yield heading(f"With units of {report.unit}: {_effects(report.unit_changes)}.")
        yield from _changes(report.unit_changes, page)
    if report.units_before:
        yield sentence(f"Units of all cards: {_units(report.units_before)} now.")
        yield from _units_then(report)
        if report.placements:
            yield ""
    if report.placements or not (report.policy or report.units_before):
        yield from places_view(report, page)
    yield from _footnotes(report)


def places_view(report: SimulationReport, page: OutputPage) -> Iterator[RenderableType]:
    """What was placed, and where."""
    yield heading(summary(report))
    if report.placements:
        yield ""
        yield placements_table(report.placements, page)
        if _is_grouped(report.placements, page):
            yield sentence("-o wide shows each pod, its card, and why it gets that one.")
        yield from _pending(report.placements)


def _pending(placements: Iterable[SimulatedPlacement]) -> Iterator[RenderableType]:
    """Each reason once, with the pods for which it holds."""
    names: dict[str, list[str]] = {}
    for placement in placements:
        if not placement.fits:
            names.setdefault(placement.reason, []).append(f"{placement.namespace}/{placement.name}")
    if names:
        yield ""
        yield heading("Why they would stay pending:")
    for reason, pods in names.items():
        yield sentence(f"{listed(pods)}: {reason}", indent=2)


def summary(report: SimulationReport) -> str:
    total, pending = len(report.placements), len(report.placements) - report.fitting
    if not total:
        return "No pod that asks for a share of a card is to be placed."
    on = f", on {len(report.by_node)} of {counted(report.nodes, 'node')} with cards"
    stays = f"; {pending} would stay pending" if pending else ""
    verb = "fits" if total == 1 else "fit"
    return f"{report.fitting} of {counted(total, 'pod')} {verb}{on if report.fitting else ''}{stays}."


def _is_grouped(placements: Sequence[SimulatedPlacement], page: OutputPage) -> bool:
    return len(placements) > MAX_ROWS and not page.is_wide


def placements_table(placements: Sequence[SimulatedPlacement], page: OutputPage) -> PageTable:
    if not _is_grouped(placements, page):
        return PageTable(_PLACES, map(_row, placements), page=page)
    groups: dict[tuple[str, str, str], list[SimulatedPlacement]] = {}
    for placement in placements:
        groups.setdefault(_group(placement), []).append(placement)
    rows = [
        (*key[:2], len(alike), key[2] or "stay pending", _all_cards(alike)) for key, alike in groups.items()
    ]
    return PageTable(_GROUPS, rows, page=page)


def _row(placement: SimulatedPlacement) -> tuple[str, ...]:
    cards = ", ".join(str(card.index) for card in placement.cards)
    return (
        f"{placement.namespace}/{placement.name}{_remark(placement)}",
        _asked(placement),
        placement.node or NOTHING,
        cards or NOTHING,
        _why(placement),
    )


def _group(placement: SimulatedPlacement) -> tuple[str, str, str]:
    name = placement.workload or "pods"
    return f"{placement.namespace}/{name}{_remark(placement)}", _asked(placement), placement.node


def _all_cards(placements: Iterable[SimulatedPlacement]) -> str:
    cards = {card.index for placement in placements for card in placement.cards}
    return ", ".join(map(str, sorted(cards))) or NOTHING


def _asked(placement: SimulatedPlacement) -> str:
    return ", ".join(str(asked.units) for asked in placement.asked) or NOTHING


def _remark(placement: SimulatedPlacement) -> str:
    if placement.moved_from:
        return f" (from {placement.moved_from})"
    return " (waits)" if placement.waits_already else ""


def _why(placement: SimulatedPlacement) -> str:
    return placement.reason if placement.fits else "stays pending"


def _footnotes(report: SimulationReport) -> Iterator[RenderableType]:
    yield ""
    for text in report.remarks:
        yield sentence(text)
    if report.left_out:
        yield sentence(f"Left out: {listed(report.left_out)}.")
    if report.placements:
        yield sentence(f"Not considered: {'; '.join(report.not_considered)}.")
    yield sentence("Nothing was created or changed.")


def _policy(policy: PolicyChange, page: OutputPage) -> Iterator[RenderableType]:
    if policy.refusal:
        who = "The API server" if policy.checked_by == "APIServer" else "This client"
        yield heading(f"{who} refuses policy {policy.name}:")
        yield sentence(policy.refusal, indent=2)
        return
    verb = "would be made" if policy.is_new else "would be changed"
    yield heading(f"Policy {policy.name} {verb}: {_effects(policy.nodes)}.")
    for node, older in [*policy.lost.items()][:MAX_SHOWN]:
        yield sentence(f"It does not get {node}: policy {older} is older, and has it.")
    if (more := len(policy.lost) - MAX_SHOWN) > 0:
        yield sentence(f"Nor {counted(more, 'node')} more; -o json has all.")
    if not policy.lost and not any(change.after.policy == policy.name for change in policy.nodes):
        yield sentence("No node shares its cards by it: compare its names and selectors with these.")
        yield to_type("kubectl get nodes --show-labels")
    yield from _changes(policy.nodes, page)
    yield from _isolation(policy.nodes)


def _changes(changes: Sequence[NodeChange], page: OutputPage) -> Iterator[RenderableType]:
    if changes:
        yield ""
        yield PageTable(_CHANGES, _change_rows(changes, page), page=page)
    yield from _in_the_way(changes, page)
    yield ""


def _isolation(changes: Iterable[NodeChange]) -> Iterator[RenderableType]:
    """What would hold new pods to their share; pods that run keep what they have."""
    nodes: dict[str, list[str]] = {}
    for change in changes:
        if change.after.policy and change.before.isolation != change.after.isolation:
            nodes.setdefault(change.after.isolation, []).append(change.node)
    for kind, names in nodes.items():
        if kind:
            yield sentence(
                f"Isolation {kind} would hold pods that come to {listed(names)} from then on. Whether a node"
                " can have it is not known here: its plugin looks, and a node that cannot (condition"
                " IsolationReady) takes no new pods."
            )
        else:
            yield sentence(f"Pods that come to {listed(names)} from then on would have no isolation.")
    if nodes:
        yield sentence("Pods that run go on with what they have, and where they are.")
        yield ""


def _units_then(report: SimulationReport) -> Iterator[RenderableType]:
    """At once, and once the pods are gone for which nodes wait."""
    in_the_end = report.units_in_the_end or report.units_after
    if in_the_end != report.units_after:
        yield sentence(f"As long as those pods run: {_units(report.units_after)}.")
        yield sentence(f"Once they are gone: {_units(in_the_end)}.")
    else:
        yield sentence(f"Then: {_units(report.units_after)}.")
    if any(not each.units for each in in_the_end):
        yield sentence(
            "A unit is larger than a card then: no pod would get anything of such cards.", style="bold red"
        )


def _effects(changes: Iterable[NodeChange]) -> str:
    found = Counter(change.effect for change in changes)
    said = [
        f"{counted(found[effect], 'node')} {one if found[effect] == 1 else several}"
        for effect, (one, several) in _SUMMARY.items()
        if found[effect]
    ]
    return ", ".join(said) or "nothing changes on any node"


def _change_rows(changes: Sequence[NodeChange], page: OutputPage) -> Iterator[tuple[str, ...]]:
    """A row for each node; of many a row stands for all that have the same in store."""
    groups: dict[tuple[str, str, str, str], list[NodeChange]] = {}
    for change in changes:
        is_own_row = page.is_wide or len(changes) <= MAX_ROWS
        now, then, effect = _sharing(change.before), _sharing(change.after), _EFFECTS[change.effect]
        own = change.node if is_own_row else ""
        groups.setdefault((own, now, then, effect), []).append(change)
    for (_, now, then, effect), alike in groups.items():
        pods = sum(len(change.pods) for change in alike)
        yield listed(change.node for change in alike), now, then, effect, str(pods)


def _in_the_way(changes: Iterable[NodeChange], page: OutputPage) -> Iterator[RenderableType]:
    """The pods for which nodes would wait."""
    waiting = [change for change in changes if change.effect in (NodeEffect.WAITS, NodeEffect.KEEPS)]
    if waiting:
        yield ""
    for change in waiting if page.is_wide else waiting[:MAX_ROWS]:
        pods = [f"{pod.namespace}/{pod.name} {pod.units}" for pod in change.pods] or [UNNAMED]
        yield sentence(
            f"In the way on {change.node}: {listed(pods, shown=len(pods) if page.is_wide else MAX_SHOWN)}"
        )


def _sharing(sharing: NodeSharing) -> str:
    if not sharing.policy:
        return NOTHING
    cards = "" if sharing.cards is None else f", {counted(sharing.cards, 'card')}"
    isolation = f", {sharing.isolation}" if sharing.isolation else ""
    return f"{sharing.policy}: {sharing.mode} {sharing.unit}".rstrip() + cards + isolation


def _units(units: Iterable[ClassUnits]) -> str:
    return ", ".join(f"{each.units:,} of {each.resource} ({each.unit})" for each in units) or "none"
