"""I2: a container's environment names exactly the cards whose units the kubelet holds for it."""

from collections.abc import Iterable, Iterator, Mapping

from gpushare_core.audit.difference import CHECKPOINT, ENVIRONMENT, Difference, DifferenceKind, shares_text
from gpushare_core.audit.holdings import Holding, shares_of
from gpushare_core.audit.records import ContainerKey, NodeRecords, SeenCards
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.audit.unit_map import UnitMap
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.dialects.visible_cards import hides_cards, is_runtime_variable

MAX_SHOWN = 256
"""Characters of a variable's value."""


def stored_answers(records: NodeRecords, held: Iterable[Holding], units: UnitMap) -> Iterator[Difference]:
    """Yields the containers for which the plugin's stored response names other cards than their units lie
    on."""
    teller = f"the answer in {CHECKPOINT}"
    for holding in held:
        if holding.response and not holding.foreign:
            yield from _compared(records, holding, holding.response, units, teller)


def environments(records: NodeRecords, held: Iterable[Holding], units: UnitMap) -> Iterator[Difference]:
    """Yields the running containers that see other cards than those of the units that the kubelet holds."""
    if records.environments is None or (records.resources is None and records.checkpoint is None):
        return
    held = [*held]
    by_uid = {(uid, holding.key.container): holding for holding in held for uid in _uids(records, holding)}
    by_name = {_plain(holding.key): holding for holding in held}
    for key, seen in records.environments.items():
        holding = _holding_of(key, by_uid, by_name)
        if holding is None and seen is not None:
            yield _unheld(records, key, seen)
        elif holding is not None and not holding.foreign:
            if seen:
                yield from _compared(records, holding, seen, units, ENVIRONMENT)
            else:
                yield _blind(records, holding, units)


def _uids(records: NodeRecords, held: Holding) -> set[str]:
    """Returns the pod's UIDs: a static pod has one of the API server's and one of the kubelet's."""
    pod = (records.pods or {}).get(held.key.pod.uid)
    return {held.key.pod.uid, pod.kubelet_uid if pod else ""} - {""}


def _holding_of(
    key: ContainerKey, by_uid: Mapping[tuple[str, str], Holding], by_name: Mapping[ContainerKey, Holding]
) -> Holding | None:
    """Returns the holding of the pod with that UID; where one of the books has no UID, of the pod of that
    name.

    Names are used again.
    """
    if found := by_uid.get((key.pod.uid, key.container)):
        return found
    named = by_name.get(_plain(key))
    return named if named and not (named.key.pod.uid and key.pod.uid) else None


def _plain(key: ContainerKey) -> ContainerKey:
    return ContainerKey(key.pod._replace(uid=""), key.container)


def _compared(
    records: NodeRecords, held: Holding, seen: SeenCards, units: UnitMap, teller: str
) -> Iterator[Difference]:
    shares = shares_of(held.blocks(units))
    total = sum(shares.values())
    if {*seen.cards} != shares.keys() or seen.units not in (None, total):
        amount = "units" if seen.units is None else f"{seen.units} units"
        yield Difference.of_container(
            records,
            held.key,
            DifferenceKind.ENVIRONMENT_DIFFERS,
            f"the kubelet holds {shares_text(shares)} for {held.key}, and {teller} names {amount} of"
            f" {', '.join(seen.cards)}: the container uses what is not its own; delete the pod, so that its"
            " controller creates it again",
        )
    for name, value in seen.others.items():
        if _shows_others(records, held, seen, name):
            yield Difference.of_container(
                records,
                held.key,
                DifferenceKind.ENVIRONMENT_DIFFERS,
                f"in {teller} of {held.key} {name} is {_quoted(value)}, and its cards are"
                f" {', '.join(seen.cards)}: its runtime shows it other cards than it holds; remove {name}"
                " from the pod's template if it is there, and delete the pod",
            )


def _shows_others(records: NodeRecords, held: Holding, seen: SeenCards, name: str) -> bool:
    """Whether the variable ``name`` shows a runtime other cards than those of the container.

    A runtime knows words besides UUIDs, and an inventory has names of its own. The plugin's response, where
    it was read, says which names are right, and whether the runtime looks at the variable at all.
    """
    response, shown = held.response, {*seen.others[name].split(",")}
    if hides_cards(name, seen.others[name]):
        return False
    cards = records.share_node.cards if records.share_node else ()
    if response is seen:
        return not {"all", *(card.uuid for card in cards)}.isdisjoint(shown - {*seen.cards})
    if response is not None:
        return name in response.others and shown != {*response.others[name].split(",")}
    return bool(shown - {*seen.cards, *(str(card.index) for card in cards if card.uuid in seen.cards)})


def written_by_authors(records: NodeRecords, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields the containers whose pod sets itself which cards they see, which wins over the plugin's
    response.

    Needs no book of the node.
    """
    dialect = DIALECTS.get(records.share_node.dialect) if records.share_node else None
    if dialect is None:
        return
    names = {*dialect.resources, *GPUSHARE.resources}
    for uid, pod in (records.pods or {}).items():
        if pod.variables and not pod.ended and pod.request:
            asking = pod.request.of(names).containers
            for container in pod.variables.keys() & asking.keys():
                held = claims[uid].allocation.containers.get(container, {}) if uid in claims else {}
                for name, value in pod.variables[container].items():
                    if value is None or not (hides_cards(name, value) or {*value.split(",")} == {*held}):
                        yield _authored(records, ContainerKey(pod.key, container), name, value)


def cards_unasked(records: NodeRecords) -> Iterator[Difference]:
    """Yields the running containers that ask for no card, and whose pod sets a variable that shows them
    cards.

    Needs no book of the node. Our own plugin is left out: it has to see all cards.
    """
    for pod in (records.pods or {}).values():
        if pod.phase != "Running" or pod.request is None or pod.is_plugin or not records.share_node:
            continue
        asking = {name for resource in pod.request.resources for name in resource.containers}
        for container, variables in pod.variables.items():
            shown = (
                (name, value)
                for name, value in variables.items()
                if is_runtime_variable(name) and (value is None or not hides_cards(name, value))
            )
            if container not in asking and (first := next(shown, None)):
                yield _unasked(records, ContainerKey(pod.key, container), *first)


def _unasked(records: NodeRecords, key: ContainerKey, name: str, value: str | None) -> Difference:
    return Difference.of_container(
        records,
        key,
        DifferenceKind.CARDS_UNASKED,
        f"{key} asks for no card, and its pod sets {name} to {_source(value)}: a container runtime that reads"
        f" it shows it cards that other pods hold; remove {name} from the pod's template, or ask for units."
        " admission.visibleDevices of a policy has such pods refused; docs/nvml.md says how the runtime"
        " ignores the variable",
    )


def _authored(records: NodeRecords, key: ContainerKey, name: str, value: str | None) -> Difference:
    return Difference.of_container(
        records,
        key,
        DifferenceKind.ENVIRONMENT_DIFFERS,
        f"{key} asks for units, and its pod sets {name} to {_source(value)} itself: that overrides what the"
        f" plugin sets, and a container runtime that reads it shows it other cards than it holds;"
        f" remove {name} from the pod's template, delete the pod, and see that the admission"
        " policies of the installation are there",
    )


def _source(value: str | None) -> str:
    """``value``: of a variable that a pod's author sets; None where it is not in the pod itself."""
    return "something from elsewhere" if value is None else _quoted(value)


def _quoted(value: str) -> str:
    """Cuts the value: a pod's author may write a million characters, and the advice stands behind them."""
    return repr(value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}...")


def _unheld(records: NodeRecords, key: ContainerKey, seen: SeenCards) -> Difference:
    """A kubelet that has lost its checkpoint holds nothing for containers that still run."""
    named = f"{ENVIRONMENT} of {key} names {', '.join(seen.cards)}, and the kubelet holds nothing for it"
    named_alike = (pod for pod in (records.pods or {}).values() if pod.key[:2] == key.pod[:2])
    request = next((pod.request for pod in named_alike if pod.request), None)
    if request is None or key.container in request.containers:
        return Difference.of_container(
            records,
            key,
            DifferenceKind.FORGOTTEN_UNITS,
            f"{named}: the kubelet calls units free that are in use; delete the pod, so that its controller"
            " creates it again",
        )
    return Difference.of_container(
        records,
        key,
        DifferenceKind.ENVIRONMENT_DIFFERS,
        f"{named}, nor does the pod ask for any: its author has written that; remove the variable from the"
        " pod's template, and delete the pod",
    )


def _blind(records: NodeRecords, held: Holding, units: UnitMap) -> Difference:
    shares = shares_of(held.blocks(units))
    return Difference.of_container(
        records,
        held.key,
        DifferenceKind.ENVIRONMENT_DIFFERS,
        f"the kubelet holds {shares_text(shares)} for {held.key}, and {ENVIRONMENT} names no card: it runs"
        " without what it was promised; delete the pod, so that its controller creates it again",
    )
