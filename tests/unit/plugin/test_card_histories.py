"""Whatever happens to a card, and in whatever order: what its health has to be."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.samples.plugin import card
from tests.samples.sick_cards import HUNG, LOST, ODD, QUIET, RESET, Ward

from gpushare_plugin.decide.health.card_health import clearance
from gpushare_plugin.devices.card import CardEvent, Reading

SEEN: dict[str, dict[str, Any]] = {"lost": LOST, "odd": ODD, "repair": {"repair": RESET}}
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("xid"), st.sampled_from([13, 48, 79])),
        st.tuples(st.just("lost"), st.none()),
        st.tuples(st.just("odd"), st.none()),
        st.tuples(st.just("repair"), st.none()),
        st.tuples(st.just("hung"), st.none()),
        st.tuples(st.just("fine"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)

XID_SOON_AFTER_ERRORS: list[tuple[str, int | None]] = [
    ("lost", None),
    ("fine", None),
    ("lost", None),
    ("xid", 48),
    ("fine", None),
]


@example(XID_SOON_AFTER_ERRORS, [0.0, 0.0, 30.0, 0.0, 30.0])
@given(ACTIONS, st.lists(st.sampled_from([0.0, 0.5, 5.0, 30.0, 400.0]), min_size=40, max_size=40))
def test_whatever_happens_it_is_sick_after_a_fault_and_returns_by_proof_alone(
    actions: list[tuple[str, int | None]], pauses: list[float]
) -> None:
    ward = Ward()
    last_bad: datetime | None = None
    for (action, xid), pause in zip(actions, pauses, strict=False):
        if action == "restart":
            ward.restart()
            continue
        if action == "hung":
            ward.see(Reading(cards=(replace(card(1), **LOST),), problem=HUNG), after=pause)
            continue
        seen = SEEN.get(action, {})
        healthy = ward.look(*([xid] if xid else []), after=pause, **seen)
        if action == "repair" or (xid and xid != 13):
            last_bad = ward.now
        if action in ("lost", "repair") or (xid and xid != 13):
            assert not healthy
        if last_bad and (ward.now - last_bad).total_seconds() < QUIET - 11:
            assert not healthy
    assert ward.until_healthy(step=60) <= 90_000


@given(ACTIONS)
def test_a_restart_at_any_time_makes_no_difference(actions: list[tuple[str, int | None]]) -> None:
    one, other = Ward(), Ward()
    for action, xid in actions:
        if action == "odd":  # that is a suspicion, which begins anew
            continue
        seen = SEEN.get(action, {})
        first, second = (ward.look(*([xid] if xid else []), after=30, **seen) for ward in (one, other))
        assert first == second
        other.restart()


ANSWER_QUIET = 10
DAY = 86_400
TOLERANCE = 11
"""Seconds: an event within ten seconds of the one before is the same, and the status has whole seconds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One look at the card: what is seen of it, what the driver has logged, and what was done before it."""

    seen: str
    xid: int
    pause: float
    restart: bool = False
    clear: bool = False

    @property
    def is_grave(self) -> bool:
        return self.xid in (48, 79)


SECONDS = [0.0, 0.4, 1.0, 5.0, 9.0, 30.0, 400.0, 601.0, 4_007.0, 47_003.0]
STEPS = st.builds(
    Step,
    seen=st.sampled_from(["fine", "fine", "unproven", "odd", "lost", "repair", "hung", "gone"]),
    xid=st.sampled_from([0, 0, 0, 13, 48, 79]),
    pause=st.sampled_from(SECONDS),
    restart=st.sampled_from([False, False, False, True]),
    clear=st.sampled_from([False, False, False, False, True]),
)


def seconds(since: datetime | None, now: datetime) -> float:
    return (now - since).total_seconds() if since else 0


@dataclass(slots=True)
class Expected:
    """What the documents say of one card, told from its whole history in memory."""

    held: bool
    is_sick: bool = False
    needed: float = 0
    """Seconds that it has to be quiet until it returns."""
    well_since: datetime | None = None
    """The earliest from when it may be called quiet."""
    proven_since: datetime | None = None
    """The latest: an event while the card cannot tell does not say that it is well."""
    relapses: int = 0
    returned: datetime | None = None
    odd_since: datetime | None = None
    gone_since: datetime | None = None
    last_xid: datetime | None = None

    def restarted(self) -> None:
        self.odd_since = self.gone_since = None

    def cleared(self, now: datetime) -> None:
        self.is_sick, self.returned, self.relapses = False, now, self.relapses + 1

    def check(self, step: Step, *, healthy: bool, now: datetime) -> None:
        """Raises where what the plugin says of the card, ``healthy``, is not what it has to say."""
        quiet = self._quiet_after(step, now)
        self._note_absence(step, now)
        if quiet:
            self._fall(step, quiet, now)
        elif step.seen in ("hung", "gone"):
            self.well_since = self.proven_since = None
        elif step.seen == "fine":
            self.well_since, self.proven_since = self.well_since or now, self.proven_since or now
        if not self.is_sick:
            assert healthy == (step.seen != "gone")
            self._forget(now)
        elif quiet or step.seen != "fine" or seconds(self.well_since, now) < self.needed - TOLERANCE:
            assert not healthy
            self._forget_absent(now)
        elif seconds(self.proven_since, now) > self.needed + 1:
            assert healthy
        if healthy and self.is_sick:
            self.cleared(now)

    def _quiet_after(self, step: Step, now: datetime) -> float:
        """Returns the seconds of quiet that what is seen asks for by itself; 0: nothing is wrong."""
        if step.seen == "odd":
            self.odd_since = self.odd_since or now
        elif step.seen != "hung":
            self.odd_since = None
        stays_odd = step.seen == "odd" and self.odd_since and seconds(self.odd_since, now) >= 1
        if step.is_grave or step.seen == "repair":
            return QUIET
        is_error = step.seen == "lost" or stays_odd or (step.seen == "gone" and self.held)
        return ANSWER_QUIET if is_error else 0

    def _note_absence(self, step: Step, now: datetime) -> None:
        is_known = self.is_sick or self.returned
        self.gone_since = (self.gone_since or now) if step.seen == "gone" and is_known else None

    def _fall(self, step: Step, quiet: float, now: datetime) -> None:
        needed = min(quiet * 2**self.relapses, DAY)
        self.needed = max(needed, self.needed) if self.is_sick else needed
        self.is_sick = True
        is_well = step.seen in ("fine", "unproven") or (step.seen == "odd" and self.odd_since == now)
        self.well_since = now if is_well else None
        client_authenticated = step.seen == "fine" or self.proven_since is not None
        self.proven_since = now if is_well and client_authenticated else None
        self.last_xid = now if step.is_grave else self.last_xid

    def _forget(self, now: datetime) -> None:
        if seconds(self.returned, now) >= DAY:
            self.returned, self.relapses = None, 0

    def _forget_absent(self, now: datetime) -> None:
        times = (self.gone_since, self.last_xid or self.gone_since)
        if not self.held and all(seconds(time, now) >= DAY for time in times):
            self.is_sick, self.returned, self.relapses = False, None, 0


def looked(ward: Ward, step: Step) -> bool:
    """Whether the second card is healthy after the ``step``."""
    shown = SEEN.get(step.seen, {"unproven": True} if step.seen == "unproven" else {})
    cards = (card(0),) if step.seen == "gone" else (card(0), replace(card(1), **shown))
    events = (CardEvent("GPU-1", step.xid),) if step.xid else ()
    problem = HUNG if step.seen == "hung" else None
    return ward.see(Reading(cards=cards, events=events, problem=problem), after=step.pause)


@given(st.lists(STEPS, max_size=30), st.booleans())
def test_any_history_is_judged_as_the_documents_say(steps: list[Step], held: bool) -> None:  # noqa: FBT001
    ward = Ward(held=("GPU-1",) if held else ())
    expected = Expected(held)
    for step in steps:
        if step.restart:
            ward.restart()
            expected.restarted()
        fault = ward.health.faults.get("GPU-1")
        clears = step.clear and fault and fault.quiet_since and not fault.cleared
        ward.annotation = clearance(fault) if clears and fault else ""
        if clears:
            expected.cleared(ward.now)
        healthy = looked(ward, step)
        expected.check(step, healthy=healthy, now=ward.now)
    assert ward.until_healthy(step=3600) <= DAY + 3600
