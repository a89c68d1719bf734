"""Whatever happens to a card, and in whatever order: what its health has to be."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.samples.plugin import card
from tests.samples.sick_cards import HUNG, LOST, ODD, QUIET, RESET, Ward

from gpushare_plugin.devices.card import Reading

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
