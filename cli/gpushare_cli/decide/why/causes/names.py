"""Resources by a name that no node serves: another dialect's, a misspelt one, another mode's."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from gpushare_cli.decide.why.asked import (
    AskedAmount,
    asked_amounts,
    how_many,
    served_of_class,
    served_resources,
)
from gpushare_cli.decide.why.finding import Finding, decisive
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import counted, listed
from gpushare_core.api.names import GROUP
from gpushare_core.dialects.table import DIALECTS, RESOURCES, SHARED_RESOURCES
from gpushare_core.placement.modes.table import NODE_MODES, mode_serving
from gpushare_core.placement.quantity import read_amount

LIKENESS = 0.75
"""Of two names, from 0 to 1: ``gpushare/memory`` and ``gpushare.io/memory`` have 0.91."""
OURS = next(iter(DIALECTS.values())).resources


def asks_for_cards(situation: PodSituation) -> bool:
    """Returns whether the pod asks for shared cards, be it by a wrong name."""
    served = served_resources(situation)
    return any(
        asked.resource in served
        or asked.resource.startswith(f"{GROUP}/")
        or (not _is_offered(situation, asked.resource) and _alike(asked.resource, [*served, *RESOURCES]))
        for asked in asked_amounts(situation)
    )


def _alike(name: str, names: Sequence[str]) -> list[str]:
    """Returns the name of ``names`` that is most like ``name``; nothing where none is much like it."""
    return get_close_matches(name, names, n=1, cutoff=LIKENESS)


def unserved_names(situation: PodSituation) -> Iterator[Finding]:
    served = served_resources(situation)
    if not served:
        return
    seen: set[str] = set()
    for asked in asked_amounts(situation):
        is_known = asked.resource in served or asked.resource in seen
        if is_known or _is_offered(situation, asked.resource):
            continue
        seen.add(asked.resource)
        if finding := _finding(situation, asked):
            yield finding


def _is_offered(situation: PodSituation, name: str) -> bool:
    """Returns whether another device plugin offers the resource on any node."""
    nodes = (situation.cluster.nodes or {}).values()
    return any(read_amount((node.status.allocatable or {}).get(name)) > 0 for node in nodes)


def _finding(situation: PodSituation, asked: AskedAmount) -> Finding | None:
    if asked.resource in OURS:
        return _other_mode(situation, asked)
    if asked.resource in SHARED_RESOURCES:
        return _other_plugin(situation, asked)
    if asked.resource in RESOURCES:
        return _other_dialect(situation, asked)
    close = _closest(situation, asked.resource)
    return _misspelt(situation, asked, close) if close else None


def _closest(situation: PodSituation, name: str) -> str:
    """Returns the name that was meant; empty where nothing is known to be like it."""
    served = served_resources(situation)
    found = _alike(name, [*served, *RESOURCES])
    if found:
        return found[0] if found[0] in served else served_of_class(situation, RESOURCES[found[0]])
    return served_of_class(situation, None) if name.startswith(f"{GROUP}/") else ""


def _asks(asked: AskedAmount) -> str:
    return f"Container {asked.container} asks for {asked.resource}"


def _amount_of(situation: PodSituation, asked: AskedAmount, meant: str) -> str:
    """Returns what to write of ``meant``: the same number, unless no card has that many."""
    is_likely = read_amount(asked.amount) <= situation.ledger.biggest().get(meant, 0)
    return f"{meant}: {asked.amount}" if is_likely else how_many(situation, meant)


def _misspelt(situation: PodSituation, asked: AskedAmount, meant: str) -> Finding:
    served = listed(sorted(served_resources(situation)))
    return decisive(
        "UnknownResource",
        f"{_asks(asked)}, and there is no such resource: nodes serve {served}.",
        f"Do you mean {meant}? Write {_amount_of(situation, asked, meant)} in its limits.",
    )


def _other_dialect(situation: PodSituation, asked: AskedAmount) -> Finding:
    dialect = next(dialect.name for dialect in DIALECTS.values() if asked.resource in dialect.resources)
    spoken = sorted({policy.spec.dialect for policy in situation.cluster.policies or ()})
    speak = f", and the nodes that share cards speak {listed(spoken)}" if spoken else ""
    meant = served_of_class(situation, RESOURCES[asked.resource])
    return decisive(
        "OtherDialect",
        f"{_asks(asked)}, and no node serves that: it is a name of the dialect {dialect}{speak}.",
        f"Instead of {asked.resource} write {_amount_of(situation, asked, meant)}.",
        f"Where many workloads use these names, write dialect: {dialect} in the policy instead.",
    )


def _other_plugin(situation: PodSituation, asked: AskedAmount) -> Finding:
    """Of a resource that others' device plugins offer as well."""
    served = listed(sorted(served_resources(situation)))
    meant = served_of_class(situation, RESOURCES[asked.resource])
    return decisive(
        "OtherPlugin",
        f"{_asks(asked)}, and no node offers that: nodes that share their cards serve {served}.",
        f"Instead of {asked.resource} write {how_many(situation, meant)}.",
    )


def _other_mode(situation: PodSituation, asked: AskedAmount) -> Finding:
    class_ = RESOURCES[asked.resource]
    modes = sorted({node.spec.mode for node in situation.share_nodes.values()})
    number = counted(len(situation.share_nodes), "node")
    fitting = " or ".join(mode.name for mode in NODE_MODES.values() if mode_serving(class_) in mode.served)
    meant = served_of_class(situation, class_)
    names = sorted(policy.name for policy in situation.cluster.policies or ())
    edit = [f"kubectl edit gpusharepolicy {names[0]}"] if len(names) == 1 else []
    verb = "is" if len(situation.share_nodes) == 1 else "are"
    return decisive(
        "OtherMode",
        (
            f"{_asks(asked)}, and no node serves that: it needs mode {fitting}, and {number} {verb} in mode"
            f" {listed(modes)}."
        ),
        f"Instead of {asked.resource} write {how_many(situation, meant)}.",
        f"Or change the mode of nodes to {fitting} in the policy.",
        *edit,
        nodes=len(situation.share_nodes),
    )
