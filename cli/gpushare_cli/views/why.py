"""What people see of an explanation: the answer, what is asked for, why, what would help, what would not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType

from gpushare_cli.decide.why.explanation import (
    Attempts,
    CardOfPod,
    ContainerWords,
    PodExplanation,
    ResourceAsk,
    SchedulerWords,
    WhyState,
)
from gpushare_cli.decide.why.finding import Finding, Remedy
from gpushare_cli.decide.why.words import NOUNS, amount, seconds_text
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.wording import counted, listed, memory_text
from gpushare_core.placement.requests import ResourceClass

_STYLES = {WhyState.RUNNING: "green", WhyState.FITS: "green", WhyState.WAITING: "bold red"}
STEP = 2
MAX_CONTAINERS = 8
FORBIDDEN = "403 Forbidden"


def why_view(report: PodExplanation, _page: OutputPage) -> Iterable[RenderableType]:
    yield sentence(report.answer, style=_STYLES.get(report.state, "bold"))
    first, others = _first(report)
    yield from _hints(first)
    yield from _section("Asks for", _asks(report.asks))
    yield from _section("Where", _cards(report))
    yield from _section("Why there", map(_line, report.choice))
    yield from _section("What holds it to its share", map(_line, report.isolation))
    yield from _section("Containers that do not run", map(_container, report.containers))
    yield from _section("Also" if first else "Why", _findings(others))
    yield from _section("What would help", _remedies(report.remedies, helps=True))
    yield from _section("What would not help", _remedies(report.remedies, helps=False))
    yield from _section("Waits", _attempts(report.attempts))
    yield from _section("What scheduler and kubelet say", _words(report.words))
    yield from _section("What could not be read", _unread(report.unread))


def _first(report: PodExplanation) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """Returns the finding that the answer says already, and the others."""
    said = 1 if report.findings and report.findings[0].is_decisive and report.state is WhyState.WAITING else 0
    return report.findings[:said], report.findings[said:]


def _unread(unread: Mapping[str, str]) -> Iterator[RenderableType]:
    """Where rights are missing there are usually many, and the API server's sentences say all the same."""
    forbidden = [what for what, why in unread.items() if FORBIDDEN in why]
    if forbidden:
        names = listed(forbidden, len(forbidden))
        yield _line(f"You may not list {names} ({FORBIDDEN}); -o json has what the API server says.")
    yield from (_line(f"{what}: {why}") for what, why in unread.items() if what not in forbidden)


def _section(title: str, parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Yields nothing for a section without parts."""
    for number, part in enumerate(parts):
        if not number:
            yield ""
            yield heading(title)
        yield part


def _line(text: str) -> RenderableType:
    return sentence(text, indent=STEP)


def _more(text: str) -> RenderableType:
    return sentence(text, indent=2 * STEP)


def _asks(asks: Iterable[ResourceAsk]) -> Iterator[RenderableType]:
    for ask in asks:
        resource = ResourceClass(ask.resource_class)
        memory = f" ({memory_text(ask.memory_bytes)})" if ask.memory_bytes else ""
        unit = (
            f"; a {NOUNS[resource]} is {ask.unit}" if ask.unit and resource is not ResourceClass.CARD else ""
        )
        yield _line(f"{ask.resource}: {amount(ask.units, resource)}{memory}{unit}")
        if len(ask.containers) > 1 or any(container.is_init for container in ask.containers):
            for container in ask.containers[:MAX_CONTAINERS]:
                kind = "init container" if container.is_init else "container"
                yield _more(f"{kind} {container.name}: {container.units}")
            if (more := len(ask.containers) - MAX_CONTAINERS) > 0:
                yield _more(f"and {counted(more, 'container')} more")


def _cards(report: PodExplanation) -> Iterator[RenderableType]:
    for card in report.cards:
        yield _line(_card(card))
        for neighbour in card.neighbours:
            used = f", uses {memory_text(neighbour.used_bytes)}" if neighbour.used_bytes is not None else ""
            yield _more(f"beside {neighbour.namespace}/{neighbour.name}: {neighbour.units}{used}")


def _card(card: CardOfPod) -> str:
    name = f"card {card.index} ({card.uuid})" if card.index is not None else f"card {card.uuid}"
    memory = f" ({memory_text(card.memory_bytes)})" if card.memory_bytes else ""
    of = f" of {card.card_units} units, {card.free_units} free" if card.card_units is not None else ""
    used = f"; uses {memory_text(card.used_bytes)}" if card.used_bytes is not None else ""
    return f"{card.node} {name}: has {card.units}{memory}{of}{used}"


def _container(container: ContainerWords) -> RenderableType:
    said = ": ".join(filter(None, (container.reason, container.message)))
    return _line(f"{container.name}: {container.state}{f', {said}' if said else ''}")


def _findings(findings: Iterable[Finding]) -> Iterator[RenderableType]:
    for finding in findings:
        yield _line(finding.sentence)
        yield from _hints([finding], indent=2 * STEP)


def _hints(findings: Iterable[Finding], indent: int = STEP) -> Iterator[RenderableType]:
    """What comes closest, and what to do."""
    for finding in findings:
        nearest = [f"Nearest: {finding.nearest}"] if finding.nearest else []
        for text in (*nearest, *finding.advice):
            make = to_type if text.startswith("kubectl ") else sentence
            yield make(text, indent=indent)


def _remedies(remedies: Iterable[Remedy], *, helps: bool) -> Iterator[RenderableType]:
    for remedy in remedies:
        if remedy.helps is helps:
            yield _line(remedy.sentence)
            yield from (to_type(command, indent=2 * STEP) for command in remedy.commands)


def _attempts(attempts: Attempts | None) -> Iterator[RenderableType]:
    if attempts is None or not attempts.since:
        return
    yield _line(f"For {seconds_text(attempts.seconds)}, since {attempts.since}.")
    if attempts.tried is None:
        yield _line("How often a scheduler has tried it cannot be known: its Events cannot be read.")
    elif attempts.tried:
        times = "once" if attempts.tried == 1 else counted(attempts.tried, "time")
        yield _line(f"Tried at least {times} without finding a node, last noted at {attempts.last_tried}.")
    elif attempts.is_unschedulable:
        yield _line("How often a scheduler has tried it is not known: Events are kept for an hour.")
    else:
        yield _line("No scheduler has said yet that it finds no node: ask again in a few seconds.")


def _words(words: Iterable[SchedulerWords]) -> Iterator[RenderableType]:
    for said in words:
        times = f", {counted(said.count, 'time')}" if said.count > 1 else ""
        yield _line(f"{said.by}, {said.reason}{times}: {said.message}")
