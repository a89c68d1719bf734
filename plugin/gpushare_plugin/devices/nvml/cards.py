"""What NVML's answers mean: which cards there are, which are left out, what is wrong and what to do. Pure.

Codes: ``nvmlReturn_t`` of NVIDIA's ``nvml.h``.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpushare_core.api.bounds import is_card_uuid
from gpushare_core.api.served import Problem
from gpushare_plugin.devices.card import LeftOutCard, PhysicalCard, Reading

NO_OWN_UUID = "the driver reports no UUID that only this card has: run `nvidia-smi -L` on the node"
MIG = (
    "MIG is enabled on it, and only whole cards are shared: leave it to NVIDIA's device plugin, or run"
    " `nvidia-smi -i {uuid} -mig 0` on the node"
)

Pairs = Collection[frozenset[str]]
"""Pairs of UUIDs of cards that are linked directly."""


class DriverFaultError(Exception):
    """NVML says nothing of any card. ``detail`` is for people."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(f"{detail}: {code}")
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """NVML's answers about the card that has ``index`` now."""

    index: int
    uuid: str = ""
    """Empty where NVML did not say."""
    model: str = ""
    memory: int = 0
    """Bytes."""
    capability: tuple[int, int] = (0, 0)
    """CUDA compute capability; zeros where NVML did not say."""
    mig_enabled: bool = False
    numa_node: int = -1
    """Negative where NVML did not say."""
    remapping_failures: int | None = 0
    """Not 0 where a row of the card's memory could not be remapped; None where NVML did not answer."""
    recovery_action: int | None = 0
    """``nvmlDeviceGpuRecoveryAction_t``; None where NVML did not answer."""
    error: int = 0
    """Code of the first call that failed and without which the card cannot be shared."""
    call: str = ""
    """The name of that call."""


@dataclass(frozen=True, slots=True)
class _Fault:
    reason: str
    message: str
    stops_cards: bool = False
    """Whether containers that start now could not use any card."""


DRIVER_FAULTS: Mapping[int, _Fault] = {
    1: _Fault("DriverReloaded", "NVML was shut down under the plugin, which opens it again: nothing to do"),
    4: _Fault(
        "DriverForbidden",
        "the plugin has no access to the NVIDIA driver: give its pod /dev/nvidiactl, by NVIDIA's container"
        " runtime or by a volume",
    ),
    9: _Fault(
        "DriverNotLoaded",
        "the NVIDIA driver is not loaded: run `nvidia-smi` on the node; load the module nvidia, or install"
        " the driver for the kernel that runs",
        stops_cards=True,
    ),
    12: _Fault(
        "DriverAbsent",
        "the plugin's pod has no libnvidia-ml.so.1: install the NVIDIA driver on the node; name the"
        " RuntimeClass of NVIDIA's container runtime in plugin.runtimeClassName of the policy, or make that"
        " runtime the node's default one and delete this node's plugin pod so that it is created again; or"
        " set devices.source to what the node has",
        stops_cards=True,
    ),
    18: _Fault(
        "DriverUpgraded",
        "the NVIDIA driver's library and kernel module are of different versions, as after an upgrade: drain"
        " the node and reboot it, or reload the module; delete this node's plugin pod if this stays",
        stops_cards=True,
    ),
    13: _Fault(
        "DriverTooOld",
        "the NVIDIA driver does not know what the plugin asks: install a driver of a version that NVIDIA"
        " still supports",
    ),
}
"""By code, of a call that is not about one card."""
NEVER_ONE_CARD = frozenset({1, 9, 12, 18})
"""Codes that mean the driver as a whole, also of a call about one card."""
UNKNOWN_ERROR = 999

HUNG = Problem(
    "DriverHung",
    "the NVIDIA driver has not answered for more than {seconds:g} s: look for Xid messages in the node's"
    " kernel log (`dmesg | grep -i xid`), and reboot the node if `nvidia-smi` hangs there, too",
)

_CARD_FAULTS: Mapping[int, str] = {
    4: "the plugin has no access to it: give its pod all of /dev/nvidia*, by NVIDIA's container runtime",
    7: "NVML's answer is too long for this version: upgrade gpushare",
    8: "its power cable is not connected as it must be: connect it",
    10: "it does not answer in time: look for Xid messages in the node's kernel log",
    11: "its interrupts do not arrive: look for Xid messages in the node's kernel log, reboot the node",
    13: "the driver is too old: install a version that NVIDIA still supports",
    14: "its infoROM is corrupted: have the card looked at",
    15: "it has fallen off the bus or is not accessible any more: reboot the node, or replace the card",
    16: "it needs a reset: run `nvidia-smi --gpu-reset -i {index}` on the node when no pod uses it",
    17: "the operating system blocks the request: look at cgroups and permissions of /dev/nvidia*",
    20: "the node has too little memory for NVML's answer: free some",
    27: "it is not ready yet: wait",
    28: "it is not there any more: reseat or replace the card",
}
PASSING = frozenset({10, 19, 20, 27, UNKNOWN_ERROR})
"""Codes of one card that may be over in a moment."""

ROW_REMAPPING_FAILED = Problem(
    "RowRemappingFailed", "a row of its memory is broken and could not be remapped: have the card replaced"
)
_RECOVERY_ACTIONS: Mapping[int, str] = {
    1: "a reset: let its pods end and run `nvidia-smi --gpu-reset -i {uuid}` on the node",
    2: "a reboot of the node",
    3: "that direct traffic with other cards is drained: let the pods end that use it with others",
    4: "that its pods end, and then a reset: `nvidia-smi --gpu-reset -i {uuid}` on the node",
    5: "a recovery of its IMEX domain",
    6: "a reset of its bus: reboot the node",
    7: "a reboot of the system",
}


def repair_due(facts: CardFacts) -> Problem | None:
    if facts.remapping_failures:
        return ROW_REMAPPING_FAILED
    if not facts.recovery_action:
        return None
    other = f"recovery action {facts.recovery_action}: see `nvidia-smi -q` on the node"
    action = _RECOVERY_ACTIONS.get(facts.recovery_action, other)
    return Problem("RecoveryActionDue", f"the driver asks for {action.format(uuid=facts.uuid)}")


def driver_problem(code: int, detail: str) -> Problem:
    """Returns what is wrong with a driver that answers every question with ``code``, for people."""
    fault = DRIVER_FAULTS.get(code)
    if fault:
        return Problem(fault.reason, f"{fault.message} ({detail})")
    return Problem(
        "DriverError",
        f"NVML answers {detail} with error {code}: run `nvidia-smi` on the node; the cards that were found"
        " before go on",
    )


def without_driver(code: int, detail: str, known: Sequence[PhysicalCard]) -> Reading:
    """Returns the ``known`` cards with the problem, unhealthy where it stops them all."""
    problem = driver_problem(code, detail)
    fault = DRIVER_FAULTS.get(code)
    cards = stopped(known, problem.message) if fault and fault.stops_cards else tuple(known)
    return Reading(cards=cards, problem=problem)


def without_answer(deadline: float, known: Sequence[PhysicalCard]) -> Reading:
    """Returns the ``known`` cards, unhealthy: a container would hang as the driver does.

    The problem names the ``deadline`` and not how long the driver has hung, so that the status is written
    once.
    """
    problem = replace(HUNG, message=HUNG.message.format(seconds=deadline))
    return Reading(cards=stopped(known, "the driver does not answer"), problem=problem)


def stopped(cards: Iterable[PhysicalCard], reason: str) -> tuple[PhysicalCard, ...]:
    return tuple(replace(card, healthy=False, reason=reason) for card in cards)


def reading_of(facts: Sequence[CardFacts], pairs: Pairs, known: Sequence[PhysicalCard]) -> Reading:
    """Returns the cards of ``facts``. What becomes of a card, the first that applies:

    1. NVML says nothing of a ``known`` card: it is gone.
    2. The card fails and was known: it stays as it was, unhealthy. A failing card without a UUID counts as a
       known card that no other fact names, first the one with its index.
    3. The card fails and was never known: it is left out, for nobody knows its memory.
    """
    uuids = [fact.uuid for fact in facts if fact.uuid]
    groups = link_groups(uuids, pairs)
    missed = {card.uuid: card for card in known if card.uuid not in uuids}
    cards: list[PhysicalCard] = []
    left_out: list[LeftOutCard] = []
    for fact in facts:
        nameless = _has_no_own_uuid(fact, cards)
        before = _before(fact, known, missed) if fact.error and not nameless else None
        if before:
            cards.append(_failing(before, fact))
        elif reason := NO_OWN_UUID if nameless else _left_out(fact):
            left_out.append(
                LeftOutCard(index=fact.index, uuid=fact.uuid, reason=reason, healthy=not fact.error)
            )
        else:
            cards.append(_card(fact, groups))
    return Reading(cards=tuple(cards), left_out=tuple(left_out))


def _has_no_own_uuid(facts: CardFacts, cards: Sequence[PhysicalCard]) -> bool:
    """Whether the driver gives the card the UUID of one before it, or none although it answers."""
    is_taken = any(card.uuid == facts.uuid for card in cards)
    return is_taken or not (facts.error or is_card_uuid(facts.uuid))


def _failing(before: PhysicalCard, facts: CardFacts) -> PhysicalCard:
    return replace(
        before,
        index=facts.index,
        healthy=False,
        reason=card_fault(facts),
        passing=facts.error in PASSING,
        repair=None,
        unproven=False,
    )


def _before(
    facts: CardFacts, known: Iterable[PhysicalCard], missed: dict[str, PhysicalCard]
) -> PhysicalCard | None:
    """Returns the card of ``facts`` as it was known; one without a UUID is taken out of ``missed``."""
    if facts.uuid:
        return next((card for card in known if card.uuid == facts.uuid), None)
    nearest = sorted(missed.values(), key=lambda card: card.index != facts.index)
    return missed.pop(nearest[0].uuid) if nearest else None


def _left_out(facts: CardFacts) -> str:
    if facts.error:
        return card_fault(facts)
    return MIG.format(uuid=facts.uuid) if facts.mig_enabled else ""


def card_fault(facts: CardFacts) -> str:
    known = _CARD_FAULTS.get(facts.error, "run `nvidia-smi -q` on the node")
    return f"{known.format(index=facts.index)} (NVML error {facts.error} of {facts.call})"


def _card(facts: CardFacts, groups: Mapping[str, int]) -> PhysicalCard:
    return PhysicalCard(
        uuid=facts.uuid,
        index=facts.index,
        memory=facts.memory,
        model=facts.model,
        compute_score=compute_score(facts.capability),
        numa_node=facts.numa_node,
        link_group=groups.get(facts.uuid, -1),
        repair=repair_due(facts),
        unproven=None in (facts.remapping_failures, facts.recovery_action),
    )


def compute_score(capability: tuple[int, int]) -> int:
    """Returns a number that is higher for newer cards: 900 for compute capability 9.0, 0 if unknown."""
    major, minor = capability
    return major * 100 + minor * 10


def link_groups(uuids: Sequence[str], pairs: Pairs) -> dict[str, int]:
    """Returns UUID -> group. All cards of a group are linked with each other; a card without links has none.

    Where links form no such groups, as in a ring, a card joins the first group whose cards it is all linked
    with.
    """
    groups: list[list[str]] = []
    for uuid in uuids:
        fitting = (group for group in groups if all(frozenset((uuid, other)) in pairs for other in group))
        if group := next(fitting, None):
            group.append(uuid)
        else:
            groups.append([uuid])
    linked = (group for group in groups if len(group) > 1)
    return {uuid: number for number, group in enumerate(linked) for uuid in group}
