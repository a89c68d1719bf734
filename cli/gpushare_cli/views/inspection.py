"""What people see of nodes and their cards."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.inspection.inspection import CardInspection
from gpushare_cli.decide.inspection.shared_card import CardHolder, HolderState, SharedCard
from gpushare_cli.decide.inspection.shared_node import (
    UNAVAILABLE,
    NodeProblem,
    NodeResource,
    SharedNode,
    ShownIsolation,
)
from gpushare_cli.decide.inspection.unmeasured import unmeasured_sentences
from gpushare_cli.output.bar import held_bar
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, Shrink, TableColumn
from gpushare_cli.views.card_tables import amount_text, isolation_text, notes, over_text
from gpushare_cli.wording import counted, memory_text
from gpushare_core.api.conditions import FALSE, TRUE, UNKNOWN
from gpushare_core.api.enums import Mode, OnExcess
from gpushare_core.api.names import MEMORY_EXCEEDED
from gpushare_core.text.printable import printable

MAX_DRAWN = 16
"""Nodes of which every card is shown without being asked for: of more there is a line for each node."""

_NODE_COLUMNS = (
    TableColumn(header="node", shrink=Shrink.FOLD, min_width=16),
    TableColumn(header="mode"),
    TableColumn(header="unit"),
    TableColumn(header="policy", only_wide=True),
    TableColumn(header="dialect", only_wide=True),
    TableColumn(header="isolation", only_wide=True, only_filled=True),
    TableColumn(header="cards", is_number=True),
    TableColumn(header="held"),
    TableColumn(header="memory held", is_number=True),
    TableColumn(header="largest free", shrink=Shrink.FOLD, min_width=12),
    TableColumn(header="used", is_number=True),
    TableColumn(header="state", shrink=Shrink.FOLD, min_width=9),
)
_CARD_COLUMNS = (
    TableColumn(header="card", is_number=True),
    TableColumn(header="held"),
    TableColumn(header="units", is_number=True),
    TableColumn(header="used", is_number=True),
    TableColumn(header="state", shrink=Shrink.FOLD, min_width=10, only_filled=True),
    TableColumn(header="held by: pod, units, use", shrink=Shrink.FOLD, min_width=24),
    TableColumn(header="free", is_number=True, only_wide=True),
    TableColumn(header="resource", only_wide=True),
    TableColumn(header="model", only_wide=True),
    TableColumn(header="uuid", only_wide=True),
)
_IN_FORCE = {
    TRUE: "in force",
    FALSE: "not in force for some containers",
    UNKNOWN: "whether it is in force is not known",
}
_NOT_GIVEN = {UNAVAILABLE: "not to be had here", "": "of which its plugin says nothing"}


def inspection_view(report: CardInspection, page: OutputPage) -> Iterable[RenderableType]:
    yield from _summary(report)
    if page.is_wide or report.chooses_cards or len(report.nodes) <= MAX_DRAWN:
        for node in report.nodes:
            yield ""
            yield from _node(node, report.time, page)
    elif report.nodes:
        yield ""
        yield PageTable(_NODE_COLUMNS, (_node_row(node, page) for node in report.nodes), page=page)
        yield ""
        yield sentence("Who holds what of a card:")
        yield to_type(f"kubectl gpushare inspect {printable(report.nodes[0].name)}")
        yield to_type("kubectl gpushare inspect -o wide")
    yield from notes(unmeasured_sentences(report.nodes), report.unread)
    if report.missing and report.nodes:
        yield ""
    for missing in report.missing:
        yield sentence(f"{missing.name}: {missing.reason}", style="red")


def _summary(report: CardInspection) -> Iterator[RenderableType]:
    if not report.nodes:
        yield from _nothing(report)
        return
    cards = [card for node in report.nodes for card in node.cards]
    wrong = sum(bool(node.problems) for node in report.nodes)
    memory, held, free = (
        sum(getattr(card, field) for card in cards) for field in ("memory_bytes", "held_bytes", "free_bytes")
    )
    text = f"{counted(len(report.nodes), 'node')}, {counted(len(cards), 'card')}: "
    text += f"{memory_text(held)} of {memory_text(memory)} held, {memory_text(free)} free for new pods."
    yield heading(text)
    if wrong and not (report.only_problems or report.chooses_cards):
        verb = "has" if wrong == 1 else "have"
        yield sentence(f"{counted(wrong, 'node')} {verb} problems:", style="red")
        yield to_type("kubectl gpushare inspect --problems")


def _nothing(report: CardInspection) -> Iterator[RenderableType]:
    if report.only_problems and report.looked_at:
        where = f"on {counted(report.looked_at, 'node')}"
        if report.unread:
            yield heading(f"No problem {where} in what could be read.", "bold yellow")
        else:
            yield heading(f"No problem {where}.", "bold green")
    elif report.looked_at:
        yield heading(f"No card matches. Looked at {counted(report.looked_at, 'node')}.")
    elif report.sharing_nodes:
        sharing = counted(report.sharing_nodes, "node")
        yield heading(f"No node that matches shares its cards. Looked at {sharing}.")
    elif not report.missing:
        yield heading("No node shares its cards.")
        yield sentence("Which policies there are, and what they say:")
        yield to_type("kubectl gpushare status")


def _node(node: SharedNode, time: str, page: OutputPage) -> Iterator[RenderableType]:
    yield heading(node.name)
    yield sentence(_what_it_is(node), style="dim")
    if node.isolation:
        yield sentence(_isolation(node.isolation), style="dim")
    for resource in node.resources:
        yield sentence(_resource_line(resource, names_it=len(node.resources) > 1))
    for problem in brief(node.problems):
        yield from problem_lines(problem)
    if node.cards:
        if node.problems:
            yield ""
        yield _card_table(node, time, page)


def brief(problems: Sequence[NodeProblem]) -> Iterator[NodeProblem]:
    """Yields the problems, those of containers that use too much as one: the table marks each of them."""
    excess = [problem for problem in problems if problem.reason == MEMORY_EXCEEDED]
    yield from (problem for problem in problems if problem not in excess or len(excess) == 1)
    if len(excess) > 1:
        cards = sorted({problem.card for problem in excess if problem.card is not None})
        on = f"card{'s' if len(cards) > 1 else ''} {', '.join(map(str, cards))}"
        too_much = "use more memory than they asked for; others there may get none."
        message = f"{len(excess)} containers on {on} {too_much}"
        yield replace(excess[0], message=message, command="kubectl gpushare top pods -A", card=None)


def _what_it_is(node: SharedNode) -> str:
    reserved = f", {memory_text(node.reserved_bytes)} of each card reserved" if node.reserved_bytes else ""
    unit = node.unit or "unknown"
    return f"mode {node.mode}, unit {unit}{reserved}, dialect {node.dialect}, policy {node.policy or 'none'}"


def _isolation(isolation: ShownIsolation) -> str:
    if isolation.given in _NOT_GIVEN:
        shown, state = isolation.asked, _NOT_GIVEN[isolation.given]
    else:
        shown, state = isolation.given, _IN_FORCE.get(isolation.in_force, "")
    evicts = isolation.on_excess == OnExcess.EVICT
    excess = f"pods that have more for {isolation.grace_seconds} s are evicted" if evicts else ""
    return ", ".join(filter(None, (f"isolation {shown}", state, excess)))


def _resource_line(resource: NodeResource, *, names_it: bool) -> str:
    held = f"{resource.held_units} of {resource.total_units} units held"
    text = f"{held}, {resource.free_units} free, {resource.largest_free} at most for one pod"
    return f"{resource.name} ({resource.unit}): {text}" if names_it else text


def problem_lines(problem: NodeProblem) -> Iterator[RenderableType]:
    yield sentence(f"! {problem.message}", hanging=2, style="red")
    if problem.advice:
        yield sentence(problem.advice, indent=2)
    if problem.command:
        yield to_type(problem.command, indent=4)


def _card_table(node: SharedNode, time: str, page: OutputPage) -> PageTable:
    rows = (row for card in node.cards for row in _card_rows(node, card, time, page))
    return PageTable(_CARD_COLUMNS, rows, page=page)


def _card_rows(node: SharedNode, card: SharedCard, time: str, page: OutputPage) -> Iterator[Sequence[Cell]]:
    """Yields a line for each holder, the first with what the card is; on a wide page also for containers."""
    lines = [line for holder in card.holders for line in _holder_lines(node, holder, time, page)]
    first, *others = [*lines, *_unnamed(card)] or [_free_text(card)]
    yield (
        card.index,
        held_bar(held=card.held_units, total=card.units, page=page),
        f"{card.held_units}/{card.units}",
        f"{amount_text(card.used_bytes)}/{memory_text(card.memory_bytes)}",
        _state(node, card),
        first,
        card.free_units,
        card.resource,
        card.model,
        card.uuid,
    )
    for holder in others:
        yield ("", "", "", "", "", holder, "", "", "", "")


def _holder_lines(node: SharedNode, holder: CardHolder, time: str, page: OutputPage) -> Iterator[Text]:
    yield holder_text(holder, time)
    for container in holder.containers if node.isolation and page.is_wide else ():
        limit = "no limit" if container.limit_bytes is None else f"limit {memory_text(container.limit_bytes)}"
        by = f" by {container.isolation}" if container.isolation else ""
        yield Text(printable(f"  {container.container}: {container.units}, {limit}{by}"), "dim")


def holder_text(holder: CardHolder, time: str) -> Text:
    """Returns such as ``team-a/train-0: 4, uses 2Gi of 4Gi, Hook``."""
    text = f"{holder.pod}: {holder.units}"
    if holder.state is HolderState.NOT_STARTED:
        return Text(printable(f"{text}, not started"), "yellow")
    if holder.state is HolderState.ORPHANED:
        return Text(printable(f"{text}, gone and not released"), "red")
    if holder.used_bytes is not None:
        text += f", uses {memory_text(holder.used_bytes)} of {memory_text(holder.asked_bytes)}"
    if isolation := isolation_text(holder.isolation, lacks=holder.lacks_isolation):
        text += f", {'no isolation' if isolation == 'none' else isolation}"
    if holder.exceeds:
        over = over_text(holder.exceeded_since, holder.evicted_from, time)
        return Text(printable(f"{text}, {over}"), "red")
    return Text(printable(text))


def _unnamed(card: SharedCard) -> Iterable[Text]:
    if card.unnamed_units and card.holders:
        yield Text(f"unknown pod: {card.unnamed_units}", "red")


def _free_text(card: SharedCard) -> Text:
    if card.held_units:
        return Text(f"unknown pod: {card.held_units}", "red")
    if not card.takes_pods:
        return Text("nobody", "dim")
    offers = ", ".join(f"{units} {name}" for name, units in card.offers.items())
    return Text(f"free: {offers}" if offers else "free", "green")


def _state(node: SharedNode, card: SharedCard) -> Text:
    words = []
    if not card.healthy:
        words.append("sick")
    if card.cordoned:
        words.append("cordoned")
    if node.mode == Mode.MIXED and not words:
        return Text(card.serves or "open to all", "" if card.serves else "green")
    return Text(", ".join(words), "red" if "sick" in words else "yellow")


def _node_row(node: SharedNode, page: OutputPage) -> Sequence[Cell]:
    return (
        node.name,
        node.mode,
        node.unit,
        node.policy,
        node.dialect,
        node.isolation.given or node.isolation.asked if node.isolation else "",
        len(node.cards),
        held_bar(held=node.held_bytes, total=node.memory_bytes, page=page),
        f"{memory_text(node.held_bytes)}/{memory_text(node.memory_bytes)}",
        ", ".join(str(resource.largest_free) for resource in node.resources) or "0",
        amount_text(node.used_bytes),
        _node_state(node),
    )


def _node_state(node: SharedNode) -> Text:
    if not node.takes_pods:
        return Text("takes no pods", "red")
    if node.problems:
        return Text(counted(len(node.problems), "problem"), "yellow")
    return Text("ok", "green")
