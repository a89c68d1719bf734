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
from gpushare_cli.output.lines import heading, sentence
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import PageTable, Shrink, TableColumn
from gpushare_cli.wording import counted, listed

MAX_ROWS = 30
"""Pods in a row each; of more a row stands for all that share workload, node and reason."""
NOTHING = "-"

_PLACES = (
    TableColumn(header="pod", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="asks", is_number=True),
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="card"),
    TableColumn(header="why", shrink=Shrink.FOLD, min_width=24),
)
_GROUPS = (
    TableColumn(header="workload", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="pods", is_number=True),
    TableColumn(header="asks", is_number=True),
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="cards"),
    TableColumn(header="why", shrink=Shrink.FOLD, min_width=24),
)
_CHANGES = (
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="now", shrink=Shrink.FOLD, min_width=10),
    TableColumn(header="then", shrink=Shrink.FOLD, min_width=10),
    TableColumn(header="what happens", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="pods with units", shrink=Shrink.FOLD, min_width=16),
)
_EFFECTS = {
    NodeEffect.GAINS: "begins to share its cards",
    NodeEffect.LOSES: "shares its cards no more; its pods go on",
    NodeEffect.DIVIDES: "is divided anew at once",
    NodeEffect.WAITS: "takes no new pod until its pods with units are gone",
    NodeEffect.KEEPS: "goes on by the former unit until its pods with units are gone",
    NodeEffect.SETTINGS: "same cards, other settings",
    NodeEffect.NONE: "nothing",
}


def simulation_view(report: SimulationReport, page: OutputPage) -> Iterator[RenderableType]:
    if report.policy is not None:
        yield from _policy(report.policy, page)
        if report.policy.refusal:
            return
    if report.units_before:
        yield sentence(f"Units of all cards: {_units(report.units_before)} now.")
        yield sentence(f"Then: {_units(report.units_after)}.")
        yield ""
    yield from places_view(report, page)
    yield from _footnotes(report)


def places_view(report: SimulationReport, page: OutputPage) -> Iterator[RenderableType]:
    """What was placed, and where."""
    yield heading(summary(report))
    if report.placements:
        yield ""
        yield placements_table(report.placements, page)


def summary(report: SimulationReport) -> str:
    total, pending = len(report.placements), len(report.placements) - report.fitting
    if not total:
        return "No pod that asks for a share of a card is to be placed."
    on = f", on {len(report.by_node)} of {counted(report.nodes, 'node')} with cards"
    stays = f"; {pending} would stay pending" if pending else ""
    verb = "fits" if total == 1 else "fit"
    return f"{report.fitting} of {counted(total, 'pod')} {verb}{on if report.fitting else ''}{stays}."


def placements_table(placements: Sequence[SimulatedPlacement], page: OutputPage) -> PageTable:
    if len(placements) <= MAX_ROWS or page.is_wide:
        return PageTable(_PLACES, map(_row, placements), page=page)
    groups = Counter(map(_group, placements))
    rows = ((group[0], str(count), *group[1:]) for group, count in groups.items())
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


def _group(placement: SimulatedPlacement) -> tuple[str, ...]:
    name = placement.workload or f"pod {placement.name}"
    cards = ", ".join(str(card.index) for card in placement.cards)
    return (
        f"{placement.namespace}/{name}{_remark(placement)}",
        _asked(placement),
        placement.node or NOTHING,
        cards or NOTHING,
        _why(placement),
    )


def _asked(placement: SimulatedPlacement) -> str:
    return ", ".join(str(asked.units) for asked in placement.asked) or NOTHING


def _remark(placement: SimulatedPlacement) -> str:
    if placement.moved_from:
        return f" (from {placement.moved_from})"
    return " (waits)" if placement.waits_already else ""


def _why(placement: SimulatedPlacement) -> str:
    return placement.reason if placement.fits else f"pending: {placement.reason}"


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
    if policy.nodes:
        yield ""
        yield PageTable(_CHANGES, map(_change, policy.nodes), page=page)
    yield ""


def _effects(changes: Iterable[NodeChange]) -> str:
    words = {
        NodeEffect.GAINS: "begin to share",
        NodeEffect.LOSES: "share no more",
        NodeEffect.DIVIDES: "divided anew at once",
        NodeEffect.WAITS: "wait for their pods",
        NodeEffect.KEEPS: "go on by the former unit",
        NodeEffect.SETTINGS: "get other settings",
    }
    found = Counter(change.effect for change in changes)
    said = [f"{counted(found[effect], 'node')} {text}" for effect, text in words.items() if found[effect]]
    return ", ".join(said) or "nothing changes on any node"


def _change(change: NodeChange) -> tuple[str, ...]:
    pods = [f"{pod.namespace}/{pod.name} {pod.units}" for pod in change.pods]
    return (
        change.node,
        _sharing(change.before),
        _sharing(change.after),
        _EFFECTS[change.effect],
        listed(pods) or NOTHING,
    )


def _sharing(sharing: NodeSharing) -> str:
    if not sharing.policy:
        return NOTHING
    cards = "" if sharing.cards is None else f", {counted(sharing.cards, 'card')}"
    return f"{sharing.policy}: {sharing.mode} {sharing.unit}".rstrip() + cards


def _units(units: Iterable[ClassUnits]) -> str:
    return ", ".join(f"{each.units:,} of {each.resource} ({each.unit})" for each in units) or "none"
